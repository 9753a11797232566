"""Faults around the loop: turns that are cut off, providers that fail, callbacks and
conditions that raise, exits that nobody could read. What was paid for is kept, what is
not known is said, and no tool is blamed for what others did.
"""

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.conditions import no_progress
from labkit.errors import (
    BrokenStream,
    ConfigError,
    ConnectError,
    DeadlineError,
    IncompleteStream,
    MalformedStream,
    OutOfCredit,
    ProviderError,
    StatusError,
    Stopped,
)
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
from labkit.pricing import Price
from labkit.reply import Attempt
from labkit.retry import Retry
from labkit.runfile import SaveError
from labkit.runs.report import report
from labkit.state import RunState, StateError
from labkit.store import RunStore
from labkit.trace import MemoryTrace
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings
from mock.scripted import SCRIPTED
from tests.players import PATH, Counted, Player, answers, calls, says
from tests.wires import RESET, Script, streamed
from tests.wires import client as wired

LOOK = calls(("c1", "look", ""))
TURN = Decimal("0.000320")  # what each turn of a Player costs


def play(player, *tools, state=None, **options) -> RunState:
    state = state or new_run("plan", "hi", run_id="n1")
    return run_virtual(run, state, [t.tool for t in tools], player, **options)


def status(code: int) -> StatusError:
    verdict = "retry" if code in (408, 429, 500, 503) else "fatal"
    return StatusError(f"{code}: no", status=code, verdict=verdict)


def deadline(limit: str) -> DeadlineError:
    return DeadlineError(f"the {limit} limit", limit=limit, after_s=1.0)


def tried(error, *attempts):
    """The error as a client raises it: with the story of its attempts."""
    story = [Attempt(n, 0, 0, code, name) for n, (code, name) in enumerate(attempts)]
    error.attempts = story
    return error


# A turn that was sent and cut off


CUT_OFF = [
    BrokenStream("reset"), IncompleteStream("no end"), MalformedStream("no JSON"),
    deadline("open"), deadline("idle"), deadline("total"),
    ProviderError("overloaded", type="server_error"),
    tried(BrokenStream("reset"), (200, "BrokenStream")),
    # Retried under a key that is honoured: the first attempt may have been billed.
    tried(status(503), (None, "DeadlineError"), (503, "StatusError")),
    tried(ConnectError("none"), (200, "BrokenStream"), (None, "ConnectError")),
]  # fmt: skip
REFUSED = [
    ConnectError("nobody there"), status(401), status(404), status(429), status(500),
    deadline("connect"), ProviderError("busy", type="overloaded_error"),
    tried(status(503), (503, "StatusError"), (503, "StatusError")),
    tried(status(503), (None, "ConnectError"), (503, "StatusError")),
    # The Stop came in the wait between two attempts: nothing was under way.
    tried(Stopped("stopped", reason="enough"), (503, "StatusError")),
]  # fmt: skip


@pytest.mark.parametrize("error", CUT_OFF, ids=repr)
def test_a_turn_that_was_cut_off_is_not_free(error):
    state = play(Player(error))
    assert (state.unpriced_turns, state.asking, state.turns) == (1, None, 0)
    assert "1 turn(s) are not in the cost" in report(state)


@pytest.mark.parametrize("error", REFUSED, ids=repr)
def test_a_turn_that_was_refused_costs_nothing(error):
    state = play(Player(error))
    assert (state.unpriced_turns, state.asking, state.turns) == (0, None, 0)


def test_a_turn_whose_task_is_cancelled_is_not_free(tmp_path):
    async def main():
        task = asyncio.create_task(run(state, [], Player(None), store=store))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    store, state = RunStore(tmp_path), new_run("plan", "hi", run_id="n1")
    run_virtual(main)
    saved = store.load("n1")
    assert (saved.status, saved.unpriced_turns, saved.asking) == (
        "interrupted",
        1,
        None,
    )


@pytest.mark.parametrize("fault", ["cut=2,how=reset", "stall=2", "503", "429", "400"])
def test_what_the_provider_billed_and_what_the_run_knows_agree(fault):
    """Over HTTP, with a client whose provider honours no keys."""

    async def main():
        door = MemoryTransport(provider)
        url = f"http://mock/{fault}/v1"
        async with ChatClient(url, transport=door, retry=Retry(1)) as client:
            stop = Stop()
            asyncio.get_running_loop().call_later(5, stop.set)
            return await run(new_run("plan", "hi"), [], client, stop=stop)

    provider = Provider(Settings(delay_ms=0), SCRIPTED)
    state = run_virtual(main)
    assert (state.cost, state.turns) == (0, 0)
    billed = provider.books.stats()["billed"]
    assert state.unpriced_turns == billed == (0 if fault.isdigit() else 1)


def test_under_a_budget_a_lost_turn_has_to_be_settled_by_a_person(tmp_path):
    store, budget = RunStore(tmp_path), RunLimits(max_budget_usd="0.001")
    state = play(Player(BrokenStream("reset")), store=store, limits=budget)
    assert state.interruption["type"] == "provider"

    player = Player("done")
    state = play(player, state=store.load("n1"), store=store)
    assert state.interruption["type"] == "unpriced" and player.asked == []
    assert "cut off" in state.interruption["reason"]
    assert "next: python -m labkit settle n1 USD" in report(state)

    settle(state, "0.0003")
    store.save(state)
    play(player, state=store.load("n1"), store=store)
    state = store.load("n1")
    assert state.status == "completed" and state.unpriced_turns == 0
    assert state.cost == TURN + Decimal("0.0003")


def test_what_is_settled_counts_towards_the_budget():
    state = play(Player(BrokenStream("reset")), limits=RunLimits(20, "0.001"))
    settle(state, "0.001")
    player = Player("done")
    assert play(player, state=state).status == "budget_exceeded" and player.asked == []


@pytest.mark.parametrize(
    "wrong", ["-1", "much", "NaN", "1e-99", "1e-13", "1e9", "1e400", True]
)
def test_a_sum_that_is_none_settles_nothing(wrong):
    state = play(Player(LOOK, BrokenStream("reset")), Counted())
    with pytest.raises(ConfigError, match="cost_usd"):
        settle(state, wrong)
    assert (state.unpriced_turns, state.cost) == (1, TURN)


def test_the_smallest_and_the_largest_sum_can_be_added_to():
    state = play(Player(LOOK, BrokenStream("reset")), Counted())
    settle(state, "999999999.000000000001")
    play(Player(LOOK, "done"), Counted(), state=state, limits=RunLimits())
    assert (state.status, state.unpriced_turns) == ("completed", 0)
    assert state.cost == 2 * TURN + Decimal("999999999.000000000001")


def test_where_all_is_known_there_is_nothing_to_settle():
    with pytest.raises(StateError, match="n1: the cost of every turn is known"):
        settle(play(Player("done")), "0.1")


def test_a_cost_of_too_many_digits_is_unknown_and_the_turn_is_kept():
    prices = {"plan": Price("0." + "1" * 61, 0)}
    state = play(Player(LOOK, "done"), Counted(), prices=prices)
    assert (state.status, state.turns) == ("completed", 2)
    assert (state.unpriced_turns, state.prompt_tokens) == (2, 200)


def test_a_turn_whose_client_is_closed_in_its_wait_is_not_free():
    script = Script(RESET, streamed())  # it was sent, and may have been billed

    async def main():
        client = wired(script, retry=Retry(idempotent=True))

        async def close_it():
            await asyncio.sleep(0.001)
            await client.aclose()

        closing = asyncio.create_task(close_it())
        state = await run(new_run("plan", "hi"), [], client)
        await closing
        return state

    state = run_virtual(main)
    assert (state.status, state.unpriced_turns) == ("interrupted", 1)
    assert len(script.requests) == 1
    assert "closed" in state.interruption["reason"]


# After a crash


def crashed(*tools, model="plan") -> RunState:
    """A run whose process died over its second turn."""
    store = []

    class Dies(Player):
        def stream(self, *args, **kwargs):
            if len(self.asked) == 1:
                store.append(state.to_json())
            return super().stream(*args, **kwargs)

    state = new_run(model, "hi", run_id="n1")
    play(Dies(LOOK, "lost"), *tools, state=state)
    state = RunState.from_json(store[0])
    assert state.asking.startswith("n1-turn-2-") and state.status == "running"
    return state


def test_after_a_crash_the_same_request_goes_out_under_the_same_key():
    look = Counted()
    state = crashed(look)
    key, player = state.asking, Player(LOOK, "done")
    play(player, look, state=state)
    assert [asked["key"] for asked in player.asked] == [key]
    assert (state.status, state.unpriced_turns, state.asking) == ("completed", 0, None)


def test_a_provider_that_honours_no_keys_may_have_billed_the_lost_turn():
    look, player = Counted(), Player(LOOK, "done")
    player.idempotent = False
    state = play(player, look, state=crashed(look))
    assert (state.status, state.unpriced_turns) == ("completed", 1)


@pytest.mark.parametrize("change", ["tools", "model", "task"])
def test_another_request_has_another_key_and_the_lost_turn_is_not_free(change):
    look, more = Counted(), []
    state = crashed(look)
    key, player = state.asking, Player(LOOK, "done")
    if change == "tools":
        more = [Counted("rm")]
    elif change == "model":
        state.model = "runaway"
    else:
        state.messages[0]["content"] = "something else"
    play(player, look, *more, state=state)
    (asked,) = player.asked
    assert asked["key"] != key and asked["key"].startswith("n1-turn-2-")
    assert (state.status, state.unpriced_turns) == ("completed", 1)


def test_under_a_budget_nothing_is_sent_before_the_lost_turn_is_settled():
    look, player = Counted(), Player(LOOK, "done")
    player.idempotent = False
    budget = {"limits": RunLimits(20, "1")}
    state = play(player, look, state=crashed(look), **budget)
    assert state.interruption["type"] == "unpriced" and player.asked == []
    settle(state, 0)
    play(player, look, state=state)
    assert (state.status, state.turns, state.cost) == ("completed", 2, 2 * TURN)


def test_a_refusal_after_a_crash_does_not_make_it_forget_the_lost_turn():
    look = Counted()
    state = crashed(look)
    key = state.asking
    play(Player(LOOK, status(503)), look, state=state)
    assert (state.status, state.asking, state.unpriced_turns) == ("interrupted", key, 0)
    play(Player(LOOK, "done"), look, Counted("rm"), state=state)
    assert state.unpriced_turns == 1


def test_a_name_that_another_run_had_at_the_provider_is_no_conflict():
    """One key with another body is a 422, and that would be the end of the run."""

    async def main():
        async with ChatClient("http://mock/v1", transport=door) as client:
            first = new_run("plan", "Which file?", run_id="n1")
            second = new_run("plan", "Which one?", run_id="n1")
            for state in (first, second):
                await run(state, [look.tool], client)
            return first, second

    look = Counted("list_files", ["errors.log"])
    door = MemoryTransport(Provider(Settings(delay_ms=0), SCRIPTED))
    assert [state.error for state in run_virtual(main)] == [None, None]


def test_a_word_of_a_person_after_a_stop_is_another_request():
    """The provider has seen the turn's key, and answers another body with a 422."""

    async def main():
        async with ChatClient("http://mock/v1", transport=door) as client:
            ran = []
            for more in ([{"role": "user", "content": "and be brief"}], []):
                stop = Stop()
                await run(state, [look.tool], client, stop=stop, on_text=stop.set)
                ran.append((state.status, state.error))
                state.messages += more
            return ran, await run(state, [look.tool], client)

    look = Counted("list_files", ["errors.log"])
    door = MemoryTransport(Provider(Settings(delay_ms=10), SCRIPTED))
    state = new_run("plan", "Which file?", run_id="n1")
    ran, state = run_virtual(main)
    assert ran == [("interrupted", None)] * 2
    assert (state.status, state.error) == ("completed", None)


def test_a_tool_that_is_no_json_is_named_before_anything_is_sent(tmp_path):
    bad = Counted(parameters={"type": "object", "properties": {"a": {"enum": {1}}}})
    player, state = Player("hi"), new_run("plan", "hi", run_id="n1")
    with pytest.raises(ConfigError, match="no JSON"):
        play(player, bad, state=state, store=RunStore(tmp_path))
    assert player.asked == [] and (state.asking, state.unpriced_turns) == (None, 0)


def test_a_turn_that_could_not_be_put_into_a_request_costs_nothing():
    async def main():
        async with ChatClient("http://mock/v1", transport=door) as client:
            await run(state, [], client)

    state = new_run("plan", "hi", run_id="not for a h\u00e9ader")
    door = MemoryTransport(provider := Provider(Settings(delay_ms=0), SCRIPTED))
    with pytest.raises(ConfigError, match="key is"):
        run_virtual(main)
    assert (state.asking, state.unpriced_turns) == (None, 0)
    assert provider.books.stats()["requests"] == 0


# A provider that fails


PASSES = [
    ConnectError("nobody there"), BrokenStream("reset"), IncompleteStream("no end"),
    deadline("connect"), deadline("open"), deadline("idle"), deadline("total"),
    status(408), status(429), status(500), status(503),
    status(401), OutOfCredit("402: no credit"), status(403),  # a person mends these
    ProviderError("overloaded", type="overloaded_error"),
]  # fmt: skip
STAYS = [
    status(400), status(404), status(422), MalformedStream("no JSON"),
    ProviderError("too long", type="invalid_request_error"),
]  # fmt: skip


@pytest.mark.parametrize("error", PASSES, ids=repr)
def test_what_passes_or_can_be_mended_interrupts(error, tmp_path):
    store, look = RunStore(tmp_path), Counted()
    state = play(Player(LOOK, error), look, store=store)
    about = {"type": "provider", "reason": str(error)}
    assert (state.status, state.interruption) == ("interrupted", about)
    assert "next: python -m labkit resume n1" in report(state)
    state = play(Player(LOOK, "done"), look, state=store.load("n1"), store=store)
    assert (state.status, state.turns, len(look.ran)) == ("completed", 2, 1)
    assert state.error is None


@pytest.mark.parametrize("error", STAYS, ids=repr)
def test_what_would_be_refused_for_ever_has_failed(error):
    state = play(Player(error))
    assert (state.status, state.error) == ("failed", str(error))


def test_a_decision_outlives_a_provider_that_is_down():
    rm = Counted("rm", needs_approval=True)
    asks = calls(("c1", "rm", ""), ("c2", "rm", ""))
    state = play(Player(asks), rm)
    reject(state, "c1", "it is Friday")
    approve(state, "c2")
    play(Player(asks, status(500)), rm, state=state)
    assert state.interruption["type"] == "provider"
    play(Player(asks, "done"), rm, state=state)
    assert state.status == "completed" and len(rm.ran) == 1
    assert answers(state)["c1"] == "The user declined this call: it is Friday"


# An answer that is not whole


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("turn", [says("It is in err"), calls(("c2", "rm", ""))])
def test_a_cut_answer_is_no_answer_and_its_calls_are_not_run(finish, turn):
    trace, rm = MemoryTrace(), Counted("rm")
    state = play(Player(LOOK, replace(turn, finish_reason=finish)), Counted(), rm,
                 trace=trace)  # fmt: skip
    assert state.status == "failed" and f"finish_reason {finish}" in state.error
    assert state.output == turn.text and rm.ran == []
    assert (state.turns, state.cost) == (2, 2 * TURN)  # it has been paid for
    assert [e["type"] for e in trace.events][-2:] == ["turn", "run_stopped"]
    assert finish in trace.events[-1]["detail"]


# What the caller's code raises


class Broken:
    """A callback, a condition or a trace that works `works` times."""

    def __init__(self, works: int, error: BaseException):
        self.works, self.error = works, error

    def __call__(self, *args, **kwargs):
        self.works -= 1
        if self.works < 0:
            raise self.error

    write = __call__


ASKS = [LOOK, calls(("c2", "write", ""), ("c3", "look", "")), "done"]


@pytest.mark.parametrize("what", ["stop_conditions", "trace", "on_text", "on_progress"])
@pytest.mark.parametrize("works", range(12))
@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), SystemExit(3)], ids=repr)
def test_what_it_raises_goes_up_and_nothing_that_was_paid_for_is_lost(
    what, works, error, tmp_path
):
    def work(args, context):
        context.progress("half way")
        return "ok"

    look, write = Counted(result=work, read_only=True), Counted("write", work)
    store, player, broken = RunStore(tmp_path), Player(*ASKS), Broken(works, error)
    state = new_run("plan", "hi", run_id="n1")
    option = {what: [broken] if what == "stop_conditions" else broken}
    try:
        play(player, look, write, state=state, store=store, **option)
    except type(error) as raised:
        assert raised is error
    else:
        assert broken.works >= 0  # it was never asked so often
    saved = store.load("n1")
    assert saved == state  # the disk knows all
    assert (saved.turns + saved.unpriced_turns) == len(player.asked)
    play(player, look, write, state=saved, store=store)
    assert (saved.status, saved.output) == ("completed", "done")
    assert (saved.turns, saved.cost) == (3, 3 * TURN)
    assert answers(saved) == {"c1": "ok", "c2": "ok", "c3": "ok"}
    assert len(write.ran) == 1 and len(player.asked) == 3 + saved.unpriced_turns


def test_an_end_that_cannot_be_told_is_told_when_it_can(tmp_path):
    store, look, player = RunStore(tmp_path), Counted(), Player(LOOK, "done")
    full = Broken(1, SaveError("cannot write t.jsonl: the disk is full"))
    with pytest.raises(SaveError):
        play(player, look, store=store, trace=full, limits=RunLimits(1))
    saved, trace = store.load("n1"), MemoryTrace()
    assert (saved.status, saved.turns, saved.asking) == ("running", 1, None)
    play(player, look, state=saved, store=store, trace=trace)
    assert saved.status == "max_turns_exceeded" and len(player.asked) == 1
    assert [e["type"] for e in trace.events] == ["run_stopped"]


def test_a_listener_that_fails_has_cut_a_turn_off():
    state, player = new_run("plan", "hi"), Player("done")
    with pytest.raises(ZeroDivisionError):
        play(player, state=state, on_text=Broken(0, ZeroDivisionError()))
    assert (state.status, state.unpriced_turns, state.asking) == ("running", 1, None)


@pytest.mark.parametrize(
    "ends", [None, ZeroDivisionError("the tool's"), Exit("failed")]
)
def test_a_progress_line_that_cannot_be_shown_is_no_fault_of_the_tool(ends):
    def work(args, context):
        context.progress("half way")
        if ends:
            raise ends
        return "ok"

    state, pipe = new_run("plan", "hi"), BrokenPipeError(32, "Broken pipe")
    player = Player(LOOK, "done")
    with pytest.raises(BrokenPipeError):
        play(player, Counted(result=work), state=state, on_progress=Broken(0, pipe))
    said = {None: {"c1": "ok"}, Exit: {}}.get(ends and type(ends))
    assert answers(state) == ({"c1": "Error: the tool's"} if said is None else said)
    assert len(player.asked) == 1


def test_nor_is_it_where_a_blocking_tool_reports():
    def work(args, context):
        context.progress("half way")
        return "ok"

    tool = replace(Counted().tool, run=work)
    state, pipe = new_run("plan", "hi"), BrokenPipeError(32, "Broken pipe")
    with pytest.raises(BrokenPipeError):
        asyncio.run(
            run(state, [tool], Player(LOOK, "done"), on_progress=Broken(0, pipe))
        )
    assert answers(state) == {"c1": "ok"}


class Stray(BaseException):
    """What is neither an Exception nor any of those that a tool is known to raise."""


def test_a_stray_exception_of_a_write_leaves_it_in_doubt(tmp_path):
    store, write = RunStore(tmp_path), Counted("write", Stray())
    player = Player(calls(("c1", "write", "")), "done")
    with pytest.raises(Stray):
        play(player, write, store=store)
    saved = store.load("n1")
    assert (saved.status, saved.turns, saved.started) == ("running", 1, ["c1"])
    play(player, write, state=saved, store=store)
    assert saved.interruption["type"] == "in_doubt" and len(write.ran) == 1


@pytest.mark.parametrize("error", [GeneratorExit(), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("blocking", [False, True])
def test_what_a_tool_raises_of_its_own_accord_is_words(error, blocking):
    def fails(args, context):
        raise error

    tool = (
        replace(Counted().tool, run=fails) if blocking else Counted(result=error).tool
    )
    state = new_run("plan", "hi")
    asyncio.run(run(state, [tool], Player(LOOK, "done")))
    assert state.status == "completed" and answers(state)["c1"].startswith("Error: ")


@pytest.mark.parametrize("condition", ["function", "object"])
def test_an_async_stop_condition_would_always_be_true(condition):
    async def never(state):
        return False

    class Never:
        async def __call__(self, state):
            return False

    player = Player("hi")
    with pytest.raises(ConfigError, match="stop_conditions: an async function"):
        play(player, stop_conditions=[never if condition == "function" else Never()])
    assert player.asked == []


def test_no_progress_counts_a_turn_when_it_has_been_answered():
    look = Counted()
    state = play(Player(LOOK, "done"), look, stop_conditions=[no_progress(1)])
    assert state.interruption["name"] == "no_progress" and len(look.ran) == 1


# Exits that are not labkit's own


@pytest.mark.parametrize(
    "wrong",
    [{"status": "paused"}, {"status": "running"}, {"status": None},
     {"status": "failed", "error": 5}, {"status": "failed", "error": ValueError("x")},
     {"status": "interrupted", "interruption": {}},
     {"status": "interrupted", "interruption": {"reason": "no type"}},
     {"status": "interrupted", "interruption": {"type": 5}},
     {"status": "interrupted", "interruption": {"type": "x", "about": {1, 2}}},
     {"status": "interrupted", "interruption": {"type": "x", "about": Decimal(1)}},
     {"status": "interrupted", "interruption": {"type": "x", "at": float("nan")}},
     {"status": "interrupted", "interruption": "login"}],
    ids=str,
)  # fmt: skip
def test_an_exit_that_nobody_could_read_again_is_refused_where_it_is_made(wrong):
    with pytest.raises(ConfigError) as error:
        Exit(**wrong)
    assert error.value.field in wrong


def test_an_exit_without_a_word_has_a_type():
    assert Exit("interrupted").interruption == {"type": "exit"}


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.sampled_from(["type", "x", "n1", "c1"]) | st.binary() | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "reason", "name", "call_id", "tool_name", "args",
                         "run_id"]) | st.text() | st.integers(), inner, max_size=4),
    max_leaves=6,
)  # fmt: skip
statuses = st.sampled_from(
    ["completed", "failed", "interrupted", "budget_exceeded", "running", "paused"]
)


@given(statuses, json_like, json_like, st.booleans())
def test_whatever_save_accepts_load_reads(tmp_path_factory, status, about, error, tool):
    """An exit of the caller's own, of whatever it is made, of a condition or a tool."""

    def leave(*args):
        raise Exit(status, about, error)

    store = RunStore(tmp_path_factory.mktemp("exits"))
    state = new_run("plan", "hi", run_id="n1")
    options = {} if tool else {"stop_conditions": [leave]}
    look = Counted(result=leave)
    with suppress(ConfigError):  # of Exit: then there is nothing to save
        play(Player(LOOK, "done"), look, state=state, store=store, **options)
    if store.list():
        saved = store.load("n1")
        assert saved.to_json() == state.to_json()
        assert report(saved).encode() and saved.resumable == state.resumable


# Calls and their tools


def test_a_tool_may_do_what_it_likes_with_its_arguments():
    def spoils(args, context):
        seen.append(dict(args))
        args["path"] = object()
        return "ok"

    seen = []
    look = Counted(result=spoils, parameters=PATH, read_only=True)
    asks = [calls((f"c{n}", "look", f'{{"path":"{p}"}}')) for n, p in enumerate("Aab")]
    state = play(Player(*asks, "done"), look, dedupe=True)
    assert state.status == "completed"
    assert seen == [{"path": "A"}, {"path": "a"}, {"path": "b"}]


ODD = {(1, 2): "a pair is no key"}
LOOP: list = []
LOOP.append(LOOP)


@pytest.mark.parametrize("result", [ODD, LOOP, 10**5000], ids=["key", "cycle", "huge"])
def test_a_write_whose_result_is_no_json_has_been_done(result):
    trace, write = MemoryTrace(), Counted("write", result)
    state = play(Player(calls(("c1", "write", "")), "done"), write, trace=trace)
    assert answers(state)["c1"].startswith("done; the result is a ")
    told = [e for e in trace.events if e["type"] == "tool_result"]
    assert [e["ok"] for e in told] == [True] and len(write.ran) == 1


def test_a_plain_function_around_an_async_one_is_run_to_its_end():
    async def inner(args, context):
        await asyncio.sleep(0)
        return "found"

    tool = replace(Counted().tool, run=lambda args, context: inner(args, context))
    state = new_run("plan", "hi")
    asyncio.run(run(state, [tool], Player(LOOK, "done")))
    assert answers(state) == {"c1": "found"}


@pytest.mark.parametrize("change", ["gone", "schema"])
def test_a_rejection_is_told_whatever_became_of_the_tool(change):
    rm = Counted("rm", needs_approval=True)
    player = Player(calls(("c1", "rm", "")), "done")
    state = play(player, rm)
    reject(state, "c1", "it is Friday")
    now = [] if change == "gone" else [Counted("rm", parameters=PATH)]
    play(player, *now, state=state)
    assert answers(state) == {"c1": "The user declined this call: it is Friday"}
    assert state.rejections == []


def test_the_last_word_of_a_person_counts():
    rm = Counted("rm", needs_approval=True)
    player = Player(calls(("c1", "rm", "")), "done")
    state = play(player, rm)
    reject(state, "c1", "no")
    approve(state, "c1")
    play(player, rm, state=state)
    assert answers(state) == {"c1": "ok"} and len(rm.ran) == 1


def test_a_call_that_was_begun_by_what_is_a_read_now_may_run_again():
    look = Counted(read_only=True)
    state = play(Player(LOOK), Counted(needs_approval=True))
    state.started.append("c1")  # it was a write when the process died
    play(Player(LOOK, "done"), look, state=state)
    assert state.status == "completed" and len(look.ran) == 1


def test_a_schema_of_true_allows_anything():
    anything = {"type": "object", "properties": {"a": True, "b": {"type": "string"}}}
    look = Counted(parameters=anything)
    turn = calls(("c1", "look", '{"a": [1]}'), ("c2", "look", '{"a": 1, "b": 2}'))
    state = play(Player(turn, "done"), look)
    assert look.ran == [{"a": [1]}]
    assert "b must be of type string" in answers(state)["c2"]


def test_no_two_calls_of_two_runs_have_one_key():
    def key(run_id, call_id):
        keys = []
        look = Counted(
            result=lambda args, context: keys.append(context.idempotency_key)
        )
        state = new_run("plan", "hi", run_id=run_id)
        play(Player(calls((call_id, "look", "")), "done"), look, state=state)
        return keys[0]

    assert key("n1", "c1") == key("n1", "c1") == "n1/c1"
    assert key("n1", "x-call-y") != key("n1-call-x", "y")


# Answers from memory


def memory_of(state, player, *tools, turns, **options):
    return play(player, *tools, state=state, limits=RunLimits(turns), **options)


@pytest.mark.parametrize("now", [{"read_only": False}, {"cacheable": False}])
def test_what_is_no_read_now_is_not_answered_from_memory(now):
    asks = [calls((f"c{n}", "look", "")) for n in range(4)]
    then, later = Counted(read_only=True), Counted(**{"read_only": True, **now})
    state = memory_of(None, Player(*asks), then, turns=2, dedupe=True)
    assert len(then.ran) == 1
    memory_of(state, Player(*asks), later, turns=3, dedupe=True)
    assert len(later.ran) == 1


def test_what_everything_kept_of_a_write_is_no_answer_to_the_next_one():
    asks = [calls((f"c{n}", "write", "")) for n in range(4)]
    write = Counted("write")
    state = memory_of(None, Player(*asks), write, turns=2, dedupe="everything")
    assert len(write.ran) == 1
    memory_of(state, Player(*asks), write, turns=4, dedupe=True)
    assert len(write.ran) == 3


def test_a_write_makes_it_forget_also_where_dedupe_is_off():
    names = ["look", "write", "look", "look"]
    asks = [calls((f"c{n}", name, "")) for n, name in enumerate(names)]
    look, write = Counted(read_only=True), Counted("write")
    state = memory_of(None, Player(*asks), look, write, turns=2, dedupe=True)
    memory_of(state, Player(*asks), look, write, turns=3, dedupe=False)
    memory_of(state, Player(*asks), look, write, turns=4, dedupe=True)
    assert len(write.ran) == 1 and len(look.ran) == 2


def test_so_does_a_write_of_which_a_person_says_that_it_ran():
    names = ["look", "write", "look", "look"]
    asks = [calls((f"c{n}", name, "")) for n, name in enumerate(names)]
    look, write = Counted(read_only=True), Counted("write")
    state = memory_of(None, Player(*asks), look, write, turns=2, dedupe=True)
    state.started.append("c1")  # as a kill would leave it
    resolve(state, "c1", ran=True)
    memory_of(state, Player(*asks), look, write, turns=4, dedupe=True)
    assert write.ran == [] and len(look.ran) == 2


# Who may go on


def test_a_copy_that_is_behind_tells_nothing_and_does_nothing(tmp_path):
    store, trace = RunStore(tmp_path), MemoryTrace()
    old = play(Player(LOOK), Counted(), store=store, limits=RunLimits(1))
    old = RunState.from_json(old.to_json())
    play(Player(LOOK), Counted(), state=store.load("n1"), store=store)
    with pytest.raises(StateError, match="load the run again"):
        play(Player("hi"), state=old, store=store, trace=trace, limits=RunLimits(0))
    assert trace.events == []


def test_a_trace_whose_disk_is_full_stops_the_run_before_the_tool(tmp_path):
    store, look = RunStore(tmp_path), Counted()
    full = Broken(1, SaveError("cannot write t.jsonl: the disk is full"))
    with pytest.raises(SaveError):
        play(Player(LOOK, "done"), look, store=store, trace=full)
    saved = store.load("n1")
    assert look.ran == [] and [call.id for call in pending(saved)] == ["c1"]
    assert re.match("running", saved.status) and saved.cost == TURN
