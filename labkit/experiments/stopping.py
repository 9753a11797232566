"""Chapter 14, waiting: the ways in which a call ends early, and what may follow."""

import asyncio
from random import Random

import pandas as pd

from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.errors import (
    BrokenStream,
    CallError,
    ConnectError,
    DeadlineError,
    StatusError,
)
from labkit.experiments.stage import ONCE, QUESTION, Stage, perform
from labkit.limits import Limits
from labkit.retry import Retries, Retry, may_have_run
from mock.provider import Settings


async def read(client: ChatClient, seen: list[str], stop: Stop | None = None) -> None:
    """Read one answer to its end, and note each piece."""
    async with client.stream(QUESTION, stop=stop) as stream:
        async for text in stream:
            seen.append(text)


def ways_to_end(
    after_ms: float = 400.0, delay_ms: float = 60.0, clock: str = "virtual"
) -> pd.DataFrame:
    """End one stream at `after_ms`, in each way there is; look what goes on.

    raised: what the caller gets. seen: pieces that arrived. generated: tokens of the
    whole answer's 13, once the provider is at rest. in_flight: answers under way just
    after the call has ended.
    """
    ways = {
        "left alone": _left_alone,
        "Stop": _stop,
        "total_s": _total,
        "the kernel's interrupt": _interrupt,
    }

    async def scene(stage: Stage, way) -> dict:
        seen: list[str] = []
        raised = await way(stage, seen, after_ms / 1000)
        await asyncio.sleep(0)
        in_flight = stage.stats()["inflight"]
        stats = await stage.settled()
        row = {"raised": raised, "seen": len(seen), "in_flight": in_flight}
        return row | {"generated": stats["generated_tokens"]}

    settings = Settings(delay_ms=delay_ms)
    rows = [
        {"ended_by": label} | perform(clock, scene, settings, way=way)
        for label, way in ways.items()
    ]
    return pd.DataFrame(rows)


async def _left_alone(stage: Stage, seen: list[str], after_s: float) -> str:
    async with stage.client() as client:
        await read(client, seen)
    return ""


async def _stop(stage: Stage, seen: list[str], after_s: float) -> str:
    """The button of a page: any thread, any task may press it."""
    stop = Stop()
    asyncio.get_running_loop().call_later(after_s, stop.set, "user pressed Stop")
    try:
        async with stage.client() as client:
            await read(client, seen, stop)
    except CallError as error:
        return f"{type(error).__name__}: {error.reason}"


async def _total(stage: Stage, seen: list[str], after_s: float) -> str:
    limits = Limits(total_s=after_s)
    try:
        async with stage.client(limits=limits, retry=ONCE) as client:
            await read(client, seen)
    except DeadlineError as error:
        return f"{type(error).__name__}: {error.limit}"


async def _interrupt(stage: Stage, seen: list[str], after_s: float) -> str:
    """What a notebook's interrupt button does to a cell that awaits: its task is
    cancelled, from outside, without a word to the client."""
    async with stage.client() as client:
        task = asyncio.create_task(read(client, seen))
        await asyncio.sleep(after_s)
        task.cancel()
        (error,) = await asyncio.gather(task, return_exceptions=True)
    return type(error).__name__


FAILURES = {
    "no connection": ConnectError("refused"),
    "429": StatusError("too many", status=429, verdict="retry-after"),
    "503": StatusError("not available", status=503, verdict="retry"),
    "500": StatusError("failed", status=500, verdict="retry"),
    "504": StatusError("gateway waited", status=504, verdict="retry"),
    "open_s ran out": DeadlineError("silence", limit="open", after_s=30.0),
    "broken before the first word": BrokenStream("reset"),
}


def asked_again() -> pd.DataFrame:
    """Which failures labkit answers with another try, without keys and with them.

    may_have_run: whether the provider may have generated, and billed, an answer.
    """
    rows = []
    for label, error in FAILURES.items():
        row = {"failure": label, "may_have_run": "no"}
        if may_have_run(error):
            row["may_have_run"] = "yes"
        for column, idempotent in (("without_keys", False), ("with_keys", True)):
            rules = Retries(Retry(), Random(0), idempotent)
            again = rules.decide(error, attempt=0, left_s=60.0, now=0.0).again
            row[column] = "again" if again else "no"
        rows.append(row)
    return pd.DataFrame(rows)
