"""Every fault of mock's, through both doors, met by clients of all manners. Whatever
they do, no task, no descriptor and no slot is left: counted before and after.
"""

import asyncio
import gc
import itertools
import os
import random
import socket
import sys
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from labkit.http import httpx
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings
from mock.sockets import SocketDoor
from tests.verify.section import Section, Tally

NAME = "faults"

# field of a plan -> faults that set it
FAULTS = {
    "hang": ("hang=1",),
    "status": ("status=200", "status=204", "status=401", "status=529"),
    "retry_after": ("status=503&retry_after=2",),
    "retry_form": ("status=503&retry_after=2&retry_form=date",),
    "delay": ("delay=0", "delay=3"),
    "first": ("first=20&delay=0",),
    "max_tokens": ("max_tokens=3",),
    "stall": ("stall=0", "stall=3", "stall=13"),
    "cut": ("cut=0", "cut=5", "cut=13", "cut=50"),
    "how": ("cut=5&how=close", "cut=5&how=truncate", "cut=5&how=reset"),
    "error": ("error=0", "error=4"),
    "answer": ("answer=accent", "answer=tool"),
    "length": ("length=3000&delay=0",),
    "role": ("role=1",),
    "lines": ("lines=cr",),
    "comments": ("comments=1",),
    "split": ("split=1",),
    "pack": ("pack=4", "cut=5&how=reset&pack=3"),
    "slice": ("slice=60", "answer=accent&lines=crlf&slice=90"),
    "leave": ("leave=stop", "leave=finish", "hang=1&leave=finish"),
}
ALL = ("", "nonsense=1", *itertools.chain(*FAULTS.values()))
WAYS = ("read", "leave", "unread", "cancel", "reset", "half")
RAW = ("reset", "half")  # what only a socket can do
ASKED = {"messages": [{"role": "user", "content": "?"}]}
BODIES = {"stream": ASKED | {"stream": True}, "plain": ASKED, "models": None}
PATIENCE_S = 0.03


@dataclass(frozen=True)
class Case:
    """One visit: at which door, with which fault, for what, and of which manners."""

    door: str
    fault: str
    body: str
    way: str

    @property
    def path(self) -> str:
        rest = "models" if self.body == "models" else "chat/completions"
        return f"/v1/{rest}?{self.fault}"


def all_cases() -> list[Case]:
    made = itertools.starmap(
        Case, itertools.product(("memory", "sockets"), ALL, BODIES, WAYS)
    )
    return [each for each in made if each.door == "sockets" or each.way not in RAW]


class House:
    """A provider with one of its doors open."""

    def __init__(self, door: str):
        self.kind = door
        self.provider = Provider(Settings(delay_ms=1, capacity=None))
        self._door = SocketDoor(self.provider)

    async def open(self) -> "House":
        self.root = "http://127.0.0.1:8787"
        if self.kind == "sockets":
            self.root = (await self._door.open()).removesuffix("/v1")
        self.before = self.counted()
        return self

    async def close(self) -> None:
        if self.kind == "sockets":
            await self._door.close()

    def counted(self) -> tuple[int, int, int]:
        """Tasks, descriptors (where they can be counted) and slots."""
        fds = "/proc/self/fd"
        return (
            len(asyncio.all_tasks()),
            len(os.listdir(fds)) if os.path.isdir(fds) else 0,
            self.provider.books.inflight,
        )

    async def left_over(self, within_s: float = 5.0) -> dict[str, int]:
        """What is still there that was not, once the dust has settled."""
        ends_s = time.monotonic() + within_s
        while self.counted() != self.before and time.monotonic() < ends_s:
            await asyncio.sleep(0.002)
            gc.collect(0)
        names = ("tasks", "descriptors", "slots")
        pairs = zip(names, self.counted(), self.before, strict=True)
        return {name: now - then for name, now, then in pairs if now != then}

    async def visit(self, case: Case) -> None:
        """Ask as the case says, and be gone."""
        if case.way in RAW:
            return await self._raw_visit(case)
        transport = MemoryTransport(self.provider) if self.kind == "memory" else None
        limits = httpx.Timeout(2, read=PATIENCE_S)
        async with httpx.AsyncClient(
            transport=transport, trust_env=False, verify=False, timeout=limits
        ) as http:
            with suppress(httpx.TransportError, TimeoutError):
                if case.way == "cancel":
                    async with asyncio.timeout(0.004):
                        await self._ask(http, case)
                else:
                    await self._ask(http, case)

    async def _ask(self, http: httpx.AsyncClient, case: Case) -> None:
        body = BODIES[case.body]
        method = "GET" if body is None else "POST"
        async with http.stream(method, self.root + case.path, json=body) as reply:
            if case.way == "unread":
                return await asyncio.sleep(PATIENCE_S)
            async for _ in reply.aiter_raw():
                if case.way == "leave":
                    return

    async def _raw_visit(self, case: Case) -> None:
        port = int(self.root.rpartition(":")[2])
        body = BODIES[case.body]
        asked = httpx.Request("POST" if body else "GET", self.root, json=body)
        asked.read()
        head = f"{asked.method} {case.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Content-Length: {len(asked.content)}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + asked.content)
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(PATIENCE_S / 2):
                await reader.read(200)
        with suppress(OSError):
            sock = writer.get_extra_info("socket")
            if case.way == "reset":
                linger = (1).to_bytes(4, sys.byteorder) + bytes(4)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            else:
                writer.write_eof()
                async with asyncio.timeout(PATIENCE_S):
                    await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def house(door: str):
    opened = await House(door).open()
    try:
        yield opened
    finally:
        await opened.close()


async def visits(door: str, cases: list[Case], tally: Tally, ends_s: float) -> None:
    async with house(door) as opened:
        for case in cases:
            if tally.tried and time.monotonic() > ends_s:
                return
            with tally.attempt(str(case)):
                await opened.visit(case)
            for what, count in (await opened.left_over()).items():
                tally.left_over(count, f"{what} after {case}")
                opened.before = opened.counted()  # each leak is told once
            tally.left_over(0, "")


def run(budget_s: float, seed: int) -> Section:
    cases, tallies = all_cases(), []
    random.Random(seed).shuffle(cases)
    for share, door in enumerate(("memory", "sockets"), 1):
        ends_s = time.monotonic() + budget_s / (3 - share)
        budget_s -= budget_s / (3 - share)
        tallies.append(Tally(f"each fault through {door}, by clients of all manners"))
        ours = [case for case in cases if case.door == door]
        asyncio.run(visits(door, ours, tallies[-1], ends_s))
    tried = sum(tally.tried for tally in tallies)
    every = f"{len(ALL)} faults, {len(BODIES)} kinds of request, {len(WAYS)} manners"
    return Section(NAME, tallies, [f"{tried} of {len(cases)} visits: {every}."])
