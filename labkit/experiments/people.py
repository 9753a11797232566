"""Chapter 23, people: what they allow, what they refuse, when they press Stop."""

import asyncio
from dataclasses import replace

import pandas as pd

from labkit.cancel import Stop
from labkit.experiments.agents import Ended, columns, deleted, play, spelled
from labkit.experiments.stage import Stage, perform
from labkit.harness import approve, pending, reject
from labkit.tools import Tool
from labkit.workspace import Workspace

REASON = "the access log is still needed"
PRESSED = "user pressed Stop"


async def to_approval(stage: Stage) -> Ended:
    """The run that asks to delete a file, up to where a person is asked."""
    return await play(stage, "destructive")


async def go_on(stage: Stage, ended: Ended) -> Ended:
    """Go on with a run, in the same workspace."""
    return await play(
        stage, ended.state.model, state=ended.state, workspace=ended.workspace
    )


def approval(clock: str = "virtual") -> pd.DataFrame:
    """A write that waits for a person, and what becomes of it."""

    async def scene(stage: Stage) -> list[dict]:
        waiting = await to_approval(stage)
        call = pending(waiting.state)[0]
        rows = [
            {"decision": "none yet", **columns(waiting)}
            | {"interruption": waiting.state.interruption["type"]}
            | {"call": spelled(call), "deleted": deleted(waiting)}
        ]
        for decision in ("approved", "rejected"):
            ended = await to_approval(stage)
            if decision == "approved":
                approve(ended.state, call.id)
            else:
                reject(ended.state, call.id, REASON)
            ended = await go_on(stage, ended)
            row = {"decision": decision, **columns(ended), "deleted": deleted(ended)}
            rows.append(row)
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def rejection(clock: str = "virtual") -> pd.DataFrame:
    """The same refusal, with words and without: what the user is told of it."""

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for how, mute in (("with a reason", False), ("with nothing", True)):
            ended = await to_approval(stage)
            call = pending(ended.state)[0]
            reject(ended.state, call.id, REASON, mute=mute)
            ended = await go_on(stage, ended)
            told = next(m for m in ended.state.messages[::-1] if m["role"] == "tool")
            row = {"rejected": how, "deleted": deleted(ended)}
            row |= {"the_model_read": told["content"], "answer": ended.state.output}
            rows.append(row)
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def scan_with(run, workspace: Workspace) -> list[Tool]:
    """The catalogue, with another scan_archive."""
    *others, scan = workspace.tools()
    return [*others, replace(scan, run=run)]


def not_listening(workspace: Workspace):
    """scan_archive as it is where the Stop reaches only the HTTP call: it goes on,
    whoever cancels it."""

    async def scan(args: dict, context) -> str:
        work = asyncio.ensure_future(workspace.scan_archive(args, context))
        while not work.done():
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                continue
        return work.result()

    return scan


async def timed(stage: Stage, run, workspace: Workspace, stop_s: float | None) -> dict:
    """One run of `slow` with this scan_archive, and a Stop after so many seconds."""
    loop, stop, labels = asyncio.get_running_loop(), Stop(), []
    began = loop.time()
    timer = stop_s and loop.call_later(stop_s, stop.set, PRESSED)
    ended = await play(
        stage, "slow", workspace=workspace, tools=scan_with(run, workspace),
        stop=stop, on_progress=labels.append,
    )  # fmt: skip
    if timer:
        timer.cancel()
    interruption = ended.state.interruption or {}
    return {
        "wall_ms": round((loop.time() - began) * 1000, 3),
        "status": ended.state.status,
        "reason_given": interruption.get("reason", ""),
        "progress": len(labels),
        "last_progress": labels[-1] if labels else "",
    }


def cancel(stop_s: float = 1.2, clock: str = "virtual") -> pd.DataFrame:
    """A tool of three seconds: left alone, stopped, and stopped where the signal does
    not reach it."""

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for case, hears, after_s in (
            ("left alone", True, None),
            (f"Stop at {stop_s:g} s", True, stop_s),
            ("Stop reaches only the HTTP call", False, stop_s),
        ):
            workspace = Workspace()
            scan = workspace.scan_archive if hears else not_listening(workspace)
            rows.append({"case": case} | await timed(stage, scan, workspace, after_s))
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def stop_lag(stop_s: float = 1.2, clock: str = "virtual") -> pd.DataFrame:
    """How long after the Stop the run has ended, by the kind of tool it hits.

    Blocking tools work in a thread, which takes real time: on the virtual clock
    they are skipped.
    """
    kinds = {
        "async": "scan_archive",
        "blocking, polls": "scan_archive_blocking",
        "blocking, deaf": "scan_archive_deaf",
    }

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for kind, method in kinds.items():
            row = {"tool": kind, "stop_at_ms": stop_s * 1000}
            if stage.virtual and kind != "async":
                row["skipped"] = "a blocking tool takes real time; see --real"
            else:
                workspace = Workspace()
                run = getattr(workspace, method)
                ended = await timed(stage, run, workspace, stop_s)
                lag_ms = round(ended["wall_ms"] - row["stop_at_ms"], 3)
                row |= {"lag_ms": lag_ms, "status": ended["status"]}
            rows.append(row)
        return rows

    names = ["tool", "stop_at_ms", "lag_ms", "status", "skipped"]
    return pd.DataFrame(perform(clock, scene, kind="scripted"), columns=names)
