"""predict and guess: what is kept, and what is no guess."""

import math

import numpy as np
import pytest

from labkit import guess, predict
from labkit.errors import ConfigError


def test_a_guess_is_kept_and_shown():
    assert repr(predict("test.last", 30)) == "your guess for test.last: 30"
    assert guess("test.last") == 30


def test_the_latest_guess_counts():
    predict("test.again", 1)
    predict("test.again", 2.5)
    assert guess("test.again") == 2.5


def test_nothing_guessed_is_none():
    assert guess("test.never") is None


@pytest.mark.parametrize("value", [0, -3, 7100, 65.6, np.float64(2.0), np.int64(3)])
def test_any_finite_number_will_do(value):
    predict("test.number", value)
    assert guess("test.number") == value
    assert type(guess("test.number")) in (int, float)


@pytest.mark.parametrize(
    "value", ["30", "30 s", None, True, math.nan, math.inf, 10**400, [30], 1j]
)
def test_what_is_no_number_is_refused(value):
    predict("test.kept", 1)
    with pytest.raises(ConfigError, match="one finite number") as caught:
        predict("test.kept", value)
    assert caught.value.field == "value"
    assert guess("test.kept") == 1


@pytest.mark.parametrize("name", ["", "  ", None, 30])
def test_a_guess_has_a_name(name):
    with pytest.raises(ConfigError, match="give the guess a name") as caught:
        predict(name, 30)
    assert caught.value.field == "name"
