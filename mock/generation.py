"""One answer being produced, token by token, for whoever listens.

A reply is a view of a generation: the client of a first attempt may leave, and that
of a second, with the same idempotency key, join or hear it all again.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mock.answers import Answer
from mock.plan import Plan


class Generation:
    """Produces `answer` as a timed plan says; `leave` says whether it stops when
    nobody listens."""

    def __init__(
        self, ident: str, answer: Answer, plan: Plan, leave: str,
        on_end: Callable[["Generation"], None],
    ):  # fmt: skip
        self.ident = ident
        self.answer = answer
        self.tokens = 0  # produced so far
        self.finished = False
        self.ended = False  # finished or stopped
        self._leave = leave
        self._listeners = 0
        self._on_end = on_end
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._produce(plan))

    async def _produce(self, plan: Plan) -> None:
        delay, first = plan.delay / 1000, plan.first / 1000
        silent = plan.falls_silent(len(self.answer))
        loop = asyncio.get_running_loop()
        due = loop.time()
        for token in range(plan.silent_after if silent else len(self.answer)):
            due += delay if token else first
            # Against the clock, so that delays don't drift. Late or not, listeners get
            # their turn: a cut after 5 tokens finds 5 produced, not what caught up.
            await asyncio.sleep(max(0.0, due - loop.time()))
            self.tokens += 1
            self._news.set()
        if silent:
            await asyncio.Event().wait()  # for ever, with the slot held
        self.finished = True
        self._end()

    def _end(self) -> None:
        self.ended = True
        self._on_end(self)
        self._news.set()

    async def delta(self, at: int) -> dict | None:
        """Delta number `at` (from 0) once it is there; None: there is no such one."""
        while at >= self.tokens:
            if self.ended:
                return None
            self._news.clear()  # all that wait have been woken: see asyncio.Event
            await self._news.wait()
        return self.answer[at]

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Somebody listens in this block. Does not wait, so nobody slips between."""
        self._listeners += 1
        try:
            yield
        finally:
            self._listeners -= 1
            if not self._listeners and self._leave == "stop":
                self.stop()

    def stop(self) -> None:
        """Stop producing, at once; what was produced is billed."""
        if not self.ended:
            self._task.cancel()
            self._end()
