"""One attempt on the wire: a request out, an answer in, whatever goes wrong named.

No retries and no policy; `labkit.wire` gives the failures their names.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

from labkit.assemble import ANSWER_LIMIT, Assembler
from labkit.backoff import classify
from labkit.errors import (
    BrokenStream,
    CallError,
    DeadlineError,
    MalformedStream,
    StatusError,
    StreamError,
)
from labkit.http import httpx
from labkit.limits import Watchdog
from labkit.line import Line
from labkit.secret import Secret
from labkit.sse import SSEDecoder, SSEEvent
from labkit.wire import read_at_most, refusal, telling, translated, words

PLAIN_LIMIT = ANSWER_LIMIT  # bytes of an answer that is not streamed
ERROR_LIMIT = 64 << 10  # bytes of an error's body: more is no explanation
ERROR_WAIT_S = 1.0  # the status is known; its explanation may take this long
FAREWELL_WAIT_S = 1.0  # the answer is whole; its usage and [DONE] may take this long
DRAIN_WAIT_S = 0.02  # after [DONE], for the end of the body that is on its way


class Exchange:
    """A request and its answer.

    started_s, opened_s, first_token_s, complete_s: seconds since the logical call
        began; None until it happens.
    """

    def __init__(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request,
        watchdog: Watchdog, secret: Secret, line: Line,
    ):  # fmt: skip
        self._transport = transport
        self._request = request
        self._watchdog = watchdog
        self._secret = secret
        self._decoder = SSEDecoder()
        self._events = iter(())
        self._first = ""
        self._line = line
        self._leaving = AsyncExitStack()
        self.assembler = Assembler()
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.ended = False
        self.started_s = self.opened_s = None
        self.first_token_s = self.complete_s = None

    async def open(self) -> None:
        """Send, and read until the answer opens. Nothing is given out before that."""
        try:
            async with self._watchdog.watch("open"):
                await self._send()
                if classify(self.status) == "ok":
                    return await self._read_beginning()
            raise await self._refusal()
        except BaseException as error:
            await self._give_up(error)
            raise

    async def piece(self) -> str:
        """The next content that is not empty; "" at the end of the answer."""
        try:
            self._watchdog.check()
            return self._at_hand() or await self._wait_for_piece()
        except BaseException as error:
            await self._give_up(error)
            raise

    async def read_all(self) -> None:
        """Open, and read to the end."""
        await self.open()
        while await self.piece():
            pass

    async def close(self) -> None:
        """Hang up. Twice does no harm."""
        await self._leaving.aclose()

    async def _give_up(self, error: BaseException) -> None:
        """Whatever failed: hang up, and let the error tell how far it came."""
        if isinstance(error, CallError):
            error.partial = error.partial or self.assembler.text
            error.sent = not self._line.connecting
            error.opened = self.assembler.opened
        await self.close()

    async def _send(self) -> None:
        self.started_s = self._watchdog.elapsed_s
        self._line.follow(self._request)
        self._leaving.push_async_callback(self._line.cut)
        with self._translated():
            send = self._transport.handle_async_request
            self._response = await self._line.carry(send, self._request)
        self._line.socket = self._response.extensions.get("network_stream")
        self._leaving.push_async_callback(self._hang_up)
        self._chunks = self._body()
        self.opened_s = self._watchdog.elapsed_s
        self.status = self._response.status_code
        self.headers = telling(self._response.headers, self._secret)

    async def _body(self) -> AsyncIterator[bytes]:
        answer = self._response
        # The short way, unless the answer is packed (though we ask for none), or was
        # read by the caller's transport: its connection may be another call's now.
        as_it_is = "content-encoding" not in answer.headers and not answer.is_closed
        async for chunk in answer.stream if as_it_is else answer.aiter_bytes():
            yield chunk
        await answer.aclose()
        self._line.socket = None  # read to its end: it is back in the pool

    def _is_plain(self) -> bool:
        """Some servers ignore `stream`, either way: the content type decides."""
        kind = self._response.headers.get("content-type", "")
        if "event-stream" in kind:
            return False
        asked_for_stream = "event-stream" in self._request.headers["accept"]
        return "json" in kind or not asked_for_stream

    async def _read_beginning(self) -> None:
        if self._is_plain():
            await self._read_plain()
        while not (self.assembler.opened or self.ended):
            event = next(self._events, None)
            if event is None:
                await self._receive()
            else:
                self._first = self._take(event)

    async def _read_plain(self) -> None:
        with self._translated():
            body = await read_at_most(self._chunks, PLAIN_LIMIT)
        if len(body) > PLAIN_LIMIT:
            raise MalformedStream(f"the answer is longer than {PLAIN_LIMIT} bytes")
        self.assembler = Assembler.from_body(body)
        self._first = self.assembler.text
        self.ended = True
        self.complete_s = self._watchdog.elapsed_s
        self.first_token_s = self.complete_s if self._first else None

    @property
    def _patience_s(self) -> float:
        return FAREWELL_WAIT_S if self.assembler.finish_reason else math.inf

    def _at_hand(self) -> str:
        """The next content in what has come already; "" if there is none."""
        piece, self._first = self._first, ""
        while not (piece or self.ended):
            event = next(self._events, None)
            if event is None:
                break
            piece = self._take(event)
        return piece

    async def _wait_for_piece(self) -> str:
        if self.ended:
            return ""
        try:
            async with self._watchdog.watch("idle", self._patience_s):
                while not self.ended:
                    signs = self.assembler.signs
                    await self._receive()
                    if piece := self._at_hand():
                        return piece
                    if self.assembler.signs > signs:
                        self._watchdog.progress(self._patience_s)
        except DeadlineError:
            if not self.assembler.finish_reason:
                raise
            self._finish()  # the answer was whole: only its farewell is late
        return ""

    def _take(self, event: SSEEvent) -> str:
        """One event further; the content it brought."""
        piece = self.assembler.add(event)
        if piece and self.first_token_s is None:
            self.first_token_s = self._watchdog.elapsed_s
        if self.assembler.done:
            self._finish()
        return piece

    async def _receive(self) -> None:
        try:
            with self._translated():
                chunk = await anext(self._chunks, None)
        except BrokenStream:
            if not self.assembler.finish_reason:
                raise
            chunk = None  # the answer was whole: only its farewell is lost
        if chunk is None:
            self._finish()
        else:
            self._events = self._decoder.feed(chunk)

    def _finish(self) -> None:
        """The body has come to its end, or [DONE]: was it a proper one?"""
        self.assembler.finish(self._decoder.close())
        self.ended = True
        self.complete_s = self._watchdog.elapsed_s

    async def _refusal(self) -> StatusError:
        """The error of a status that is no success, in the provider's own words."""
        body = b""
        open_due_s = self.started_s + self._watchdog.limits.open_s
        wait_s = min(ERROR_WAIT_S, open_due_s - self._watchdog.elapsed_s)
        # A limit that fires here changes nothing: the status is known. A Stop does.
        with suppress(DeadlineError, StreamError):
            async with self._watchdog.watch("open", wait_s):
                with self._translated():
                    body = await read_at_most(self._chunks, ERROR_LIMIT)
        await self.close()
        return refusal(self.status, self.headers, self._secret.scrub(words(body)))

    async def _hang_up(self) -> None:
        # A body read to its end leaves the connection fit for the next request.
        # Only what is on its way is waited for: some servers hold it open instead.
        try:
            if self.ended:
                with suppress(TimeoutError, httpx.HTTPError):
                    async with asyncio.timeout(DRAIN_WAIT_S):
                        async for _ in self._chunks:
                            pass
        finally:
            with suppress(httpx.HTTPError):
                await self._response.aclose()

    def _translated(self):
        return translated(self._request, self._watchdog, begun=self.status is not None)
