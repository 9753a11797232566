"""Server-sent events: bytes in, events out. No I/O, no clock, no JSON.

The rules are those of the WHATWG HTML standard, section 9.2.6 "Interpreting an
event stream" (https://html.spec.whatwg.org/multipage/server-sent-events.html):

- LF, CR and CRLF end a line, and nothing else does: U+2028 is ordinary text.
- The bytes are UTF-8 whatever the headers say; bad bytes become U+FFFD.
- An empty line ends an event. An event without data is none.
- What follows the last empty line is no event and is thrown away.

However the network cuts the bytes, the events are the same.
"""

from collections.abc import Iterator
from typing import NamedTuple

from labkit.errors import MalformedStream, shorten

BOM = b"\xef\xbb\xbf"
RETRY_DIGITS = 300


class SSEEvent(NamedTuple):
    """One event. `id` and `retry` are the latest that the stream has set.

    retry: how long to wait before reconnecting, in milliseconds.
    """

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


class SSEDecoder:
    """Feed it a body piece by piece; it yields each event as soon as it is whole.

    >>> decoder = SSEDecoder()
    >>> list(decoder.feed(b"data: a tide"))
    []
    >>> [event.data for event in decoder.feed(b" gauge\\r\\n\\r\\ndata: is")]
    ['a tide gauge']
    >>> decoder.close()
    'data: is'

    max_bytes: the most it will hold for one event, or for one line. A stream that
        wants more is refused (MalformedStream), so memory stays bounded.
    """

    def __init__(self, max_bytes: int = 1 << 20):
        self.max_bytes = max_bytes
        self._start: bytes | None = b""  # the first bytes, until a BOM is ruled out
        self._after_cr = False
        self._tail = bytearray()  # the line that has not ended yet
        self._data = bytearray()  # of the event under way, each line with its LF
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._unknown = b""  # the last line whose field the standard does not know

    def feed(self, chunk: bytes) -> Iterator[SSEEvent]:
        """Yield the events that `chunk` completes. A generator: iterate it.

        Raises MalformedStream when a line or an event exceeds `max_bytes`.
        """
        # A generator, so that the events before an overlong line are given out
        # first: otherwise what the caller gets would depend on the cuts.
        for line in self._lines(chunk):
            if not line:
                if self._data:
                    yield self._whole_event()
                self._event = ""
                continue
            self._check(line)
            if line.startswith(b"data: "):  # nearly every line: the short way
                self._data += line[6:] + b"\n"
            else:
                self._read_field(line)
        self._check(self._tail)

    def close(self) -> str:
        """The body has ended: drop the unfinished event, as the standard says.

        Returns, shortened, what came but made no event: the unfinished event, or
        else the last line with an unknown field. "" if there was nothing. Some
        servers hide an error there (llama.cpp: `error: {...}`), so it belongs in
        the message when the answer turns out to be missing.
        """
        leftover = (self._data + self._tail).strip() or self._unknown
        self._data.clear()
        self._tail.clear()
        return shorten(leftover.decode("utf-8", "replace"))

    def _lines(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes. Its unended rest becomes the tail."""
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # second half of a CRLF cut in two
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

        lines = chunk.split(b"\n")
        if self._tail and len(lines) > 1:
            lines[0] = bytes(self._tail + lines[0])
            self._tail.clear()
        self._tail += lines.pop()  # in place: linear however small the chunks are
        return lines

    def _without_bom(self, chunk: bytes) -> bytes:
        """Drop a byte order mark from the start of the stream, cut up or not."""
        self._start += chunk
        if len(self._start) < len(BOM):
            return b""  # wait for three bytes: no event is shorter
        start, self._start = self._start, None
        return start.removeprefix(BOM)

    def _read_field(self, line: bytes) -> None:
        """One line that is not empty: `field: value`, `field`, or `: comment`."""
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")  # one space at most
        if field == b"data":
            self._data += value + b"\n"
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif field == b"retry":
            # Digits only. More than a float can hold are ignored, as the standard
            # allows: whoever makes seconds of them must not meet an OverflowError.
            digits = value.lstrip(b"0")
            if value.isdigit() and len(digits) <= RETRY_DIGITS:
                self._retry = int(digits or b"0")
        elif field:  # a comment has no field name
            self._unknown = line

    def _whole_event(self) -> SSEEvent:
        """The event under way, whole; the next one starts empty."""
        # Bytes until here: a character cut by the network is whole again, and a
        # line end is never part of one.
        data = self._data[:-1].decode("utf-8", "replace")
        self._data.clear()
        return SSEEvent(data, self._event or "message", self._id, self._retry)

    def _check(self, line: bytes | bytearray) -> None:
        """Refuse a line that takes the event under way over the limit."""
        if len(self._data) + len(line) > self.max_bytes:
            raise MalformedStream(
                f"an event of the stream is longer than {self.max_bytes} bytes: that"
                " is no chat stream; check the base URL, or raise max_bytes"
            )
