"""What a section of the verification reports: counted attempts, and what went wrong.

A section is a module of tests/verify with

    NAME = "kills"                                  # as it stands in the report
    def run(budget_s: float, seed: int) -> Section

and a line in SECTIONS in tests/verify/__main__.py. `run` stops by itself once about
`budget_s` seconds are used (1 or 2 in a quick run: then it tries less of everything).
All chance comes from `seed`, so that a failure can be repeated.
"""

import random
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SHOWN = 5  # failures that a report spells out, for each tally


@dataclass
class Tally:
    """One line of the report: attempts of one kind.

    what: of which kind, in a few words: "kills between two effects".
    leaks: tasks, descriptors, slots, processes left over; None: nothing was counted.
    failures: how each failed attempt can be repeated, and what was raised.
    """

    what: str
    tried: int = 0
    survived: int = 0
    leaks: int | None = None
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def attempt(self, case: str) -> Iterator[None]:
        """Counts one attempt. Whatever the block raises is a failure of `case`, and
        goes no further (KeyboardInterrupt and SystemExit do)."""
        self.tried += 1
        try:
            yield
        except Exception as error:
            self.failures.append(f"{case}: {told(error)}")
        else:
            self.survived += 1

    def left_over(self, count: int, what: str) -> None:
        """Add to the leaks: how many of what were still there at the end."""
        self.leaks = (self.leaks or 0) + count
        if count:
            self.failures.append(f"left over: {count} {what}")


def told(error: Exception) -> str:
    """What was raised, and in which line: an assertion may have no words."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(at.filename).name}, line {at.lineno}"
    return f"{type(error).__name__} ({where}): {error}"


@dataclass
class Section:
    """What one module tried.

    notes: paragraphs in Markdown, set below the table under the section's name.
    """

    name: str
    tallies: list[Tally]
    notes: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        return [
            f"{self.name}, {tally.what}: {failure}"
            for tally in self.tallies
            for failure in tally.failures
        ]


def cases(
    budget_s: float, seed: int, most: int | None = None
) -> Iterator[tuple[str, random.Random]]:
    """Cases until the time is used up: the words that name one, and its own chance.

    At least one comes, at most `most`. Case 7 of seed 1 is the same whatever went
    before it.
    """
    ends_s, number = time.monotonic() + budget_s, 0
    while number == 0 or time.monotonic() < ends_s:
        if number == most:
            return
        yield f"seed {seed}, case {number}", random.Random(f"{seed}/{number}")
        number += 1
