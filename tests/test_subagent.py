"""A tool with a run behind it: what it costs, waits for and leaves in the parent."""

import asyncio
from decimal import Decimal

import pytest

from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.conditions import no_progress
from labkit.errors import StatusError
from labkit.harness import RunLimits, approve, new_run, reject, resolve, run
from labkit.pricing import CHAPTER
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.subagent import naive_subagent, subagent
from labkit.trace import MemoryTrace
from tests.players import Counted, Player, answers, calls, says

TURN = Decimal("0.000320")  # what each turn of a Player costs
ASK = calls(("c1", "research", '{"question": "where?"}'))
DONE = says("so it is")


def research(player, *tools, make=subagent, **options):
    about = "Investigate one question."
    return make("research", about, [t.tool for t in tools], player, **options)


def play(tool, player=None, state=None, **options) -> RunState:
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [tool], player or Player(ASK, DONE), **options)


def looking(turns=100):
    """A child that looks `turns` times, then answers."""
    return Player(*[calls((f"k{n}", "look", "")) for n in range(turns)], "in a.log")


def test_a_child_has_its_own_transcript_and_costs_the_parent():
    player, trace = looking(2), MemoryTrace()
    state = play(research(player, Counted(), system="be brief"), trace=trace)
    assert (state.status, state.output) == ("completed", "so it is")
    assert answers(state) == {"c1": "in a.log"} and len(state.messages) == 4
    assert (state.turns, state.tool_runs) == (2, 1)
    child = state.children["c1"]
    assert child.run_id == "n1.c1" and child.model == "plan"
    assert [m["content"] for m in child.messages[:2]] == ["be brief", "where?"]
    assert child.turns == 3 and player.asked[0]["key"] == "n1.c1-turn-1"
    assert (state.own_cost, child.cost, state.cost) == (2 * TURN, 3 * TURN, 5 * TURN)
    ids = [event["run_id"] for event in trace.events]
    assert ids.count("n1.c1") == 3 + 4 + 1  # turns, tools, end
    assert trace.events[-1]["cost_usd"] == float(5 * TURN)
    assert RunState.from_json(state.to_json()) == state


def test_naively_the_cost_is_lost_and_an_approval_is_no_result():
    state = play(research(looking(2), Counted(), make=naive_subagent))
    assert state.cost == 2 * TURN and state.children == {}
    gated = Counted(needs_approval=True)
    state = play(research(looking(1), gated, make=naive_subagent))
    assert answers(state) == {"c1": "no result"} and state.status == "completed"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (RunLimits(2), "max_turns_exceeded"),
        (RunLimits(None, "0.0005"), "budget_exceeded"),
    ],
)
def test_a_child_at_its_own_cap_is_words_for_the_parent(limits, why):
    state = play(research(looking(), Counted(), limits=limits))
    said = f"Error: the subagent stopped without an answer: {why}"
    assert answers(state) == {"c1": said} and state.status == "completed"
    assert state.cost == 4 * TURN


def test_other_ends_of_a_child_are_words_too():
    child = Player(StatusError("401: no such key", status=401))
    assert answers(play(research(child)))["c1"].endswith("401: no such key")
    stuck = research(looking(), Counted(), stop_conditions=[no_progress(2)])
    assert answers(play(stuck))["c1"].endswith("no_progress")


def test_a_child_stops_at_the_parent_s_budget_and_goes_on_when_it_is_raised():
    child, parent = looking(4), Player(ASK, DONE)
    tool = research(child, Counted())
    state = play(tool, parent, limits=RunLimits(20, "0.001"))
    assert state.status == "budget_exceeded"
    assert state.cost == 4 * TURN  # one turn too many, as ever; not two
    assert state.children["c1"].turns == 3 and len(parent.asked) == 1
    state = RunState.from_json(state.to_json())
    play(tool, parent, state, limits=RunLimits(20, "0.05"))
    assert state.status == "completed" and state.cost == 7 * TURN
    assert len(child.asked) == 5 and len(parent.asked) == 2


def test_a_child_that_ends_on_the_parent_s_last_cent_stops_the_parent():
    parent = Player(ASK, DONE)
    state = play(research(looking(0)), parent, limits=RunLimits(20, "0.0005"))
    assert state.status == "budget_exceeded" and len(parent.asked) == 1
    assert answers(state) == {"c1": "in a.log"} and state.cost == 2 * TURN


def test_a_second_child_spends_nothing_of_a_spent_budget():
    both = calls(*[(f"c{n}", "research", '{"question": "?"}') for n in (1, 2)])
    child = looking(0)
    state = play(research(child), Player(both, DONE), limits=RunLimits(20, "0.0005"))
    assert state.status == "budget_exceeded" and len(child.asked) == 1


def test_a_child_s_approval_interrupts_the_parent_and_reaches_down():
    gated, child, parent = Counted(needs_approval=True), looking(1), Player(ASK, DONE)
    tool = research(child, gated)
    state = play(tool, parent)
    assert state.status == "interrupted" and gated.ran == []
    about = {"type": "approval", "run_id": "n1.c1", "call_id": "k0"}
    assert state.interruption.items() >= about.items()
    state = RunState.from_json(state.to_json())
    approve(state, "k0")
    play(tool, parent, state)
    assert state.status == "completed" and len(gated.ran) == 1
    assert answers(state) == {"c1": "in a.log"}
    assert (len(child.asked), len(parent.asked)) == (2, 2)
    assert (state.tool_runs, state.children["c1"].tool_runs) == (1, 1)
    with pytest.raises(StateError):
        approve(state, "k0")


def test_a_child_s_call_can_be_rejected():
    gated = Counted(needs_approval=True)
    tool, parent = research(looking(1), gated), Player(ASK, DONE)
    state = play(tool, parent)
    reject(state, "k0", "too dear")
    play(tool, parent, state)
    said = "The user declined this call: too dear"
    assert answers(state.children["c1"]) == {"k0": said} and gated.ran == []


def test_the_call_that_waits_is_meant_when_parent_and_child_use_one_id():
    gated = Counted(needs_approval=True)
    tool = research(Player(calls(("c1", "look", "")), "ok"), gated)
    state = play(tool)
    approve(state, "c1")
    assert state.approvals == [] and len(state.children["c1"].approvals) == 1
    assert play(tool, state=state).status == "completed" and len(gated.ran) == 1


def test_grandchildren_too():
    gated = Counted(needs_approval=True)
    inner = research(looking(1), gated)
    outer = subagent("research", "Ask.", [inner], Player(ASK, "passed on"))
    state = play(outer)
    assert state.interruption["run_id"] == "n1.c1.c1"
    state = RunState.from_json(state.to_json())
    approve(state, "k0")
    play(outer, state=state)
    assert answers(state) == {"c1": "passed on"} and state.cost == 6 * TURN


def test_an_unpriced_child_under_a_budget_stops_the_parent():
    tool = research(looking(0), model="nobody-s")
    state = play(tool, limits=RunLimits(20, "1"))
    assert state.interruption["type"] == "unpriced"
    assert state.interruption["run_id"] == "n1.c1"
    prices = {"plan": CHAPTER, "nobody-s": CHAPTER}
    assert play(tool, state=state, prices=prices).status == "completed"


def test_stop_reaches_the_child_s_tool():
    async def sleeps(args, context):
        await asyncio.sleep(60)

    async def main():
        loop, stop = asyncio.get_running_loop(), Stop()
        loop.call_later(1.2, stop.set, "user pressed Stop")
        await run(state, [tool], Player(ASK, DONE), stop=stop)
        return loop.time()

    state = new_run("plan", "hi")
    tool = research(looking(1), Counted(result=sleeps))
    assert run_virtual(main) == pytest.approx(1.2)
    cancelled = {"type": "cancelled", "reason": "user pressed Stop"}
    child = state.children["c1"]
    assert state.interruption == child.interruption == cancelled
    assert answers(state) == {"c1": "cancelled by the user"}
    assert answers(child) == {"k0": "cancelled by the user"}


class Killed(BaseException):
    """The process is gone."""


def test_a_write_of_a_child_in_doubt_is_put_to_the_parent_s_person(tmp_path):
    store, parent, child = RunStore(tmp_path), Player(ASK, DONE), looking(1)
    dies = research(child, Counted(result=Killed()))
    state = new_run("plan", "hi", run_id="n1")
    with pytest.raises(Killed):
        play(dies, parent, state, store=store)

    look = Counted()
    tool, state = research(child, look), store.load("n1")
    play(tool, parent, state, store=store)
    about = {"type": "in_doubt", "run_id": "n1.c1", "call_id": "k0"}
    assert state.interruption.items() >= about.items() and look.ran == []
    with pytest.raises(StateError, match="resolve"):
        reject(state, "k0")
    resolve(state, "k0", ran=True, result="it was done")
    play(tool, parent, state, store=store)
    assert state.status == "completed" and look.ran == []
    assert answers(state.children["c1"]) == {"k0": "it was done"}
    assert store.list() == ["n1"]  # the child lives in the parent's file


def test_two_call_ids_that_look_alike_are_two_children():
    asked = [(id, "research", '{"question": "?"}') for id in ("c:1", "c/1", "c_1")]
    state = play(research(looking(0)), Player(calls(*asked), DONE))
    ids = {child.run_id for child in state.children.values()}
    assert len(ids) == 3 and all(id.startswith("n1.c_1") for id in ids)


def test_a_subagent_that_only_reads_is_a_read():
    assert research(looking(), Counted(read_only=True)).read_only
    assert not research(looking(), Counted()).read_only
