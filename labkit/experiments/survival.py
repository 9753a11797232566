"""Chapter 23, survival: the five exits, a killed process, and two calls in one turn."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd

from labkit.bareloop import bare_loop
from labkit.execution import call_tool
from labkit.experiments.agents import NO_CAP, begin, columns, play
from labkit.experiments.mortal import FileLog, Mortal, die, in_a_process_that_dies
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits, RunState, approve, pending
from labkit.store import RunStore
from labkit.transcript import calls_of, tool_message
from labkit.workspace import Workspace

RUN_ID = "n1"


def exits(clock: str = "virtual") -> pd.DataFrame:
    """One real run for each way out, and what becomes of it when it is taken up again
    with a higher cap, a larger budget, or a person's word."""
    ways = {
        "completed": ("plan", {}),
        "failed": ("recover", {"tool_error": "fatal"}),
        "max_turns_exceeded": ("runaway", {"limits": RunLimits(max_turns=3)}),
        "budget_exceeded": (
            "runaway",
            {"limits": replace(NO_CAP, max_budget_usd="0.002")},
        ),
        "interrupted": ("destructive", {}),
    }

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for status, (scenario, options) in ways.items():
            ended = await play(stage, scenario, **options)
            state = ended.state
            row = {"exit": status, "scenario": scenario, **columns(ended)}
            row |= {"resumable": state.resumable, "carries": _carried(state)}
            if state.status == "interrupted":
                approve(state, pending(state)[0].id)
            more = RunLimits(max_turns=6, max_budget_usd="0.05")
            ended = await play(
                stage, scenario, state=state, workspace=ended.workspace, limits=more
            )
            after = {"turns_after": state.turns, "status_after": state.status}
            rows.append(row | after)
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def _carried(state: RunState) -> str:
    """What a run that has ended gives to whoever has to decide."""
    if state.interruption:
        shown = {k: v for k, v in state.interruption.items() if k != "run_id"}
        return json.dumps(shown, separators=(",", ":"))
    return state.error or state.output or ""


def _plan_until_turn_three(folder: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.transport = Mortal(stage.transport, last=3)
        await play(stage, "plan", state=begin("plan", RUN_ID), **on_disk(folder))

    perform("virtual", scene, kind="scripted")


def on_disk(folder: str | Path) -> dict:
    """What two processes share: the store, and the log of what the tools did."""
    log = FileLog(Path(folder) / "tools.log")
    return {"store": RunStore(folder), "workspace": Workspace(log)}


def resume(clock: str = "virtual") -> pd.DataFrame:
    """Killed after turn 2, as the third is sent; taken up again from the disk."""
    with tempfile.TemporaryDirectory() as folder:
        in_a_process_that_dies(_plan_until_turn_three, folder)
        shared = on_disk(folder)
        restored = shared["store"].load(RUN_ID)
        rows = [_row("restored", restored, shared["workspace"].log)]

        async def scene(stage: Stage):
            return await play(stage, "plan", state=restored, **shared)

        ended = perform(clock, scene, kind="scripted")
        rows.append(_row("finished", ended.state, ended.workspace.log))
    return pd.DataFrame(rows)


def _row(process: str, state: RunState, log: list[str]) -> dict:
    return {
        "process": process,
        "turns": state.turns,
        "cost_usd": float(state.cost),
        "messages": len(state.messages),
        "status": state.status,
        "tool_log": ", ".join(log),
    }


async def _die_in_the_tool(args: dict, context) -> None:
    die()


def _pair_until_the_read(folder: str) -> None:
    """Two calls in one turn: the write has run, and the read takes the process."""
    shared = on_disk(folder)
    tools = [
        replace(tool, run=_die_in_the_tool) if tool.name == "read_file" else tool
        for tool in shared["workspace"].tools()
    ]

    async def scene(stage: Stage) -> None:
        waiting = await play(stage, "pair", state=begin("pair", RUN_ID), **shared)
        approve(waiting.state, pending(waiting.state)[0].id)
        await play(stage, "pair", state=waiting.state, tools=tools, **shared)

    perform("virtual", scene, kind="scripted")


async def ask_again(client, state: RunState, tools: list) -> None:
    """The first naive resume: ask the model. A turn without all of its answers would
    be refused, so it has to go."""
    await bare_loop(client, state.messages[:2], tools)


async def run_again(client, state: RunState, tools: list) -> None:
    """The second naive resume: run what the last turn asked for, all of it."""
    at = max(n for n, m in enumerate(state.messages) if m["role"] == "assistant")
    messages = state.messages[: at + 1]
    by_name = {tool.name: tool for tool in tools}
    for call in calls_of(messages[at]):
        result = await call_tool(by_name[call.name], json.loads(call.arguments))
        messages.append(tool_message(call, result))
    await bare_loop(client, messages, tools)


def parallel(clock: str = "virtual") -> pd.DataFrame:
    """Killed between two calls of one turn: two naive resumes against `pending`.

    turns_paid, deletions, reads: over both processes. The task needs two turns, one
    deletion and one read.
    """

    async def scene(stage: Stage, resumed: str, folder: str) -> dict:
        shared = on_disk(folder)
        state, workspace = shared["store"].load(RUN_ID), shared["workspace"]
        before = state.turns
        if resumed == "pending()":
            await play(stage, "pair", state=state, **shared)
        else:
            naive = ask_again if resumed == "asks the model again" else run_again
            async with stage.client(model="pair") as client:
                await naive(client, state, workspace.tools())
        return {
            "resume": resumed,
            "turns_paid": before + stage.stats()["billed"],
            "deletions": len(workspace.deleted),
            "reads": sum(line.startswith("read_file") for line in workspace.log),
        }

    rows = []
    for resumed in ("asks the model again", "runs the tools again", "pending()"):
        with tempfile.TemporaryDirectory() as folder:
            in_a_process_that_dies(_pair_until_the_read, folder)
            parameters = {"resumed": resumed, "folder": folder}
            rows.append(perform(clock, scene, kind="scripted", **parameters))
    return pd.DataFrame(rows)
