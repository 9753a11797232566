"""What the caller hands to the client, checked: where to, which headers, which body."""

import re
from collections.abc import Mapping
from typing import Any

from labkit.errors import ConfigError
from labkit.http import httpx
from labkit.secret import CARRY_KEYS, is_sendable
from labkit.strictjson import encode

Messages = str | list[dict[str, Any]]


def endpoint(base_url: str) -> httpx.URL:
    """The address of chat completions under a base URL.

    >>> str(endpoint("http://127.0.0.1:8787/v1/"))
    'http://127.0.0.1:8787/v1/chat/completions'
    """
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        url = httpx.URL("")
    is_web = url.scheme in ("http", "https") and url.host and not url.userinfo
    if not is_web or not (url.port is None or 0 < url.port < 65_536):
        raise ConfigError(
            "base_url must look like https://host/v1 (a port is 65535 at most), and"
            " hold no password (the key goes to api_key); look at LLM_BASE_URL",
            field="base_url",
        )
    return url.copy_with(path=url.path.rstrip("/") + "/chat/completions")


def check_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers, names in lower case. ConfigError names a bad one, not its value.

    >>> check_headers({"X-Team": "tides"})
    {'x-team': 'tides'}
    """
    if not isinstance(headers or {}, Mapping):
        raise ConfigError("headers must be a dict of str", field="headers")
    for name, value in (headers or {}).items():
        if not (
            isinstance(name, str) and re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.A)
        ):
            raise ConfigError(
                "headers: a name that no HTTP header may have", field="headers"
            )
        if not is_sendable(value):
            raise ConfigError(
                f"headers: the value of {name} is no str that an HTTP header may"
                " carry: look for a line end, a space or a letter beyond ASCII",
                field="headers",
            )
    return {name.lower(): value for name, value in (headers or {}).items()}


def without_keys(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that anybody may see. `Secret` holds the others."""
    return {name: each for name, each in headers.items() if name not in CARRY_KEYS}


def check_key(key: str | None) -> None:
    """An idempotency key goes out as a header."""
    if key is not None and not is_sendable(key):
        raise ConfigError(
            f"key is {key!r}: give a str of plain ASCII, no space at its ends",
            field="key",
        )


def as_list(messages: Messages) -> list[dict[str, Any]]:
    """A str becomes one message of the user."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    is_list = isinstance(messages, list | tuple)
    if not is_list or {*map(type, messages)} != {dict}:
        raise ConfigError(
            "messages must be a str or a list of dicts, not empty", field="messages"
        )
    return list(messages)


def as_json(fields: Any) -> bytes:
    """The body of the request."""
    try:
        return encode(fields).encode()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the request is no JSON: {error}", field="body") from None
