"""Where a measurement plays: a provider, the way to it, and a clock.

On the virtual clock the provider is in this process, behind the memory door. On the
real one it is in a process of its own, behind a loopback socket. What the client
does is the same code.
"""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import asdict

from labkit.client import ChatClient
from labkit.clock import run_real, run_virtual
from labkit.http import httpx
from labkit.limits import Limits
from labkit.retry import Retry
from labkit.server import start_server
from mock.kinds import KINDS
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings

CLOCKS = {"virtual": run_virtual, "real": run_real}
QUESTION = "What is a tide gauge?"
ONCE = Retry(attempts=1)
PATIENCE = Limits(connect_s=60, open_s=3600, idle_s=3600, total_s=36_000)
ROOT = "http://127.0.0.1:8787"  # in memory it is only a name


class Stage:
    """A provider to measure against."""

    def __init__(
        self, root: str, transport, stats: Callable[[], dict],
        journal: Callable[[], list[dict]],
    ):  # fmt: skip
        self._root, self.transport = root, transport
        self.stats, self.journal = stats, journal

    @property
    def virtual(self) -> bool:
        """Does waiting cost nothing here?"""
        return self.transport is not None

    def time(self) -> float:
        """Seconds on the running clock."""
        return asyncio.get_running_loop().time()

    def url(self, fault: str = "") -> str:
        """The base URL, with a fault in its path: `url("401")`, `url("cut=5")`."""
        return f"{self._root}/{fault}/v1" if fault else f"{self._root}/v1"

    def client(self, fault: str = "", **options) -> ChatClient:
        """A client with a connection pool of its own."""
        return ChatClient(self.url(fault), transport=self.transport, **options)

    def http(self, **options) -> httpx.AsyncClient:
        """A bare httpx client: no retries, no rules."""
        return httpx.AsyncClient(
            transport=self.transport, trust_env=False, verify=False, **options
        )

    async def settled(self) -> dict:
        """The totals, once the provider has nothing under way."""
        while self.stats()["inflight"]:  # noqa: ASYNC110 (it may be another process)
            await asyncio.sleep(0.05)
        return self.stats()


def perform(
    clock: str,
    coro_fn,
    settings: Settings | None = None,
    latency_s: Callable[[], float] | None = None,
    kind: str = "hostile",
    seed: int = 0,
    **kw,
):
    """Run `coro_fn(stage, **kw)` against a new provider, on the clock named.

    kind: "hostile" or "scripted". settings: None for its usual ones. seed: of its
    chance. `latency_s` draws the one-way latency of a message, in seconds; on the
    real clock the loopback has its own.
    """
    __tracebackhide__ = True  # in a notebook: from the cell to its own code
    if clock not in CLOCKS:
        raise ValueError(f"clock: {clock!r} is none of {', '.join(CLOCKS)}")
    build = _in_memory if clock == "virtual" else _on_sockets

    async def body():
        __tracebackhide__ = True
        async with build(kind, settings, seed, latency_s) as stage:
            return await coro_fn(stage, **kw)

    return CLOCKS[clock](body)


@asynccontextmanager
async def _in_memory(kind: str, settings: Settings | None, seed: int, latency_s):
    model, usual = KINDS[kind]
    provider = Provider(settings or usual, model, seed)
    draw = {} if latency_s is None else {"latency_s": latency_s}
    transport = MemoryTransport(provider, **draw)
    yield Stage(
        ROOT, transport,
        stats=lambda: provider.books.stats(),
        journal=lambda: [entry.as_dict() for entry in provider.books.journal],
    )  # fmt: skip


@asynccontextmanager
async def _on_sockets(kind: str, settings: Settings | None, seed: int, latency_s):
    _, usual = KINDS[kind]
    changed = {
        name: "none" if value is None else value
        for name, value in asdict(settings or usual).items()
        if value != getattr(usual, name)
    }
    with start_server(kind, seed=seed, **changed) as server:
        root = server.url.removesuffix("/v1")
        yield Stage(root, None, server.stats, server.journal)
