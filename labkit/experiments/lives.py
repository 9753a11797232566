"""Chapter 23, survival: three deaths, and what follows from each way to go on.

The counts of these scenes are tables in `survival`; here are their events, for pictures
in lanes.
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd

from labkit.experiments.agents import begin, play
from labkit.experiments.mortal import Mortal, die, in_a_process_that_dies
from labkit.experiments.stage import Stage, perform
from labkit.experiments.survival import RUN_ID, ask_again, run_again
from labkit.experiments.witness import Bills, Witness, shared
from labkit.harness import RunState, approve, pending, resolve
from labkit.store import RunStore

PENDING = "pending()"
NAIVE = {"asks the model again": ask_again, "runs the tools again": run_again}


def as_turn_three_is_sent(folder: str) -> None:
    """The scenario `plan`: two turns and two tools are done."""

    async def scene(stage: Stage) -> None:
        witness = Witness(folder)
        stage.transport = Mortal(Bills(stage.transport, witness), last=3)
        await play(stage, "plan", state=begin("plan", RUN_ID), **shared(witness))

    perform("virtual", scene, kind="scripted")


def between_two_calls(folder: str) -> None:
    """The scenario `pair`: the deletion is answered, and the read kills."""
    approve_and_die_in(folder, "read_file", after_it=False)


def in_the_write(folder: str) -> None:
    """The scenario `pair`: the file is gone, and nobody has been told."""
    approve_and_die_in(folder, "delete_file", after_it=True)


def approve_and_die_in(folder: str, name: str, after_it: bool) -> None:
    witness = Witness(folder)
    files = shared(witness)

    def deadly(tool):
        async def run(args, context):
            if after_it:
                await tool.run(args, context)
            die()

        return replace(tool, run=run) if tool.name == name else tool

    tools = [deadly(tool) for tool in files["workspace"].tools()]

    async def scene(stage: Stage) -> None:
        stage.transport = Bills(stage.transport, witness)
        state = begin("pair", RUN_ID)
        await play(stage, "pair", state=state, tools=tools, **files)
        witness.note("person", "approves")
        approve(state, pending(state)[0].id)
        files["store"].save(state)
        await play(stage, "pair", state=state, tools=tools, **files)

    perform("virtual", scene, kind="scripted")


def left_behind(death) -> RunState:
    """What is on the disk after one of the deaths."""
    with tempfile.TemporaryDirectory() as folder:
        in_a_process_that_dies(death, folder)
        return RunStore(folder).load(RUN_ID)


def take_up(folder: str | Path, how: str) -> None:
    """Go on in this process, as somebody would who knows no better, or as we do."""
    witness = Witness(folder)
    files = shared(witness)
    state = files["store"].load(RUN_ID)

    async def scene(stage: Stage) -> None:
        stage.transport = Bills(stage.transport, witness)
        if how in NAIVE:
            async with stage.client(model=state.model) as client:
                return await NAIVE[how](client, state, files["workspace"].tools())
        await play(stage, state.model, state=state, **files)
        if state.status == "interrupted":  # in doubt: somebody looks, and says so
            witness.note("person", "it ran")
            resolve(state, pending(state)[0].id, ran=True)
            await play(stage, state.model, state=state, **files)

    perform("virtual", scene, kind="scripted")


def lives(death, ways: tuple[str, ...]) -> pd.DataFrame:
    """One death, and what follows from each way to go on. A row is an event.

    Columns: resume (the way), process (1 or 2), order, lane, event, again: this very
    turn was billed, or this very call had run, before.
    """
    rows = []
    with tempfile.TemporaryDirectory() as root:
        dead = Path(root, "dead")
        dead.mkdir()
        in_a_process_that_dies(death, dead)
        before = len(Witness(dead).events())
        for number, way in enumerate(ways):
            folder = shutil.copytree(dead, Path(root, str(number)))
            take_up(folder, way)
            seen = set()
            for order, event in enumerate(Witness(folder).events()):
                key = event["lane"], event["event"]
                effect = event["lane"] in ("model", "tools")
                row = {"resume": way, "process": 1 + (order >= before), "order": order}
                rows.append(row | event | {"again": effect and key in seen})
                seen.add(key)
    return pd.DataFrame(rows)


def resumed() -> pd.DataFrame:
    """Killed as turn 3 is sent: the events of `survival.resume`."""
    return lives(as_turn_three_is_sent, (PENDING,))


def parallel() -> pd.DataFrame:
    """Killed between two calls of one turn: the events of `survival.parallel`."""
    return lives(between_two_calls, (*NAIVE, PENDING))


def in_doubt() -> pd.DataFrame:
    """Killed when the write had run and was not yet answered."""
    return lives(in_the_write, ("runs the tools again", PENDING))


def totals(events: pd.DataFrame) -> pd.DataFrame:
    """What each way came to, over both processes."""

    def count(own: pd.DataFrame) -> pd.Series:
        tools = own.event[own.lane == "tools"]
        return pd.Series(
            {
                "turns_paid": int((own.lane == "model").sum()),
                "deletions": int((tools == "delete_file").sum()),
                "reads": int((tools == "read_file").sum()),
            }
        )

    ways = events.groupby("resume", sort=False)
    return ways[["lane", "event"]].apply(count)
