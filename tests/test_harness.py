"""The loop: its five exits, what it writes into the transcript, and how it resumes."""

import asyncio
import json
import re
from decimal import Decimal

import pytest

from labkit.bareloop import bare_loop
from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.conditions import context_size, no_progress
from labkit.errors import ConfigError, StatusError
from labkit.harness import (
    Exit,
    RunLimits,
    approve,
    new_run,
    pending,
    reject,
    run,
)
from labkit.pricing import Price
from labkit.state import RunState, StateError
from labkit.tools import PermanentToolError, ToolError
from labkit.trace import MemoryTrace
from labkit.workspace import Workspace, opening
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings
from mock.scripted import SCRIPTED
from tests.players import PATH, Counted, Player, answers, calls, says

LOOK = calls(("c1", "look", ""))


def endless(turns=200):
    return [calls((f"c{n}", "look", "{}")) for n in range(turns)]


def play(player, *tools, state=None, **options) -> RunState:
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [t.tool for t in tools], player, **options)


def scripted(scenario: str, body, **settings):
    """`body(state, workspace, client)` against mock's scripted provider."""

    async def main():
        provider = Provider(Settings(delay_ms=0, **settings), SCRIPTED)
        door = MemoryTransport(provider)
        with Workspace() as workspace:
            async with ChatClient("http://mock/v1", transport=door) as client:
                client.model = scenario
                state = new_run(scenario, opening(), run_id=f"run-{scenario}")
                return await body(state, workspace, client)

    return run_virtual(main)


def test_the_bare_loop_ends_when_nothing_more_is_asked_for():
    async def body(state, workspace, client):
        said = await bare_loop(client, state.messages, workspace.tools())
        return said, len(state.messages), workspace.log

    said, messages, log = scripted("plan", body)
    assert said.startswith("errors.log mentions a timeout: worker 7")
    assert messages == 7 and log == ["list_files", "read_file:errors.log"]


def test_the_bare_loop_and_the_harness_write_one_transcript():
    async def bare(state, workspace, client):
        await bare_loop(client, state.messages, workspace.tools())
        return state.messages

    async def whole(state, workspace, client):
        return (await run(state, workspace.tools(), client)).messages

    both = [json.dumps(scripted("plan", body)) for body in (bare, whole)]
    assert both[0] == both[1]


def test_the_messages_to_the_letter():
    look = Counted(result=["a"])
    state = play(Player(LOOK, says("done")), look)
    assert json.dumps(state.messages[1:]) == json.dumps(
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": ""},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "look", "content": '["a"]'},
            {"role": "assistant", "content": "done"},
        ]
    )


def test_the_chapter_s_first_run():
    async def body(state, workspace, client):
        return await run(state, workspace.tools(), client, trace=trace)

    trace = MemoryTrace()
    state = scripted("plan", body)
    assert (state.turns, state.tool_runs, state.status) == (3, 2, "completed")
    assert (state.prompt_tokens, state.completion_tokens) == (815, 70)
    assert state.cost == Decimal("0.002470")
    prompts = [e["prompt_tokens"] for e in trace.events if e["type"] == "turn"]
    assert prompts == [204, 269, 342]


def test_a_cap_keeps_the_last_request_pending_and_a_raised_one_goes_on_there():
    look, player = Counted(), Player(*endless())
    state = play(player, look, limits=RunLimits(max_turns=12))
    assert state.status == "max_turns_exceeded" and state.resumable
    assert state.interruption == {"type": "max_turns"}
    assert (state.turns, state.tool_runs) == (12, 11)
    assert [call.id for call in pending(state)] == ["c11"]

    again = RunState.from_json(state.to_json())  # another process
    play(player, look, state=again, limits=RunLimits(max_turns=14))
    assert (again.turns, again.tool_runs) == (14, 13)
    play(player, look, state=again)  # the caps are remembered
    assert (again.turns, again.tool_runs) == (14, 13)
    assert len(player.asked) == 14


def test_without_limits_twenty_turns():
    assert play(Player(*endless()), Counted()).turns == 20


def test_a_budget_is_overshot_by_one_turn_at_most():
    # 100 in, 10 out at $2 and $12 a million: $0.000320 a turn
    state = play(Player(*endless()), Counted(), limits=RunLimits(None, "0.001"))
    assert state.status == "budget_exceeded"
    assert state.interruption == {"type": "max_budget"}
    assert state.cost == Decimal("0.001280") and state.turns == 4
    play(Player(*endless()), Counted(), state=state, limits=RunLimits(None, "0.00128"))
    assert state.turns == 4  # reached at exactly the budget
    play(Player(*endless()), Counted(), state=state, limits=RunLimits(None, 0.00129))
    assert state.turns == 5


def test_a_budget_of_nothing_asks_nothing():
    player = Player("hi")
    assert play(player, limits=RunLimits(20, 0)).status == "budget_exceeded"
    assert play(player, limits=RunLimits(0)).status == "max_turns_exceeded"
    assert player.asked == []


@pytest.mark.parametrize("bad", [-1, 1.5, True, "20"])
def test_a_cap_that_is_no_number(bad):
    with pytest.raises(ConfigError, match="max_turns"):
        RunLimits(max_turns=bad)


def test_an_unpriced_model_with_a_budget_spends_nothing():
    player = Player("hi")
    state = new_run("nobody-s", "hi")
    play(player, state=state, limits=RunLimits(20, "1"))
    assert state.status == "interrupted" and state.interruption["type"] == "unpriced"
    assert "nobody-s" in state.interruption["reason"] and player.asked == []
    own = {"nobody-s": Price(1, 1)}
    play(player, state=state, prices=own)
    assert state.status == "completed" and state.cost == Decimal("0.000110")


def test_an_unpriced_model_without_a_budget_is_marked():
    state = play(Player("hi"), state=new_run("nobody-s", "hi"))
    assert state.status == "completed"
    assert (state.cost, state.unpriced_turns, state.prompt_tokens) == (0, 1, 100)


def test_the_loop_fails_with_the_provider():
    refused = StatusError("404: no such model", status=404)
    state = play(Player(refused))
    assert (state.status, state.error) == ("failed", "404: no such model")
    assert not state.resumable and state.turns == state.unpriced_turns == 0
    player = Player("hi")
    assert play(player, state=state) is state and player.asked == []


def test_a_completed_run_is_not_run_again():
    state = play(Player("done"))
    player = Player("more")
    assert play(player, state=state).output == "done" and player.asked == []


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("words", "Error: no such file: a. Call list_files."),
        ("opaque", "Error: the tool failed."),
        ("fatal", "Error: no such file: a. Call list_files."),
    ],
)
def test_what_becomes_of_an_exception(policy, said):
    look = Counted(result=ToolError("no such file: a. Call list_files."))
    state = play(Player(LOOK, "ok"), look, tool_error=policy)
    assert answers(state) == {"c1": said} and state.tool_runs == 1
    fatal = policy == "fatal"
    assert state.status == ("failed" if fatal else "completed")
    assert state.error == ("no such file: a. Call list_files." if fatal else None)


@pytest.mark.parametrize(
    "error",
    [ValueError(), KeyError("no"), SystemExit(1), RecursionError(), StopIteration(),
     ExceptionGroup("no", [ValueError()]), TimeoutError(), StateError("no")],
)  # fmt: skip
def test_any_exception_is_words(error):
    state = play(Player(LOOK, "ok"), Counted(result=error))
    assert state.status == "completed"
    assert answers(state)["c1"].startswith("Error: ")


def test_a_permanent_error_ends_the_run_or_is_words_as_asked():
    look = Counted(result=PermanentToolError("permission denied: /etc/shadow"))
    state = play(Player(*endless()), look)
    assert (state.status, state.turns) == ("failed", 1)
    assert state.error == "permission denied: /etc/shadow"
    state = play(Player(*endless()), look, permanent_errors_stop=False)
    assert (state.status, state.turns) == ("max_turns_exceeded", 20)
    assert answers(state)["c0"] == "Error: permission denied: /etc/shadow"


def test_an_unknown_setting_is_refused():
    for wrong in ({"tool_error": "shout"}, {"dedupe": "all"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            play(Player("hi"), **wrong)


def test_an_approval_stops_before_the_call_with_what_a_person_needs():
    trace, rm = MemoryTrace(), Counted("rm", parameters=PATH, needs_approval=True)
    player = Player(calls(("c1", "rm", '{"path":"a"}')), "done")
    state = play(player, rm, trace=trace)
    assert state.status == "interrupted" and rm.ran == []
    assert state.interruption == {
        "type": "approval", "run_id": "n1", "call_id": "c1", "tool_name": "rm",
        "args": {"path": "a"},
    }  # fmt: skip
    assert [e["type"] for e in trace.events][1:] == ["approval_required", "run_stopped"]
    play(player, rm, state=state)  # nobody has decided
    assert state.interruption["type"] == "approval" and len(player.asked) == 1

    state = RunState.from_json(state.to_json())
    approve(state, "c1")
    approve(state, "c1")
    play(player, rm, state=state)
    assert (state.status, rm.ran) == ("completed", [{"path": "a"}])
    assert state.approvals == []
    with pytest.raises(StateError, match="pending: none"):
        approve(state, "c1")


def test_a_rejection_is_answered_in_words():
    rm = Counted("rm", needs_approval=True)
    player = Player(calls(("c1", "rm", "")), "done")
    state = play(player, rm)
    approve(state, "c1")
    reject(state, "c1", "not that one")  # the last word counts
    play(player, rm, state=state)
    assert answers(state) == {"c1": "The user declined this call: not that one"}
    assert rm.ran == [] and state.tool_runs == 0 and state.status == "completed"


def test_the_mute_rejection_says_nothing():
    rm = Counted("rm", needs_approval=True)
    player = Player(calls(("c1", "rm", "")), "done")
    state = play(player, rm)
    reject(state, "c1", "no", mute=True)
    play(player, rm, state=state)
    assert answers(state) == {"c1": ""} and rm.ran == []


def test_an_approval_acts_once_even_if_the_same_is_asked_again():
    rm = Counted("rm", needs_approval=True)
    player = Player(calls(("c1", "rm", "")), calls(("c1", "rm", "")), "done")
    state = play(player, rm)
    approve(state, "c1")
    play(player, rm, state=state)
    assert state.interruption["type"] == "approval" and len(rm.ran) == 1
    assert [call.id for call in pending(state)] == ["call_2_0"]


def test_no_progress_and_context_size_and_one_s_own():
    state = play(Player(*endless()), Counted(), stop_conditions=[no_progress(3)])
    assert state.interruption == {"type": "stop_condition", "name": "no_progress"}
    assert (state.turns, state.tool_runs) == (3, 3)

    polled = Counted(result=lambda args, context: str(len(polled.ran)))
    state = play(Player(*endless()), polled, stop_conditions=[no_progress(3)])
    assert state.status == "max_turns_exceeded"  # it was told something new

    state = play(Player(*endless()), Counted(), stop_conditions=[context_size(110)])
    assert state.interruption["name"] == "context_size" and state.turns == 1

    def enough(state):
        return state.tool_runs >= 2

    state = play(Player(*endless()), Counted(), stop_conditions=[enough])
    assert state.interruption["name"] == "enough" and state.tool_runs == 2
    play(Player(*endless()), Counted(), state=state, stop_conditions=[])
    assert state.turns == 20

    def broke(state):
        return Exit("budget_exceeded", {"type": "max_budget"})

    assert play(Player("hi"), stop_conditions=[broke]).status == "budget_exceeded"


def test_dedupe_saves_the_tool_and_not_the_turn():
    plain, saved = Counted(read_only=True), Counted(read_only=True)
    a = play(Player(*endless(2), "ok"), plain)
    b = play(Player(*endless(2), "ok"), saved, dedupe=True)
    assert (len(plain.ran), len(saved.ran)) == (2, 1)
    assert a.cost == b.cost and answers(a) == answers(b) == {"c0": "ok", "c1": "ok"}


@pytest.mark.parametrize(
    ("flags", "mode", "runs"),
    [
        ({"read_only": True}, True, 1),
        ({"read_only": True, "cacheable": False}, True, 2),
        ({"read_only": False}, True, 2),
        ({"read_only": False}, "everything", 1),
        ({"read_only": True}, False, 2),
    ],
)
def test_what_dedupe_may_answer(flags, mode, runs):
    look = Counted(**flags)
    play(
        Player(*endless(2), "ok"),
        look,
        dedupe=mode,
    )
    assert len(look.ran) == runs


def test_dedupe_forgets_after_a_write_and_never_keeps_an_error():
    look, rm = Counted(read_only=True), Counted("rm", result=ToolError("no"))
    turns = [
        calls((f"c{n}", name, "")) for n, name in enumerate(["look", "rm", "look"])
    ]
    play(Player(*turns, "ok"), look, rm, dedupe=True)
    assert len(look.ran) == 2  # a write that failed may have written all the same
    bad = Counted(result=ToolError("busy"), read_only=True)
    play(
        Player(*endless(2), "ok"),
        bad,
        dedupe=True,
    )
    assert len(bad.ran) == 2


def test_dedupe_outlives_the_process():
    look, player = Counted(read_only=True), Player(*endless())
    state = play(player, look, dedupe=True, limits=RunLimits(2))
    state = RunState.from_json(state.to_json())
    play(player, look, state=state, dedupe=True, limits=RunLimits(4))
    assert len(look.ran) == 1 and len(answers(state)) == 3


def test_the_trace_tells_the_chapter_s_story():
    async def work(args, context):
        context.progress("half way")
        await asyncio.sleep(0.5)
        return "ok"

    trace, seen = MemoryTrace(), []
    look = Counted(result=work, read_only=True)
    play(Player(LOOK, "done"), look, trace=trace, on_progress=seen.append)
    assert seen == ["half way"]
    shown = [{k: v for k, v in e.items() if k != "t_s"} for e in trace.events]
    one = {"run_id": "n1", "call_id": "c1", "tool_name": "look"}
    turn = {
        "run_id": "n1", "type": "turn", "prompt_tokens": 100, "completion_tokens": 10,
        "total_tokens": 110,
    }  # fmt: skip
    assert shown == [
        {**turn, "turn": 1, "cost_usd": 0.00032, "finish": "tool_calls"},
        {**one, "type": "tool_start", "args": ""},
        {**one, "type": "tool_progress", "label": "half way"},
        {**one, "type": "tool_result", "ms": 500, "ok": True},
        {**turn, "turn": 2, "cost_usd": 0.00064, "finish": "stop"},
        {"run_id": "n1", "type": "run_stopped", "status": "completed", "reason": None,
         "turns": 2, "tool_runs": 1, "cost_usd": 0.00064},
    ]  # fmt: skip


def test_every_turn_streams_to_who_listens():
    heard = []
    play(Player(LOOK, "done"), Counted(), on_text=heard.append)
    assert heard == ["done"]


def test_a_turn_has_the_run_s_key_and_no_empty_tools():
    player = Player(LOOK, "done")
    play(player, Counted())
    first, second = (asked["key"] for asked in player.asked)
    assert re.fullmatch("n1-turn-1-[0-9a-f]{8}", first)
    assert re.fullmatch("n1-turn-2-[0-9a-f]{8}", second)
    assert len(player.asked[0]["tools"]) == 1
    player = Player("done")
    play(player)
    assert player.asked[0]["tools"] == ()
