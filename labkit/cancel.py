"""Stop: one button for everything that is under way (chapter 14, "cancellation").

Set it from a signal handler, another thread or another task. Whatever waits under
`guard()` is cancelled and raises `Stopped` with the reason of the first who set it.
A cancellation by anybody else (Task.cancel, asyncio.timeout) stays what it was.

    >>> import asyncio
    >>> async def main():
    ...     stop = Stop()
    ...     asyncio.get_running_loop().call_later(0.01, stop.set, "user pressed Stop")
    ...     async with stop.guard():
    ...         await asyncio.sleep(60)
    >>> asyncio.run(main())
    Traceback (most recent call last):
    labkit.errors.Stopped: stopped: user pressed Stop
"""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

from labkit.errors import Stopped


class Stop:
    """A flag that is raised once, with a reason, and wakes whoever waits for it."""

    # No lock: a signal handler can interrupt the thread that holds one. Each step
    # that others can see is a single list or set operation instead, and both sides
    # write first and look afterwards, so no wake-up is lost.

    def __init__(self, parent: "Stop | None" = None):
        self._parent = parent
        self._reasons: list[str] = []
        self._calls: set[_Call] = set()

    def set(self, reason: str = "stopped") -> None:
        """Stop everything. The first reason wins; a second call changes nothing.

        From another thread while a virtual loop waits: the flag is up, and then
        VirtualClockError is raised. That loop cannot be woken by real time.
        """
        if self.is_set:
            return
        self._reasons.append(reason)
        for call in self._calls.copy():
            call.soon()

    @property
    def is_set(self) -> bool:
        return self.reason is not None

    @property
    def reason(self) -> str | None:
        """The reason given to `set`, here or in a parent; None while unset."""
        stop = self
        while stop and not stop._reasons:
            stop = stop._parent
        return stop._reasons[0] if stop else None

    def child(self) -> "Stop":
        """A Stop for a part of the work: the parent's stops it, not the reverse."""
        return Stop(parent=self)

    def check(self) -> None:
        """Raise Stopped if set: for blocking code, which must poll."""
        if self.is_set:
            raise self._stopped()

    def _stopped(self) -> Stopped:
        return Stopped(f"stopped: {self.reason}", reason=self.reason)

    async def wait(self) -> str:
        """Sleep until set; returns the reason."""
        event = asyncio.Event()
        with self.calling(event.set):
            await event.wait()
        return self.reason

    @asynccontextmanager
    async def guard(self):
        """Cancel the block when set, and raise Stopped from it.

        Set before: the block does not begin. Built on asyncio.timeout, so that a
        cancellation from outside is told apart by the same rules.
        """
        self.check()
        try:
            async with asyncio.timeout(None) as scope:
                with self.calling(lambda: scope.reschedule(0)):  # 0: at once
                    yield
        except TimeoutError:
            if not scope.expired():  # the block's own
                raise
            raise self._stopped() from None

    def calling(self, function: Callable[[], object]) -> "_Call":
        """`with` it: while in the block, have the running loop call `function` when
        set."""
        return _Call(self, function)


class _Call:
    """A function to be called once, in the loop of the task that asked for it."""

    def __init__(self, stop: Stop, function: Callable[[], object]):
        self._family = [stop]
        while self._family[-1]._parent:
            self._family.append(self._family[-1]._parent)
        self._function = function
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        for stop in self._family:
            stop._calls.add(self)
        if self._family[0].is_set:
            self.soon()

    def __exit__(self, *exc) -> None:
        self._function = None
        for stop in self._family:
            stop._calls.discard(self)

    def soon(self) -> None:
        """From any thread. A loop that has closed has nobody left to wake."""
        try:
            self._loop.call_soon_threadsafe(self._run)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _run(self) -> None:
        # The block may have been left, or the call made, since it was scheduled.
        function, self._function = self._function, None
        if function is not None:
            function()
