"""hypothesis for as long as there is time: examples, and the smallest failure."""

import time
from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy

from tests.verify.section import Tally, told

BATCH = 500  # examples of one call of hypothesis, which knows no time of its own


class Late(BaseException):
    """The time is used up: hypothesis must neither shrink nor report this."""


def explore(
    tally: Tally,
    strategy: SearchStrategy,
    check: Callable,
    budget_s: float,
    seed: int,
) -> None:
    """Call `check` with examples until `budget_s` is used up or one fails."""
    ends_s, batch = time.monotonic() + budget_s, 0
    settings = hypothesis.settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    failed = False
    while not failed and (batch == 0 or time.monotonic() < ends_s):

        @settings
        @hypothesis.seed(f"{seed}/{batch}")
        @hypothesis.given(strategy)
        def some(example):
            nonlocal failed
            if not failed:  # what comes after that is the same one, made smaller
                if tally.tried and time.monotonic() > ends_s:
                    raise Late
                tally.tried += 1
            try:
                check(example)
            except Exception:
                failed = True
                raise
            tally.survived += not failed

        try:
            some()
        except Late:
            break
        except Exception as error:
            notes = "; ".join(getattr(error, "__notes__", ()))
            tally.failures.append(f"seed {seed}, batch {batch}: {told(error)}; {notes}")
        batch += 1
