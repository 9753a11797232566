"""A thousand connections at once, and clients that never read: the server answers
each, goes on answering others, and is afterwards as it was before.
"""

import asyncio
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path

from labkit.server import Server, start_server
from tests.verify.section import Section, Tally

try:
    import resource
except ImportError:  # Windows
    resource = None

NAME = "load"
MANY = 1000
DEAF = 200
BODY = json.dumps(
    {"messages": [{"role": "user", "content": "?"}], "stream": True}
).encode()


@contextmanager
def descriptors(count: int):
    """Let this process, and those that it starts, have so many open files. Yields how
    many there may be: fewer, where the system says so."""
    if resource is None:
        yield count
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    try:
        yield max(soft, most)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def asked(target: str = "/v1/chat/completions") -> bytes:
    head = f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2].removesuffix("/v1"))


def open_files(server: Server) -> int | None:
    """How many descriptors the server has open; None where that cannot be seen."""
    folder = Path(f"/proc/{server._process.pid}/fd")
    return len(os.listdir(folder)) if folder.is_dir() else None


async def whole_answer(port: int, ready: asyncio.Barrier) -> bytes:
    """Connect, wait until all have, ask, and read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await ready.wait()
        writer.write(asked())
        return await reader.read()
    finally:
        writer.close()


async def many(server: Server, count: int, tally: Tally) -> None:
    """So many connections, all open before the first one asks."""
    ready = asyncio.Barrier(count)
    port = port_of(server)
    answers = await asyncio.gather(
        *(whole_answer(port, ready) for _ in range(count)), return_exceptions=True
    )
    for number, answer in enumerate(answers):
        with tally.attempt(f"connection {number}"):
            if isinstance(answer, BaseException):
                raise answer
            assert answer.startswith(b"HTTP/1.1 200 "), answer[:80]
            assert answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), answer[-80:]


async def deaf(server: Server, count: int, tally: Tally) -> None:
    """So many that ask for a long answer and never read it. Another one that reads is
    answered all the same; then they leave."""
    port, opened = port_of(server), []
    for number in range(count):
        with tally.attempt(f"client {number} that never reads"):
            # A small buffer: what is not read stays with the server.
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, limit=1024
            )
            opened.append(writer)
            writer.transport.pause_reading()
            writer.write(asked("/v1/chat/completions?length=100000&delay=0"))
    with tally.attempt("one that reads, among them"):
        answer = await asyncio.wait_for(whole_answer(port, asyncio.Barrier(1)), 60)
        assert b"[DONE]" in answer
    for writer in opened:
        writer.transport.abort()


def settled(server: Server, files: int | None, within_s: float = 20.0) -> dict:
    """What the server still holds of it all, once it has had its time."""
    ends_s = time.monotonic() + within_s
    while True:
        held = {
            "slots": server.stats()["inflight"],
            # One is the connection that asked for the totals.
            "descriptors": max(0, (open_files(server) or 0) - (files or 0) - 1),
        }
        if not any(held.values()) or time.monotonic() > ends_s:
            return held
        time.sleep(0.05)


def under(load, count: int, tally: Tally, settings: dict) -> dict:
    """Put a load on a server of its own. Returns its totals."""
    with descriptors(2 * count + 200) as allowed:
        count = min(count, (allowed - 200) // 2)
        with start_server("hostile", capacity="none", **settings) as server:
            server.stats()
            files = open_files(server)
            asyncio.run(load(server, count, tally))
            for what, left in settled(server, files).items():
                tally.left_over(left, what)
            return server.stats()


def run(budget_s: float, seed: int) -> Section:
    full = budget_s >= 10
    crowd = Tally("connections at once, each answered to its end")
    peak = under(many, MANY if full else 50, crowd, {"delay_ms": 60})["inflight_peak"]
    never = Tally("clients that never read")
    under(deaf, DEAF if full else 10, never, {"delay_ms": 0})
    return Section(NAME, [crowd, never], [f"{peak} answers were made at once."])
