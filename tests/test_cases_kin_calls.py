"""Siblings of the handed cases about retries and timeouts: the same kinds of fault in
other shapes. docs/cases.md says which decision each belongs to.
"""

import asyncio
from random import Random

import pytest

from labkit.backoff import full
from labkit.clock import run_virtual
from labkit.errors import (
    CallError,
    DeadlineError,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    StatusError,
)
from labkit.gate import Gate
from labkit.harness import new_run, run
from labkit.http import httpx
from labkit.limits import Limits
from labkit.retry import Retry
from tests.wires import (
    ANSWER,
    HANG,
    RESET,
    SEED,
    UNREACHABLE,
    Script,
    chunk,
    client,
    complete,
    plain,
    read,
    refused,
    streamed,
)


def gaps(script: Script) -> list[float]:
    return [b - a for a, b in zip(script.at_s, script.at_s[1:], strict=False)]


def draws(count: int) -> list[float]:
    rng = Random(SEED)
    return [full(attempt, rng) for attempt in range(count)]


# R01, R03, R04, R06: Retry-After.

FAR = {
    "epoch": {"retry_after": "1784000042"},
    "epoch in ms": {"retry_after": "1784000042000"},
    "digits": {"retry_after": "9" * 400},
    "date": {"retry_after": "Fri, 01 Jan 2027 00:00:00 GMT"},
    "ms": {"retry_after_ms": "1784000042000"},
    "digits of ms": {"retry_after_ms": "9" * 400},
}


@pytest.mark.parametrize("call", [complete, read])
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("headers", FAR.values(), ids=FAR)
def test_a_wait_that_no_budget_holds_is_not_begun(headers, status, call):
    """An epoch in place of seconds is 56 years. To guess what was meant could mean to
    come back too early, so it is taken at its word."""
    script = Script(refused(status, **headers), plain())
    with pytest.raises(StatusError, match="not retried: the wait would be") as caught:
        call(script, retry=Retry(budget_s=1e6), limits=Limits(total_s=1e6))
    assert script.at_s == [0] and caught.value.attempts[0].floor_s > 1e6


@pytest.mark.parametrize(
    "headers",
    [
        {"retry_after": "0.0"},
        {"retry_after_ms": "0"},
        {"retry_after_ms": "-5", "retry_after": "0"},
        {"retry_after": "Thu, 01 Jan 2026 00:00:00 GMT"},  # now
        {"retry_after": "5, 10"},  # two of them, joined on the way
        {"retry_after": "30s"},
        {"x_ratelimit_reset": "20"},
    ],
    ids=str,
)
def test_what_is_no_hint_leaves_the_wait_to_the_backoff(headers):
    script = Script(refused(429, **headers), refused(429, **headers), plain())
    complete(script)
    assert gaps(script) == pytest.approx(draws(2)) and min(gaps(script)) > 0


def test_milliseconds_that_are_none_leave_the_seconds():
    script = Script(refused(429, retry_after_ms="nan", retry_after="20"), plain())
    complete(script)
    assert script.at_s == [0, 20]


# Statuses that other clients disagree about.


@pytest.mark.parametrize("status", [408, 409, 425, 500, 501, 502, 504])
def test_what_may_have_run_is_retried_under_its_key_only(status):
    script = Script(refused(status), plain())
    complete(script, retry=Retry(idempotent=True))
    first, second = script.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    script = Script(refused(status), plain())
    with pytest.raises(StatusError, match="may have run"):
        complete(script, retry=Retry(idempotent=False))
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    ("status", "said", "requests"),
    [(503, "false", 1), (429, "false", 1), (400, "true", 1), (503, "true", 2),
     (503, "no", 2), (503, "", 2)],
)  # fmt: skip
def test_x_should_retry_can_forbid_a_retry_and_not_buy_one(status, said, requests):
    script = Script(refused(status, x_should_retry=said), plain())
    try:
        complete(script)
    except StatusError:
        pass
    assert len(script.requests) == requests


# R08: one layer owns the retries.


@pytest.mark.parametrize("call", [complete, read])
@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_requests_are_the_attempts_and_no_more(call, attempts):
    script = Script(refused(429))
    with pytest.raises(StatusError):
        call(script, retry=Retry(attempts=attempts))
    assert len(script.requests) == attempts


@pytest.mark.parametrize("failure", [refused(429), UNREACHABLE], ids=["429", "nobody"])
def test_an_agent_on_top_adds_no_retries_of_its_own(failure):
    async def main():
        caller = client(script, retry=Retry(attempts=3))
        return await run(new_run("plan", "hi"), [], caller)

    script = Script(failure)
    state = run_virtual(main)
    assert state.status == "interrupted" and state.resumable
    assert "attempt 3 of 3" in state.interruption["reason"]
    assert len(script.requests) == 3


# R10: nothing is retried after text was given out.

OVERLOADED = b'event: error\ndata: {"error": {"type": "overloaded_error"}}\n\n'
TOOL = chunk(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f"}}])
THOUGHT = chunk(reasoning_content="hm")
BREAKS = {
    "reset": [httpx.ReadError("reset")],
    "stall": [None],
    "end": [],
    "overloaded": [OVERLOADED],
    "malformed": [b"data: {bad\n\n"],
}


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("begun", [chunk("Here is"), TOOL, THOUGHT],
                         ids=["text", "tool call", "reasoning"])  # fmt: skip
@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_a_stream_that_has_begun_is_never_begun_again(broken, begun, idempotent):
    script = Script(streamed(begun, *broken), streamed())
    with pytest.raises(CallError) as caught:
        read(script, retry=Retry(idempotent=idempotent))
    assert len(script.requests) == 1 and caught.value.opened
    assert caught.value.partial == ("Here is" if b"Here" in begun else "")


@pytest.mark.parametrize("broken", list(BREAKS.values())[:4], ids=list(BREAKS)[:4])
def test_before_anything_came_out_it_is_begun_again_and_nothing_is_doubled(broken):
    role = chunk("", role="assistant")
    script = Script(streamed(role, *broken), streamed(role, *ANSWER))
    pieces, reply = read(script, retry=Retry(idempotent=True))
    assert pieces == ["A tide", " gauge"] and reply.text == "A tide gauge"
    assert len(script.requests) == 2


def test_a_whole_answer_holds_nothing_of_the_tries_before():
    script = Script(streamed(chunk("Here is"), httpx.ReadError("")), streamed(*ANSWER))
    reply = complete(script, retry=Retry(idempotent=True))
    assert reply.text == "A tide gauge" and len(script.requests) == 2


# R12: one key for one call.


@pytest.mark.parametrize("call", [complete, read])
@pytest.mark.parametrize(
    "failure",
    [
        refused(503),
        HANG,
        RESET,
        UNREACHABLE,
        streamed(b": hb\n\n"),
        streamed(OVERLOADED),
    ],
    ids=["503", "hang", "reset", "unreachable", "empty", "overloaded"],
)
def test_every_attempt_sends_the_same_key_and_the_same_bytes(failure, call):
    script = Script(failure, failure, plain() if call is complete else streamed())
    call(script, retry=Retry(idempotent=True))
    sent = {(r.headers["idempotency-key"], r.content) for r in script.requests}
    assert len(script.requests) == 3 and len(sent) == 1


# T01, T03: what holds a limit off, and what does not.

DRIPS = {
    "comments": b": still here\n\n",
    "half a comment": b":",
    "blank lines": b"\n",
    "blank data": b"data:\n\n",
    "ids": b"id: 1\n\n",
    "named keep-alives": b"event: ping\ndata: 1\n\n",
    "keep-alives as data": b"data: : ping\n\n",
    "objects": b"data: {}\n\n",
    "roles": chunk("", role="assistant"),
    "usage": b'data: {"choices": [], "usage": {"prompt_tokens": 1}}\n\n',
    "another choice": chunk("B").replace(b'"index": 0', b'"index": 1'),
    "an event without end": b"data: x\n",
}


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS)
def test_a_drip_of_nothing_holds_no_limit_off(drip):
    limits = Limits(open_s=2, idle_s=1)
    with pytest.raises(DeadlineError) as caught:
        complete(Script(streamed(*[drip, 0.4] * 99)), limits=limits,
                 retry=Retry(attempts=1))  # fmt: skip
    assert (caught.value.limit, caught.value.after_s) == ("open", 2)
    with pytest.raises(DeadlineError) as caught:
        read(Script(streamed(chunk("A tide"), *[drip, 0.4] * 99)), limits=limits)
    assert (caught.value.limit, caught.value.after_s) == ("idle", 1)
    assert caught.value.partial == "A tide"


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS)
def test_after_the_finish_a_drip_costs_a_second_at_most(drip):
    if drip == b"data: x\n":
        drip = b": x\n"  # its event would be malformed at the end
    script = Script(streamed(*ANSWER[:3], *[drip, 0.4] * 99))
    reply = complete(script)
    assert reply.text == "A tide gauge" and reply.timings.complete_s == 1


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "refusal"])
def test_a_model_that_thinks_aloud_is_not_silent(name):
    thoughts = [chunk(**{name: "hm"}), 0.9] * 10
    script = Script(streamed(*thoughts, *ANSWER))
    limits = Limits(open_s=2, idle_s=1)
    pieces, reply = read(script, limits=limits)
    assert pieces == ["A tide", " gauge"]
    assert reply.timings.first_token_s == pytest.approx(9)  # a thought is no answer
    with pytest.raises(DeadlineError, match="idle"):  # but then its silence counts
        read(Script(streamed(*thoughts, 1.1, *ANSWER)), limits=limits)
    with pytest.raises(DeadlineError, match="total"):
        read(Script(streamed(*thoughts * 99)), limits=Limits(total_s=20))


# T07, T10: the slot is free again, whatever happened.

FAILURES = {
    "400": (refused(400), StatusError),
    "hang": (HANG, DeadlineError),
    "reset": (RESET, CallError),
    "unreachable": (UNREACHABLE, CallError),
    "malformed": (streamed(b"data: {bad\n\n"), MalformedStream),
    "provider": (streamed(chunk("a"), OVERLOADED), ProviderError),
    "half": (streamed(chunk("a")), IncompleteStream),
    "stall": (streamed(chunk("a"), None), DeadlineError),
}


@pytest.mark.parametrize("call", [complete, read])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_call_gives_its_slot_and_its_connection_back(name, call):
    answer, error = FAILURES[name]
    gate, script = Gate(1), Script(answer)
    with pytest.raises(error):
        call(script, gate=gate, retry=Retry(attempts=2))
    assert (gate.in_use, gate.waiting, script.open) == (0, 0, 0)


@pytest.mark.parametrize("answer", [HANG, streamed(None)], ids=["hang", "headers only"])
def test_a_call_cancelled_in_the_queue_or_at_the_door_frees_its_place(answer):
    async def main():
        gate, script = Gate(1), Script(answer)
        caller = client(script, gate=gate)
        first, queued = (asyncio.create_task(caller.complete("hi")) for _ in "12")
        await asyncio.sleep(1)
        assert (gate.in_use, gate.waiting, len(script.requests)) == (1, 1, 1)
        queued.cancel()
        first.cancel()
        await asyncio.wait([first, queued])
        assert (gate.in_use, gate.waiting, script.open) == (0, 0, 0)
        assert len(script.requests) == 1

    run_virtual(main)
