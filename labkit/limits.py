"""How long to wait: three limits that mean different things (chapter 14, "deadlines").

A stream that never opens and a stream that stalls are two failures, and neither is
a long answer that is doing well. One number cannot tell them apart.
"""

import asyncio
import math
from contextlib import nullcontext
from dataclasses import dataclass, fields

from labkit.cancel import Stop
from labkit.errors import ConfigError, DeadlineError, Stopped


@dataclass(frozen=True)
class Limits:
    """All in seconds, all finite: nothing here waits for ever.

    connect_s: until the TCP (and TLS) connection stands.
    open_s: from the start of one attempt until the answer opens: its first content,
        reasoning, tool-call delta or finish. Headers, a role and keep-alives open
        nothing. An answer that is not streamed opens when it is whole: stream what
        takes long.
    idle_s: between two of those. Keep-alives do not count, nor does the time that
        the caller takes over a piece.
    total_s: the whole logical call, with all its attempts and the waits between. It
        ends waiting, not reading: a caller who took longer over the pieces is still
        given those that have come with the last read, and an end among them.

    >>> Limits(idle_s=-1)
    Traceback (most recent call last):
    labkit.errors.ConfigError: idle_s is -1: give a finite number of seconds above 0
    """

    connect_s: float = 5.0
    open_s: float = 30.0
    idle_s: float = 15.0
    total_s: float = 120.0

    def __post_init__(self):
        for each in fields(self):
            value = getattr(self, each.name)
            if not (is_number(value) and 0 < value < math.inf):
                raise ConfigError(
                    f"{each.name} is {value!r}: give a finite number of seconds"
                    " above 0",
                    field=each.name,
                )


def is_number(value: object) -> bool:
    """An int or float; True and False are neither."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


CLOSED = "the stream was closed before its end"
ADVICE = {
    "connect": "no connection: check that the server runs and the base URL is right",
    "open": "the answer did not open: the provider hangs, or needs a longer open_s",
    "idle": "the answer stalled: nothing came between two pieces; see idle_s",
    "total": "the whole call took too long: see total_s",
}


class Watchdog:
    """Holds one logical call to its limits and to the caller's Stop.

    One asyncio.timeout at a time, around the client's own waiting and moved as the
    answer makes progress. The caller's code between two pieces is never cancelled.

    fired: what ended the last wait: "connect", "open", "idle", "total", "stop",
        "closed"; None if nothing did.
    """

    def __init__(self, limits: Limits, stop: Stop | None = None):
        self.limits = limits
        self.stop = stop
        self.fired: str | None = None
        self._closed = False
        self._scope: asyncio.Timeout | None = None
        self._time = asyncio.get_running_loop().time
        self._began = self._time()

    @property
    def elapsed_s(self) -> float:
        """Since the logical call began."""
        return self._time() - self._began

    @property
    def left_s(self) -> float:
        """Until the total limit fires."""
        return self.limits.total_s - self.elapsed_s

    def watch(self, limit: str, at_most_s: float = math.inf) -> "Wait":
        """`async with` it: wait in that block for "open", for "idle", or only for
        "total" (which is always held to). Raises DeadlineError or Stopped.

        at_most_s: shortens the limit, for what may be missing.
        """
        return Wait(self, limit, at_most_s)

    def check(self) -> None:
        """Raise Stopped if the call was closed, or the caller's Stop is set."""
        self.fired = None  # an earlier attempt may have run into a limit
        if self._closed or (self.stop and self.stop.is_set):
            raise self.verdict("closed" if self._closed else "stop")

    def progress(self, at_most_s: float = math.inf) -> None:
        """Something that counts has come: from here on idle_s is the limit."""
        if self._scope and not self.fired:
            self._scope.reschedule(self._due("idle", at_most_s))

    def close(self) -> None:
        """The call is over: whoever still waits in it, or waits again, is Stopped."""
        self._closed = True
        self._end_now("closed")

    def verdict(self, fired: str) -> DeadlineError | Stopped:
        """Record what fired, and return it as an error."""
        self.fired = fired
        if fired in ("stop", "closed"):
            reason = CLOSED if fired == "closed" else self.stop.reason
            return Stopped(f"stopped: {reason}", reason=reason)
        allowed_s = getattr(self.limits, f"{fired}_s")
        return DeadlineError(
            f"{fired}_s={allowed_s:g} ran out: {ADVICE[fired]}",
            limit=fired,
            after_s=self.elapsed_s,
        )

    def _due(self, limit: str, at_most_s: float) -> float:
        """When the one timer fires: at the limit, or at the total if that is sooner.
        `_next` remembers which."""
        due = self._time() + min(getattr(self.limits, f"{limit}_s"), at_most_s)
        total_due = self._began + self.limits.total_s
        self._next = limit if due < total_due else "total"
        return min(due, total_due)

    def _stop_now(self) -> None:
        self._end_now("stop")

    def _end_now(self, fired: str) -> None:
        if self._scope and not self._scope.expired():
            self.fired = fired
            self._scope.reschedule(0)  # a time long past: at once


class Wait:
    """One wait, for `async with`. A generator would be shorter, but an answer is
    waited for many times, and it would cost three times as much."""

    def __init__(self, dog: Watchdog, limit: str, at_most_s: float):
        self._dog, self._limit, self._at_most_s = dog, limit, at_most_s

    async def __aenter__(self) -> None:
        dog = self._dog
        dog.check()
        if dog.left_s <= 0:  # a timer would let through what needs no waiting for
            raise dog.verdict("total")
        scope = asyncio.timeout_at(dog._due(self._limit, self._at_most_s))
        await scope.__aenter__()
        self._scope = dog._scope = scope
        self._calling = dog.stop.calling(dog._stop_now) if dog.stop else nullcontext()
        self._calling.__enter__()

    async def __aexit__(self, kind, error, trace) -> None:
        dog = self._dog
        dog._scope = None
        self._calling.__exit__(kind, error, trace)
        try:
            await self._scope.__aexit__(kind, error, trace)
        except TimeoutError:  # ours: the block's own is not raised by the scope
            raise dog.verdict(dog.fired or dog._next) from None
