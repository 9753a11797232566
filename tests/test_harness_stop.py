"""Stop, cancellation and time limits: how far they reach, and what they leave."""

import asyncio
import time
from contextvars import ContextVar
from dataclasses import replace

import pytest

from labkit.cancel import Stop
from labkit.clock import VirtualClockError, run_virtual
from labkit.execution import call_tool
from labkit.harness import new_run, pending, run
from labkit.state import RunState
from labkit.store import RunStore
from labkit.tools import NO_PARAMETERS, Tool, ToolContext, ToolError
from labkit.trace import MemoryTrace
from tests.players import Counted, Player, answers, calls

MAY = "cancelled by the user; it may have had its effect"  # what is told of a write
SLOW = calls(("c1", "slow", ""), ("c2", "slow", ""))


async def sleeps(args, context):
    await asyncio.sleep(60)
    return "slept"


def blocking(function, **flags) -> Tool:
    return Tool("slow", "Is slow.", NO_PARAMETERS, function, **flags)


async def stopped_after(seconds, state, tools, player, **options):
    """Press Stop after so many seconds; how long the run then took."""
    loop, stop = asyncio.get_running_loop(), Stop()
    began = loop.time()
    loop.call_later(seconds, stop.set, "user pressed Stop")
    await run(state, tools, player, stop=stop, **options)
    return loop.time() - began


def test_stop_ends_an_async_tool_at_once_and_a_resume_does_not_run_it_again():
    slow, player = Counted("slow", sleeps), Player(SLOW, "done")
    state, trace = new_run("plan", "hi", run_id="n1"), MemoryTrace()
    took_s = run_virtual(stopped_after, 1.2, state, [slow.tool], player, trace=trace)
    assert took_s == pytest.approx(1.2)
    assert state.status == "interrupted" and len(player.asked) == 1
    assert state.interruption == {"type": "cancelled", "reason": "user pressed Stop"}
    assert answers(state) == {"c1": MAY}
    assert [call.id for call in pending(state)] == ["c2"]  # it had not started
    assert trace.events[-1]["detail"] == "user pressed Stop"

    again, quick = RunState.from_json(state.to_json()), Counted("slow")
    run_virtual(run, again, [quick.tool], player)
    assert again.status == "completed" and len(quick.ran) == 1
    assert answers(again) == {"c1": MAY, "c2": "ok"}
    assert again.tool_runs == 2


def test_a_read_that_was_stopped_has_had_no_effect():
    slow = Counted("slow", sleeps, read_only=True)
    state = new_run("plan", "hi")
    run_virtual(stopped_after, 1.2, state, [slow.tool], Player(SLOW, "done"))
    assert answers(state) == {"c1": "cancelled by the user"}


def test_stop_ends_a_turn_and_a_resume_asks_it_anew_under_its_key():
    """A stream that is left may be billed or not: nobody knows, and unknown is not
    free."""
    state, silent = new_run("plan", "hi", run_id="n1"), Player(None)
    assert run_virtual(stopped_after, 1.2, state, [], silent) == pytest.approx(1.2)
    assert state.status == "interrupted" and state.turns == 0
    assert state.asking is None and state.unpriced_turns == 1
    player = Player("done")
    run_virtual(run, state, [], player)
    assert state.status == "completed" and state.unpriced_turns == 1
    assert player.asked[0]["key"] == silent.asked[0]["key"]


def test_stop_set_before_does_nothing_at_all():
    stop, player = Stop(), Player("hi")
    stop.set("not today")
    state = run_virtual(run, new_run("plan", "hi"), [], player, stop=stop)
    assert state.interruption["reason"] == "not today" and player.asked == []
    assert run_virtual(run, state, [], player).output == "hi"


def test_a_tool_that_makes_an_error_of_the_stop_was_still_stopped():
    async def wraps(args, context):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ToolError("somebody was in a hurry") from None

    state = new_run("plan", "hi")
    tools = [Counted("slow", wraps).tool]
    run_virtual(stopped_after, 1, state, tools, Player(SLOW, "no"))
    assert state.status == "interrupted"
    assert answers(state) == {"c1": MAY}


@pytest.mark.parametrize("swallow", ["result", "error"])
def test_a_cancellation_that_a_tool_swallows_still_ends_the_run(swallow):
    async def swallows(args, context):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if swallow == "error":
                raise ToolError("no") from None
            return "I was here"

    async def main():
        task = asyncio.create_task(run(state, [slow.tool], player))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    slow, player = Counted("slow", swallows), Player(SLOW, "must not be asked")
    state = new_run("plan", "hi")
    run_virtual(main)
    assert state.interruption == {"type": "cancelled", "reason": "CancelledError"}
    assert len(player.asked) == 1 and len(slow.ran) == 1


def test_a_run_in_a_task_that_was_cancelled_before_goes_on():
    """In the clean-up of a cancelled task, for one: only new cancellations count."""

    async def main():
        async def work():
            try:
                await asyncio.sleep(60)
            finally:
                await run(state, [], Player("done"))

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    state = new_run("plan", "hi")
    run_virtual(main)
    assert state.output == "done"


def test_a_time_limit_is_words_and_the_run_goes_on():
    slow = Counted("slow", sleeps, timeout_s=0.1)
    state = run_virtual(run, new_run("m", "hi"), [slow.tool], Player(SLOW, "ok"))
    said = "Error: slow did not finish within 0.1 s; it may have had its effect"
    assert answers(state) == {"c1": said, "c2": said}
    assert state.status == "completed" and state.tool_runs == 2
    read = Counted("slow", sleeps, timeout_s=0.1, read_only=True)
    state = run_virtual(run, new_run("m", "hi"), [read.tool], Player(SLOW, "ok"))
    assert answers(state)["c1"] == "Error: slow did not finish within 0.1 s"


def test_a_blocking_tool_under_the_virtual_clock_is_a_clear_error():
    with pytest.raises(VirtualClockError, match="async def"):
        tools = [blocking(lambda args, context: "ok")]
        run_virtual(run, new_run("m", "hi"), tools, Player(SLOW, "ok"))


def test_a_blocking_tool_runs_in_a_thread_and_reports_progress_to_the_loop():
    def work(args, context):
        context.progress("half way")
        return ["ä"]

    trace, seen = MemoryTrace(), []
    state = new_run("m", "hi")
    asyncio.run(
        run(state, [blocking(work)], Player(SLOW, "ok"), trace=trace,
            on_progress=seen.append)
    )  # fmt: skip
    assert answers(state) == {"c1": '["ä"]', "c2": '["ä"]'}
    assert seen == ["half way"] * 2
    kinds = [event["type"] for event in trace.events[1:4]]
    assert kinds == ["tool_start", "tool_progress", "tool_result"]


@pytest.mark.parametrize("error", [ToolError("no"), SystemExit(1), StopIteration()])
def test_what_a_blocking_tool_raises_is_words(error):
    def fails(args, context):
        raise error

    state = new_run("m", "hi")
    asyncio.run(run(state, [blocking(fails)], Player(SLOW, "ok")))
    assert state.status == "completed" and answers(state)["c1"].startswith("Error: ")


def polls(args, context):
    for _ in range(300):
        context.stop.check()
        time.sleep(0.005)


def is_deaf(args, context):
    time.sleep(0.5)
    return "scanned all the same"


@pytest.mark.realtime
@pytest.mark.parametrize("tool", [Counted("slow", sleeps).tool, blocking(polls)])
def test_stop_reaches_async_and_polling_tools_in_real_time(tool):
    state = new_run("m", "hi")
    work = stopped_after(0.2, state, [tool], Player(SLOW, "no"))
    assert asyncio.run(work) < 0.3
    assert answers(state) == {"c1": MAY}


@pytest.mark.realtime
def test_a_deaf_tool_is_waited_for_and_what_it_did_is_written_down():
    state = new_run("m", "hi")
    work = stopped_after(0.1, state, [blocking(is_deaf)], Player(SLOW, "no"))
    assert asyncio.run(work) >= 0.5
    assert state.status == "interrupted"
    assert answers(state) == {"c1": "scanned all the same"}


@pytest.mark.realtime
def test_a_blocking_tool_that_is_too_slow_is_told_to_stop_and_left_behind():
    told = []

    def slow(args, context):
        for _ in range(100):
            if context.stop.is_set:
                told.append(context.stop.reason)
                return
            time.sleep(0.005)

    async def main():
        with pytest.raises(ToolError, match="within 0.05 s"):
            await call_tool(blocking(slow, timeout_s=0.05), {}, ToolContext())
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert told == ["no longer waited for"]


def waits(args, context):
    while not context.stop.is_set:
        time.sleep(0.005)
    return "too late"


@pytest.mark.parametrize("run_of_a_tool", [sleeps, waits])
def test_a_time_limit_stops_the_tool_and_not_the_run(run_of_a_tool):
    """And what a thread brings after its time, it brings to nobody."""
    heard = []

    async def main():
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: heard.append(context))
        tool = replace(blocking(run_of_a_tool, timeout_s=0.05), read_only=True)
        await run(state, [tool], Player(SLOW, "ok"))
        await asyncio.sleep(0.05)

    state = new_run("m", "hi")
    asyncio.run(main())
    assert (state.status, state.output) == ("completed", "ok")
    said = "Error: slow did not finish within 0.05 s"
    assert answers(state) == {"c1": said, "c2": said} and heard == []


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_a_time_limit_of_the_tool_s_own_is_what_it_says(timeout_s):
    busy = Counted("slow", TimeoutError("the disk did not answer"), timeout_s=timeout_s)
    state = run_virtual(run, new_run("m", "hi"), [busy.tool], Player(SLOW, "ok"))
    assert answers(state)["c1"] == "Error: the disk did not answer"


def test_a_blocking_tool_sees_the_context_of_its_caller():
    def who(args, context):
        return user.get("nobody")

    user = ContextVar("user")

    async def main():
        user.set("Ada")
        return await call_tool(blocking(who), {})

    assert asyncio.run(main()) == "Ada"


@pytest.mark.parametrize("block", [False, True])
def test_a_keyboard_interrupt_reaches_the_caller_after_all_is_saved(tmp_path, block):
    def pressed(args, context):
        raise KeyboardInterrupt

    async def pressed_async(args, context):
        raise KeyboardInterrupt

    store, trace = RunStore(tmp_path), MemoryTrace()
    tool = blocking(pressed if block else pressed_async)
    state = new_run("m", "hi", run_id="n1")
    player = Player(SLOW, "must not be asked")
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run(state, [tool], player, store=store, trace=trace))
    saved = store.load("n1")
    assert saved.interruption == {"type": "cancelled", "reason": "KeyboardInterrupt"}
    assert answers(saved) == {"c1": MAY}
    assert trace.events[-1]["type"] == "run_stopped" and len(player.asked) == 1
