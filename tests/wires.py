"""Small providers for the tests of the client, one in memory and one on a socket,
and calls to them on the virtual clock.

Neither provider is `mock`: what is tested here must not depend on how mock behaves.
"""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from random import Random

from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.http import httpx


def chunk(content: str | None = None, finish: str | None = None, **delta) -> bytes:
    """One event of a chat stream."""
    if content is not None:
        delta["content"] = content
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
USAGE = (
    b'data: {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5,'
    b' "total_tokens": 15}}\n\n'
)
ANSWER = [chunk("A tide"), chunk(" gauge"), chunk(finish="stop"), DONE]
PLAIN = json.dumps(
    {
        "id": "cmpl_1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "A tide gauge"},
                "finish_reason": "stop",
            }
        ],
    }
).encode()

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


def streamed(*steps) -> dict:
    """A 200 whose body is sent step by step: bytes are sent, numbers are seconds of
    silence, an exception breaks the connection. None: silence for ever."""
    return {"status": 200, "headers": SSE, "steps": steps or ANSWER}


def plain(body: bytes = PLAIN) -> dict:
    return {"status": 200, "headers": JSON, "steps": [body]}


def refused(status: int, body: bytes = b"{}", **headers) -> dict:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"status": status, "headers": {**JSON, **named}, "steps": [body]}


HANG = {"before": [None]}
RESET = {"before": [httpx.ReadError("reset")]}
UNREACHABLE = {"before": [httpx.ConnectError("refused")]}


class Script(httpx.AsyncBaseTransport):
    """Gives the scripted answers in turn; the last one for ever after.

    requests: what came; at_s: when; open: bodies not yet closed; left: closed early.
    """

    def __init__(self, *answers: dict):
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.at_s: list[float] = []
        self.open = 0
        self.left = 0

    async def handle_async_request(self, request):
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        self.at_s.append(asyncio.get_running_loop().time())
        async for _ in play(answer.get("before", [])):
            pass
        return httpx.Response(
            answer["status"], headers=answer["headers"], stream=Body(self, answer)
        )

    def bodies(self) -> list[dict]:
        return [json.loads(request.content) for request in self.requests]


class Body(httpx.AsyncByteStream):
    def __init__(self, script: Script, answer: dict):
        self._script, self._answer, self._read, self._open = script, answer, False, True
        script.open += 1

    async def __aiter__(self):
        async for piece in play(self._answer["steps"]):
            yield piece
        self._read = True

    async def aclose(self):
        if self._open:
            self._open = False
            self._script.open -= 1
            self._script.left += not self._read


async def play(steps):
    for step in steps:
        if step is None:
            await asyncio.Event().wait()
        elif isinstance(step, BaseException):
            raise step
        elif isinstance(step, bytes):
            yield step
        else:
            await asyncio.sleep(step)


class SocketServer:
    """A raw HTTP/1.1 server: `answer(server, writer)` writes what it likes.

    requests: the heads that came; connections: how many; open: those that the client
    has not closed; left: an event, set as soon as it has closed one.
    """

    def __init__(self, answer):
        self._answer = answer
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self.left = asyncio.Event()
        self.url = ""

    async def serve(self, reader, writer):
        self.connections += 1
        self.open += 1
        answering, first = None, b""
        try:
            while head := await read_request(reader, first):
                self.requests.append(head)
                answering = asyncio.create_task(self._answer(self, writer))
                # Only one who reads notices that the client leaves.
                more = asyncio.create_task(reader.read(1))
                await asyncio.wait({answering, more}, return_when="FIRST_COMPLETED")
                if writer.is_closing() or not (first := await more):
                    break
                await answering
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self.left.set()
            if answering:
                answering.cancel()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def open_at_most(self, count: int) -> None:
        """Wait, a second at most, until no more connections are open."""
        async with asyncio.timeout(1):
            while self.open > count:
                self.left.clear()
                await self.left.wait()


async def read_request(reader, first: bytes) -> bytes:
    """Head and body of one request; b"" when there is none any more."""
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            await reader.readexactly(int(line.split(b":")[1]))
    return head


@asynccontextmanager
async def socket_server(answer):
    """A SocketServer on a free loopback port."""
    served = SocketServer(answer)
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        await served.serve(reader, writer)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # for the transports, which close one step later


async def send_head(writer, kind: str = "text/event-stream") -> None:
    writer.write(
        f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n"
        "transfer-encoding: chunked\r\n\r\n".encode()
    )
    await writer.drain()


async def send(writer, data: bytes) -> None:
    """One chunk of a chunked body; b"" is its end."""
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()


URL = "http://provider.test/v1"
SEED = 14


def client(script: Script, base_url: str = URL, **settings) -> ChatClient:
    settings.setdefault("rng", Random(SEED))
    return ChatClient(base_url, transport=script, **settings)


def complete(script: Script, *, messages="hi", body=None, **settings):
    """One call on the virtual clock."""

    async def main():
        return await client(script, **settings).complete(messages, **(body or {}))

    return run_virtual(main)


def read(script: Script, *, body=None, **settings):
    """One stream on the virtual clock, read to its end: the pieces and the reply."""

    async def main():
        async with client(script, **settings).stream("hi", **(body or {})) as stream:
            return [text async for text in stream], stream.reply

    return run_virtual(main)
