"""Chapter 14, waiting: who did what and when, for pictures in lanes.

The counts of the same scenes are tables in `waiting`; here are their moments.
"""

import asyncio
from contextlib import asynccontextmanager

import pandas as pd

from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.errors import CallError, DeadlineError, Stopped
from labkit.experiments.stage import ONCE, QUESTION, Stage, perform
from labkit.limits import Limits
from mock.provider import Settings

LOOK_S = 0.002  # how often the watcher looks into the provider's journal


def idempotency_lanes(
    give_up_ms: float = 300.0, pause_ms: float = 500.0, delay_ms: float = 60.0,
    clock: str = "virtual",
) -> pd.DataFrame:  # fmt: skip
    """A client gives up, waits and asks once more: its attempts, and the bills.

    The scenes of `waiting.idempotency`. Columns: key, lane ("client" or "provider"),
    number, start_ms, end_ms, outcome, id. The client's rows are its attempts, with
    "timeout", "answered", "replayed" or "joined"; the provider's are the answers it
    generated, and each of those is billed.
    """
    cases = {
        "no key": ("", pause_ms),
        "a key": ("one-logical-call", pause_ms),
        "a key, asked early": ("one-logical-call", give_up_ms * 0.7),
    }
    settings, patience = Settings(delay_ms=delay_ms), Limits(total_s=give_up_ms / 1000)

    async def scene(stage: Stage, key: str, pause_ms: float) -> list[dict]:
        now = asyncio.get_running_loop().time
        began, rows = now(), []
        async with stage.client(retry=ONCE, limits=patience) as client:
            async with _watched(stage, began) as generated:
                for number in range(2):
                    start_ms = (now() - began) * 1000
                    outcome, ident = await _ask(client, key)
                    row = {"lane": "client", "number": number, "start_ms": start_ms}
                    row |= {"end_ms": (now() - began) * 1000, "outcome": outcome}
                    rows.append(row | {"id": ident})
                    if number == 0:
                        await asyncio.sleep(pause_ms / 1000)
                await stage.settled()
        return rows + list(generated.values())

    rows = []
    for label, (key, pause) in cases.items():
        lanes = perform(clock, scene, settings, key=key, pause_ms=pause)
        rows += [{"key": label} | row for row in lanes]
    return pd.DataFrame(rows).round({"start_ms": 0, "end_ms": 0})


async def _ask(client: ChatClient, key: str) -> tuple[str, str]:
    try:
        reply = await client.complete(QUESTION, key=key)
    except DeadlineError:
        return "timeout", ""
    return reply.headers.get("idempotent-replay", "answered"), reply.id


@asynccontextmanager
async def _watched(stage: Stage, began: float):
    """While in the block: note when each generation begins and last moves."""
    now = asyncio.get_running_loop().time
    rows: dict[str, dict] = {}

    async def watch():
        while True:
            for entry in stage.journal():
                if entry["served"] == "new":
                    _note(rows, entry, (now() - began) * 1000)
            await asyncio.sleep(LOOK_S)

    task = asyncio.create_task(watch())
    try:
        yield rows
        await asyncio.sleep(2 * LOOK_S)  # a last look
    finally:
        task.cancel()


def _note(rows: dict[str, dict], entry: dict, now_ms: float) -> None:
    new = {"lane": "provider", "number": len(rows), "start_ms": now_ms, "tokens": 0}
    row = rows.setdefault(entry["id"], new)
    if entry["generated"] > row["tokens"]:
        row |= {"end_ms": now_ms, "tokens": entry["generated"]}
        row |= {"outcome": "generated", "id": entry["id"]}


SCENES = {
    "a long answer, all is well": "first=3000,delay=1500,length=56",
    "accepts, then says nothing": "hang",
    "a comment, a role, then nothing": "comments=1,role=1,first=600000",
    "stalls after six pieces": "first=3000,delay=1500,stall=6",
    "goes on and on": "first=3000,delay=1500,length=1000",
    "somebody presses Stop": "first=3000,delay=1500,length=56",
}


def who_stops(
    limits: Limits = Limits(), stop_after_s: float = 40.0, clock: str = "virtual"
) -> pd.DataFrame:
    """Six streams under the same three limits: each piece, and what ended the wait.

    Columns: scene, t_s (since the question), event ("piece" or "end"), and at the
    end `by`: "the answer", "open", "idle", "total" or "stop"; `error`: the class.
    """

    async def scene(stage: Stage, label: str, fault: str) -> list[dict]:
        now = asyncio.get_running_loop().time
        began, rows, stop = now(), [], Stop()
        if label == "somebody presses Stop":
            asyncio.get_running_loop().call_later(stop_after_s, stop.set, "Stop")
        by, error = "the answer", ""
        async with stage.client(fault, limits=limits, retry=ONCE) as client:
            try:
                async with client.stream(QUESTION, stop=stop) as stream:
                    async for _ in stream:
                        rows.append({"t_s": now() - began, "event": "piece"})
            except CallError as failure:
                by, error = _who(failure), type(failure).__name__
        rows.append({"t_s": now() - began, "event": "end", "by": by, "error": error})
        return [{"scene": label} | row for row in rows]

    rows = []
    for label, fault in SCENES.items():
        rows += perform(clock, scene, label=label, fault=fault)
    return pd.DataFrame(rows).round({"t_s": 3})


def _who(failure: CallError) -> str:
    if isinstance(failure, Stopped):
        return "stop"
    return failure.limit if isinstance(failure, DeadlineError) else "the network"
