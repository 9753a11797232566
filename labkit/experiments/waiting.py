"""Chapter 14, waiting: deadlines, idempotency, and leaving early."""

import asyncio

import pandas as pd

from labkit.client import ChatClient
from labkit.errors import DeadlineError
from labkit.experiments.stage import ONCE, QUESTION, Stage, perform
from labkit.limits import Limits
from mock.provider import Settings


def idempotency(
    give_up_ms: float = 300.0, pause_ms: float = 500.0, delay_ms: float = 60.0,
    clock: str = "virtual",
) -> pd.DataFrame:  # fmt: skip
    """Give up, wait, ask once more; with a key and without.

    The answer takes 13 tokens of `delay_ms`. After the usual pause it is ready, and
    replayed; `in flight` comes back so early that it joins the generation under way.
    generated, billed: answers, once the provider has come to rest.
    """
    cases = {
        "no": ("", pause_ms),
        "yes": ("one-logical-call", pause_ms),
        "yes, in flight": ("one-logical-call", give_up_ms * 0.7),
    }
    settings, patience = Settings(delay_ms=delay_ms), Limits(total_s=give_up_ms / 1000)

    async def scene(stage: Stage, key: str, pause_ms: float) -> tuple[list[str], dict]:
        async with stage.client(retry=ONCE, limits=patience) as client:
            first = await _try(client, key)
            await asyncio.sleep(pause_ms / 1000)
            return [first, await _try(client, key)], await stage.settled()

    rows = []
    for label, (key, pause) in cases.items():
        outcomes, stats = perform(clock, scene, settings, key=key, pause_ms=pause)
        counts = {name: stats[name] for name in ("generated", "billed")}
        rows += [
            {"key": label, "attempt": attempt, "outcome": outcome} | counts
            for attempt, outcome in enumerate(outcomes)
        ]
    return pd.DataFrame(rows)


async def _try(client: ChatClient, key: str) -> str:
    try:
        reply = await client.complete(QUESTION, key=key)
    except DeadlineError:
        return "timeout"
    served = reply.headers.get("idempotent-replay", "answered")
    return f"{served} {reply.id}"


def abandon(
    tokens: int = 3, delay_ms: float = 60.0, clock: str = "virtual"
) -> pd.DataFrame:
    """A reader has seen enough after a few tokens: who goes on, and who pays?

    seen, generated, billed: in tokens, of an answer of 13.
    """
    ways = {
        "connection closed": _close_after,
        "connection left open": _stop_reading,
        "not streamed, closed": _close_plain,
    }

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for label, leave in ways.items():
            before = await stage.settled()
            seen = await leave(stage, tokens, delay_ms)
            after = await stage.settled()
            counts = {
                name: after[f"{name}_tokens"] - before[f"{name}_tokens"]
                for name in ("generated", "billed")
            }
            rows.append({"client": label, "seen": seen} | counts)
        return rows

    return pd.DataFrame(perform(clock, scene, Settings(delay_ms=delay_ms)))


async def _close_after(stage: Stage, tokens: int, delay_ms: float) -> int:
    """Leave the block: the connection is closed, and the provider notices."""
    seen = 0
    async with stage.client() as client, client.stream(QUESTION) as stream:
        async for _ in stream:
            seen += 1
            if seen == tokens:
                break
    return seen


async def _stop_reading(stage: Stage, tokens: int, delay_ms: float) -> int:
    """Stop to read, but keep the connection: nobody tells the provider."""
    seen = 0
    async with stage.client() as client, client.stream(QUESTION) as stream:
        async for _ in stream:
            seen += 1
            if seen == tokens:
                await stage.settled()
                break
    return seen


async def _close_plain(stage: Stage, tokens: int, delay_ms: float) -> int:
    """A deadline after as many tokens: nothing was seen, and the work goes on."""
    limits = Limits(total_s=(tokens + 0.5) * delay_ms / 1000)
    async with stage.client(retry=ONCE, limits=limits) as client:
        await _try(client, "")
    return 0
