"""One measured figure, and how it is taken."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """What was measured, what came out, and what it should be."""

    what: str
    value: str
    goal: str

    def __str__(self) -> str:
        return f"{self.what}: {self.value}" + (f" ({self.goal})" if self.goal else "")


def best_of(runs: int, measure: Callable[[], float]) -> float:
    """The least of several runs: what is left when nothing else was going on."""
    return min(measure() for _ in range(runs))


async def cpu_s(work: Callable[[], Awaitable]) -> float:
    """Seconds of CPU that this process spends on `work`."""
    await asyncio.sleep(0)  # what is left over of the work before is not this one's
    began = time.process_time()
    await work()
    return time.process_time() - began
