"""Chapter 23, errors as data: what an error should say, and what repeats cost."""

import pandas as pd

from labkit.experiments.agents import columns, deleted, play
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits, approve

POLICIES = ("fatal", "opaque", "words")


def tool_errors(clock: str = "virtual") -> pd.DataFrame:
    """One fault, three policies. `times_fatal`: the cost, as a multiple of the first
    row's, which gives up."""

    async def scene(stage: Stage) -> list[dict]:
        return [
            {"policy": policy}
            | columns(await play(stage, "recover", tool_error=policy))
            for policy in POLICIES
        ]

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    return frame.assign(times_fatal=(frame.cost_usd / frame.cost_usd[0]).round(4))


def permanent_error(cap: int = 12, clock: str = "virtual") -> pd.DataFrame:
    """A fault that no words can mend: fed back, and read as what it is.

    `times_recovered`: the cost, as a multiple of the run that recovered.
    """

    async def scene(stage: Stage) -> list[dict]:
        recovered = await play(stage, "recover")
        rows = []
        for policy, stops in (("fed back", False), ("stops the run", True)):
            limits = RunLimits(max_turns=cap)
            ended = await play(
                stage, "forbidden", limits=limits, permanent_errors_stop=stops
            )
            times = round(float(ended.state.cost / recovered.state.cost), 4)
            row = {"policy": policy, **columns(ended), "times_recovered": times}
            rows.append(row | {"error": ended.state.error or ""})
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def dedupe(clock: str = "virtual") -> pd.DataFrame:
    """The same read asked for once, twice, and twice with a memory."""
    cases = {
        "asked once": ("once", False),
        "asked twice": ("repeat", False),
        "asked twice, cached": ("repeat", True),
    }

    async def scene(stage: Stage) -> list[dict]:
        return [
            {"case": case} | columns(await play(stage, scenario, dedupe=cached))
            for case, (scenario, cached) in cases.items()
        ]

    frame = pd.DataFrame(perform(clock, scene, kind="scripted"))
    more = frame.cost_usd - frame.cost_usd[0]
    return frame.assign(
        more_usd=more.round(6), more_percent=(100 * more / frame.cost_usd[0]).round(3)
    )


def dedupe_writes(clock: str = "virtual") -> pd.DataFrame:
    """The same deletion asked for twice, each time approved: a memory of everything
    swallows the second one."""
    caches = {"everything": "everything", "read-only tools": True}

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for cache, memory in caches.items():
            ended = await play(stage, "delete_twice", dedupe=memory)
            while ended.state.status == "interrupted":
                approve(ended.state, ended.state.interruption["call_id"])
                again = {"state": ended.state, "workspace": ended.workspace}
                ended = await play(stage, "delete_twice", dedupe=memory, **again)
            rows.append({"cache": cache, **columns(ended), "deleted": deleted(ended)})
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))
