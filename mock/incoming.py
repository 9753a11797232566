"""Reading a request: its body, its faults, and what refuses it."""

import asyncio
import email.utils
import json
import time
from urllib.parse import urlsplit

from mock.exchange import Request
from mock.plan import BadFault, Plan, parse
from mock.wire import compact


class Refusal(Exception):
    """A request that gets an error instead of an answer."""

    def __init__(self, status: int, kind: str, said: str, headers: dict | None = None):
        super().__init__(said)
        self.status, self.kind, self.headers = status, kind, headers or {}


def bad_request(field: str, said: str) -> Refusal:
    """A 400 that names the field and the mend."""
    return Refusal(400, "invalid_request_error", f"{field}: {said}")


LOOPBACK = ("127.0.0.1", "localhost", "::1")
OURS = ("same-origin", "none")  # of Sec-Fetch-Site; none: its address was typed in


def forbidden(request: Request) -> Refusal | None:
    """Keep web pages out: a browser on this machine must not drive the provider.

    A name that an attacker made to point here (DNS rebinding) shows in `Host`; its
    port says nothing, since ports are forwarded. Every other page shows in `Origin`,
    which browsers send with each POST, a form's included, or in `Sec-Fetch-Site`,
    which they send with all else (W3C, Fetch Metadata). No page is served here, so
    none may ask, JupyterLab's neither. Programs send neither header.
    """
    host = request.headers.get("host", LOOPBACK[0]).lower()
    if _hostname(host) not in LOOPBACK:
        return _no_entry("Host: must name this machine, as 127.0.0.1:8787 does")
    target = request.target.lower()
    if target.startswith(("http://", "https://")):  # as a proxy is asked
        if _hostname(target.split("/")[2]) not in LOOPBACK:
            return _no_entry("this is no proxy: ask it for what is on 127.0.0.1")
    if request.headers.get("origin", f"http://{host}").lower() != f"http://{host}":
        return _no_entry("Origin: names a web page, and mock answers programs only")
    if request.headers.get("sec-fetch-site", "none").lower() not in OURS:
        return _no_entry("Sec-Fetch-Site: a web page asks, and mock answers programs"
                         " only; to see this in a browser, type its address")
    return None


def _hostname(authority: str) -> str | None:
    try:
        return urlsplit(f"//{authority}").hostname
    except ValueError:
        return None


def _no_entry(said: str) -> Refusal:
    return Refusal(403, "forbidden", said)


def read_json(raw: bytes) -> dict:
    """The body as a JSON object."""
    try:
        body = json.loads(raw)
        # Counting writes it again, from a few calls deeper: nesting may not be so deep
        # that it could only just be read.
        compact([[[[[[[[body]]]]]]]])
    except (ValueError, RecursionError) as error:
        raise bad_request("body", f"is no JSON ({error}); send an object") from None
    if not isinstance(body, dict):
        raise bad_request("body", f"is a JSON {type(body).__name__}; send an object")
    return body


def read_chat(raw: bytes) -> dict:
    """The body of a chat request, checked as far as a provider relies on it."""
    body = read_json(raw)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages", "must be a list with at least one message")
    for at, message in enumerate(messages):
        _check_message(f"messages[{at}]", message)
    for field, kind, said in OPTIONAL:
        if not isinstance(body.get(field), kind | None):
            raise bad_request(field, said)
    return body


OPTIONAL = (
    ("model", str, "must be a name"),
    ("stream", bool, "must be true or false"),
    ("stream_options", dict, "must be an object"),
    ("tools", list, "must be a list"),
)


def _check_message(where: str, message) -> None:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise bad_request(where, 'must be an object with a "role"')
    if not isinstance(message.get("content"), str | list | None):
        raise bad_request(f"{where}.content", "must be text, or a list of parts")
    if not isinstance(message.get("tool_call_id"), str | None):
        raise bad_request(f"{where}.tool_call_id", "must be the id of a call")
    calls = message.get("tool_calls")
    if not isinstance(calls, list | None):
        raise bad_request(f"{where}.tool_calls", "must be a list")
    for at, call in enumerate(calls or ()):
        if not isinstance(call, dict) or not isinstance(call.get("id"), str):
            said = 'must be an object with an "id"'
            raise bad_request(f"{where}.tool_calls[{at}]", said)


def read_plan(pairs, body: dict, queued: Plan) -> Plan:
    """The plan of a request: a queued one, its own faults on top, its max_tokens."""
    limit = body.get("max_tokens")
    if limit is None:
        limit = body.get("max_completion_tokens")
    if limit is not None and not any(field == "max_tokens" for field, _ in pairs):
        pairs = [*pairs, ("max_tokens", limit)]
    try:
        return parse(pairs, queued)
    except BadFault as bad:
        raise Refusal(400, "bad_fault", str(bad)) from None


def retry_after(value: str | None, form: str) -> dict[str, str]:
    """The header that tells a client to wait `value` seconds, in one of its forms."""
    if value is None:
        return {}
    if form == "date":
        clock = getattr(asyncio.get_running_loop(), "wall_time", time.time)
        then = clock() + float(value)
        return {"retry-after": email.utils.formatdate(then, usegmt=True)}
    if form == "ms":
        return {"retry-after-ms": f"{float(value) * 1000:.0f}"}
    return {"retry-after": value}
