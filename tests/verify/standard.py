"""The standard's algorithm, word by word; and the ways in which readers leave it.

https://html.spec.whatwg.org/multipage/server-sent-events.html, "Interpreting an event
stream". Slow and plain: the whole text first, then its lines.
"""

import re
from enum import Enum

Read = tuple[str, str, str, int | None]  # data, type, id, retry

# Of a retry, zeros in front not counted. "User agents may impose implementation-
# specific limits on otherwise unconstrained inputs" (HTML standard, section 2.1.8).
DIGITS = 300


class Ways(Enum):
    """Each: what a reader does instead, and what the standard says about it."""

    BOM = (
        "keeps a byte order mark, and so loses the first line",
        "one leading U+FEFF is ignored",
    )
    NO_DATA = (
        "fires an event for a block without data, once an id, a type or a retry is set",
        "if the data buffer is an empty string, there is no event",
    )
    NO_TYPE = (
        "gives an event without `event:` no type",
        "its type is `message`",
    )
    ANY_INT = (
        "takes for `retry` whatever Python's int() takes",
        "only ASCII digits; anything else is ignored",
    )
    FORGETS = (
        "forgets `retry` after the event",
        "it sets the stream's reconnection time, which stays",
    )


def read(body: bytes, *ways: Ways) -> list[Read]:
    """The events in a whole body, as the standard has them, but for `ways`."""
    text = body.decode("utf-8", "replace")
    if Ways.BOM not in ways:
        text = text.removeprefix("\ufeff")
    lines = re.split("\r\n|\r|\n", text)[:-1]  # what follows the last end is no line
    events, data, event, last_id, retry = [], [], "", "", None
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            forced = Ways.NO_DATA in ways and (event or last_id or retry is not None)
            if data or forced:
                typed = event or ("" if Ways.NO_TYPE in ways else "message")
                events.append(("\n".join(data), typed, last_id, retry))
                retry = None if Ways.FORGETS in ways else retry
            data, event = [], ""
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif name == "id" and "\0" not in value:
            last_id = value
        elif name == "retry":
            retry = _retry(value, ways, retry)
    return events


def _retry(value: str, ways: tuple[Ways, ...], before: int | None) -> int | None:
    if Ways.ANY_INT in ways:
        try:
            return int(value)
        except ValueError:
            return before
    if not re.fullmatch("[0-9]+", value):
        return before
    digits = value.lstrip("0")
    return int(digits or "0") if len(digits) <= DIGITS else before
