"""The handed cases about agents, state and budgets.

Each is a test of its kind of fault; its id is in the test's name. The model's turns
come from the case.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from labkit.clock import run_virtual
from labkit.harness import RunLimits, approve, new_run, pending, run
from labkit.pricing import Price, add, cost
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.trace import MemoryTrace, Trace, records
from labkit.usage import Usage
from tests.handed import load_cases
from tests.players import Counted, Player, answers, calls, says

ROOT = Path(__file__).resolve().parent.parent
CASES = {
    case["id"]: case
    for area in ("agent", "state", "budget")
    for case in load_cases(area)
}
PER_TOKEN = {"plan": Price("1000", "1000")}  # a dollar for a thousand tokens


def player(case: str) -> Player:
    """The model's turns of a case; what is no list of calls is said."""
    turns = []
    for turn in CASES[case]["input"]["model_turns"]:
        if isinstance(turn, list):
            turns.append(calls(*[(c["id"], c["name"], c["arguments"]) for c in turn]))
        else:
            turns.append(says(turn))
    return Player(*turns)


def play(model, *tools, state=None, **options) -> RunState:
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [t.tool for t in tools], model, **options)


def again(state: RunState) -> RunState:
    """The same run in another process."""
    return RunState.from_json(state.to_json())


def schema(*names: str, required=()) -> dict:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(required)}


def test_every_case_is_here():
    here = Path(__file__).read_text("utf-8")
    assert [id for id in CASES if f"def test_{id.lower()}_" not in here] == []


def test_a01_empty_arguments_are_none():
    health = Counted("health", "up")
    state = play(player("A01"), health)
    assert health.ran == [{}] and answers(state) == {"c1": "up"}
    needy = Counted("health", "up", schema("host", required=["host"]))
    state = play(player("A01"), needy)
    assert needy.ran == [] and "host is missing" in answers(state)["c1"]


def test_a03_arguments_that_are_no_object_or_no_json_run_nothing():
    f = Counted("f", parameters=schema("a"))
    state = play(player("A03"), f)
    assert f.ran == [] and state.status == "completed"
    said = answers(state)
    assert list(said) == ["c1", "c2", "c3"]
    assert all(each.startswith("Error: the arguments of f") for each in said.values())


def test_a05_an_unknown_tool_is_told_the_names_there_are():
    state = play(player("A05"), Counted("read_file"), Counted("list_files"))
    said = "Error: there is no tool reed_file; the tools are: read_file, list_files"
    assert answers(state) == {"c1": said} and state.status == "completed"
    endless = Player(calls(("c1", "reed\n" * 9_000, "{}")), "sorry")
    assert len(answers(play(endless))["c1"]) < 120
    forever = Player(*[calls((f"c{n}", "reed_file", "{}")) for n in range(50)])
    assert play(forever).status == "max_turns_exceeded"


def test_a07_two_calls_of_one_tool_have_two_answers():
    search = Counted("search", lambda args, context: args["q"], schema("q"))
    assert answers(play(player("A07"), search)) == {"1": "X", "2": "Y"}


def test_a09_a_call_without_an_id_gets_a_stable_one_in_both_messages():
    first, second = (play(player("A09"), Counted("f")) for _ in range(2))
    assert answers(first) == {"call_1_0": "ok"}
    assert first.messages[1]["tool_calls"][0]["id"] == "call_1_0"
    assert first.messages == second.messages


@pytest.mark.parametrize("signal_", [KeyboardInterrupt(), SystemExit(1)])
def test_a11_keyboard_interrupt_goes_up_and_system_exit_is_data(tmp_path, signal_):
    store, trace, state = RunStore(tmp_path), MemoryTrace(), new_run("plan", "hi")
    f, model = Counted("f", signal_), player("A11")
    work = run(state, [f.tool], model, store=store, trace=trace)
    if isinstance(signal_, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(work)
        assert store.load(state.run_id).interruption["type"] == "cancelled"
        assert trace.events[-1]["type"] == "run_stopped" and len(model.asked) == 1
    else:
        asyncio.run(work)
        assert state.status == "completed"
        assert answers(state) == {"1": "Error: the tool tried to end the process"}


def test_a13_a_cancellation_is_no_tool_error(tmp_path):
    async def main():
        task = asyncio.create_task(run(state, [slow.tool], model, store=store))
        await asyncio.sleep(CASES["A13"]["input"]["cancel_after_s"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    slow = Counted("slow", lambda args, context: asyncio.sleep(60))
    store, model = RunStore(tmp_path), player("A13")
    state = new_run("plan", "hi", run_id="n1")
    run_virtual(main)
    assert store.load("n1").status == "interrupted"
    assert len(model.asked) == 1 and len(slow.ran) == 1


def test_a15_the_free_call_of_a_batch_runs_once_and_its_answer_is_kept():
    free, gated = Counted("free"), Counted("gated", needs_approval=True)
    model = player("A15")
    state = again(play(model, free, gated))
    approve(state, "2")
    state = play(model, free, gated, state=state)
    assert len(free.ran) == 1 and len(gated.ran) == 1
    asked = [m for m in model.asked[-1]["messages"] if m["role"] == "tool"]
    assert [message["tool_call_id"] for message in asked] == ["1", "2"]


KILLED = """
import asyncio, os, signal, sys
sys.path.insert(0, {root!r})
from labkit.harness import new_run, run
from labkit.store import RunStore
from tests.players import Counted, Player, calls
def send(args, context):
    with open({counter!r}, "a") as file:
        file.write("sent\\n")
    os.kill(os.getpid(), signal.SIGKILL)
store, player = RunStore({folder!r}), Player(calls(("c1", "send", "{{}}")), "ok")
tool = Counted("send", send).tool
asyncio.run(run(new_run("plan", "hi", run_id="n1"), [tool], player, store=store))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a17_a_write_that_may_have_run_is_not_run_again_in_silence(tmp_path):
    counter, folder = str(tmp_path / "sent"), str(tmp_path / "runs")
    code = KILLED.format(root=str(ROOT), counter=counter, folder=folder)
    ended = subprocess.run([sys.executable, "-c", code], env=os.environ)
    assert ended.returncode == -signal.SIGKILL

    store, send, model = RunStore(folder), Counted("send"), player("A17")
    state = play(model, send, state=store.load("n1"), store=store)
    assert state.interruption["type"] == "in_doubt"
    assert state.interruption["call_id"] == "c1" and state.resumable
    play(model, send, state=store.load("n1"), store=store)  # nor the next time
    assert send.ran == [] and Path(counter).read_text() == "sent\n"

    keyed = Counted("send", takes_key=True)  # such a tool may be run again
    play(model, keyed, state=store.load("n1"), store=store)
    assert len(keyed.ran) == 1


def test_a19_an_approval_does_not_cover_other_arguments():
    rm = Counted("rm", parameters=schema("p"), needs_approval=True)
    model = player("A19")
    state = play(model, rm)
    approve(state, "c1")
    state = play(model, rm, state=again(state))
    assert rm.ran == [{"p": "a"}]
    assert state.interruption["args"] == {"p": "/"}
    state = play(model, rm, state=again(state))
    assert rm.ran == [{"p": "a"}]


@pytest.mark.parametrize("change", [("arguments", '{"p":"/"}'), ("name", "rmdir")])
def test_a19_nor_another_tool_nor_a_state_that_was_edited(change):
    tools = [Counted(n, parameters=schema("p"), needs_approval=True)
             for n in ("rm", "rmdir")]  # fmt: skip
    state = play(player("A19"), *tools)
    approve(state, "c1")
    name, value = change
    state.messages[-1]["tool_calls"][0]["function"][name] = value
    play(player("A19"), *tools, state=state)
    assert state.interruption["type"] == "approval"
    assert [tool.ran for tool in tools] == [[], []]


def test_a21_at_the_turn_limit_nothing_is_lost_or_asked_too_often():
    f, model = Counted("f"), player("A21")
    state = play(model, f, limits=RunLimits(max_turns=3))
    assert len(model.asked) == 3 and state.status == "max_turns_exceeded"
    assert [call.id for call in pending(state)] == ["3"]
    state = play(model, f, state=again(state), limits=RunLimits(max_turns=5))
    assert len(model.asked) == 5 and len(f.ran) == 4
    for asked in model.asked:  # every call that was sent had its answer
        probe = new_run("plan", asked["messages"])
        assert pending(probe) == []


def test_a23_a_slow_tool_is_a_time_limit_for_one_call():
    slow = Counted("slow", lambda args, context: asyncio.sleep(5), timeout_s=0.1)
    state = play(player("A23"), slow)
    assert state.status == "completed"
    assert answers(state)["c1"].startswith("Error: slow did not finish within 0.1 s")


def test_a25_what_is_polled_is_not_answered_from_memory():
    def status():
        return Counted("status", lambda args, context: str(len(polled.ran)), **flags)

    flags = {"read_only": True, "cacheable": False}
    polled = status()
    assert answers(play(player("A25"), polled, dedupe=True)) == {"1": "1", "2": "2"}
    flags = {"read_only": True}
    polled = status()
    assert answers(play(player("A25"), polled)) == {"1": "1", "2": "2"}  # by default


def test_p01_a_torn_line_costs_one_line(tmp_path):
    async def append():
        Trace(path).write("n1", "turn", n=3)

    path = tmp_path / "t.jsonl"
    lines = CASES["P01"]["input"]["trace_jsonl"].replace("\\n", "\n")
    head = '{"run_id":"n1","t_s":0,"type":"turn",'  # our reader takes events only
    path.write_bytes(lines.replace("{", head).encode())
    run_virtual(append)
    events, torn = records(path)
    assert [event["n"] for event in events] == [1, 3] and torn == [2]


@pytest.mark.parametrize("content", CASES["P03"]["input"]["variants"])
def test_p03_an_unreadable_state_is_a_typed_error_and_stays(tmp_path, content):
    store, model = RunStore(tmp_path), Player("hi")
    path = store.path("n1")
    path.write_text(content)
    with pytest.raises(StateError, match="n1.json"):
        store.load("n1")
    with pytest.raises(StateError, match="n1.json"):
        play(model, state=new_run("plan", "hi", run_id="n1"), store=store)
    assert path.read_text() == content and model.asked == []


def test_p05_one_record_a_line_for_any_reader(tmp_path):
    record = CASES["P05"]["input"]["record"]
    path = tmp_path / "t.jsonl"

    async def write():
        Trace(path).write("n1", "tool_progress", label=record["text"], x=record["x"])

    run_virtual(write)
    data = path.read_bytes()
    assert data.isascii()
    for lines in (data.split(b"\n")[:-1], data.decode().splitlines()):
        [event] = [json.loads(line) for line in lines]
        assert event["label"] == record["text"]


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_b01_a_run_with_a_budget_and_no_usage_ends(usage):
    asks = [calls((f"c{n}", "f", ""), usage=Usage.read(usage)) for n in range(50)]
    model, f = Player(*asks), Counted("f")
    state = play(model, f, limits=RunLimits(None, "1.00"))
    assert state.status == "interrupted" and len(model.asked) == 1
    assert state.interruption["type"] == "unpriced"
    assert "usage" in state.interruption["reason"] and state.unpriced_turns == 1
    play(model, f, state=again(state), limits=RunLimits(None, "5.00"))
    assert len(model.asked) == 1  # another budget cannot be held to either
    play(model, f, state=again(state), limits=RunLimits(3, None))
    assert len(model.asked) == 3  # but a person may go on without one


def test_b03_a_thousand_small_sums_are_exact():
    one = cost(Usage(3, 0, 3), Price("0.15", "0"))
    assert add(*[one] * 1000) == Decimal("0.00045")
    drifting = 0.0
    for _ in range(10):  # not sum(): it compensates from Python 3.12 on
        drifting += 0.1
    assert add(*[Decimal("0.1")] * 10) == 1 and drifting != 1
    tenth = calls(("", "f", ""), usage=Usage(100, 0, 100))
    model = Player(*[tenth] * 50)
    state = play(model, Counted("f"), prices=PER_TOKEN, limits=RunLimits(None, "1.00"))
    assert (state.turns, state.cost) == (10, 1)


def test_b05_what_was_spent_outlives_the_process():
    turns = CASES["B05"]["input"]["model_turns"]
    asks = [calls(("", "f", ""), usage=Usage.read(turn["usage"])) for turn in turns]
    model, f = Player(*asks, *asks), Counted("f")
    thousand_tokens = {"prices": PER_TOKEN}
    state = play(model, f, limits=RunLimits(1, "1.000"), **thousand_tokens)
    assert state.cost == Decimal("0.6")
    state = play(model, f, state=again(state), limits=RunLimits(9, "1.000"),
                 **thousand_tokens)  # fmt: skip
    assert state.status == "budget_exceeded"
    assert (state.turns, state.cost) == (2, Decimal("1.2"))
