"""What the bench knows of a table: its id, its question, and who computes it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Table:
    """One table of the bench.

    keys: the columns that name a row; the others are what was measured.
    clock: what it is measured on: "virtual", "none" where nothing takes time, or
        "real" where only real time will do: such a table waits to be asked for.
    real: it can be measured on real sockets too.
    share: of the seeds asked for, how many it runs (a table of many herds takes
        fewer); None: it has nothing to do with chance.
    """

    id: str
    question: str
    function: Callable[..., pd.DataFrame]
    keys: tuple[str, ...]
    clock: str = "virtual"
    real: bool = True
    share: float | None = None

    @property
    def chapter(self) -> str:
        return self.id.partition(".")[0]

    def run(self, seeds: int, clock: str | None = None, **more) -> pd.DataFrame:
        """Compute it, on its own clock or on the one named."""
        if self.share is not None:
            more["seeds"] = max(1, round(seeds * self.share))
        if self.clock != "none":
            more["clock"] = clock or self.clock
        return self.function(**more)
