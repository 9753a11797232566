"""Which fault a request asks for: one frozen `Plan`, parsed strictly.

A plan comes from the query (`?delay=60&cut=5&how=close`), from the first part of the
path (`/hang/v1`, `/401/v1`, `/cut=5,how=close/v1`), so that an SDK changes only its
base URL, or from the admin queue as JSON. All three go through `parse`.
"""

import math
import re
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from urllib.parse import quote

HOW = ("close", "truncate", "reset")
FORMS = ("seconds", "date", "ms", "raw")
LINES = ("lf", "crlf", "cr")
ANSWERS = ("tide", "accent", "tool")
LEAVE = ("stop", "finish")


class BadFault(ValueError):
    """A fault that cannot be parsed: names the field and says what is allowed."""

    def __init__(self, field: str, said: str):
        super().__init__(f"{field}: {said}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes wrong with one request. The default plan is: nothing.

    Counts are in events that carry content, times in milliseconds.
    """

    hang: bool = False  # accept, then say nothing at all: no headers, no end
    status: int | None = None  # answer with this status instead of 200
    retry_after: str | None = None  # the header's value, true or made up
    retry_form: str = "seconds"  # seconds, date (from now), ms, raw (as given)
    delay: float | None = None  # before each token; None: the provider's own
    first: float | None = None  # before the first token; None: as `delay`
    max_tokens: int | None = None  # truncate here and say so ("length")
    stall: int | None = None  # after this many tokens silence, for ever
    cut: int | None = None  # after exactly this many events, end the reply ...
    how: str = "reset"  # ... by an orderly close, a truncated body, or a reset
    error: int | None = None  # after this many events, an error event, then the end
    answer: str = "tide"  # which answer: plain, accented, or a tool call
    length: int | None = None  # the answer's tokens, said over and over; None: once
    role: bool = False  # a first event with a role and no content, as many send
    lines: str = "lf"  # line ends: lf, crlf or cr
    comments: bool = False  # a comment and a retry field before each event
    split: bool = False  # each JSON text over several data lines
    pack: int = 1  # this many events in one write
    slice: int | None = None  # writes of this many bytes, cutting anywhere
    leave: str | None = None  # client gone: stop or finish; None: the provider's own

    @property
    def silent_after(self) -> int | None:
        """After this many tokens there is silence for ever. A hang: from the start."""
        return 0 if self.hang else self.stall

    def falls_silent(self, tokens: int) -> bool:
        """Does an answer of so many tokens come to that silence?

        A stall after the last token does: the end is never said.
        """
        return self.silent_after is not None and self.silent_after <= tokens

    def timed(self, delay_ms: float, first_ms: float | None) -> "Plan":
        """The plan with the provider's own times where it names none."""
        if self.delay is None:
            usual = delay_ms if first_ms is None else first_ms
        else:
            delay_ms = usual = self.delay
        first = usual if self.first is None else self.first
        return replace(self, delay=delay_ms, first=first)

    def __str__(self) -> str:
        """The plan as a query, without what is as usual: `cut=5&how=close`."""
        return "&".join(
            f"{f.name}={_text(getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        )


def _text(value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return plain(value).removesuffix(".0")
    return quote(str(value), safe=" ,:")


def plain(value: float) -> str:
    """A float without an exponent, as a fault's number is written.

    >>> plain(60.0), plain(1e-07)
    ('60.0', '0.0000001')
    """
    return f"{Decimal(repr(value)):f}"


def decimal(text: str) -> float:
    """The number in a text; NaN for all but plain decimals: no `1e3`, no `1_0`."""
    return float(text) if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) else math.nan


def _flag(field, text):
    if text.lower() in ("", "1", "true"):
        return True
    if text.lower() in ("0", "false"):
        return False
    raise BadFault(field, f"{text!r} is no flag; use 1 or 0")


def _count(lowest, highest=1_000_000):
    def parse_count(field, text):
        if text.isascii() and text.isdigit() and len(text) <= 9:
            if lowest <= int(text) <= highest:
                return int(text)
        raise BadFault(
            field, f"{text!r} is no whole number from {lowest} to {highest}"
        )

    return parse_count


def _milliseconds(field, text):
    value = decimal(text)
    if not 0 <= value <= 86_400_000:
        raise BadFault(field, f"{text!r} is no time from 0 to 86400000 milliseconds")
    return value


def _one_of(*allowed):
    def parse_choice(field, text):
        if text in allowed:
            return text
        raise BadFault(field, f"{text!r} is none of {', '.join(allowed)}")

    return parse_choice


def _header(field, text):
    if len(text) <= 200 and text.isprintable() and text.isascii():
        if text == text.strip():  # HTTP allows no space around a header's value
            return text
    raise BadFault(
        field, "must be printable ASCII, at most 200 characters, no space around it"
    )


PARSERS = {
    "hang": _flag,
    "status": _count(200, 599),
    "retry_after": _header,
    "retry_form": _one_of(*FORMS),
    "delay": _milliseconds,
    "first": _milliseconds,
    "max_tokens": _count(1),
    "stall": _count(0),
    "cut": _count(0),
    "how": _one_of(*HOW),
    "error": _count(0),
    "answer": _one_of(*ANSWERS),
    "length": _count(1),
    "role": _flag,
    "lines": _one_of(*LINES),
    "comments": _flag,
    "split": _flag,
    "pack": _count(1, 1000),
    "slice": _count(1),
    "leave": _one_of(*LEAVE),
}


def parse(pairs, base: Plan = Plan()) -> Plan:
    """Lay `(field, text)` pairs over `base`. Raises `BadFault` on any doubt.

    >>> str(parse([("cut", "5"), ("how", "close")]))
    'cut=5&how=close'
    >>> parse([("cut", "five")])
    Traceback (most recent call last):
    ...
    mock.plan.BadFault: cut: 'five' is no whole number from 0 to 1000000
    """
    found = {}
    for field, text in pairs:
        if field not in PARSERS:
            raise BadFault(field, f"no such fault; there are: {', '.join(PARSERS)}")
        if field in found:
            raise BadFault(field, "given twice")
        found[field] = PARSERS[field](field, str(text))
    plan = replace(base, **found)
    if plan.retry_after is not None and plan.retry_form != "raw":
        _check_seconds(plan.retry_after)
    return plan


def _check_seconds(text):
    """A date can be made of it, and it is what `retry_form` says it is."""
    if not abs(decimal(text)) <= 1e9:
        raise BadFault(
            "retry_after",
            f"{text!r} is no number of seconds; use retry_form=raw to send it",
        )


def is_path_fault(segment: str) -> bool:
    """Is this first part of a path a fault (`401`, `hang`, `cut=5,how=close`)?"""
    return segment.isdigit() or segment == "hang" or "=" in segment


def path_pairs(segment: str) -> list[tuple[str, str]]:
    """The `(field, text)` pairs of a path's first part.

    >>> path_pairs("401"), path_pairs("hang"), path_pairs("cut=5,how=close")
    ([('status', '401')], [('hang', '1')], [('cut', '5'), ('how', 'close')])
    """
    if segment.isdigit():
        return [("status", segment)]
    if segment == "hang":
        return [("hang", "1")]
    return [tuple(part.partition("=")[::2]) for part in segment.split(",")]
