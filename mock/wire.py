"""How events look on the wire: as usual, or odd but legal.

Everything here is within the WHATWG rules for event streams: any line end, comments,
`retry` fields, one text over several `data` lines, several events in a write, and
writes cut anywhere, in the middle of a character included.
"""

import asyncio
import json
from collections.abc import Callable

from mock.exchange import Exchange
from mock.plan import Plan

LINE_ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


def compact(value) -> str:
    """JSON as JavaScript writes it: no spaces, non-ASCII kept as it is.

    >>> compact({"a": [1, "é"]})
    '{"a":[1,"é"]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encode(data: str, plan: Plan) -> bytes:
    """One event as bytes."""
    lines = []
    if plan.comments:
        lines += [": keep-alive", "", "retry: 3000", ": the event follows"]
    # The reader joins several data lines with LF, which is white space in JSON after
    # the first comma between two fields (an event's id has no comma in it).
    if plan.split:
        data = data.replace(',"', ',\n"', 1)
    lines += [f"data: {part}" for part in data.split("\n")]
    end = LINE_ENDS[plan.lines]
    return (end.join(lines) + end + end).encode(errors="replace")


class EventWriter:
    """Writes events to an exchange, packed or sliced as the plan asks."""

    def __init__(
        self, exchange: Exchange, plan: Plan, deliver: Callable[[int], None]
    ):
        self.exchange, self.plan = exchange, plan
        self._deliver = deliver  # is told how many tokens have been written
        self._packed: list[bytes] = []
        self._tokens = 0  # in what is packed

    async def send(self, value, tokens: int = 0) -> None:
        """Send one event: an object as JSON, a string as it is."""
        data = value if isinstance(value, str) else compact(value)
        self._packed.append(encode(data, self.plan))
        self._tokens += tokens
        if len(self._packed) >= self.plan.pack:
            await self.flush()

    async def flush(self) -> None:
        """Write what is packed so far."""
        data, self._packed = b"".join(self._packed), []
        tokens, self._tokens = self._tokens, 0
        size = self.plan.slice or max(1, len(data))
        for at in range(0, len(data), size):
            if at:  # not after the last piece, or the end would lag behind it
                await asyncio.sleep(0.001)  # so that the pieces reach the reader apart
            await self.exchange.write(data[at : at + size])
        self._deliver(tokens)
