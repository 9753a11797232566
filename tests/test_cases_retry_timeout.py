"""The handed cases about retries (virtual clock) and timeouts (mostly real sockets).

Each is a test of its kind of fault; its id is in the test's name.
"""

import asyncio
import math
from random import Random

import pytest

from labkit.backoff import full
from labkit.client import ChatClient
from labkit.clock import EPOCH, run_virtual
from labkit.errors import BrokenStream, DeadlineError, StatusError, Stopped
from labkit.gate import Gate
from labkit.http import httpx
from labkit.limits import Limits
from labkit.retry import Retry
from tests.handed import load_cases
from tests.wires import (
    ANSWER,
    Script,
    chunk,
    plain,
    refused,
    send,
    send_head,
    socket_server,
    streamed,
)

CASES = {case["id"]: case for area in ("retry", "timeout") for case in load_cases(area)}
URL = "http://provider.test/v1"
SEED = 14


def scripted(case: str) -> Script:
    """The answers of a case, for the transport."""
    return Script(
        *[
            plain() if answer.get("ok") else refused(answer["status"], **named)
            for answer in CASES[case]["input"]["responses"]
            for named in [answer.get("headers", {})]
        ]
    )


def client(script: Script, **settings) -> ChatClient:
    return ChatClient(URL, transport=script, rng=Random(SEED), **settings)


def draws(count: int) -> list[float]:
    """What full jitter draws for the clients here."""
    rng = Random(SEED)
    return [full(attempt, rng) for attempt in range(count)]


def gaps(script: Script) -> list[float]:
    return [b - a for a, b in zip(script.at_s, script.at_s[1:], strict=False)]


@pytest.mark.parametrize("value", CASES["R01"]["input"]["variants"])
def test_r01_a_header_that_is_no_number_is_ignored(value):
    script = Script(refused(429, retry_after=value), plain())
    reply = run_virtual(client(script).complete, "hi")
    assert gaps(script) == pytest.approx(draws(1))
    assert [attempt.floor_s for attempt in reply.attempts] == [None, None]


PAST = "Thu, 01 Jan 2015 00:00:00 GMT"


@pytest.mark.parametrize("value", ["0", PAST])
def test_r03_zero_and_past_dates_do_not_make_a_hot_loop(value):
    script = scripted("R03") if value == "0" else Script(
        *[refused(429, retry_after=value)] * 3, plain()
    )  # fmt: skip
    run_virtual(client(script).complete, "hi")
    assert gaps(script) == pytest.approx(draws(3))
    assert min(gaps(script)) > 0


def test_r04_a_retry_after_beyond_the_deadline_gives_up_at_once():
    script = scripted("R04")
    limits = Limits(total_s=CASES["R04"]["input"]["deadline_s"])
    why = "121 s.*30 s are left of total_s"

    async def main():
        with pytest.raises(StatusError, match=why) as caught:
            await client(script, limits=limits).complete("hi")
        return caught.value, asyncio.get_running_loop().time()

    error, at_s = run_virtual(main)
    assert (error.status, at_s, len(script.requests)) == (429, 0, 1)
    assert error.attempts[0].floor_s == 121


@pytest.mark.parametrize(("budget_s", "requests"), [(121, 2), (120.9, 1)])
def test_r04_a_wait_equal_to_the_budget_is_honoured(budget_s, requests):
    script = scripted("R04")
    retry, limits = Retry(budget_s=budget_s), Limits(total_s=600)

    async def main():
        try:
            await client(script, retry=retry, limits=limits).complete("hi")
        except StatusError as error:
            assert "left of budget_s" in str(error)

    run_virtual(main)
    assert script.at_s == [0, 121][:requests]


def test_r04_a_date_counts_from_the_date_of_the_loop():
    assert EPOCH == 1_767_225_600  # 2026-01-01T00:00:00Z
    date = "Thu, 01 Jan 2026 00:00:42 GMT"
    script = Script(refused(503, retry_after=date), plain())
    run_virtual(client(script).complete, "hi")
    assert script.at_s == [0, 42]


def test_r06_milliseconds_beat_seconds():
    script = scripted("R06")
    reply = run_virtual(client(script).complete, "hi")
    assert reply.attempts[0].floor_s == 0.05
    assert gaps(script) == [pytest.approx(max(0.05, draws(1)[0]))]


def test_r08_one_layer_owns_the_retries():
    case = CASES["R08"]["input"]
    script = scripted("R08")
    with pytest.raises(StatusError, match="attempt 3 of 3") as caught:
        run_virtual(
            client(script, retry=Retry(attempts=1 + case["max_retries"])).complete, "hi"
        )
    assert len(script.requests) == len(caught.value.attempts) == 3


@pytest.mark.parametrize("idempotent", [False, True])
def test_r10_no_retry_after_text_was_given_out(idempotent):
    script = Script(
        streamed(chunk("Here is"), httpx.ReadError("reset")),
        streamed(chunk("Here is the plan"), *ANSWER),
    )
    seen = []

    async def main():
        retry = Retry(attempts=3, idempotent=idempotent)
        async with client(script, retry=retry).stream("hi") as stream:
            async for text in stream:
                seen.append(text)

    with pytest.raises(BrokenStream, match="the answer had begun") as caught:
        run_virtual(main)
    assert seen == ["Here is"]
    assert caught.value.partial == "Here is"
    assert len(script.requests) == 1


def keys(script: Script) -> list[str]:
    return [request.headers["idempotency-key"] for request in script.requests]


def test_r12_one_key_for_all_attempts_of_one_call():
    case = CASES["R12"]["input"]
    answers = [refused(503), refused(503), plain()] * case["calls"]
    script = Script(*answers, plain())

    async def main():
        caller = client(script, retry=Retry(attempts=1 + case["max_retries"]))
        for _ in range(case["calls"]):
            await caller.complete("hi")
        await caller.complete("hi", key="my own")

    run_virtual(main)
    first, second, own = keys(script)[:3], keys(script)[3:6], keys(script)[6:]
    assert len(set(first)) == len(set(second)) == 1
    assert first != second
    assert own == ["my own"]


@pytest.mark.parametrize("attempt", range(9))
def test_r14_full_jitter_is_spread_over_its_whole_range(attempt):
    rng, top = Random(attempt), min(20, 0.2 * 2**attempt)
    waits = sorted(full(attempt, rng) for _ in range(1000))
    assert 0 <= waits[0] < 0.02 * top and 0.98 * top < waits[-1] <= top
    assert sum(waits) / 1000 == pytest.approx(top / 2, rel=0.06)
    for tenth in range(10):  # no gap anywhere
        part = [w for w in waits if tenth * top / 10 <= w < (tenth + 1) * top / 10]
        assert 60 < len(part) < 140


def test_r16_cancelled_during_the_backoff():
    script = scripted("R16")
    cancel_s = CASES["R16"]["input"]["cancel_after_s"]

    async def main():
        task = asyncio.create_task(client(script).complete("hi"))
        await asyncio.sleep(cancel_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        at_s = asyncio.get_running_loop().time()
        await asyncio.sleep(300)
        return at_s

    assert run_virtual(main) == cancel_s
    assert len(script.requests) == 1


@pytest.mark.realtime
def test_t01_a_drip_of_bytes_does_not_hold_the_deadline_off():
    async def drip(server, writer):
        await send_head(writer)
        while True:
            await send(writer, b":")
            await asyncio.sleep(0.05)

    async def main():
        async with socket_server(drip) as server:
            limits = Limits(open_s=5, total_s=0.3)
            async with ChatClient(server.url, limits=limits) as caller:
                with pytest.raises(DeadlineError) as caught:
                    async with caller.stream("hi"):
                        pass
            async with asyncio.timeout(0.5):
                await server.left.wait()
        return caught.value

    error = asyncio.run(main())
    assert error.limit == "total"
    assert 0.3 <= error.after_s < 0.6


@pytest.mark.parametrize("limit", ["open", "total"])
def test_t01_at_the_times_of_the_case(limit):
    script = Script(streamed(*[b":", 0.4] * 99))
    limits = Limits(**{f"{limit}_s": 2})
    with pytest.raises(DeadlineError) as caught:
        run_virtual(client(script, limits=limits).complete, "hi")
    assert (caught.value.limit, caught.value.after_s) == (limit, 2)
    assert (script.open, script.left) == (0, 1)


SLOW_FIRST = [b": still thinking\n\n", 0.3] * 7


def test_t03_a_slow_first_token_has_its_own_longer_limit():
    limits = Limits(idle_s=1, open_s=5)

    async def main(*steps):
        script = Script(streamed(*steps))
        async with client(script, limits=limits).stream("hi") as stream:
            async for _ in stream:
                pass
        return stream.reply

    reply = run_virtual(main, *SLOW_FIRST, *ANSWER)
    assert reply.text == "A tide gauge"
    assert reply.timings.first_token_s == pytest.approx(2.1)

    # A role is no content: the longer limit still holds after it.
    role = chunk("", role="assistant")
    assert run_virtual(main, role, *SLOW_FIRST, *ANSWER).text == "A tide gauge"

    # After the first content the same silence is a stall, keep-alives or not.
    with pytest.raises(DeadlineError) as caught:
        run_virtual(main, chunk("A tide"), *SLOW_FIRST, *ANSWER)
    assert (caught.value.limit, caught.value.after_s) == ("idle", 1)
    assert caught.value.partial == "A tide"


def test_t05_every_default_is_finite_and_the_first_content_has_time():
    limits = ChatClient().limits
    every = (limits.connect_s, limits.open_s, limits.idle_s, limits.total_s)
    assert all(0 < limit < math.inf for limit in every)
    assert limits.open_s >= 20


@pytest.mark.realtime
@pytest.mark.parametrize("gate", [None, 2])  # 2: where the case has max_connections
@pytest.mark.parametrize("streaming", [False, True])
def test_t07_cancelled_calls_leave_no_slot_occupied(streaming, gate):
    async def slowly(server, writer):
        await asyncio.sleep(0.5)  # long against the 10 ms, on a busy machine too
        await send_head(writer)
        for part in (*ANSWER, b""):
            await send(writer, part)

    async def ask(caller):
        if not streaming:
            return (await caller.complete("hi")).text
        async with caller.stream("hi") as stream:
            return "".join([text async for text in stream])

    async def main():
        async with socket_server(slowly) as server:
            settings = {"gate": Gate(gate)} if gate else {}
            async with ChatClient(server.url, **settings) as caller:
                for _ in range(20):
                    calls = [asyncio.create_task(ask(caller)) for _ in range(4)]
                    await asyncio.sleep(0.01)
                    for call in calls:
                        call.cancel()
                    await asyncio.wait(calls)
                    assert all(call.cancelled() for call in calls)
                assert not gate or (caller.gate.in_use, caller.gate.waiting) == (0, 0)
                # httpcore's pool may keep dead entries (encode/httpcore#1093): no
                # limit counts them, and none has a socket, which the server sees.
                await server.open_at_most(0)
                async with asyncio.timeout(10):
                    return await ask(caller)

    assert asyncio.run(main()) == "A tide gauge"


@pytest.mark.realtime
@pytest.mark.parametrize("how", ["break", "aclose", "cancel", "raise"])
def test_t08_leaving_a_stream_closes_its_connection(how):
    async def deltas(server, writer):
        await send_head(writer)
        for n in range(1000):
            await send(writer, chunk(f" {n}"))
            await asyncio.sleep(0.01)

    async def read(caller, taken):
        async with caller.stream("hi") as stream:
            async for text in stream:
                taken.append(text)
                if len(taken) == 3:
                    if how == "break":
                        break
                    if how == "aclose":
                        await stream.aclose()
                    if how == "cancel":
                        asyncio.current_task().cancel()
                    if how == "raise":
                        raise KeyError("the reader's own")

    async def main():
        taken = []
        async with socket_server(deltas) as server:
            async with ChatClient(server.url) as caller:
                task = asyncio.create_task(read(caller, taken))
                await asyncio.wait({task})
                async with asyncio.timeout(0.5):
                    await server.left.wait()
        assert len(taken) == 3
        return task

    task = asyncio.run(main())
    assert task.cancelled() == (how == "cancel")
    if how in ("raise", "aclose"):
        raised = {"raise": KeyError, "aclose": Stopped}[how]
        assert isinstance(task.exception(), raised)


def test_t10_the_slot_is_held_as_long_as_the_stream_and_no_longer():
    gate = Gate(1)
    script = Script(streamed(*[part for each in ANSWER for part in (1, each)]))

    async def main():
        caller = client(script, gate=gate)

        dropped = caller.stream("hi")  # never entered, so nothing was opened
        del dropped
        assert gate.in_use == 0

        async with caller.stream("hi"):  # entered, not iterated
            assert gate.in_use == 1
        assert gate.in_use == 0

        closed = caller.stream("hi")
        await closed.__aenter__()
        await closed.aclose()
        assert gate.in_use == 0

        opening = asyncio.create_task(caller.stream("hi").__aenter__())
        await asyncio.sleep(0.5)
        assert gate.in_use == 1
        opening.cancel()
        await asyncio.wait({opening})
        assert gate.in_use == 0 and opening.cancelled()

        async with caller.stream("hi") as stream:
            second = asyncio.create_task(caller.complete("hi"))
            await asyncio.sleep(0)
            sent = len(script.requests)
            async for _ in stream:
                assert (gate.in_use, gate.waiting) == (1, 1)
                assert len(script.requests) == sent
                await asyncio.sleep(3)
        await second
        assert len(script.requests) == sent + 1
        assert (gate.in_use, script.open) == (0, 0)

    run_virtual(main)


def test_every_handed_case_of_these_areas_has_a_test():
    tested = {name.split("_")[1].upper() for name in globals() if name[:6] == "test_r"}
    tested |= {name.split("_")[1].upper() for name in globals() if name[:6] == "test_t"}
    assert tested == set(CASES)
