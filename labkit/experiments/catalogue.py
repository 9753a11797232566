"""Every table: its id, the question it answers, and the function that computes it."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from labkit.experiments import (
    deadlines,
    herd_tables,
    readers,
    streaming,
    triage,
    waiting,
    windows,
)


@dataclass(frozen=True)
class Table:
    """One table of the bench.

    keys: the columns that name a row; the others are what was measured.
    clock: what it is measured on, "virtual", or "none" where nothing takes time.
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


TABLES = (
    Table(
        "14.ttft",
        "When does the first word come, and when the last?",
        streaming.ttft,
        keys=("mode",),
    ),
    Table(
        "14.reader",
        "What does each detail of the reader buy?",
        readers.reader,
        keys=("reader", "body"),
        clock="none",
        real=False,
    ),
    Table(
        "14.endings",
        "Can a reader tell the endings apart?",
        streaming.endings,
        keys=("ending",),
    ),
    Table(
        "14.verdicts",
        "What does a status tell a client to do?",
        triage.verdicts,
        keys=("status",),
        clock="none",
        real=False,
    ),
    Table(
        "14.triage",
        "What does it cost not to read the status?",
        triage.triage,
        keys=("policy",),
    ),
    Table(
        "14.nested",
        "What do retries inside retries come to?",
        triage.nested,
        keys=("status", "policy"),
        real=False,
    ),
    Table(
        "14.herd20",
        "What do twenty clients make of a provider that serves three?",
        herd_tables.herd20,
        keys=("summary",),
        share=1,
    ),
    Table(
        "14.gate",
        "And the same twenty behind a gate of three?",
        herd_tables.gate,
        keys=("clients",),
    ),
    Table(
        "14.gate_width",
        "How wide should a gate be?",
        herd_tables.gate_width,
        keys=("width", "processes"),
        share=0.25,
        real=False,
    ),
    Table(
        "14.jitter",
        "What does jitter buy a hundred clients?",
        herd_tables.jitter,
        keys=("policy", "summary", "seed"),
        share=1,
    ),
    Table(
        "14.retry_after",
        "What does Retry-After do to the unluckiest client?",
        herd_tables.retry_after,
        keys=("attempt",),
    ),
    Table(
        "14.retry_after_herd",
        "A floor under the jitter, added to it, or no floor?",
        herd_tables.retry_after_herd,
        keys=("limiter", "floor"),
        share=0.15,
        real=False,
    ),
    Table(
        "14.limits",
        "Which limit was it, when the header is the same?",
        windows.limits,
        keys=("prompt",),
    ),
    Table(
        "14.deadline",
        "How long does a client wait by itself?",
        deadlines.deadline,
        keys=("client",),
    ),
    Table(
        "14.idempotency",
        "What does it cost to ask again after giving up?",
        waiting.idempotency,
        keys=("key", "attempt"),
    ),
    Table(
        "14.abandon",
        "Who pays when the reader leaves?",
        waiting.abandon,
        keys=("client",),
    ),
)
