"""What a provider keeps: slots, bills, idempotency keys, windows and a journal."""

import asyncio
import hashlib
import math
from collections import Counter, deque
from dataclasses import dataclass, field

from mock.exchange import Exchange
from mock.generation import Generation

JOURNAL_ENTRIES = 10_000  # the oldest are dropped
KEYS = 10_000


@dataclass(slots=True)
class Entry:
    """One line of the journal: a request and what became of it."""

    books: "Books" = field(repr=False)  # those it was opened in, whatever comes after
    request: int
    path: str
    t_s: float
    plan: str = ""
    key: str | None = None
    status: int | None = None
    served: str | None = None  # new, replayed or joined
    delivered: int = 0  # events with content written while the client was there
    ending: str | None = None
    unfired: list[str] = field(default_factory=list)
    generation: Generation | None = None

    def serve(self, how: str) -> None:
        """An answer was found for it: a new one, a replayed or a joined one."""
        self.served = how
        self.books.replayed += how == "replayed"
        self.books.joined += how == "joined"

    def deliver(self, tokens: int) -> None:
        """So many tokens have been written to the client."""
        self.delivered += tokens
        self.books.delivered_tokens += tokens

    def close(self, exchange: Exchange) -> None:
        """Write down how it ended, before anyone can ask."""
        self.status = exchange.status
        self.ending = "client left" if exchange.client_left else exchange.ending
        self.books.client_left += exchange.client_left
        self.books.statuses[exchange.status or 0] += 1

    def as_dict(self) -> dict:
        """The entry as JSON; `generated` may still grow while the answer is made."""
        shown = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("books", "generation")
        }
        made = self.generation
        return shown | {
            "id": made.ident if made else None,
            "generated": made.tokens if made else 0,
        }


class KeyConflict(Exception):
    """An idempotency key came back with another body."""


class Ledger:
    """Idempotency keys: one generation a key, replayed or joined, never made twice."""

    def __init__(self):
        self._kept: dict[str, tuple[bytes, Generation]] = {}

    def find(self, key: str | None, body: bytes) -> Generation | None:
        """The generation under this key. Raises `KeyConflict` for another body."""
        if key not in self._kept:
            return None
        digest, generation = self._kept[key]
        if digest != hashlib.sha256(body).digest():
            raise KeyConflict
        if generation.ended and not generation.finished:
            return None  # it stopped half-way: there is nothing to replay
        return generation

    def keep(self, key: str | None, body: bytes, generation: Generation) -> None:
        """Remember the answer under its key; the oldest keys are forgotten."""
        if key is not None:
            self._kept[key] = hashlib.sha256(body).digest(), generation
            while len(self._kept) > KEYS:
                del self._kept[next(iter(self._kept))]


class Window:
    """At most `limit` units (requests or tokens) in each window of `length_s`.

    >>> window = Window(limit=2)
    >>> window.wait_s(2, now=100.0)
    0.0
    >>> window.take(2)
    >>> window.wait_s(1, now=130.0)
    30.0
    """

    TICK_S = 1e-6  # a timer may fire this much early, a sum of floats be off by it

    def __init__(self, limit: int, length_s: float = 60.0):
        self.limit, self.length_s = limit, length_s
        self.used = 0
        self._began = -math.inf

    def wait_s(self, units: int, now: float) -> float:
        """0: it fits now. Else how long until it may; for what never fits, inf."""
        if units > self.limit:
            return math.inf
        if now >= self._began + self.length_s - self.TICK_S:
            self._began, self.used = now, 0
        if self.used + units <= self.limit:
            return 0.0
        return self._began + self.length_s - now

    def take(self, units: int) -> None:
        self.used += units


class Books:
    """The totals and the journal. Counts of answers, and of their tokens."""

    def __init__(self):
        self.requests = 0
        self.statuses: Counter[int] = Counter()
        self.attempts: Counter[str] = Counter()  # by idempotency key
        self.inflight = self.inflight_peak = 0
        self.generated = self.generated_tokens = 0
        self.billed = self.billed_tokens = 0
        self.delivered_tokens = 0
        self.replayed = self.joined = self.client_left = 0
        self.journal: deque[Entry] = deque(maxlen=JOURNAL_ENTRIES)

    def open(self, path: str, key: str | None) -> Entry:
        """A new request, with its place in the journal."""
        self.requests += 1
        now = asyncio.get_running_loop().time()
        entry = Entry(self, self.requests, path, now, key=key)
        self.journal.append(entry)
        if key is not None:
            self.attempts[key] += 1
            if len(self.attempts) > KEYS:
                del self.attempts[next(iter(self.attempts))]
        return entry

    def take_slot(self) -> None:
        self.inflight += 1
        self.inflight_peak = max(self.inflight, self.inflight_peak)

    def free_slot(self) -> None:
        self.inflight -= 1

    def close_answer(self, generation: Generation) -> None:
        """An answer has ended: its slot is free, and what was produced is billed."""
        self.free_slot()
        self.generated += generation.finished
        self.generated_tokens += generation.tokens
        self.billed += generation.tokens > 0
        self.billed_tokens += generation.tokens

    def stats(self) -> dict:
        """The totals as JSON; `generated` and `billed` count answers."""
        shown = {k: v for k, v in vars(self).items() if k != "journal"}
        # 0 stands for a client that left before there was a status
        named = ((str(k or "none"), v) for k, v in sorted(self.statuses.items()))
        shown["statuses"] = dict(named)
        shown["attempts"] = dict(self.attempts)
        return shown
