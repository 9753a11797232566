"""Siblings of the handed cases about agents, state and budgets: the same kinds of fault
in other shapes. docs/cases.md says which decision each belongs to.
"""

import asyncio
import json

import pytest

from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.harness import RunLimits, approve, new_run, pending, reject, run
from labkit.pricing import Price
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.tools import NO_PARAMETERS, Tool
from labkit.trace import Trace, records
from labkit.usage import Usage
from tests.handed import load_cases
from tests.players import Counted, Player, answers, calls, says

MAY = "cancelled by the user; it may have had its effect"  # what is told of a write
A = {"type": "object", "properties": {"a": {"type": "string"}}}


def play(player, *tools, state=None, **options) -> RunState:
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [t.tool for t in tools], player, **options)


# A01, A03: arguments.


@pytest.mark.parametrize("text", ["", " ", "\n\t", "{}", " {} "])
def test_nothing_is_no_arguments_where_none_are_needed(text):
    f = Counted("f", parameters=A)
    assert answers(play(Player(calls(("1", "f", text)), "ok"), f)) == {"1": "ok"}
    assert f.ran == [{}]


@pytest.mark.parametrize(
    "text",
    ["null", '"{}"', '"{\\"a\\": \\"x\\"}"', "[{}]", "1", "true", "{'a': 'x'}", "{",
     '```json\n{"a": "x"}\n```', '{"a": "x",}', '{"a": "x"}{"a": "y"}', "\ufeff{}",
     '{"a": 1e999}', '{"a": -Infinity}', '{"a": null}', '{"A": "x"}', "9" * 5000,
     '{"a":' * 5000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_arguments_that_need_guessing_run_nothing_and_are_answered(text):
    f = Counted("f", parameters=A)
    state = play(Player(calls(("1", "f", text)), "ok"), f)
    assert f.ran == [] and state.status == "completed"
    assert answers(state)["1"].startswith("Error: ")
    assert "It takes a (string, optional)" in answers(state)["1"]


def test_of_two_equal_keys_the_person_sees_the_one_that_runs():
    f = Counted("f", parameters=A, needs_approval=True)
    player = Player(calls(("1", "f", '{"a": "x", "a": "y"}')), "ok")
    state = play(player, f)
    assert state.interruption["args"] == {"a": "y"}
    approve(state, "1")
    assert play(player, f, state=state).status == "completed" and f.ran == [{"a": "y"}]


# A05: names.


@pytest.mark.parametrize("name", ["F", "f ", "f()", "functions.f", "\u0444", "f\nf"])
@pytest.mark.parametrize("tools", [["f"], []], ids=["one tool", "no tool"])
def test_a_name_that_is_nearly_right_runs_nothing(name, tools):
    tools = [Counted(tool) for tool in tools]
    state = play(Player(calls(("1", name, "{}")), "ok"), *tools)
    assert state.status == "completed" and all(tool.ran == [] for tool in tools)
    known = "f" if tools else "none"
    assert answers(state)["1"].endswith(f"the tools are: {known}")


# A07, A09: ids.


@pytest.mark.parametrize(
    "ids",
    [["", ""], ["a", "a"], ["a", "a", "a"], ["call_1_1", ""], ["", "call_1_0"],
     [" ", " "], ["call_1_0", "", "call_1_0", ""], ["a\nb", "\u2028", "\0"]],
    ids=str,
)  # fmt: skip
def test_every_call_has_an_answer_of_its_own(ids):
    """Within a turn, and over two turns that use the same ids."""
    f = Counted("f", lambda args, context: context.call_id)
    turn = calls(*[(id, "f", "{}") for id in ids])
    state = play(Player(turn, turn, "done"), f)
    assert state.status == "completed" and len(f.ran) == 2 * len(ids)
    asked = [c["id"] for m in state.messages for c in m.get("tool_calls", ())]
    assert len(set(asked)) == len(asked) == 2 * len(ids)
    assert answers(state) == dict(zip(asked, asked, strict=True))
    assert {*ids} - {""} <= {*asked}  # what can be kept is
    again = play(Player(turn, turn, "done"), f)
    assert again.messages == state.messages


# A11: what a tool may raise.


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


RAISED = [
    SystemExit(0), SystemExit("bye"), StopAsyncIteration(), RecursionError("deep"),
    MemoryError(), AssertionError(), TimeoutError("its own"), KeyError("k"),
    OSError(5, "io"), ExceptionGroup("both", [ValueError("a")]), Mute(),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"), Exception("\ud800"),
]  # fmt: skip


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_tool_raises_is_words_and_the_run_goes_on(error, tmp_path):
    f, store = Counted("f", error), RunStore(tmp_path)
    state = play(Player(calls(("1", "f", "{}")), "ok"), f, store=store)
    assert state.status == "completed" and state.output == "ok"
    assert answers(store.load("n1"))["1"].startswith("Error: ")


@pytest.mark.parametrize("blocking", [False, True])
def test_sys_exit_in_a_tool_ends_nothing_but_the_tool(blocking):
    """It must not take the process with it: cuga-project/cuga-agent#625."""

    async def exits_async(args, context):
        raise SystemExit(3)

    def exits(args, context):
        raise SystemExit(3)

    tool = Tool("f", "Exits.", NO_PARAMETERS, exits if blocking else exits_async)
    state = new_run("plan", "hi")
    asyncio.run(run(state, [tool], Player(calls(("1", "f", "{}")), "ok")))
    assert state.status == "completed"
    assert answers(state) == {"1": "Error: the tool tried to end the process"}


async def cancels_itself(args, context):
    raise asyncio.CancelledError


async def awaits_what_is_cancelled(args, context):
    inner = asyncio.ensure_future(asyncio.sleep(60))
    asyncio.get_running_loop().call_later(1, inner.cancel)
    await inner


@pytest.mark.parametrize("tool", [cancels_itself, awaits_what_is_cancelled])
def test_a_cancelled_error_of_a_tool_s_own_is_words(tool):
    """Nobody has cancelled the run, so it goes on; and nobody is told that the user
    did."""
    f = Counted("f", tool)
    state = play(Player(calls(("1", "f", "{}"), ("2", "f", "{}")), "ok"), f)
    assert (state.status, state.output, len(f.ran)) == ("completed", "ok", 2)
    said = "Error: what the tool waited for was cancelled"
    assert answers(state) == {"1": said, "2": said}


# A13: clean-up on Stop.


def stopped_in(tool, at_s=1.2):
    """A run of one tool, with Stop pressed while it works: the state, and the end."""

    async def main():
        loop, stop = asyncio.get_running_loop(), Stop()
        loop.call_later(at_s, stop.set, "user pressed Stop")
        await run(state, [tool.tool], Player(calls(("1", "f", "{}"))), stop=stop)
        return loop.time()

    state = new_run("plan", "hi")
    return state, run_virtual(main)


def test_stop_waits_for_the_clean_up_of_a_tool():
    async def cleans_up(args, context):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            done.append("closed")

    done = []
    state, end_s = stopped_in(Counted("f", cleans_up))
    assert (done, end_s) == (["closed"], 2.2)
    assert state.interruption["reason"] == "user pressed Stop"
    assert answers(state) == {"1": MAY}


@pytest.mark.parametrize("late", [ValueError("in the clean-up"), SystemExit(1)])
def test_a_clean_up_that_fails_changes_nothing_about_the_stop(late):
    async def fails_late(args, context):
        try:
            await asyncio.sleep(60)
        finally:
            raise late

    state, end_s = stopped_in(Counted("f", fails_late))
    assert end_s == 1.2 and state.status == "interrupted"
    assert answers(state) == {"1": MAY}


def test_a_second_cancellation_ends_a_clean_up_that_hangs():
    """Stop waits, as for a deaf tool; whoever cannot wait cancels the run's task."""

    async def hangs(args, context):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.Event().wait()

    async def main():
        stop = Stop()
        player, tool = Player(calls(("1", "f", "{}"))), Counted("f", hangs).tool
        task = asyncio.create_task(run(state, [tool], player, stop=stop))
        await asyncio.sleep(1)
        stop.set("user pressed Stop")
        await asyncio.sleep(100)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    state = new_run("plan", "hi")
    run_virtual(main)
    assert state.status == "interrupted" and pending(state) == []


# A15, A19: batches and approvals.


@pytest.mark.parametrize("order", ["fg", "gf", "fgf", "gfg", "gg"])
@pytest.mark.parametrize("word", ["approve", "reject"])
def test_in_any_batch_each_call_runs_once_and_no_answer_is_lost(order, word):
    free, gated = Counted("f"), Counted("g", needs_approval=True)
    ids = [str(n) for n in range(len(order))]
    player = Player(
        calls(*[(n, c, "{}") for n, c in zip(ids, order, strict=True)]), "done"
    )
    state = play(player, free, gated)
    while state.status == "interrupted":
        state = RunState.from_json(state.to_json())  # in another process
        call_id = state.interruption["call_id"]
        approve(state, call_id) if word == "approve" else reject(state, call_id, "no")
        state = play(player, free, gated, state=state)
    assert state.status == "completed" and len(player.asked) == 2
    assert len(free.ran) == order.count("f")
    assert len(gated.ran) == (order.count("g") if word == "approve" else 0)
    assert [*answers(state)] == ids


# A21: the cap.


@pytest.mark.parametrize("cap", range(5))
def test_a_cap_counts_turns_and_a_run_that_fits_it_is_done(cap):
    turns = [calls((str(n), "f", "{}")) for n in range(2)]
    f, player = Counted("f"), Player(*turns, "done")  # three turns in all
    state = play(player, f, limits=RunLimits(max_turns=cap))
    assert len(player.asked) == state.turns == min(cap, 3)
    assert state.status == ("completed" if cap >= 3 else "max_turns_exceeded")
    state = play(player, f, state=state, limits=RunLimits(max_turns=3))
    assert state.status == "completed" and len(player.asked) == 3 and len(f.ran) == 2


# P01, P03: files.


@pytest.mark.parametrize(
    "torn",
    [b"\0" * 512, b'{"n": 2, "te\xc3', b'{"n": 2', b"{", b" ", b"\xff", b"[2]", b"2",
     b'{"n": 2}\0'],
    ids=lambda torn: str(torn[:20]),
)  # fmt: skip
def test_a_torn_tail_of_a_trace_costs_itself_only(tmp_path, torn):
    """NULs are what some file systems leave after a power cut."""

    async def append(n):
        Trace(path).write("n1", "turn", n=n)

    path = tmp_path / "t.jsonl"
    run_virtual(append, 1)
    with path.open("ab") as file:
        file.write(torn)
    run_virtual(append, 3)
    run_virtual(append, 4)
    events, bad = records(path)
    assert [event["n"] for event in events] == [1, 3, 4] and bad == [2]


@pytest.mark.parametrize(
    "content",
    [b"\0" * 512, b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0", b"\n\n", b"{}", b"nan",
     b'{"version": 1}', b'{"version": 99}', b"[" * 100_000],
    ids=lambda content: str(content[:20]),
)  # fmt: skip
def test_a_state_of_any_other_bytes_is_a_typed_error_and_stays(tmp_path, content):
    store, player = RunStore(tmp_path), Player("hi")
    store.path("n1").write_bytes(content)
    for attempt in (
        lambda: store.load("n1"),
        lambda: play(player, state=new_run("plan", "x", run_id="n1"), store=store),
    ):
        with pytest.raises(StateError, match="n1.json"):
            attempt()
    assert store.path("n1").read_bytes() == content and player.asked == []


def test_a_trace_of_any_text_is_one_strict_record_a_line(tmp_path):
    async def write():
        for text in texts:
            Trace(path).write("n1", "tool_progress", label=text)

    [case] = [case for case in load_cases("state") if case["id"] == "P05"]
    ends = "\u2028 \u2029 \x85 \x0b \x0c \x1c \x1e \r \r\n \n".split(" ")
    texts = [case["input"]["record"]["text"], *[f"a{end}b" for end in ends], "\ud800"]
    path = tmp_path / "t.jsonl"
    run_virtual(write)
    for lines in (path.read_bytes().split(b"\n")[:-1], path.read_text().splitlines()):
        assert [json.loads(line)["label"] for line in lines] == texts


# B01, B03, B05: budgets.


@pytest.mark.parametrize(
    "counted",
    [None, {}, {"prompt_tokens": 0, "completion_tokens": 9}, {"prompt_tokens": 9},
     {"prompt_tokens": 9, "completion_tokens": -1}, {"total_tokens": 9},
     {"prompt_tokens": "9", "completion_tokens": 9},
     {"prompt_tokens": 10**40, "completion_tokens": 9}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("turn", [0, 2])
def test_a_count_that_is_unknown_in_any_turn_stops_a_run_with_a_budget(counted, turn):
    known = [Usage(100, 10, 110)] * turn
    asks = [calls(("", "f", ""), usage=u) for u in [*known, Usage.read(counted)]]
    f, player = Counted("f"), Player(*asks)
    state = play(player, f, limits=RunLimits(None, "1.00"))
    assert state.interruption["type"] == "unpriced"
    assert len(player.asked) == turn + 1 and state.unpriced_turns == 1
    assert state.prompt_tokens == 100 * turn  # what is not known is not added


@pytest.mark.parametrize("micros", [999_999, 1_000_000, 1_000_001])
def test_a_budget_is_reached_at_its_last_millionth(micros):
    asked = calls(("1", "f", ""), usage=Usage(micros, 0, micros))
    player = Player(asked, says("done"))
    prices = {"plan": Price("1", "0")}  # a millionth of a dollar a token
    limits = RunLimits(None, "1")
    state = play(player, Counted("f"), limits=limits, prices=prices)
    reached = micros >= 1_000_000
    assert state.status == ("budget_exceeded" if reached else "completed")
    assert len(player.asked) == (1 if reached else 2)
