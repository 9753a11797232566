"""How long the client waits, and who may stop it."""

import asyncio

import pytest

from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.errors import DeadlineError, StatusError, Stopped
from labkit.gate import Gate
from labkit.http import httpx
from labkit.limits import Limits
from labkit.retry import Retry
from tests.wires import (
    ANSWER,
    HANG,
    SSE,
    USAGE,
    Script,
    chunk,
    client,
    complete,
    plain,
    read,
    refused,
    streamed,
)


@pytest.mark.parametrize("call", [complete, read])
def test_open_is_for_one_attempt_and_total_for_all(call):
    script = Script(HANG)
    retry = Retry(attempts=9, strategy="none", idempotent=True)
    with pytest.raises(DeadlineError) as caught:
        call(script, retry=retry, limits=Limits(open_s=5, total_s=12))
    assert script.at_s == [0, 5, 10]
    assert (caught.value.limit, caught.value.after_s) == ("total", 12)
    verdicts = [(each.error, each.verdict) for each in caught.value.attempts]
    assert verdicts == [("DeadlineError", "retry")] * 2 + [("DeadlineError", "fatal")]


def test_a_connection_has_a_limit_of_its_own():
    script = Script({"before": [5, httpx.ConnectTimeout("")]})
    with pytest.raises(DeadlineError) as caught:
        complete(script, limits=Limits(connect_s=5), retry=Retry(attempts=1))
    assert (caught.value.limit, caught.value.after_s) == ("connect", 5)
    assert script.requests[0].extensions["timeout"]["connect"] == 5
    assert script.requests[0].extensions["timeout"]["read"] is None


def test_the_time_of_the_reader_is_not_the_providers_silence():
    async def main():
        limits = Limits(idle_s=2)
        async with client(Script(streamed()), limits=limits).stream("hi") as stream:
            async for _ in stream:
                await asyncio.sleep(10)
        return stream.reply.text

    assert run_virtual(main) == "A tide gauge"


def slowly(steps, **limits):
    """What a reader gets who takes a second over each piece, and how it ended when."""

    async def main():
        loop, got = asyncio.get_running_loop(), []
        asked = client(Script(streamed(*steps)), limits=Limits(**limits)).stream("hi")
        async with asked as stream:
            try:
                async for piece in stream:
                    got.append(piece)
                    await asyncio.sleep(1)
            except DeadlineError as error:
                return got, error.limit, loop.time()
            return got, stream.reply.finish_reason, loop.time()

    return run_virtual(main)


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([b"".join(ANSWER)], (["A tide", " gauge"], "stop", 2)),
        ([b"".join(ANSWER[:2]), *ANSWER[2:]], (["A tide", " gauge"], "total", 2)),
        (ANSWER, (["A tide"], "total", 1)),
        ([ANSWER[0], 0.25, *ANSWER[1:]], (["A tide"], "total", 1)),
    ],
    ids=["one read", "its end is another", "three reads", "a wait between"],
)
def test_total_ends_waiting_and_not_the_reading_of_what_has_come(steps, outcome):
    """Also where the next bytes are there without any wait, as fast senders have it."""
    assert slowly(steps, total_s=0.5) == outcome


def test_what_is_no_sign_of_life_stays_none_when_it_came_with_a_piece():
    role = chunk(role="assistant")
    steps = [ANSWER[0] + 3 * role, 2, role, 2, role, 2, *ANSWER[1:]]
    assert slowly(steps, idle_s=3) == (["A tide"], "idle", 1 + 3)


def test_a_stall_says_idle_and_keeps_the_text():
    script = Script(streamed(chunk("A tide"), 14, chunk(" gauge"), None))
    with pytest.raises(DeadlineError, match="idle_s=15") as caught:
        read(script)
    assert (caught.value.limit, caught.value.after_s) == ("idle", 29)
    assert caught.value.partial == "A tide gauge"
    assert script.left == 1


def test_a_body_held_open_after_done_is_not_waited_for():
    script = Script(streamed(*ANSWER, None))

    async def main():
        async with client(script).stream("hi") as stream:
            async for _ in stream:
                pass
        return stream.reply.timings.complete_s, asyncio.get_running_loop().time()

    complete_s, left_s = run_virtual(main)
    assert (complete_s, left_s) == (0, pytest.approx(0.02))
    assert (script.open, script.left) == (0, 1)


@pytest.mark.parametrize("late", [[None], [3, None], [0.5, USAGE, None]])
@pytest.mark.parametrize("idle_s", [0.75, 15])
def test_a_whole_answer_is_not_lost_to_a_late_farewell(late, idle_s):
    """After the finish_reason only the usage and [DONE] can come: 1 s is for them."""
    script = Script(streamed(*ANSWER[:3], *late))
    pieces, reply = read(script, limits=Limits(idle_s=idle_s))
    assert (pieces, reply.finish_reason) == (["A tide", " gauge"], "stop")
    assert reply.timings.complete_s == min(1, idle_s)
    assert (reply.usage is not None) == (USAGE in late)
    assert (script.open, script.left) == (0, 1)


def test_a_finish_that_comes_with_the_last_text_is_one_too():
    script = Script(streamed(chunk("A tide gauge", finish="stop"), None))
    pieces, reply = read(script)
    assert (pieces, reply.timings.complete_s) == (["A tide gauge"], 1)
    reply = complete(script, limits=Limits(total_s=0.5))  # no limit loses it
    assert (reply.text, reply.timings.complete_s) == ("A tide gauge", 0.5)


def test_empty_pieces_of_a_tool_call_are_no_sign_of_life():
    call = {"index": 0, "id": "c", "function": {"name": "f"}}
    empty = chunk(tool_calls=[{"index": 0, "function": {"arguments": ""}}])
    script = Script(streamed(chunk(tool_calls=[call]), *[10, empty] * 9))
    with pytest.raises(DeadlineError) as caught:
        complete(script)
    assert (caught.value.limit, caught.value.after_s) == ("idle", 15)


@pytest.mark.parametrize("status", [401, 429])
@pytest.mark.parametrize(
    ("limits", "ended_s"),
    [
        (Limits(open_s=5), 4.9),
        (Limits(open_s=4), 4),
        (Limits(total_s=4.5), 4.5),
        (Limits(open_s=4, total_s=4), 4),
    ],
)
def test_a_status_is_not_lost_to_a_slow_explanation(status, limits, ended_s):
    answer = refused(status, retry_after="200")
    answer["before"], answer["steps"] = [3.9], [b"no", None]
    script = Script(answer)
    with pytest.raises(StatusError) as caught:
        complete(script, limits=limits)
    assert caught.value.status == status
    assert caught.value.attempts[0].ended_s == ended_s
    assert (script.open, script.left) == (0, 1)


def test_a_stop_beats_a_slow_explanation():
    async def main():
        stop = Stop()
        asyncio.get_running_loop().call_later(0.5, stop.set)
        answer = {**refused(401), "steps": [None]}
        await client(Script(answer)).complete("hi", stop=stop)

    with pytest.raises(Stopped):
        run_virtual(main)


def test_an_answer_that_was_read_is_hung_up_inside_the_block():
    async def main():
        gate, script = Gate(1), Script(streamed())
        async with client(script, gate=gate).stream("hi") as stream:
            [text async for text in stream]
            return gate.in_use, script.open

    assert run_virtual(main) == (0, 0)


@pytest.mark.parametrize(
    "sign",
    [
        {"tool_calls": [{"index": 0, "function": {"arguments": " "}}]},
        {"reasoning_content": "hm"},
    ],
    ids=["a tool call's arguments", "reasoning"],
)
def test_what_brings_no_text_moves_the_idle_limit_too(sign):
    call = {"index": 0, "id": "c1", "function": {"name": "tide", "arguments": ""}}
    opening = chunk(tool_calls=[call])
    more = [10, chunk(**sign)] * 4
    limits = Limits(open_s=5, idle_s=15)
    whole = streamed(opening, *more, chunk(finish="tool_calls"))
    pieces, reply = read(Script(whole), limits=limits)
    assert (pieces, reply.timings.complete_s) == ([], 40)
    with pytest.raises(DeadlineError) as caught:
        read(Script(streamed(opening, *more, None)), limits=limits)
    assert (caught.value.limit, caught.value.after_s) == ("idle", 55)


# Closed by somebody else


@pytest.mark.parametrize(
    ("answer", "partial"),
    [
        (streamed(chunk("A tide"), None), "A tide"),
        (HANG, ""),
        (refused(503, retry_after="50"), ""),
    ],
    ids=["in mid stream", "before it opens", "in a wait"],
)
def test_a_reader_whose_stream_is_closed_is_stopped(answer, partial):
    script, gate = Script(answer), Gate(1)

    async def main():
        stream = client(script, gate=gate).stream("hi")

        async def reads():
            async with stream:
                async for _ in stream:
                    pass

        reader = asyncio.create_task(reads())
        await asyncio.sleep(1)
        await stream.aclose()
        with pytest.raises(Stopped, match="closed before its end") as caught:
            await reader
        assert asyncio.get_running_loop().time() == 1
        assert (gate.in_use, script.open) == (0, 0)
        return caught.value

    error = run_virtual(main)
    assert (error.partial, len(error.attempts)) == (partial, 1)
    assert len(script.requests) == 1


def test_one_piece_can_be_waited_for_by_another_task():
    """asyncio.wait_for runs it in a task of its own (before Python 3.12)."""

    async def main():
        script = Script(streamed(chunk("A"), 3, chunk("B"), None))
        async with client(script).stream("hi") as stream:
            assert await asyncio.wait_for(anext(stream), 1) == "A"
            assert await asyncio.wait_for(anext(stream), 5) == "B"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 5)
            with pytest.raises(Stopped):
                await anext(stream)
        return script.open, asyncio.get_running_loop().time()

    assert run_virtual(main) == (0, 8)


@pytest.mark.parametrize("steps", range(4))
def test_a_stream_closed_in_the_moment_it_is_let_in_keeps_no_slot(steps):
    script, gate = Script(streamed()), Gate(1)

    async def main():
        await gate.enter()
        stream = client(script, gate=gate).stream("hi")
        entering = asyncio.create_task(stream.__aenter__())
        await asyncio.sleep(1)
        gate.leave()
        for _ in range(steps):
            await asyncio.sleep(0)
        await stream.aclose()
        await asyncio.wait({entering})
        assert isinstance(entering.exception(), Stopped | None)
        return gate.in_use, gate.waiting, script.open

    assert run_virtual(main) == (0, 0, 0)


# Stop, cancellation, the gate

STALLED = streamed(chunk("A tide"), None)


@pytest.mark.parametrize(
    ("answers", "partial"),
    [
        ([HANG], ""),
        ([{"status": 200, "headers": SSE, "steps": [None]}], ""),
        ([STALLED], "A tide"),
        ([refused(503, retry_after="50")], ""),
    ],
    ids=["headers", "first content", "mid stream", "backoff"],
)
def test_stop_wherever_the_call_stands(answers, partial):
    script = Script(*answers)

    async def main():
        stop = Stop()
        asyncio.get_running_loop().call_later(0.5, stop.set, "user pressed Stop")
        with pytest.raises(Stopped, match="user pressed Stop") as caught:
            async with client(script).stream("hi", stop=stop) as stream:
                async for _ in stream:
                    pass
        assert asyncio.get_running_loop().time() == 0.5
        await asyncio.sleep(300)
        return caught.value

    error = run_virtual(main)
    assert (error.reason, error.partial) == ("user pressed Stop", partial)
    assert str(error) == "stopped: user pressed Stop"
    waited = answers[0].get("status") == 503
    assert error.attempts[0].slept_s == (0.5 if waited else 0)
    assert len(script.requests) == len(error.attempts) == 1
    assert script.open == 0


def test_a_call_that_is_stopped_before_it_begins_sends_nothing():
    script, stop = Script(plain()), Stop()
    stop.set()
    with pytest.raises(Stopped) as caught:
        complete(script, body={"stop": stop})
    assert script.requests == caught.value.attempts == []


def test_stop_before_the_gate():
    async def main():
        gate, stop, script = Gate(1), Stop(), Script(plain())
        await gate.enter()
        asyncio.get_running_loop().call_later(1, stop.set)
        with pytest.raises(Stopped) as caught:
            await client(script, gate=gate).complete("hi", stop=stop)
        assert script.requests == caught.value.attempts == []
        return gate.in_use, gate.waiting

    assert run_virtual(main) == (1, 0)


def test_a_stop_holds_back_pieces_that_are_there_already():
    async def main():
        stop = Stop()
        script = Script(streamed(b"".join(ANSWER)))
        async with client(script).stream("hi", stop=stop) as stream:
            async for _ in stream:
                stop.set("enough")

    with pytest.raises(Stopped) as caught:
        run_virtual(main)
    assert caught.value.partial == "A tide"


@pytest.mark.parametrize("answer", [HANG, STALLED], ids=["hang", "stall"])
def test_a_cancellation_stays_one_and_hangs_up(answer):
    script, gate = Script(answer), Gate(1)

    async def main():
        async with client(script, gate=gate).stream("hi", stop=Stop()) as stream:
            async for _ in stream:
                pass

    async def cancel():
        task = asyncio.create_task(main())
        await asyncio.sleep(1)
        task.cancel("by us")
        with pytest.raises(asyncio.CancelledError):
            await task
        return gate.in_use, script.open

    assert run_virtual(cancel) == (0, 0)


def test_an_outer_timeout_is_the_callers():
    async def main():
        async with asyncio.timeout(1):
            await client(Script(HANG)).complete("hi")

    with pytest.raises(TimeoutError) as caught:
        run_virtual(main)
    assert not isinstance(caught.value, DeadlineError)


def test_the_gate_is_held_through_the_backoff():
    """Whoever was told that there is no room makes none for somebody else."""

    async def main():
        gate = Gate(1)
        waits = client(Script(refused(429, retry_after="9"), plain()), gate=gate)
        other = client(Script(plain()), gate=gate)
        first = asyncio.create_task(waits.complete("hi"))
        await asyncio.sleep(1)
        assert (gate.in_use, gate.waiting) == (1, 0)
        await other.complete("hi")
        at_s = asyncio.get_running_loop().time()
        assert gate.in_use == 0
        return at_s, (await first).attempts[-1].started_s

    assert run_virtual(main) == (9, 9)
