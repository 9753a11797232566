"""The socket under one attempt: closed in the end, whoever cancels, and wherever.

httpcore and anyio make a connection, hand it over, and take it back in several steps.
A cancellation between two of them leaves the socket open with nobody to close it. So
a request is sent in a task of its own, which is not cancelled while it connects; and
an attempt holds its socket itself until the pool has it back. What happens inside is
told by httpcore's extensions "trace" and "network_stream"
(https://www.encode.io/httpcore/extensions/).

What stays: for some requests that are cancelled, httpcore's pool keeps a small dead
entry without a socket (encode/httpcore#1093). Only the pool could drop it, and httpx
does not show its pool. It goes when the client is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from labkit.http import httpx

Send = Callable[[httpx.Request], Awaitable[httpx.Response]]


class Line:
    """Follows one request of httpcore's.

    connecting: a connection is being made, and nothing of the request was sent.
        False for a connection that is used again, and for a transport that tells
        nothing.
    socket: ours to close; None before there is one, and once it is back in the pool.
    """

    def __init__(self):
        self.connecting = False
        self.socket = None
        self._given_up = False
        self._told: dict[str, Any] = {}

    def follow(self, request: httpx.Request) -> None:
        """Have httpcore tell of this attempt at sending the request."""
        # A new dict: the one of an attempt that was given up may still be in use.
        self._told = request.extensions = {**request.extensions, "trace": self._note}

    async def carry(self, send: Send, request: httpx.Request) -> httpx.Response:
        """Await `send(request)`, for a request that is followed."""
        answer = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(_deliver(send, request, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self._given_up = True  # for `_note`, which then ends the connecting
            if not self.connecting:
                task.cancel()
            task.add_done_callback(_drop)
            raise

    async def _note(self, event: str, info: dict[str, Any]) -> None:
        """The callback of the trace extension: "connection.connect_tcp.started"."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self.socket = info["return_value"]
            if self._given_up:
                await self.cut()
                raise asyncio.CancelledError
        elif event.endswith("connect_tcp.started"):
            self.connecting = True
        elif event.endswith("send_request_headers.started"):
            self.connecting = False
            self._told.pop("trace", None)  # eight more events, and none is news
            if self._given_up:
                asyncio.current_task().cancel()

    async def cut(self) -> None:
        """Close the socket, if the pool does not have it. Twice does no harm."""
        if self.socket:
            # In a task of its own, which goes on if this one is cancelled (again).
            closing = asyncio.ensure_future(self.socket.aclose())
            with suppress(Exception):  # what failed before matters more
                await asyncio.shield(closing)


class Direct(Line):
    """For a transport that is no socket: there is nothing to hold on to."""

    async def carry(self, send: Send, request: httpx.Request) -> httpx.Response:
        return await send(request)


async def _deliver(
    send: Send, request: httpx.Request, answer: asyncio.Future
) -> httpx.Response | None:
    """What asyncio.shield does, with a turn of the loop less for each request."""
    try:
        response = await send(request)
    except BaseException as error:
        if not answer.done():
            answer.set_exception(error)
        elif not isinstance(error, Exception | asyncio.CancelledError):
            raise  # Ctrl-C is nobody's answer, and must not be lost
        return None
    if not answer.done():
        answer.set_result(response)
    return response


def _drop(task: asyncio.Task) -> None:
    """Nobody waits for this answer any more."""
    if not task.cancelled() and (response := task.result()):
        asyncio.ensure_future(response.aclose())
