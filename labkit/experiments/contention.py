"""A laboratory for backoff: N writers contend for one row (Brooker, AWS, 2015).

Optimistic concurrency. A writer reads the row's version, then writes on condition
that the version is still the same. Of those who read the same version one wins; the
others back off and read again. No provider and no client here: what is measured is
the functions of `labkit.backoff` themselves, in a model that others have published.

As in that model, the first backoff is asked for attempt 1, not 0, and a "call" is a
write that was tried; a read costs time only.
"""

import heapq
import random
from dataclasses import dataclass
from statistics import mean, stdev

import pandas as pd

from labkit.backoff import STRATEGIES

SIZES = (10, 20, 50, 100)
DELAY_MS, DELAY_SD_MS = 10.0, 2.0  # one way
BASE_MS, CAP_MS = 5.0, 2000.0


@dataclass
class Writer:
    """One of the contenders: the version it read, its failures, its last draw."""

    version: int = 0
    failures: int = 0
    draw_s: float | None = None

    def backoff_ms(self, strategy, rng: random.Random) -> float:
        self.failures += 1
        self.draw_s = strategy(
            self.failures, rng, BASE_MS / 1000, CAP_MS / 1000, self.draw_s
        )
        return self.draw_s * 1000


def contend(writers: int, strategy: str, seed: int = 0) -> dict:
    """One race, until everybody has written once: `calls` and `completion_ms`.

    >>> contend(1, "full")["calls"]
    1
    """
    rng, wait = random.Random(seed), STRATEGIES[strategy]
    queue, version, calls, now_ms = [], 0, 0, 0.0

    def send(writer: Writer, what: str, after_ms: float = 0.0) -> None:
        """A message: it arrives after `after_ms` and one way through the network."""
        arrives_ms = now_ms + after_ms + abs(rng.gauss(DELAY_MS, DELAY_SD_MS))
        # the second field keeps messages of the same instant in their order
        heapq.heappush(queue, (arrives_ms, next(number), what, writer))

    number = iter(range(1_000_000_000))
    for _ in range(writers):
        send(Writer(), "read")
    while queue:
        now_ms, _, what, writer = heapq.heappop(queue)
        if what == "read":
            writer.version = version
            send(writer, "version")
        elif what == "version":
            send(writer, "write")
        elif what == "write":
            calls += 1
            won = writer.version == version
            version += won
            send(writer, "written" if won else "conflict")
        elif what == "conflict":
            send(writer, "read", writer.backoff_ms(wait, rng))
    return {"calls": calls, "completion_ms": now_ms}


def contention(
    sizes: tuple[int, ...] = SIZES,
    strategies: tuple[str, ...] = tuple(STRATEGIES),
    seeds: int = 20,
) -> pd.DataFrame:
    """Means and standard deviations over `seeds` races of each size and strategy.

    Columns: writers, strategy, calls, calls_sd, completion_ms, completion_sd_ms, runs.
    """
    rows = []
    for size in sizes:
        for strategy in strategies:
            # a race takes milliseconds: not worth a pool of processes
            races = [contend(size, strategy, seed) for seed in range(seeds)]
            row = {"writers": size, "strategy": strategy}
            row |= _spread([race["calls"] for race in races], "calls", "calls_sd")
            took_ms = [race["completion_ms"] for race in races]
            row |= _spread(took_ms, "completion_ms", "completion_sd_ms")
            rows.append(row | {"runs": seeds})
    return pd.DataFrame(rows)


def _spread(values: list[float], column: str, sd_column: str) -> dict:
    sd = stdev(values) if len(values) > 1 else 0.0
    return {column: round(mean(values), 6), sd_column: round(sd, 6)}


# The same model in the public simulator, as re-derived with 200 races for this
# project: mean calls and mean completion in ms. For comparing, never for computing.
REFERENCE = {
    10: {"none": (51, 382), "exponential": (51, 3393), "full": (39, 482),
         "equal": (42, 706), "decorrelated": (38, 440)},
    20: {"none": (153, 602), "exponential": (150, 14542), "full": (100, 1004),
         "equal": (108, 1559), "decorrelated": (102, 808)},
    50: {"none": (689, 1137), "exponential": (626, 36411), "full": (332, 2956),
         "equal": (347, 4195), "decorrelated": (375, 2158)},
    100: {"none": (2422, 2024), "exponential": (1849, 63025), "full": (796, 4955),
          "equal": (811, 6546), "decorrelated": (1004, 4612)},
}  # fmt: skip
