"""When the client asks again, and what it tells of it."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.backoff import full
from labkit.clock import run_virtual
from labkit.errors import (
    CallError,
    ConnectError,
    OutOfCredit,
    ProviderError,
    StatusError,
)
from labkit.gate import Gate
from labkit.http import httpx
from labkit.limits import Limits
from labkit.reply import Attempt
from labkit.retry import Retry
from tests.wires import (
    DONE,
    HANG,
    RESET,
    SEED,
    SSE,
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

MAY_HAVE_RUN = {
    "408": refused(408),
    "409": refused(409),
    "500": refused(500),
    "502": refused(502),
    "504": refused(504),
    "hang": HANG,
    "hang in mid headers": {"status": 200, "headers": SSE, "steps": [None]},
    "reset": RESET,
    "empty": streamed(DONE),
    "role only": streamed(chunk("", role="assistant")),
    "broken": streamed(chunk("", role="assistant"), httpx.ReadError("")),
    "server_error": streamed(b'data: {"error": {"type": "server_error"}}\n\n'),
    "code 500": streamed(b'data: {"error": {"code": 500}}\n\n'),
}
NEVER_RAN = {
    "429": refused(429),
    "503": refused(503),
    "529": refused(529),
    "unreachable": UNREACHABLE,
    "connect timeout": {"before": [httpx.ConnectTimeout("")]},
    "overloaded": streamed(b'event: error\ndata: {"type": "overloaded_error"}\n\n'),
    "code 429": streamed(b'data: {"error": {"code": "429"}}\n\n'),
}
FATAL = {
    "400": refused(400),
    "401": refused(401),
    "402": refused(402),
    "307": refused(307, location="http://127.0.0.1/"),
    "503, but x-should-retry": refused(503, x_should_retry="false"),
    "401, though x-should-retry": refused(401, x_should_retry="true"),
    "no JSON": streamed(b"data: <html>\n\n"),
    "code 400": streamed(b'data: {"error": {"code": 400}}\n\n'),
    "unknown error": streamed(b'data: {"error": {"message": "no"}}\n\n'),
}
# Words of refusal, but not at the door: the answer had begun.
BUSY = b'data: {"error": {"type": "overloaded_error"}}\n\n'
CALL = {"index": 0, "id": "c", "function": {"name": "f"}}
BEGUN = {
    "overloaded after text": streamed(chunk("A tide"), BUSY),
    "overloaded after a tool call": streamed(chunk(tool_calls=[CALL]), BUSY),
}
KINDS = {
    **dict.fromkeys(MAY_HAVE_RUN, "may have run"),
    **dict.fromkeys(NEVER_RAN, "never ran"),
    **dict.fromkeys(FATAL, "fatal"),
}


@pytest.mark.parametrize("call", [complete, read])
@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_what_is_asked_again(name, idempotent, call):
    failure = {**MAY_HAVE_RUN, **NEVER_RAN, **FATAL}[name]
    again = KINDS[name] == "never ran" or (KINDS[name] == "may have run" and idempotent)
    script = Script(failure, failure, streamed())
    retry = Retry(idempotent=idempotent)
    if again:
        call(script, retry=retry)
        assert len(script.requests) == 3
    else:
        with pytest.raises(CallError) as caught:
            call(script, retry=retry)
        assert len(script.requests) == len(caught.value.attempts) == 1
        why = "not retried: the request may have run"
        assert (why in str(caught.value)) == (KINDS[name] == "may have run")
    assert script.open == 0


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("name", BEGUN)
def test_a_refusal_in_mid_answer_may_have_run(name, idempotent):
    """complete() gives no text out before the end, so it may ask again, with a key."""
    script = Script(BEGUN[name], plain())
    try:
        complete(script, retry=Retry(idempotent=idempotent))
    except ProviderError as error:
        assert error.opened and "may have run" in str(error)
    assert len(script.requests) == 1 + idempotent


@pytest.mark.parametrize("name", MAY_HAVE_RUN)
def test_what_may_have_run_is_not_sent_again_without_a_key(name):
    script = Script(MAY_HAVE_RUN[name], plain())
    with pytest.raises(CallError, match="carried no idempotency key"):
        complete(script, retry=Retry(idempotent=True), body={"key": ""})
    assert len(script.requests) == 1
    script = Script(NEVER_RAN["429"], plain())
    complete(script, body={"key": ""})
    assert len(script.requests) == 2


def test_the_story_of_the_attempts():
    script = Script(
        refused(429, retry_after="1"),
        UNREACHABLE,
        refused(503, retry_after="7"),
        plain(),
    )
    reply = complete(script)
    rng = Random(SEED)
    draws = [full(attempt, rng) for attempt in range(3)]
    second = 1 + max(0, draws[1])
    assert reply.attempts == (
        Attempt(0, 0, 0, 429, "StatusError", "retry-after", 1, draws[0], 1),
        Attempt(1, 1, 1, None, "ConnectError", "retry", None, draws[1], draws[1]),
        Attempt(2, second, second, 503, "StatusError", "retry", 7, draws[2], 7),
        Attempt(3, second + 7, second + 7, 200),
    )
    assert reply.timings.complete_s == second + 7


@pytest.mark.parametrize(
    ("floor", "slept"), [("max", max), ("plus", lambda *s: sum(s)), ("ignore", min)]
)
def test_the_floor_rules(floor, slept):
    script = Script(refused(429, retry_after="1"), plain())
    reply = complete(script, retry=Retry(floor=floor))
    (failed, _) = reply.attempts
    assert failed.slept_s == slept(1.0, failed.draw_s)
    assert script.at_s[1] == failed.slept_s


def test_the_waits_follow_the_strategy():
    script = Script(refused(503))
    with pytest.raises(StatusError):
        complete(script, retry=Retry(attempts=6, strategy="exponential", cap_s=1))
    assert script.at_s == pytest.approx([0, 0.2, 0.6, 1.4, 2.4, 3.4])


def test_the_budget_bounds_the_sleep():
    script = Script(refused(503))
    retry = Retry(attempts=99, strategy="exponential", budget_s=1.5)
    with pytest.raises(StatusError, match="0.1 s are left of budget_s") as caught:
        complete(script, retry=retry)
    assert script.at_s == pytest.approx([0, 0.2, 0.6, 1.4])
    assert sum(attempt.slept_s for attempt in caught.value.attempts) <= 1.5


def test_a_budget_is_not_a_float_sum_short():
    """0.1 + 0.2 + 0.4 is a little more than 0.7."""
    script = Script(refused(503))
    retry = Retry(9, budget_s=0.7, strategy="exponential", base_s=0.1)
    with pytest.raises(StatusError):
        complete(script, retry=retry)
    assert len(script.requests) == 4


@pytest.mark.parametrize(("total_s", "requests"), [(10, 1), (10.5, 2)])
def test_a_wait_equal_to_the_total_is_not_begun(total_s, requests):
    """At its end there would be no time left for the request."""
    script = Script(refused(429, retry_after="10"))
    with pytest.raises(StatusError, match="left of total_s"):
        complete(script, limits=Limits(total_s=total_s), retry=Retry(cap_s=0))
    assert len(script.requests) == requests


def test_the_same_seed_gives_the_same_story():
    def story(seed):
        with pytest.raises(StatusError) as caught:
            complete(Script(refused(503)), rng=Random(seed))
        return caught.value.attempts

    assert story(1) == story(1) != story(2)


def test_the_message_says_what_to_do():
    body = b'{"error": {"message": "You have  no\\ncredit."}}'
    with pytest.raises(OutOfCredit) as caught:
        complete(Script(refused(402, body)))
    assert str(caught.value) == (
        "HTTP 402: out of credit: buy credit (the provider says: You have no credit.)"
    )
    assert (caught.value.status, caught.value.verdict) == (402, "fatal")
    assert caught.value.detail == "You have no credit."

    with pytest.raises(ConnectError, match="provider.test.*check that the server runs"):
        complete(Script(UNREACHABLE))


@pytest.mark.parametrize("rest", [[None], [httpx.ReadError("")], [b"x" * 99_999] * 9])
def test_a_refusal_is_known_by_its_status(rest):
    """Whatever its body does: stall, break, or flood."""
    answer = refused(400)
    answer["steps"] = [b"no", *rest]
    script = Script(answer)
    with pytest.raises(StatusError) as caught:
        complete(script)
    assert caught.value.attempts[0].ended_s <= 1
    assert len(caught.value.detail) <= 200
    assert script.open == 0


def test_an_error_has_a_limit():
    flood = iter([b"x" * 1024] * 1000)
    script = Script({"status": 400, "headers": {}, "steps": flood})
    with pytest.raises(StatusError):
        complete(script)
    assert len(list(flood)) > 900
    assert script.open == 0


FAILURES = st.sampled_from([*MAY_HAVE_RUN.values(), *NEVER_RAN.values()])
HINTED = st.builds(
    lambda status, after: refused(status, retry_after=str(after)),
    st.sampled_from([429, 503]),
    st.integers(0, 50),
)


@given(
    st.lists(FAILURES | HINTED | st.just(plain()), min_size=1, max_size=9),
    st.integers(1, 9),
    st.sampled_from(["none", "exponential", "full", "equal", "decorrelated"]),
    st.integers(0, 90),
    st.integers(1, 120),
    st.booleans(),
    st.integers(0, 99),
)
def test_whatever_happens_the_call_stays_within_its_bounds(
    answers, attempts, strategy, budget_s, total_s, streaming, seed
):
    script, gate = Script(*answers), Gate(1)
    retry = Retry(attempts, budget_s, strategy, idempotent=True)
    settings = {"limits": Limits(total_s=total_s), "rng": Random(seed), "gate": gate}

    async def main():
        caller = client(script, retry=retry, **settings)
        try:
            if not streaming:
                return (await caller.complete("hi")).attempts
            async with caller.stream("hi") as stream:
                async for _ in stream:
                    pass
            return stream.reply.attempts
        except CallError as error:
            return error.attempts
        finally:
            assert asyncio.get_running_loop().time() <= total_s
            assert (gate.in_use, gate.waiting, script.open) == (0, 0, 0)

    story = run_virtual(main)
    assert 1 <= len(story) == len(script.requests) <= attempts
    assert sum(attempt.slept_s for attempt in story) <= budget_s
    for failed, following in zip(story, story[1:], strict=False):
        assert following.started_s == failed.ended_s + failed.slept_s
        assert failed.slept_s >= (failed.floor_s or 0)
