"""Chapter 23, errors as data, word by word: what was sent, and what the model read."""

import json

import pandas as pd

from labkit.conditions import no_progress
from labkit.experiments.agents import columns, play, spelled
from labkit.experiments.stage import Stage, perform
from labkit.harness import RunLimits, approve
from labkit.tools import read_arguments
from labkit.transcript import calls_of
from labkit.workspace import Workspace

# What models have sent as the arguments of read_file: each of them is a classic.
SENT = {
    "cut off in the middle": '{"path": "errors.l',
    "written as in Python": "{'path': 'errors.log'}",
    "only the value": '"errors.log"',
    "two calls in one": '{"path": "access.log"}{"path": "errors.log"}',
    "another name": '{"file": "errors.log"}',
    "a list where one is due": '{"path": ["access.log", "errors.log"]}',
    "nothing at all": "",
    "as it should be": '{"path": "errors.log"}',
}


def malformed(sent: dict[str, str] | None = None) -> pd.DataFrame:
    """Arguments for read_file: what json.loads says of them, and what the model is
    told. `sent`: other texts, each under a name. No clock: nothing is run."""
    read_file = Workspace().tools()[1]
    rows = []
    for case, text in (SENT if sent is None else sent).items():
        try:
            told = f"runs, with {read_arguments(text, read_file)}"
        except ValueError as error:
            told = f"Error: {error}"
        parser = _parser_says(text)
        row = {"case": case, "sent": text, "json_says": parser, "model_reads": told}
        rows.append(row)
    return pd.DataFrame(rows)


def _parser_says(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return "fine"


def calls(
    scenario: str = "delete_twice", dedupe: bool | str = False, clock: str = "virtual"
) -> pd.DataFrame:
    """A row a call: what was asked for, whether it ran, and what the model was told.
    What needs a person is approved."""

    async def scene(stage: Stage) -> list[dict]:
        ended = await play(stage, scenario, dedupe=dedupe)
        while ended.state.status == "interrupted":
            approve(ended.state, ended.state.interruption["call_id"])
            ended = await play(
                stage, scenario, dedupe=dedupe, state=ended.state,
                workspace=ended.workspace, trace=ended.trace,
            )  # fmt: skip
        told = [m["content"] for m in ended.state.messages if m["role"] == "tool"]
        results = [e for e in ended.trace.events if e["type"] == "tool_result"]
        return [
            {
                "call_id": event["call_id"],
                "tool": event["tool_name"],
                "ran": not event.get("cached", False),
                "told": words,
            }
            for event, words in zip(results, told, strict=True)
        ]

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def told(
    scenario: str = "recover", clock: str = "virtual", without: str = "", **options
) -> pd.DataFrame:
    """The transcript after the question, a row a message: who, and the words. A call
    is spelled as people write it. without: leave this tool out of the catalogue."""

    async def scene(stage: Stage) -> list[dict]:
        tools = [t for t in Workspace().tools() if t.name != without]
        ended = await play(stage, scenario, tools=tools, **options)
        rows = []
        for message in ended.state.messages[2:]:
            who = "model" if message["role"] == "assistant" else "tool"
            asked = ", ".join(map(spelled, calls_of(message)))
            rows.append({"who": who, "says": asked or message["content"]})
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))


def without_progress(last: int = 3, cap: int = 12, clock: str = "virtual"):
    """Who is stopped by `no_progress(last)`, and who is left alone: a model that asks
    in vain, one that never ends, one that mends its mistake, one that repeats once."""
    cases = {
        "asks in vain": "forbidden",
        "never ends": "runaway",
        "mends its mistake": "recover",
        "repeats itself once": "repeat",
    }

    async def scene(stage: Stage) -> list[dict]:
        rows = []
        for case, scenario in cases.items():
            for condition, given in (("none", []), (f"no_progress({last})", [last])):
                ended = await play(
                    stage, scenario, limits=RunLimits(max_turns=cap),
                    permanent_errors_stop=False,
                    stop_conditions=[no_progress(n) for n in given],
                )  # fmt: skip
                rows.append({"model": case, "condition": condition, **columns(ended)})
        return rows

    return pd.DataFrame(perform(clock, scene, kind="scripted"))
