"""Many clients at once against a provider that serves three (chapter 14, jitter).

`herd` gives one row a request; everything else here counts those rows.
"""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pandas as pd

from labkit.client import ChatClient
from labkit.experiments.stage import PATIENCE, QUESTION, Stage, perform
from labkit.gate import Gate
from labkit.retry import Retry
from mock.provider import Settings

TOKENS = 13  # of the answer
WINDOW_S = 0.05


@dataclass(frozen=True)
class Network:
    """The way to the provider, one way: a constant and an exponential part, in ms."""

    fixed_ms: float = 0.0
    exponential_ms: float = 0.0

    def latency_s(self, rng: random.Random):
        """A function that draws the next latency, in seconds; None without any."""
        if not self.fixed_ms and not self.exponential_ms:
            return None
        return lambda: (
            (self.fixed_ms + self.exponential_ms * rng.expovariate(1.0)) / 1000
        )


def herd(
    clients: int = 20,
    *,
    service_ms: float = 126.0,
    retry_after: str | None = "1",
    strategy: str = "full",
    floor: str = "max",
    gates: tuple[int, ...] = (),
    network: Network = Network(),
    settings: Settings = Settings(),
    seed: int = 0,
    clock: str = "virtual",
    **backoff: float,
) -> pd.DataFrame:
    """All clients ask at time 0, each with its own pool and its own chance.

    service_ms: what one answer takes; the clients share no more than the provider.
    gates: widths of the gates that clients share, in turn; none: no gate.
    backoff: base_s and cap_s, where they are not those of `Retry`.

    Columns: client, attempt, t_s (sent), status, floor_s, draw_s, slept_s, and for
    an answer answered_s and text.
    """
    settings = replace(settings, delay_ms=service_ms / TOKENS, retry_after=retry_after)
    shared = [Gate(width) for width in gates]
    patient = {"attempts": 10_000, "budget_s": 36_000}
    retry = Retry(strategy=strategy, floor=floor, **patient, **backoff)

    def client(stage: Stage, number: int) -> ChatClient:
        gate = shared[number % len(shared)] if shared else None
        rng = random.Random(f"{seed}/{number}")
        return stage.client(rng=rng, limits=PATIENCE, retry=retry, gate=gate)

    async def scene(stage: Stage) -> list[dict]:
        async with AsyncExitStack() as stack:
            herd = [
                await stack.enter_async_context(client(stage, number))
                for number in range(clients)
            ]
            began = asyncio.get_running_loop().time()
            asking = [_ask(each, n, began) for n, each in enumerate(herd)]
            return [row for rows in await asyncio.gather(*asking) for row in rows]

    latency_s = network.latency_s(random.Random(f"{seed}/network"))
    return pd.DataFrame(perform(clock, scene, settings, latency_s))


async def _ask(client: ChatClient, number: int, began: float) -> list[dict]:
    """One client's question, as rows."""
    late_s = asyncio.get_running_loop().time() - began
    async with client.stream(QUESTION) as stream:
        async for _ in stream:
            pass
    rows = [
        {
            "client": number,
            "attempt": each.number,
            "t_s": late_s + each.started_s,
            "status": each.status,
            "floor_s": each.floor_s,
            "draw_s": each.draw_s,
            "slept_s": each.slept_s,
        }
        for each in stream.reply.attempts
    ]
    rows[-1] |= {
        "answered_s": late_s + stream.reply.timings.complete_s,
        "text": stream.reply.text,
    }
    return rows


def totals(requests: pd.DataFrame) -> dict:
    """What a herd came to, from its rows."""
    answers = requests.dropna(subset="text")
    wall_s = float(answers.answered_s.max())
    return {
        "clients": requests.client.nunique(),
        "requests": len(requests),
        "rejected": int((requests.status == 429).sum()),
        "answers": len(answers),
        "identical": answers.text.nunique() == 1,
        "wall_ms": round(wall_s * 1000, 3),
        "wall_s": round(wall_s, 6),
        "retries": " ".join(str(n) for n in requests.groupby("client").attempt.max()),
        "peak_50ms": peak(requests[requests.attempt > 0].t_s),
    }


def peak(times_s: pd.Series, window_s: float = WINDOW_S) -> int:
    """The most arrivals in any window of `window_s` seconds."""
    times = sorted(times_s)
    most = first = 0
    for last, time_s in enumerate(times):
        while times[first] <= time_s - window_s:
            first += 1
        most = max(most, last - first + 1)
    return most


def herd_totals(seed: int = 0, **parameters) -> dict:
    """`totals` of one herd: what runs once a seed."""
    return totals(herd(seed=seed, **parameters))
