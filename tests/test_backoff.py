"""Triage, the strategies, and Retry-After in every form."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.backoff import (
    FOREVER_S,
    RULES,
    STRATEGIES,
    classify,
    exponential,
    full,
    meaning,
    retry_after,
    wait,
)

NOW = 1_784_000_000.0  # a day in July 2026
SECONDS = st.floats(min_value=0, max_value=1e6)


@pytest.mark.parametrize(
    ("verdict", "statuses"),
    {
        "ok": (200, 201, 204),
        "retry-after": (429,),
        "retry": (408, 409, 425, 500, 501, 502, 503, 504, 529, 599),
        "fatal": (301, 307, 400, 401, 402, 403, 404, 405, 413, 418, 422),
    }.items(),
)
def test_verdicts(verdict, statuses):
    assert {classify(status) for status in statuses} == {verdict}


def test_out_of_credit_says_what_to_do():
    assert "buy credit" in meaning(402)
    assert classify(402) == "fatal"


@given(st.integers())
def test_every_status_has_a_verdict_and_a_meaning(status):
    assert classify(status) in ("ok", "retry", "retry-after", "fatal")
    assert meaning(status)


@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.one_of(st.integers(0, 20), st.just(10_000)),
    st.integers(),
    SECONDS,
    SECONDS,
    st.none() | SECONDS,
)
def test_a_wait_is_never_below_zero_or_above_the_cap(
    name, attempt, seed, base_s, cap_s, previous_s
):
    drawn = STRATEGIES[name](attempt, Random(seed), base_s, cap_s, previous_s)
    assert 0 <= drawn <= cap_s


@given(st.sampled_from(sorted(STRATEGIES)), st.integers(0, 99), st.integers())
def test_a_strategy_is_a_pure_function_of_its_rng(name, attempt, seed):
    first, second = (STRATEGIES[name](attempt, Random(seed)) for _ in range(2))
    assert first == second


def test_exponential_doubles_up_to_the_cap():
    waits = [exponential(attempt, None) for attempt in range(9)]
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20])


def test_equal_jitter_keeps_the_upper_half():
    rng = Random(1)
    waits = [STRATEGIES["equal"](2, rng) for _ in range(500)]
    assert 0.4 <= min(waits) < 0.41 and 0.79 < max(waits) <= 0.8


def test_decorrelated_grows_from_the_draw_before():
    rng = Random(1)
    waits = [STRATEGIES["decorrelated"](0, rng, previous_s=2.0) for _ in range(500)]
    assert 0.2 <= min(waits) < 0.3 and 5.9 < max(waits) <= 6.0


def test_full_jitter_of_attempt_ten_thousand():
    assert 0 <= full(10_000, Random(1)) <= 20


@pytest.mark.parametrize("date", ["Wed, 15 Jul 2026 {}", "Wednesday, 15-Jul-26 {}"])
def test_both_dates_with_a_zone(date):
    at = 1_784_073_600  # 2026-07-15T00:00:00Z
    assert retry_after({"retry-after": date.format("00:00:30 GMT")}, at) == 30


def test_the_date_without_a_zone_is_utc_as_well():
    assert retry_after({"retry-after": "Wed Jul 15 00:00:30 2026"}, 1_784_073_600) == 30


@pytest.mark.parametrize(
    "value",
    """-1 +1 nan inf -inf Infinity 1e999 1e3 0x10 1_000 0 0.0 00 abc ٣ 1, 1;2 .5 5.
    2026-07-15T00:00:30Z""".split()
    + ["", " ", "1 2", "Wed, 15 Jul 2026", "Wed, 99 Jul 2126 00:00:00 GMT"]
    + ["Thu, 01 Jan 1970 00:00:00 GMT"],
)
def test_no_hint(value):
    assert retry_after({"retry-after": value}, NOW) is None
    assert retry_after({"retry-after-ms": value}, NOW) is None


def test_no_header_is_no_hint():
    assert retry_after({}, NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "20"}, 20),
        ({"RETRY-AFTER": " 7 "}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "4294967"}, 4_294_967),  # 49 days; the client gives up
        ({"retry-after": "9" * 400}, FOREVER_S),
        ({"retry-after-ms": "50", "retry-after": "20"}, 0.05),
        ({"retry-after-ms": "junk", "retry-after": "20"}, 20),
        ({"retry-after-ms": "0", "retry-after": "20"}, 20),
    ],
)
def test_hints(headers, seconds):
    assert retry_after(headers, NOW) == seconds


DAYS = st.sampled_from(["Mon, ", "Sunday, ", "Sun "])


@given(st.text() | st.builds(str.__add__, DAYS, st.text("0123456789: -JanGMT+")))
def test_no_text_whatever_breaks_the_parser(value):
    for name in ("retry-after", "retry-after-ms"):
        seconds = retry_after({name: value}, NOW)
        assert seconds is None or 0 < seconds < math.inf


@given(st.none() | SECONDS, SECONDS)
def test_floor_rules(floor_s, draw_s):
    assert wait(floor_s, draw_s, "max") == max(floor_s or 0, draw_s)
    assert wait(floor_s, draw_s, "plus") == (floor_s or 0) + draw_s
    assert wait(floor_s, draw_s, "ignore") == draw_s
    assert wait(floor_s, draw_s) == wait(floor_s, draw_s, "max")
    assert set(RULES) == {"max", "plus", "ignore"}
