"""Chapter 14, triage: what a status means, and what it costs not to read it."""

import asyncio
import random

import pandas as pd

from labkit.backoff import classify, exponential, full, meaning
from labkit.client import ChatClient
from labkit.errors import StatusError
from labkit.experiments.stage import ONCE, PATIENCE, QUESTION, Stage, perform
from labkit.retry import Retry

STATUSES = (400, 401, 402, 403, 404, 408, 422, 429, 500, 502, 503, 504, 529)
TRIES = 6  # one and five retries, as the chapter's client


def verdicts(statuses: tuple[int, ...] = STATUSES) -> pd.DataFrame:
    """What `classify` tells a client to do with each status, and why."""
    return pd.DataFrame(
        [
            {"status": s, "classify": classify(s), "meaning": meaning(s)}
            for s in statuses
        ]
    )


async def ask_whatever_happens(client: ChatClient, tries: int = TRIES) -> StatusError:
    """Retry everything: the loop that most people write first.

    Exponential backoff without jitter, as in the chapter: .2 + .4 + .8 + 1.6 + 3.2 s.
    """
    for attempt in range(tries):
        try:
            return await client.complete(QUESTION)
        except StatusError as error:
            failure = error
        if attempt + 1 < tries:
            await asyncio.sleep(exponential(attempt, None))
    return failure


async def ask_with_triage(client: ChatClient) -> StatusError:
    """Read the status first: what labkit's client does by itself."""
    try:
        return await client.complete(QUESTION)
    except StatusError as error:
        return error


def triage(status: int = 401, clock: str = "virtual") -> pd.DataFrame:
    """Six tries against one, on a status that no waiting changes."""

    async def scene(stage: Stage) -> list[dict]:
        loop, rows = asyncio.get_running_loop(), []
        for policy, ask, retry in (
            ("retry everything", ask_whatever_happens, ONCE),
            ("triage first", ask_with_triage, Retry(attempts=TRIES)),
        ):
            before, began = stage.stats()["requests"], loop.time()
            async with stage.client(str(status), retry=retry) as client:
                error = await ask(client)
            wall_ms = round((loop.time() - began) * 1000, 3)
            requests = stage.stats()["requests"] - before
            row = {"policy": policy, "requests": requests, "wall_ms": wall_ms}
            rows.append(row | {"status": error.status})
        return rows

    return pd.DataFrame(perform(clock, scene))


async def insist(layer, attempts: int, rng: random.Random, triaged: bool):
    """One layer of retries around another: `attempts` tries with full jitter."""
    for attempt in range(attempts):
        try:
            return await layer()
        except StatusError as error:
            failure = error
        if triaged and classify(failure.status) == "fatal":
            break
        if attempt + 1 < attempts:
            await asyncio.sleep(full(attempt, rng))
    raise failure


def nested(
    attempts: int = 6, layers: int = 3, seed: int = 0, clock: str = "virtual"
) -> pd.DataFrame:
    """Retries inside retries: a client in a job in a queue, each with six tries.

    policy: each layer retries everything; each layer reads the status; or only the
    innermost retries, which is the rule: one layer owns the retries.
    """
    policies = {
        "each layer retries everything": (layers, False),
        "each layer reads the status": (layers, True),
        "one layer owns the retries": (1, True),
    }

    async def scene(stage: Stage) -> list[dict]:
        loop, rows = asyncio.get_running_loop(), []
        for status in (401, 503):
            for policy, (depth, triaged) in policies.items():
                rng, before = random.Random(seed), stage.stats()["requests"]
                began = loop.time()
                patient = {"retry": ONCE, "limits": PATIENCE}
                async with stage.client(str(status), **patient) as client:
                    await _give_up(client, depth, attempts, rng, triaged)
                rows.append(
                    {
                        "status": status,
                        "policy": policy,
                        "requests": stage.stats()["requests"] - before,
                        "wall_s": round(loop.time() - began, 6),
                    }
                )
        return rows

    return pd.DataFrame(perform(clock, scene))


async def _give_up(client, depth: int, attempts: int, rng, triaged: bool) -> None:
    def layer(level: int):
        if level == 0:
            return lambda: client.complete(QUESTION)
        return lambda: insist(layer(level - 1), attempts, rng, triaged)

    try:
        await layer(depth)()
    except StatusError:
        pass
