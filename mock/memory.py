"""Door two: a provider as an httpx transport, in memory, on any clock.

It keeps the contract of a real connection: it applies httpx's timeouts, hands over
what was written before a break, raises what httpx raises, and tells the provider
when the client leaves. The sockets door is the judge: a test holds one against the
other for every fault.

They differ in one thing. At a reset, TCP throws away what has arrived and was not read
yet, so a slow reader of real sockets gets a part of what was written, and how much
depends on the machine. Here it gets all of it, and then the reset.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine

import httpx

from mock.exchange import Exchange, Request

TRUNCATED = "peer closed connection without sending complete message body"
NO_ANSWER = "Server disconnected without sending a response."


class MemoryTransport(httpx.AsyncBaseTransport):
    """Hands each request to `provider.open`.

    `latency_s` draws the seconds that a message takes one way; each request draws
    once for the way there, and once for the way back.
    """

    def __init__(self, provider, latency_s: Callable[[], float] = lambda: 0.0):
        self._provider, self._latency_s = provider, latency_s

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        await _travel(self._latency_s())
        exchange = self._provider.open(
            Request(
                request.method,
                request.url.raw_path.decode("ascii"),
                {name.lower(): value for name, value in request.headers.items()},
                body,
            )
        )
        limit_s = request.extensions.get("timeout", {}).get("read")
        back_s = self._latency_s()
        try:
            answered = await _within(limit_s, request, _head(exchange, back_s))
        except BaseException:
            exchange.leave()
            raise
        if not answered:
            raise httpx.RemoteProtocolError(NO_ANSWER, request=request)
        return httpx.Response(
            exchange.status,
            headers=exchange.headers,
            stream=_Body(exchange, request, limit_s, back_s),
            extensions={
                "http_version": b"HTTP/1.1",
                "reason_phrase": exchange.reason.encode(),
            },
        )


class _Body(httpx.AsyncByteStream):
    """The body of one reply. Closing it early means that the client has left."""

    def __init__(self, exchange: Exchange, request, limit_s, back_s: float):
        self._exchange, self._request = exchange, request
        self._limit_s, self._back_s = limit_s, back_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange, request = self._exchange, self._request
        bodyless = request.method == "HEAD"
        try:
            while True:
                piece = _piece(exchange, self._back_s)
                data = await _within(self._limit_s, request, piece)
                if data is None:
                    break
                if not bodyless:
                    yield data
        finally:  # broken off: the connection is of no more use
            exchange.leave()
        if exchange.ending == "reset":
            raise httpx.ReadError("Connection reset by peer", request=request)
        if exchange.ending == "truncate":
            raise httpx.RemoteProtocolError(TRUNCATED, request=request)

    async def aclose(self) -> None:
        self._exchange.leave()


async def _head(exchange: Exchange, back_s: float) -> bool:
    answered = await exchange.head()
    await _travel(back_s)
    return answered


async def _piece(exchange: Exchange, back_s: float) -> bytes | None:
    """The next piece of the body, `back_s` after it was written."""
    piece = await exchange.read()
    if piece is None:
        return None
    written, data = piece
    await _travel(written + back_s - asyncio.get_running_loop().time())
    return data


async def _travel(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


async def _within(limit_s: float | None, request: httpx.Request, coro: Coroutine):
    """Await `coro` under httpx's read timeout. An outer timeout works as ever."""
    try:
        async with asyncio.timeout(limit_s):
            return await coro
    except TimeoutError as error:
        raise httpx.ReadTimeout("", request=request) from error
