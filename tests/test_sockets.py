"""The sockets door, seen from a bare socket: what the wire decides."""

import asyncio
import contextlib
import gc
import json
import os
import socket
import sys
import time

import pytest

from mock.provider import Provider, Settings
from mock.sockets import BODY_BYTES, SocketDoor, _Connection

BODY = json.dumps({"messages": [{"role": "user", "content": "?"}]}).encode()
STREAM = b'{"stream": true, ' + BODY[1:]


def request(
    target="/v1/chat/completions", body=BODY, method="POST", host="127.0.0.1", **headers
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Wire:
    """A plain TCP connection, without any HTTP of its own."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self.loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self.loop.sock_sendall(self.sock, data)

    async def read_until(self, mark: bytes) -> bytes:
        data = b""
        while mark not in data:
            piece = await self.loop.sock_recv(self.sock, 65_536)
            assert piece, f"closed after {data!r}"
            data += piece
        return data

    async def read_all(self) -> bytes:
        """Everything until FIN. A reset raises ConnectionResetError."""
        data = b""
        while piece := await self.loop.sock_recv(self.sock, 65_536):
            data += piece
        return data


class Bench:
    def __init__(self, provider: Provider, door: SocketDoor):
        self.provider, self.door = provider, door
        self.port = int(door.url.rpartition(":")[2].removesuffix("/v1"))

    @contextlib.asynccontextmanager
    async def connect(self):
        with socket.socket() as sock:
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(
                sock, ("127.0.0.1", self.port)
            )
            yield Wire(sock)

    async def say(self, *sent: bytes) -> bytes:
        """Send, and read until the provider closes."""
        async with self.connect() as wire:
            for data in sent:
                await wire.send(data)
            return await wire.read_all()

    async def until(self, holds, within_s=0.5) -> None:
        """Wait until `holds()`. Half a second is the most it may take."""
        async with asyncio.timeout(within_s):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.001)


def served(test, settings: Settings | None = None):
    """Run `test(bench)` against a door on the ordinary loop."""

    async def body():
        provider = Provider(settings or Settings(delay_ms=1))
        door = SocketDoor(provider)
        await door.open()
        try:
            async with asyncio.timeout(20):
                return await test(Bench(provider, door))
        finally:
            await door.close()

    return asyncio.run(body())


def on_a_door(test):
    def run():
        served(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def status(reply: bytes) -> int:
    return int(reply.split(b" ", 2)[1])


# How connections end


@on_a_door
async def test_a_reset_is_a_reset_and_what_was_written_arrives(bench):
    async with bench.connect() as wire:
        await wire.send(request("/v1/chat/completions?cut=5&how=reset", STREAM))
        data = b""
        with pytest.raises(ConnectionResetError):
            while True:
                piece = await wire.loop.sock_recv(wire.sock, 65_536)
                assert piece, "FIN, where RST was asked for"
                data += piece
    assert data.count(b"data: ") == 5


@on_a_door
async def test_a_truncated_reply_is_closed_without_its_last_chunk(bench):
    reply = await bench.say(request("/v1/chat/completions?cut=5&how=truncate", STREAM))
    assert reply.count(b"data: ") == 5 and not reply.endswith(b"0\r\n\r\n")


@on_a_door
async def test_an_orderly_close_has_its_last_chunk_and_keeps_the_connection(bench):
    async with bench.connect() as wire:
        for _ in range(2):
            await wire.send(request("/v1/chat/completions?cut=5&how=close", STREAM))
            reply = await wire.read_until(b"\r\n0\r\n\r\n")
            assert reply.count(b"data: ") == 5 and b"[DONE]" not in reply


# Connections


@on_a_door
async def test_several_requests_on_one_connection(bench):
    async with bench.connect() as wire:
        for stream in (STREAM, BODY, STREAM, BODY):
            await wire.send(request(body=stream))
            if stream is STREAM:
                assert b"[DONE]" in await wire.read_until(b"\r\n0\r\n\r\n")
            else:
                assert b'"total_tokens"' in await wire.read_until(b"}}")
        await wire.send(request("/stats", None, "GET", Connection="close"))
        assert b'"requests":4' in await wire.read_all()


@on_a_door
async def test_pipelined_requests_are_answered_in_turn(bench):
    three = [request(f"/v1/chat?max_tokens={n}", None, "GET") for n in (1, 2)]
    three.append(request("/v1/models", None, "GET", Connection="close"))
    async with bench.connect() as wire:
        await wire.send(b"".join(three))
        reply = await wire.read_all()
    assert reply.count(b"HTTP/1.1 200 OK") == 3
    assert reply.count(b'"length"') == 2 and reply.endswith(b'"owned_by":"mock"}]}')


@on_a_door
async def test_a_request_in_crumbs(bench):
    async with bench.connect() as wire:
        for at in range(len(crumbs := request(Connection="close"))):
            await wire.send(crumbs[at : at + 1])
            if at % 16 == 0:
                await asyncio.sleep(0)
        assert status(await wire.read_all()) == 200


@on_a_door
async def test_a_client_that_waits_for_100_continue(bench):
    head, _, body = request(Expect="100-continue").partition(b"\r\n\r\n")
    async with bench.connect() as wire:
        await wire.send(head + b"\r\n\r\n")
        assert (await wire.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await wire.send(body)
        assert status(await wire.read_until(b"}}")) == 200


@on_a_door
async def test_a_chunked_request(bench):
    head = request(body=None, Transfer_Encoding="chunked", Connection="close")
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, bytes([byte])) for byte in BODY)
    assert status(await bench.say(head + chunks + b"0\r\n\r\n")) == 200


@on_a_door
async def test_http_1_0_gets_a_body_that_ends_with_the_connection(bench):
    reply = await bench.say(b"GET /v1/chat?max_tokens=2 HTTP/1.0\r\n\r\n")
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"chunked" not in head and body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("code", [204, 304])
def test_a_status_without_a_body_has_no_length_either(code):
    async def test(bench):
        reply = await bench.say(request(f"/{code}/v1/chat", None, "GET"),
                                request("/v1/models", None, "GET", Connection="close"))
        head, _, rest = reply.partition(b"\r\n\r\n")
        assert status(head) == code and b"content-" not in head.lower()
        assert status(rest) == 200  # the connection is not out of step

    served(test)


@on_a_door
async def test_a_status_has_its_words(bench):
    for code, words in ((429, b"Too Many Requests"), (529, b"")):
        reply = await bench.say(
            request(f"/{code}/v1/chat", None, "GET", Connection="close")
        )
        assert reply.startswith(b"HTTP/1.1 %d %s\r\n" % (code, words))


# What is refused


@pytest.mark.parametrize(
    "sent, code",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/one\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # without Host
        (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n"
         b"Content-Length: 2\r\n\r\nxx", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000, 431),
        (b"GET /" + b"x" * 100_000, 431),
        (request("//["), 404),
        (request("http://127.0.0.1:8787/nowhere"), 404),
        (request("*"), 404),
    ],
)  # fmt: skip
def test_garbage_is_refused_in_words(sent, code):
    async def test(bench):
        async with bench.connect() as wire:
            await wire.send(sent)
            reply = await wire.read_until(b"}}")
            assert status(reply) == code
            assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["message"]
        assert bench.provider.books.inflight == 0

    served(test)


@pytest.mark.parametrize("over", [1, 5_000_000])
def test_a_body_over_the_limit_is_refused_and_the_refusal_can_be_read(over):
    async def test(bench):
        reply = await bench.say(request(body=b"x" * (BODY_BYTES + over)))
        assert status(reply) == 413 and b"8388608" in reply
        assert bench.provider.books.requests == 0

    served(test)


@on_a_door
async def test_a_body_just_within_the_limit(bench):
    reply = await bench.say(request(body=b"x" * BODY_BYTES, Connection="close"))
    assert status(reply) == 400 and b"is no JSON" in reply


@pytest.mark.parametrize(
    "headers, code",
    [
        ({"host": "127.0.0.1:8787"}, 200),
        ({"host": "LOCALHOST:1"}, 200),
        ({"host": "[::1]:8787"}, 200),
        ({"host": "example.com"}, 403),
        ({"host": "127.0.0.1.example.com"}, 403),
        ({"host": "127.0.0.1@example.com"}, 403),
        ({"host": "["}, 403),
        ({"host": ""}, 403),
        ({"Origin": "http://localhost:8888"}, 403),  # JupyterLab is a web page too
        ({"Origin": "https://example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
    ],
)
def test_a_web_page_cannot_drive_the_provider(headers, code):
    async def test(bench):
        asked = request("/v1/models", None, "GET", Connection="close", **headers)
        assert status(await bench.say(asked)) == code

    served(test)


@pytest.mark.parametrize(
    "sent, code",
    [
        (request("/v1/models", None, "HEAD", Origin="null"), 403),
        (request("/v1/models", b"x" * (BODY_BYTES + 1), "HEAD"), 413),
        (request("/nowhere", None, "HEAD"), 404),
    ],
)
def test_a_refusal_of_a_head_request_has_no_body(sent, code):
    async def test(bench):
        heard: list[dict] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, about: heard.append(about))
        async with bench.connect() as wire:
            await wire.send(sent)
            reply = await wire.read_until(b"\r\n\r\n")
        assert status(reply) == code and reply.endswith(b"\r\n\r\n")
        await bench.until(lambda: not bench.door._connections, within_s=3)
        assert heard == []

    served(test)


@on_a_door
async def test_it_listens_on_loopback_only(bench):
    (listening,) = bench.door._server.sockets
    assert listening.family is socket.AF_INET
    assert listening.getsockname()[0] == "127.0.0.1"


@on_a_door
async def test_a_port_in_use_is_an_os_error(bench):
    with pytest.raises(OSError):
        await SocketDoor(bench.provider).open(bench.port)


# Clients that leave


@pytest.mark.parametrize("how", ["close", "half", "reset"])
@pytest.mark.parametrize("fault", ["hang", "stall=2"])
@pytest.mark.parametrize("wait_s", [0, 0.02])
def test_a_client_that_leaves_frees_the_slot(how, fault, wait_s):
    async def test(bench):
        async with bench.connect() as wire:
            await wire.send(request(f"/{fault}/v1/chat/completions", STREAM))
            await asyncio.sleep(wait_s)
            if how == "reset":
                linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
                wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if how == "half":
                wire.sock.shutdown(socket.SHUT_WR)
                await asyncio.sleep(0.02)
        books = bench.provider.books
        if not (how == "reset" and not wait_s):  # such a request may never arrive
            await bench.until(lambda: books.statuses.total() == 1)
            assert books.inflight == 0
            assert books.journal[0].ending == "client left"
        await bench.until(lambda: not bench.door._connections)

    served(test)


@on_a_door
async def test_a_client_that_asked_for_more_than_it_waits_for(bench):
    """Two requests at once, and away: the second is not left hanging."""
    async with bench.connect() as wire:
        await wire.send(request("/hang/v1/chat", None, "GET") * 2 + b"GET / HT")
        await asyncio.sleep(0.02)
    await bench.until(lambda: bench.provider.books.requests)
    await bench.until(lambda: not bench.door._connections)
    assert bench.provider.books.inflight == 0


@on_a_door
async def test_a_client_that_never_reads_stops_the_writing(bench):
    async with bench.connect() as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        target = "/v1/chat/completions?length=100000&delay=0"
        await wire.send(request(target, STREAM))
        await bench.until(lambda: bench.provider.books.generated, within_s=10)
        delivered = -1
        while delivered != bench.provider.books.delivered_tokens:
            delivered = bench.provider.books.delivered_tokens
            await asyncio.sleep(0.05)
        assert delivered < 90_000
    await bench.until(lambda: bench.provider.books.statuses)
    assert bench.provider.books.journal[0].ending == "client left"


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize(
    "target",
    [
        "/hang/v1/chat/completions",
        "/stall=3/v1/chat/completions",
        "/cut=2/v1/chat/completions",
        "/cut=2,how=truncate/v1/chat/completions",
        "/v1/chat/completions",
        "/length=4000,delay=0/v1/chat/completions",
        "nonsense",
    ],
)
def test_clients_that_leave_at_any_moment_cause_no_complaint(target, how):
    """Not one traceback: in a class of thirty, that is all anyone would look at."""

    async def test(bench):
        heard: list[dict] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, about: heard.append(about))
        sent = request(target, STREAM) if target[0] == "/" else b"nonsense\r\n\r\n"

        async def visit(stay_s):
            async with bench.connect() as wire:
                await wire.send(sent)
                await asyncio.sleep(stay_s)
                if how == "reset":
                    linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
                    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

        for at in range(40):
            await visit(at * 0.0002)
        await bench.until(lambda: not bench.door._connections, within_s=3)
        gc.collect()
        await asyncio.sleep(0)
        assert heard == []
        assert bench.provider.books.inflight == 0

    served(test, Settings(delay_ms=1, capacity=None))


@on_a_door
async def test_a_reset_of_what_is_closed_already_is_nothing(bench):
    """The client's reset and ours in the same moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.port)
    connection = _Connection(bench.provider, reader, writer)
    connection._reset()
    assert writer.transport.is_closing()
    await asyncio.sleep(0.01)  # now its socket is gone
    connection._reset()


# What is left behind


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts in /proc")
def test_nothing_is_left_behind():
    """No task and no descriptor, after every way of ending and leaving."""
    targets = [
        f"/v1/chat/completions?{fault}"
        for fault in ("cut=2&how=reset", "cut=2&how=truncate", "cut=2&how=close",
                      "error=1", "hang=1", "stall=1", "status=503", "x=1", "delay=0")
    ]  # fmt: skip

    async def test(bench):
        async def visit(target, patience_s):
            async with bench.connect() as wire:
                await wire.send(request(target, STREAM))
                with contextlib.suppress(TimeoutError, ConnectionError):
                    async with asyncio.timeout(patience_s):
                        await wire.read_all()

        await asyncio.gather(*(visit(t, s) for t in targets for s in (0.001, 0.03)))
        await bench.until(lambda: not bench.door._connections, within_s=2)
        assert bench.provider.books.inflight == 0
        ours = {asyncio.current_task()}
        await asyncio.sleep(0.01)
        return [task for task in asyncio.all_tasks() - ours if not task.done()]

    settings = Settings(delay_ms=1, capacity=None)
    served(test, settings)
    gc.collect()
    before = open_descriptors()
    tasks = served(test, settings)
    gc.collect()
    assert tasks == []
    assert open_descriptors() == before


def test_two_thousand_refusals_a_second():
    """Wide of the mark on purpose: two shared cores. Measured alone: over 5,000."""
    count, ways = 500, 5

    async def test(bench):
        async def refused():
            async with bench.connect() as wire:
                for _ in range(count // ways):
                    await wire.send(request("/429/v1/chat", None, "GET"))
                    await wire.read_until(b"}}")

        began = time.process_time()
        await asyncio.gather(*(refused() for _ in range(ways)))
        return count / (time.process_time() - began)

    assert served(test) > 700  # the client in this process costs the same again
