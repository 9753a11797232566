"""The client, its reader and the sockets door, against what they cost."""

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import threading
import time

from labkit.bench.figure import Figure, best_of
from labkit.client import ChatClient
from labkit.experiments.herd import herd
from labkit.experiments.herd_tables import MODEL, jitter
from labkit.experiments.readers import body
from labkit.http import httpx
from labkit.server import Server, start_server
from labkit.sse import SSEDecoder
from labkit.strictjson import parse_object


def herd_cpu() -> Figure:
    def once() -> float:
        began = time.process_time()
        herd(100, strategy="exponential", retry_after=None, seed=1, **MODEL)
        return time.process_time() - began

    once()  # imports and caches
    return Figure(
        "a naive herd of 100, four virtual minutes, through httpx and memory",
        f"{best_of(5, once):.2f} s of CPU",
        "goal: under 0.6 s",
    )


def many_seeds(seeds: int) -> Figure:
    began = time.perf_counter()
    jitter(seeds=seeds)
    return Figure(
        f"the jitter table, {seeds} seeds of both policies, all cores",
        f"{time.perf_counter() - began:.0f} s",
        "goal: under 90 s for 200 on two cores",
    )


ASK = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(ASK), ASK)
)
HANG = b"GET /hang/v1/chat HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def connect(server: Server) -> socket.socket:
    url = httpx.URL(server.url)
    connection = socket.create_connection((url.host, url.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def refusals(requests: int = 4000, connections: int = 4) -> Figure:
    """How many 429s the sockets door answers, in a process of its own."""

    def ask(server: Server) -> None:
        with connect(server) as connection:
            for _ in range(requests // connections):
                connection.sendall(REQUEST)
                answer = connection.recv(65_536)
                while not answer.endswith(b"}}"):
                    answer += connection.recv(65_536)
                assert b" 429" in answer[:20], answer

    def once() -> float:
        began = time.perf_counter()
        askers = [
            threading.Thread(target=ask, args=[server]) for _ in range(connections)
        ]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        return time.perf_counter() - began

    with start_server("hostile", capacity=1) as server, connect(server) as holder:
        holder.sendall(HANG)  # the one slot is taken
        while not server.stats()["inflight"]:
            time.sleep(0.01)
        took_s = best_of(3, once)
    return Figure(
        "429s a second through the sockets door, one core",
        f"{requests / took_s:,.0f}",
        "goal: at least 2,000",
    )


def first_token(runs: int = 40) -> list[Figure]:
    """What the client adds to the first token, against a raw socket: both with a
    connection that is open, and both with a new one."""
    streamed = json.dumps(json.loads(ASK) | {"stream": True}).encode()
    head = b"POST /delay=5/v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    request = head + b"content-length: %d\r\n\r\n" % len(streamed) + streamed

    def raw(connection: socket.socket) -> float:
        began = time.perf_counter()
        connection.sendall(request)
        received = b""
        while b'"content":' not in received:
            received += connection.recv(65_536)
        took_s = time.perf_counter() - began
        while not received.endswith(b"0\r\n\r\n"):
            received += connection.recv(65_536)
        return took_s

    def raw_anew(server: Server) -> float:
        began = time.perf_counter()
        with connect(server) as connection:
            connected_s = time.perf_counter() - began
            return connected_s + raw(connection)

    async def ours(client: ChatClient) -> float:
        began = time.perf_counter()
        async with client.stream("hi") as stream:
            await anext(stream)
            took_s = time.perf_counter() - began
            async for _ in stream:
                pass
        return took_s

    async def ours_anew(server: Server) -> float:
        async with ChatClient(server.at("delay=5")) as client:
            return await ours(client)

    async def in_turn(server: Server) -> tuple[list[float], list[float]]:
        anew, again = [], []
        with connect(server) as connection:
            async with ChatClient(server.at("delay=5")) as client:
                await ours(client)
                for _ in range(runs):
                    anew.append(await ours_anew(server) - raw_anew(server))
                    again.append(await ours(client) - raw(connection))
        return again, anew

    with start_server("hostile", capacity=100) as server:
        again, anew = asyncio.run(in_turn(server))
    what = "what the client adds to the first token,"
    return [
        Figure(f"{what} {which}, median", _milliseconds(added), goal)
        for which, added, goal in (
            ("both with an open connection", again, "goal: under 2 ms"),
            ("both with a new one", anew, ""),
        )
    ]


def _milliseconds(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.1f} ms"


def reader_speed(repeats: int = 150) -> Figure:
    """The decoder with its JSON parsing, against httpx-sse with its own."""
    try:
        import httpx_sse
    except ImportError:
        return Figure("the reader against httpx-sse", "skipped", "needs httpx-sse")
    whole = body(answer="tide").replace(b"data: [DONE]\n\n", b"") * repeats
    chunks = [whole[at : at + 4096] for at in range(0, len(whole), 4096)]

    def ours() -> float:
        began = time.perf_counter()
        decoder = SSEDecoder()
        for chunk in chunks:
            for event in decoder.feed(chunk):
                parse_object(event.data)
        return time.perf_counter() - began

    def theirs() -> float:
        response = httpx.Response(
            200, headers={"content-type": "text/event-stream"}, content=iter(chunks)
        )
        began = time.perf_counter()
        for event in httpx_sse.EventSource(response).iter_sse():
            event.json()
        return time.perf_counter() - began

    ratios = [theirs() / ours() for _ in range(25)]
    return Figure(
        "the reader with its JSON parsing, as many times as fast as httpx-sse, median",
        f"{statistics.median(ratios):.2f}",
        "goal: at least 1.2",
    )


def import_time(runs: int = 5) -> Figure:
    def once() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import labkit"], check=True)
        return time.perf_counter() - began

    return Figure(
        "import labkit, in a new interpreter",
        f"{best_of(runs, once) * 1000:.0f} ms",
        "goal: under 500 ms",
    )


MEASURES = [
    lambda: [herd_cpu()],
    lambda: [refusals()],
    first_token,
    lambda: [reader_speed()],
    lambda: [import_time()],
]
