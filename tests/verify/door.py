"""The sockets door under clients that break the rules, on real sockets.

Whatever is sent, however slowly, and however it ends: the door refuses in words (4xx)
or closes, goes on serving others, and keeps nothing.
"""

import asyncio
import gc
import json
import os
import re
import socket
import sys
from contextlib import asynccontextmanager, suppress
from random import Random

from mock.provider import Provider, Settings
from mock.sockets import BODY_BYTES, SocketDoor
from tests.verify.mutations import change, damage
from tests.verify.section import Section, Tally, cases

NAME = "sockets door"

BODY = {
    "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 3,
    "tools": [{"function": {"name": "look"}}], "model": "mock",
}  # fmt: skip
TARGETS = (
    "/v1/chat/completions", "/v1/chat", "/v1/models", "/stats", "/journal", "/",
    "/cut=2,how=reset/v1/chat/completions", "/cut=1,how=truncate/v1/chat/completions",
    "/stall=1/v1/chat/completions", "/hang/v1/chat/completions", "/admin/reset",
    "/v1/chat/completions?delay=1&slice=7&comments=1", "/admin/faults", "*", "//[",
    "http://127.0.0.1/v1/models",
)  # fmt: skip
HEADERS = (
    "Connection: close", "Connection: keep-alive", "Expect: 100-continue", "X: \xe9",
    "Content-Length: 5", "Content-Length: 99999999999", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip", "Idempotency-Key: k", "Idempotency-Key: \0", "Host: a",
    "Origin: null", "Upgrade: h2c", " folded: line", "Content-Length: 1, 1", "A" * 5000,
)  # fmt: skip
GOOD = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LINGER = (1).to_bytes(4, sys.byteorder) + bytes(4)


def a_request(rng: Random, target: str | None = None) -> bytes:
    """A request with a body that is right, changed or none at all; legal or not."""
    target = target or rng.choice(TARGETS)
    body = b""
    if rng.random() < 0.7:
        body = json.dumps(change(BODY, rng) if rng.random() < 0.7 else BODY).encode()
    method = rng.choice(("POST", "POST", "GET", "HEAD", "OPTIONS", "PUT", "G\xe9T"))
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1"]
    lines += rng.choices(HEADERS, k=rng.choice((0, 0, 1, 3)))
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Bench:
    """A door in this process, and what it complained about."""

    def __init__(self, door: SocketDoor, provider: Provider):
        self.door, self.provider = door, provider
        self.complaints: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: self.complaints.append(repr(about)))

    @asynccontextmanager
    async def connection(self):
        port = int(self.door.url.rpartition(":")[2].removesuffix("/v1"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def say(
        self, *pieces: bytes, wait_s: float = 0.05, pause_s: float = 0
    ) -> bytes:
        """Send, and read for as long as `wait_s`, or until it is over."""
        got = b""
        async with self.connection() as (reader, writer):
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(wait_s):
                    for piece in pieces:
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(pause_s)
                    while piece := await reader.read(65_536):
                        got += piece
        return got

    async def check_alive(self) -> None:
        """Somebody who keeps to the rules is served, and nobody has complained."""
        answer = await self.say(GOOD, wait_s=10)
        assert answer.startswith(b"HTTP/1.1 200 "), f"not served: {answer[:200]!r}"
        complaints, self.complaints = self.complaints, []
        assert not complaints, complaints[0]


def check_reply(sent: bytes, reply: bytes) -> None:
    """Nothing, or HTTP; and no fault of the provider's own."""
    if reply:
        assert STATUS.match(reply), f"{sent!r} got {reply[:100]!r}"
        assert b"internal_error" not in reply, f"{sent!r} got {reply[:500]!r}"
    if reply[9:10] == b"4" and not sent.startswith(b"HEAD"):
        assert b'"message"' in reply, f"{sent!r} was refused without words"


def pieces_of(data: bytes, rng: Random, most: int) -> list[bytes]:
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(most)))
    ends = zip([0, *places], [*places, len(data)], strict=True)
    return [data[a:b] for a, b in ends]


async def malformed(bench: Bench, rng: Random) -> None:
    sent = a_request(rng)
    match rng.randrange(4):
        case 0:
            sent = rng.randbytes(rng.randrange(1, 300))
        case 1 | 2:
            sent = damage(sent, rng)
        case 3:
            sent += damage(a_request(rng), rng)
    check_reply(sent, await bench.say(*pieces_of(sent, rng, 3)))


async def huge(bench: Bench, rng: Random) -> None:
    """Headers and bodies far too long, with a length or without an end."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    much = rng.choice((70_000, 300_000, 1_000_000))
    over = b"x" * (BODY_BYTES + rng.randrange(1, 1 << 20))
    sent, code = rng.choice((
        ((b"GET /" + b"x" * much,), b"431"),
        ((head + b"X: " + b"y" * much,), b"431"),
        ((head + b"X: y\r\n" * (much // 6),), b"431"),
        ((head + b"Content-Length: %d\r\n\r\n" % len(over), over), b"413"),
        ((head + b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n" % len(over), over),
         b"413"),
        ((head + b"Transfer-Encoding: chunked\r\n\r\n", b"1" * much), b"431"),
    ))  # fmt: skip
    reply = await bench.say(*sent, wait_s=20)
    status = STATUS.match(reply)
    assert status and status[1] == code, f"{sent[0][:80]!r}: {reply[:100]!r}"


async def slow(bench: Bench, rng: Random) -> None:
    """A few bytes at a time, and away before or after the end. Others are served."""
    sent = a_request(rng) if rng.random() < 0.5 else damage(a_request(rng), rng)
    crumbs = pieces_of(sent, rng, 20)
    reply = await bench.say(*crumbs, pause_s=0.002, wait_s=rng.choice((0.01, 0.1)))
    check_reply(sent, reply)


async def half_closed(bench: Bench, rng: Random) -> None:
    """Sends a part or all, and closes its own side, or breaks the connection."""
    sent = a_request(rng)
    sent = sent[: rng.randrange(len(sent) + 1)] if rng.random() < 0.5 else sent
    async with bench.connection() as (reader, writer):
        with suppress(ConnectionError):
            writer.write(sent)
            await asyncio.sleep(rng.choice((0, 0, 0.001, 0.01)))
            if rng.random() < 0.5:
                with suppress(OSError):  # the door was quicker: our end is closed
                    sock = writer.get_extra_info("socket")
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
                return writer.transport.abort()
            writer.write_eof()
            async with asyncio.timeout(5):  # it must close its side too
                check_reply(sent, await reader.read())


async def pipelined(bench: Bench, rng: Random) -> None:
    """Several requests at once, in any pieces: as many answers, in turn."""
    wanted = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 8))]
    asked = "GET /v1/chat?max_tokens=%d&delay=0 HTTP/1.1\r\nHost: localhost\r\n"
    sent = "\r\n".join(asked % n for n in wanted) + "Connection: close\r\n\r\n"
    reply = await bench.say(*pieces_of(sent.encode(), rng, 9), wait_s=20)
    counts = [part.count(b'"content":') for part in reply.split(b"HTTP/1.1 200 OK")[1:]]
    assert counts == wanted, f"asked for {wanted}, got {counts}"


KINDS = {
    malformed: "malformed requests",
    huge: "headers and bodies too long",
    slow: "requests in crumbs, given up or not",
    half_closed: "half-closed and broken connections",
    pipelined: "pipelined requests",
}


@asynccontextmanager
async def a_bench():
    provider = Provider(Settings(capacity=None, delay_ms=1))
    door = SocketDoor(provider)
    await door.open()
    try:
        yield Bench(door, provider)
    finally:
        await door.close()


async def attack(kind, tally: Tally, budget_s: float, seed: int, at_once: int) -> None:
    """Attacks of one kind, some of them at once; then what is left is counted."""

    async def one(case: str, rng: Random) -> None:
        with tally.attempt(case):
            async with asyncio.timeout(60):
                await kind(bench, rng)

    async with a_bench() as bench:
        tasks = asyncio.all_tasks()
        group: list = []
        for case in cases(budget_s, seed):
            group.append(one(*case))
            if len(group) == at_once:
                await asyncio.gather(*group)
                group = []
                with tally.attempt(f"{case[0]}, and then a good client"):
                    await bench.check_alive()
        await asyncio.gather(*group)
        await settled(bench, tasks)
        tally.left_over(len(bench.door._connections), "connections")
        tally.left_over(bench.provider.books.inflight, "slots")
        tally.left_over(len(asyncio.all_tasks() - tasks), "tasks")


async def settled(bench: Bench, tasks: set) -> None:
    """Wait until all is gone, three seconds at most."""
    for _ in range(300):
        await asyncio.sleep(0.01)
        if not bench.door._connections and not asyncio.all_tasks() - tasks:
            break


def descriptors() -> int | None:
    """How many this process has open; None where that cannot be seen."""
    gc.collect()
    seen = os.path.isdir("/proc/self/fd")
    return len(os.listdir("/proc/self/fd")) if seen else None


def run(budget_s: float, seed: int) -> Section:
    tallies = []
    asyncio.run(asyncio.sleep(0))  # what a first loop opens for good is not counted
    for kind, what in KINDS.items():
        tallies.append(tally := Tally(what))
        before = descriptors()
        at_once = 2 if kind is huge else 20
        asyncio.run(attack(kind, tally, budget_s / len(KINDS), seed, at_once))
        if before is not None:
            tally.left_over(max(0, descriptors() - before), "descriptors")
    return Section(NAME, tallies)
