"""What comes over the wire when it is no answer: httpx's failures, refusals, headers.

Here httpx's exceptions end and labkit's begin.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import contextmanager

from labkit.backoff import classify, meaning
from labkit.errors import (
    BrokenStream,
    ConfigError,
    ConnectError,
    MalformedStream,
    OutOfCredit,
    StatusError,
    shorten,
)
from labkit.http import httpx
from labkit.limits import Watchdog
from labkit.secret import Secret

TELLING = ("x-", "retry-after", "idempotent-", "ratelimit-")


@contextmanager
def translated(request: httpx.Request, watchdog: Watchdog, *, begun: bool):
    """httpx's exceptions as ours. `begun`: the headers of the answer had come."""
    # Theirs hold the request, and its headers the key: so they stop here, `from None`.
    try:
        yield
    except httpx.ConnectTimeout:
        raise watchdog.verdict("connect") from None
    except (httpx.ConnectError, httpx.PoolTimeout) as error:
        raise ConnectError(
            f"no connection to {request.url.copy_with(query=None)}"
            f" ({shorten(str(error))}): check that the server runs, and the base URL"
        ) from None
    except httpx.LocalProtocolError:  # its words quote the header, key and all
        raise ConfigError(
            "the request cannot be sent: check the headers", field="headers"
        ) from None
    except httpx.DecodingError as error:
        raise MalformedStream(
            f"the compressed answer cannot be read ({shorten(str(error))})"
        ) from None
    except httpx.HTTPError as error:
        where = "in mid answer" if begun else "before an answer came"
        said = shorten(f"{type(error).__name__} {error}")
        raise BrokenStream(f"the connection broke {where} ({said})") from None


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
