"""What comes over the wire when it is no answer: httpx's failures, refusals, headers.

Here httpx's exceptions end and labkit's begin.
"""

import json
from collections.abc import AsyncIterator, Mapping

from labkit.backoff import classify, meaning
from labkit.errors import (
    BrokenStream,
    ConfigError,
    ConnectError,
    LabkitError,
    MalformedStream,
    OutOfCredit,
    StatusError,
    shorten,
)
from labkit.http import httpx
from labkit.limits import Watchdog
from labkit.secret import Secret

TELLING = ("x-", "retry-after", "idempotent-", "ratelimit-")


class translated:  # noqa: N801 (used like a function; a generator would cost more)
    """httpx's exceptions as ours. `begun`: the headers of the answer had come."""

    def __init__(self, request: httpx.Request, watchdog: Watchdog, *, begun: bool):
        self._about = request, watchdog, begun

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        # Theirs hold the request, and its headers the key: so they stop here.
        if isinstance(error, httpx.HTTPError):
            raise our_own(error, *self._about) from None


def our_own(
    error: httpx.HTTPError, request: httpx.Request, watchdog: Watchdog, begun: bool
) -> LabkitError:
    """What one of httpx's exceptions is called here."""
    if isinstance(error, httpx.ConnectTimeout):
        return watchdog.verdict("connect")
    if isinstance(error, (httpx.ConnectError, httpx.PoolTimeout)):
        return ConnectError(
            f"no connection to {request.url.copy_with(query=None)}"
            f" ({shorten(str(error))}): check that the server runs, and the base URL"
        )
    if isinstance(error, httpx.LocalProtocolError):  # it quotes the header, key and all
        said = "the request cannot be sent: check the headers"
        return ConfigError(said, field="headers")
    if isinstance(error, httpx.DecodingError):
        said = f"the compressed answer cannot be read ({shorten(str(error))})"
        return MalformedStream(said)
    where = "in mid answer" if begun else "before an answer came"
    said = shorten(f"{type(error).__name__} {error}")
    return BrokenStream(f"the connection broke {where} ({said})")


def refusal(status: int, headers: dict[str, str], said: str) -> StatusError:
    """The error of a status that is no success. `said`: the provider's words.

    A header `x-should-retry: false` is obeyed: the server knows better. `true` is
    not, since a retry costs money and the table in `classify` says when it helps.
    """
    detail = shorten(said)
    forbidden = headers.get("x-should-retry") == "false"
    return (OutOfCredit if status == 402 else StatusError)(
        f"HTTP {status}: {meaning(status)}"
        + (f" (the provider says: {detail})" if detail else ""),
        status=status,
        verdict="fatal" if forbidden else classify(status),
        detail=detail,
        headers=headers,
    )


def telling(headers: Mapping[str, str], secret: Secret) -> dict[str, str]:
    """The headers worth keeping, for retries and for the reader of a reply."""
    return {
        name.lower(): secret.scrub(value)
        for name, value in headers.items()
        if name.lower().startswith(TELLING)
    }


async def read_at_most(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """A body; of one that is longer, a little more than `limit` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            break
    return bytes(body)


def words(body: bytes) -> str:
    """What the body of an error says, in the dialects that are spoken.

    >>> words(b'{"error": {"message": "no such model"}}'), words(b'{"detail": "no"}')
    ('no such model', 'no')
    >>> words(b"<h1>Bad gateway</h1>")
    '<h1>Bad gateway</h1>'
    """
    text = body.decode("utf-8", "replace")
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(told, dict):
        told = told.get("error") or told.get("detail") or told
    if isinstance(told, dict):
        told = told.get("message") or told
    if isinstance(told, str):
        return told
    return json.dumps(told) if told else ""
