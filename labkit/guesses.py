"""Predictions: say a number before you measure it, and see it drawn beside the result.

    >>> predict("herd.last", 30)
    your guess for herd.last: 30
    >>> guess("herd.last")
    30
    >>> guess("herd.first") is None
    True

Being wrong is the point: what surprises is remembered. Guesses live as long as the
kernel; a figure draws one with `labkit.plots.style.mark_guess`.
"""

import math
from dataclasses import dataclass
from numbers import Integral, Real

from labkit.errors import ConfigError

_guesses: dict[str, "Guess"] = {}


@dataclass(frozen=True)
class Guess:
    """One prediction. The unit is the one that the question names."""

    name: str
    value: float

    def __repr__(self) -> str:
        return f"your guess for {self.name}: {self.value:,.10g}"


def predict(name: str, value: float) -> Guess:
    """Keep a guess under `name` ("table.what"); the latest one counts.

    Raises ConfigError when `value` is no finite number.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f'name is {name!r}: give the guess a name, as in predict("herd.last", 30)',
            field="name",
        )
    if not is_finite(value):
        raise ConfigError(
            f"value is {value!r}: a guess is one finite number, without a unit,"
            f" as in predict({name!r}, 30)",
            field="value",
        )
    kept = int(value) if isinstance(value, Integral) else float(value)
    _guesses[name] = Guess(name, kept)
    return _guesses[name]


def is_finite(value: object) -> bool:
    """A real number (a bool is none) that a float can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def guess(name: str) -> float | None:
    """The value guessed under `name`; None where nothing was guessed."""
    found = _guesses.get(name)
    return found.value if found else None
