"""Money: exact, whoever adds it up, and unknown is not free."""

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import ConfigError
from labkit.pricing import (
    CHAPTER,
    PRICES,
    Price,
    add,
    cached_tokens,
    cost,
    money,
    price_of,
)
from labkit.usage import Usage
from mock.scripted import SCENARIOS

counts = st.integers(0, 10**9)
prices = st.decimals(0, 1000, places=4)


def used(prompt, completion, cached=None) -> Usage:
    raw = {"prompt_tokens": prompt, "completion_tokens": completion}
    if cached is not None:
        raw["prompt_tokens_details"] = {"cached_tokens": cached}
    return Usage(prompt, completion, prompt + completion, raw)


def test_the_chapter_s_first_turn():
    assert cost(used(204, 23), CHAPTER) == Decimal("0.000684")
    assert str(cost(used(204, 23), CHAPTER)) == "0.000684"


@given(counts, counts, prices, prices)
def test_a_cost_is_the_exact_fraction(prompt, completion, input_price, output_price):
    paid = cost(used(prompt, completion), Price(input_price, output_price))
    exact = prompt * Fraction(input_price) + completion * Fraction(output_price)
    assert Fraction(paid) == exact / 10**6


def test_ten_thousand_turns_sum_exactly():
    one = cost(used(3, 0), Price("0.15", "0"))
    total = Decimal(0)
    for _ in range(10_000):
        total = add(total, one)
    assert total == Decimal("0.0045")
    assert str(total) == "0.0045000" or total == Decimal("0.0045")
    drifted = 0.0  # one by one: from Python 3.12 on, sum() mends what it can
    for _ in range(10_000):
        drifted += float(one)
    assert drifted != 0.0045


def test_a_caller_s_own_decimal_context_changes_nothing():
    with decimal.localcontext(prec=3, rounding=decimal.ROUND_DOWN):
        assert cost(used(123_457, 0), CHAPTER) == Decimal("0.246914")
        assert add(Decimal("1"), Decimal("0.000001")) == Decimal("1.000001")


def test_what_cannot_be_held_exactly_raises_and_is_not_rounded():
    with pytest.raises(decimal.Inexact):
        add(Decimal("1e40"), Decimal("1e-40"))


def test_cached_input_has_its_own_price():
    price = Price("2", "12", "0.2")
    assert cost(used(1000, 0, cached=900), price) == Decimal("0.000380")
    assert cost(used(1000, 0, cached=900), CHAPTER) == Decimal("0.002")
    assert cost(used(1000, 0), price) == Decimal("0.002")
    free = Price("2", "12", 0)
    assert cost(used(1000, 0, cached=1000), free) == 0


@pytest.mark.parametrize("cached", [-1, 1001, 1.5, "900", None, True])
def test_a_cached_count_that_cannot_be_is_no_discount(cached):
    assert cached_tokens(used(1000, 0, cached)) == 0


@pytest.mark.parametrize("details", [None, [], "x"])
def test_details_of_a_wrong_type_are_no_discount(details):
    usage = Usage(10, 0, 10, {"prompt_tokens_details": details})
    assert cached_tokens(usage) == 0


@pytest.mark.parametrize("bad", ["two", None, True, -1, "nan", "inf", float("nan"), ""])
def test_no_amount_of_dollars(bad):
    with pytest.raises(ConfigError) as error:
        Price(bad, 1)
    assert error.value.field == "input_per_million"
    with pytest.raises(ConfigError):
        money(bad)


def test_a_float_is_read_as_it_is_printed():
    assert money(0.1) == Decimal("0.1")


def test_every_scenario_is_priced_and_nothing_else():
    assert set(PRICES) == set(SCENARIOS)
    assert {price_of(name) for name in SCENARIOS} == {CHAPTER}
    assert price_of("some-model") is None
    assert price_of("plan", {}) is None
    assert price_of("mine", {"mine": CHAPTER}) is CHAPTER
