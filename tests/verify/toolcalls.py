"""What a model may ask for: any arguments, any name, any id, any usage.

Arguments are read or refused in words; and a run with such calls ends with an answer to
each, in a state that can be saved and loaded.
"""

import asyncio
import json
import tempfile
from random import Random

from labkit.clock import run_virtual
from labkit.dedupe import signature
from labkit.harness import RunLimits, approve, new_run, pending
from labkit.harness import run as run_agent
from labkit.reply import Reply
from labkit.runs.report import report
from labkit.state import RunState
from labkit.store import RunStore
from labkit.tools import Tool, as_text, catalogue, read_arguments
from labkit.trace import Trace, records
from labkit.usage import Usage
from tests.players import PATH, Counted, Player, calls
from tests.verify.mutations import ODD, change, copy, damage
from tests.verify.section import Section, Tally, cases
from tests.verify.tracelines import odd_text

NAME = "tool calls"

WIDE = {
    "type": "object",
    "properties": {
        "path": {"type": ["string", "null"]},
        "lines": {"type": "array"},
        "unit": {"enum": ["m", "ft", None, 1]},
        "most": {"type": "number"},
        "deep": {"type": "object"},
        "any": {},
    },
    "required": ["path"],
    "additionalProperties": True,
}
RIGHT = {"path": "a", "lines": [1, {"b": [2]}], "unit": "m", "most": 1.5, "deep": {}}


def tools() -> list[Tool]:
    """Each gives back what it was given."""
    return [
        Counted("look", lambda args, context: args, PATH, read_only=True).tool,
        Counted("note", lambda args, context: args, WIDE).tool,
        Counted("rm", lambda args, context: args, WIDE, needs_approval=True).tool,
    ]


def odd_arguments(rng: Random) -> str:
    """The text of some arguments: right, wrong, torn, or none at all."""
    right = rng.choice(({}, {"path": odd_text(rng)}, RIGHT))
    value = change(right, rng) if rng.random() < 0.7 else right
    if rng.random() < 0.1:
        value = copy(rng.choice(ODD))
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.3:
        text = damage(text.encode("utf-8", "replace"), rng).decode("utf-8", "replace")
    return text


def check_arguments(text: str, tool: Tool) -> None:
    try:
        arguments = read_arguments(text, tool)
    except ValueError as error:
        said = str(error)
        assert tool.name in said and len(said) < len(text) + 500, f"{said[:200]!r}"
        return
    assert isinstance(arguments, dict)
    assert json.loads(json.dumps(arguments, allow_nan=False)) == arguments
    assert signature(tool, arguments) and as_text(arguments)
    for name in tool.parameters.get("required", ()):
        assert name in arguments


def odd_turn(rng: Random) -> Reply:
    """A turn with a few calls. Ids may be missing or the same, names unknown."""
    asked = [
        (
            rng.choice(("", "c1", "c2", f"c{rng.random()}", odd_text(rng))),
            rng.choice(("look", "look", "note", "rm", "fly", odd_text(rng) or "x")),
            odd_arguments(rng),
        )
        for _ in range(rng.randrange(1, 4))
    ]
    counts = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    usage = change(counts, rng) if rng.random() < 0.3 else counts
    return calls(*asked, usage=Usage.read(usage))


async def check_run(store: RunStore, rng: Random) -> None:
    """A run of a few such turns, with a person who allows everything."""
    state = new_run("plan", "hi", run_id=f"n{rng.randrange(10**9)}")
    turns = [odd_turn(rng) for _ in range(rng.randrange(1, 4))]
    player, own = Player(*turns, "It is done."), tools()
    path = store.folder / f"{state.run_id}.jsonl"
    trace, dedupe = Trace(path), rng.random() < 0.5
    limits = RunLimits(max_budget_usd="100") if rng.random() < 0.5 else RunLimits()
    for _ in range(20):
        async with asyncio.timeout(60):
            await run_agent(
                state, own, player, store=store, trace=trace, dedupe=dedupe,
                limits=limits,
            )  # fmt: skip
        report(state).encode("utf-8", "surrogatepass")
        assert store.load(state.run_id) == state
        if (state.interruption or {}).get("type") != "approval":
            break
        approve(state, state.interruption["call_id"])
        store.save(state)
    trace.close()
    check_end(state, turns)
    events, torn = records(path)
    assert not torn and events[-1]["type"] == "run_stopped"
    path.unlink()
    store.path(state.run_id).unlink()


def check_end(state: RunState, turns: list[Reply]) -> None:
    """Each call of each turn that was made has one answer, in the order of asking."""
    if state.interruption:  # a usage that says nothing, with a budget set
        assert state.interruption["type"] == "unpriced", state.interruption
        assert state.unpriced_turns
        return
    assert state.status == "completed", state.error
    assert pending(state) == [] and state.turns == len(turns) + 1
    asked = [call["id"] for m in state.messages for call in m.get("tool_calls") or ()]
    answered = [m["tool_call_id"] for m in state.messages if m["role"] == "tool"]
    assert asked == answered and len(set(asked)) == len(asked)
    assert len(asked) == sum(len(turn.tool_calls) for turn in turns)
    for message in state.messages:
        (message["content"] or "").encode()  # no half characters


def run(budget_s: float, seed: int) -> Section:
    texts = Tally("arguments read against a schema")
    runs = Tally("runs of a model that asks for such calls")

    async def all_of_them(folder):
        store, own = RunStore(folder), tools()
        catalogue(own)
        for case, rng in cases(budget_s / 2, seed):
            with texts.attempt(case):
                check_arguments(odd_arguments(rng), rng.choice(own))
        store.folder.mkdir(exist_ok=True)
        for case, rng in cases(budget_s / 2, seed):
            with runs.attempt(case):
                await check_run(store, rng)

    with tempfile.TemporaryDirectory() as folder:
        run_virtual(all_of_them, folder)
    return Section(NAME, [texts, runs])
