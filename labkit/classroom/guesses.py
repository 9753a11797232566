"""Predictions: say a number before you measure it, and see it drawn beside the result.

    >>> predict("herd.last_s", 30)
    your guess for herd.last_s: 30
    >>> guess("herd.last_s")
    30
    >>> measured("herd.last_s", 205.5362)
    you said 30 s; it was 205.5 s
    >>> guess("herd.first_s") is None
    True

Being wrong is the point: what surprises is remembered. Guesses live as long as the
kernel; a figure draws one with `labkit.plots.style.mark_guess`. Nothing is written
down unless somebody asks for it: `labkit.classroom.guessfiles`.
"""

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real

from labkit.errors import ConfigError
from labkit.shown import with_unit


@dataclass(frozen=True)
class Guess:
    """One prediction, and the number that was measured, once there is one. The unit
    is the one that the question names."""

    name: str
    value: float | None  # None: measured, and nobody has guessed
    was: float | None = None

    def __repr__(self) -> str:
        if self.was is None:
            return f"your guess for {self.name}: {self.value:,.10g}"
        was = f"it was {with_unit(self.name, self.was)}"
        return was if self.value is None else f"you said {self._said}; {was}"

    @property
    def _said(self) -> str:
        return with_unit(self.name, self.value)


_guesses: dict[str, Guess] = {}


def predict(name: str, value: float) -> Guess:
    """Keep a guess under `name` ("table.what"); the latest one counts.

    Raises ConfigError when `value` is no finite number.
    """
    check_name(name)
    kept = number(name, value, "a guess")
    _guesses[name] = replace(_found(name), value=kept)
    return Guess(name, kept)


def measured(name: str, value: float) -> Guess:
    """Keep what came out beside what was guessed; shows both.

    Raises ConfigError when `value` is no finite number.
    """
    check_name(name)
    _guesses[name] = replace(_found(name), was=number(name, value, "a result"))
    return _guesses[name]


def guess(name: str) -> float | None:
    """The value guessed under `name`; None where nothing was guessed."""
    return _found(name).value


def all_guesses() -> list[Guess]:
    """Whatever was guessed in this kernel, in the order of the first time."""
    return [each for each in _guesses.values() if each.value is not None]


def _found(name: str) -> Guess:
    return _guesses.get(name, Guess(name, None))


def check_name(name: object) -> None:
    """Raises ConfigError unless this can be the name of a guess."""
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f'name is {name!r}: give the guess a name, as in predict("herd.last", 30)',
            field="name",
        )


def number(name: str, value: object, what: str) -> float:
    """`value` as an int or a float of Python. Raises ConfigError if it is neither."""
    if not is_finite(value):
        raise ConfigError(
            f"value is {value!r}: {what} is one finite number, without a unit,"
            f" as in predict({name!r}, 30)",
            field="value",
        )
    return int(value) if isinstance(value, Integral) else float(value)


def is_finite(value: object) -> bool:
    """A real number (a bool is none) that a float can hold."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False
