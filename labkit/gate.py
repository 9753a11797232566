"""A gate in front of the provider: never more than `width` requests in flight.

The cheapest retry is the one that nobody needs: twenty clients behind a gate of
three send twenty requests, where without it they send seventy (chapter 14).
"""

import asyncio
from collections import deque

from labkit.errors import ConfigError


class Gate:
    """Lets `width` in at a time, the others in the order in which they came.

    >>> async def visit(gate):
    ...     async with gate:
    ...         await asyncio.sleep(0)
    >>> async def main():
    ...     gate = Gate(3)
    ...     await asyncio.gather(*[visit(gate) for _ in range(20)])
    ...     return gate.peak, gate.in_use, gate.waiting
    >>> asyncio.run(main())
    (3, 0, 0)

    One gate holds for one event loop: two processes with a gate of three are six.
    """

    def __init__(self, width: int):
        if not isinstance(width, int) or isinstance(width, bool) or width < 1:
            raise ConfigError(
                f"width is {width!r}: give a whole number from 1", field="width"
            )
        self.width = width
        self.in_use = 0
        self.peak = 0  # the most that were ever in at once
        self._queue: deque[asyncio.Future] = deque()

    @property
    def waiting(self) -> int:
        """How many stand before the gate."""
        return len(self._queue)

    def __repr__(self) -> str:
        return f"Gate({self.width}): {self.in_use} in use, {self.waiting} waiting"

    async def enter(self) -> None:
        """Take a slot, or wait for one."""
        if self.in_use < self.width:
            self.in_use += 1
            self.peak = max(self.peak, self.in_use)
            return
        ticket = asyncio.get_running_loop().create_future()
        self._queue.append(ticket)
        try:
            await ticket
        except BaseException:
            if ticket in self._queue:
                self._queue.remove(ticket)
            elif not ticket.cancelled():
                self.leave()  # a slot was handed over in this very moment: pass it on
            raise

    def leave(self) -> None:
        """Hand the slot to the first in the queue, or free it."""
        # Handed over and not freed: nobody who comes now can overtake the queue.
        while self._queue:
            ticket = self._queue.popleft()
            if not ticket.done():
                ticket.set_result(None)
                return
        self.in_use -= 1

    async def __aenter__(self) -> "Gate":
        await self.enter()
        return self

    async def __aexit__(self, *exc) -> None:
        self.leave()
