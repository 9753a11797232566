"""A tool with a run behind it: what it costs, waits for and leaves in the parent."""

import asyncio
from decimal import Decimal

import pytest

from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.conditions import no_progress, unpriced_turns
from labkit.errors import BrokenStream, ConfigError, StatusError
from labkit.harness import (
    Exit,
    RunLimits,
    approve,
    new_run,
    pending,
    reject,
    resolve,
    run,
    settle,
)
from labkit.pricing import CHAPTER
from labkit.runs.report import next_steps, report
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
    assert child.turns == 3 and player.asked[0]["key"].startswith("n1.c1-turn-1-")
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
    child = Player(StatusError("404: no such model", status=404))
    assert answers(play(research(child)))["c1"].endswith("404: no such model")
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
    said = "cancelled by the user; it may have had its effect"
    assert answers(state) == {"c1": said} and answers(child) == {"k0": said}


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


# What a person, or the caller's code, has to be asked about


def test_an_exit_of_a_child_s_tool_stops_the_parent_with_both_calls_pending():
    def needs_login(args, context):
        if not logged_in:
            raise Exit("interrupted", {"type": "login", "url": "https://host/login"})
        return "ok"

    logged_in = []
    tool, parent = research(looking(1), Counted(result=needs_login)), Player(ASK, DONE)
    state = play(tool, parent)
    about = {"run_id": "n1.c1", "type": "login", "url": "https://host/login"}
    assert (state.status, state.interruption) == ("interrupted", about)
    assert answers(state) == {} and len(parent.asked) == 1
    state = RunState.from_json(state.to_json())
    logged_in.append(True)
    state.children["c1"].started.clear()  # the tool says that it has done nothing
    play(tool, parent, state)
    assert state.status == "completed" and answers(state) == {"c1": "in a.log"}


def test_a_provider_that_fails_the_child_interrupts_the_parent():
    refused, parent = StatusError("401: no such key", status=401), Player(ASK, DONE)
    state = play(research(Player(refused)), parent)
    reason = {"type": "provider", "run_id": "n1.c1", "reason": "401: no such key"}
    assert state.interruption == reason and answers(state) == {}
    play(research(looking(0)), parent, state)
    assert state.status == "completed" and answers(state) == {"c1": "in a.log"}


def test_a_lost_turn_of_a_child_is_the_parent_s_to_settle():
    tool, parent = research(Player(BrokenStream("reset"))), Player(ASK, DONE)
    state = play(tool, parent)
    assert state.interruption["type"] == "provider" and unpriced_turns(state) == 1
    assert "1 turn(s) are not in the cost" in report(state)
    well, asked = research(child := looking(0)), len(parent.asked)
    play(well, parent, state)
    assert state.interruption["type"] == "unpriced"  # of the child: it has a budget
    assert child.asked == [] and len(parent.asked) == asked
    assert next_steps(state) == ["python -m labkit settle n1 USD"]
    settle(state, "0.0002")
    play(well, parent, state)
    assert state.status == "completed" and unpriced_turns(state) == 0
    assert state.cost == 3 * TURN + Decimal("0.0002")


def test_a_subagent_that_waits_is_not_resolved():
    """Its state knows what it has done; resolved, its approval would be lost."""
    gated = Counted(needs_approval=True)
    tool, parent = research(looking(1), gated), Player(ASK, DONE)
    state = play(tool, parent)
    assert state.started == ["c1"]
    with pytest.raises(StateError, match="nothing is in doubt about it; resume"):
        resolve(state, "c1", ran=True)
    approve(state, "k0")
    play(tool, parent, state)
    assert state.status == "completed" and len(gated.ran) == 1


def test_a_child_that_is_over_waits_for_nothing():
    """Its call was answered meanwhile; what it had pending is nobody's any more."""
    gated = Counted(needs_approval=True)
    tool, parent = research(looking(1), gated, limits=RunLimits(1)), Player(ASK, DONE)
    state = play(tool, parent)  # the child's cap came before its call
    assert state.status == "completed" and len(pending(state.children["c1"])) == 1
    with pytest.raises(StateError, match="pending: none"):
        approve(state, "k0")
    assert state.children["c1"].approvals == []


@pytest.mark.parametrize("what", ["on_progress", "stop_conditions", "dedupe"])
def test_what_the_caller_s_code_does_in_a_child_is_no_news_for_the_model(what):
    def works(args, context):
        context.progress("half way")
        return "ok"

    def raises(*args):
        raise BrokenPipeError(32, "Broken pipe")

    player, parent, tools = looking(1), Player(ASK, DONE), [Counted(result=works)]
    broken = {"on_progress": {}, "dedupe": {"dedupe": "all"}}
    child = broken.get(what, {"stop_conditions": [raises]})
    state = new_run("plan", "hi", run_id="n1")
    options = {"on_progress": raises} if what == "on_progress" else {}
    with pytest.raises((BrokenPipeError, ConfigError)):
        play(research(player, *tools, **child), parent, state, **options)
    assert (state.status, answers(state), len(parent.asked)) == ("running", {}, 1)
    play(research(player, *tools), parent, state)
    assert answers(state) == {"c1": "in a.log"} and state.status == "completed"
