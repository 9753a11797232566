"""One request and its reply: the provider writes, a door drains.

The provider runs in a task of its own and knows no sockets. A door takes the head,
then chunks, then the way the connection ends, and says when its client has left.
"""

import asyncio
import http
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

TOGETHER_S = 0.0005
BUFFER_BYTES = 65_536  # a reader slower than this holds the provider up


@dataclass(frozen=True, slots=True)
class Request:
    """A request as a door understood it; header names in lower case."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def path(self) -> str:
        """The path, still percent-encoded, with one slash in front.

        >>> Request("GET", "/v1/chat?cut=5").path
        '/v1/chat'
        >>> Request("GET", "http://127.0.0.1:8787//v1/chat").path
        '/v1/chat'
        """
        path = self.target.partition("?")[0]
        if path.startswith(("http://", "https://")):  # as a proxy is asked
            path = path.partition("://")[2].partition("/")[2]
        return "/" + path.lstrip("/")

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.target.partition("?")[2], keep_blank_values=True)


class Exchange:
    """A request under way. Ends are `end`, `close`, `truncate` and `reset`.

    `end` and `close` look the same on the wire: the body comes to its orderly end.
    `close` says that the provider had more to say.
    """

    def __init__(self, request: Request):
        self.request = request
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.ending: str | None = None
        self.client_left = False
        self._chunks: deque[tuple[float, bytes]] = deque()
        self._held = 0
        self._news = asyncio.Event()  # for the door: head, chunk or ending
        self._room = asyncio.Event()  # for the provider: space in the buffer
        self._task: asyncio.Task | None = None
        self._begun = False

    def run(self, reply: Callable[["Exchange"], Coroutine]) -> None:
        """Let the provider's `reply` fill this exchange, in a task of its own."""
        self._task = asyncio.create_task(self._fill(reply))

    async def _fill(self, reply) -> None:
        self._begun = True
        try:
            await reply(self)
        finally:  # a provider that fails must not leave its client waiting
            if self.ending is None:
                self.end("reset")

    # the provider's side

    def start(self, status: int, headers: dict[str, str]) -> None:
        """Give the head of the reply."""
        self.status, self.headers = status, headers
        self._news.set()

    async def write(self, data: bytes) -> None:
        """Give a piece of the body; waits while the reader is too far behind."""
        while self._held >= BUFFER_BYTES:
            self._room.clear()
            await self._room.wait()
        self._chunks.append((asyncio.get_running_loop().time(), data))
        self._held += len(data)
        self._news.set()

    def end(self, how: str = "end") -> None:
        """Say how the connection ends, once the buffer is empty."""
        self.ending = how
        self._news.set()

    # the door's side

    @property
    def reason(self) -> str:
        """The status in words; for 529 and other inventions there are none."""
        try:
            return http.HTTPStatus(self.status).phrase
        except ValueError:
            return ""

    async def head(self) -> bool:
        """Wait for the head. False: the connection ended without one."""
        while self.status is None and self.ending is None:
            await self._wait()
        return self.status is not None

    async def read(self) -> tuple[float, bytes] | None:
        """The next piece with the time it was written; None once all are read.

        What was written within half a millisecond is one piece, as on a real wire.
        """
        while not self._chunks:
            if self.ending is not None:
                return None
            await self._wait()
        written, data = self._chunks.popleft()
        while self._chunks and self._chunks[0][0] < written + TOGETHER_S:
            data += self._chunks.popleft()[1]
        self._held -= len(data)
        self._room.set()
        return written, data

    @property
    def all_read(self) -> bool:
        """Has the reply ended, and has the door all of it?"""
        return self.ending is not None and not self._chunks

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def leave(self) -> None:
        """The client is gone. Does nothing once the provider has finished."""
        if self.ending is None and not self.client_left:
            self.client_left = True
            if self._begun:
                self._task.cancel()
            else:  # a task cancelled now would never run: no journal, no ending
                asyncio.get_running_loop().call_soon(self._task.cancel)
