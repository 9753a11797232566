"""The reader of event streams: any bytes, any cuts, any limit.

Events or a MalformedStream, never another exception; the same whatever the cuts; and
what the reader holds is bounded by its limit, not by what comes.
"""

from random import Random

from labkit.errors import MalformedStream
from labkit.sse import SSEDecoder, SSEEvent
from tests.verify.mutations import damage
from tests.verify.section import Section, Tally, cases
from tests.verify.standard import read
from tests.verify.streams import cut, legal_stream

NAME = "reader"

PIECES = (
    b"data: ", b"data:", b"data", b"event: ", b"id: ", b"retry: ", b"12", b": c", b"x",
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"\0", b" ", b":",
    b"\xf0\x9f\x8c\x8a", b"\xe2\x80\xa8", b"\xf0\x9f", b"\xff", b"\xed\xa0",
)  # fmt: skip


def any_bytes(rng: Random) -> bytes:
    """From noise to nearly an event stream."""
    match rng.randrange(3):
        case 0:
            return rng.randbytes(rng.randrange(200))
        case 1:
            return b"".join(rng.choices(PIECES, k=rng.randrange(60)))
        case _:
            return damage(legal_stream(rng), rng)


def consume(chunks: list[bytes], limit: int) -> tuple[list[SSEEvent], bool, int]:
    """The events, whether it ended in MalformedStream, and the most that was held."""
    decoder, events, held = SSEDecoder(limit), [], 0
    try:
        for chunk in chunks:
            events.extend(decoder.feed(chunk))
            held = max(held, holds(decoder))
        assert len(decoder.close()) <= 200
    except MalformedStream as error:
        assert "max_bytes" in str(error)
        return events, True, held
    return events, False, held


def holds(decoder: SSEDecoder) -> int:
    """Bytes of stream that the decoder has in its hands."""
    kinds = bytes | bytearray | str
    return sum(len(each) for each in vars(decoder).values() if isinstance(each, kinds))


def check_any(body: bytes, chunks: list[bytes]) -> None:
    events, refused, _ = consume(chunks, 1 << 20)
    assert not refused
    got = [(e.data, e.event, e.id, e.retry) for e in events]
    assert got == read(body), repr(chunks)


def check_limit(body: bytes, chunks: list[bytes], limit: int) -> None:
    whole, cut_up = consume([body], limit), consume(chunks, limit)
    assert whole[:2] == cut_up[:2], f"limit {limit}, {chunks!r}"
    # The data, the line under way, the type, the id, one line with an unknown field.
    assert cut_up[2] <= 5 * limit + 3, f"holds {cut_up[2]}, limit {limit}, {chunks!r}"


FOR_EVER = (
    b"x", b"data", b"data: x\n", b"data\n", b": c\n", b"id: 1\n", b"\n", b"\r",
    b"event: y", b"event: y\n", b"unknown\n", b"\xff", b"\xef\xbb\xbf",
)  # fmt: skip


def endless(rng: Random, limit: int) -> int:
    """Feed one thing for ever; returns the most that was held. It must be refused, or
    be of a kind that leaves nothing behind."""
    piece = rng.choice(FOR_EVER)
    decoder, held = SSEDecoder(limit), 0
    try:
        for _ in range(2 * limit):
            list(decoder.feed(piece))
            held = max(held, holds(decoder))
    except MalformedStream:
        pass
    else:
        assert piece.endswith((b"\n", b"\r")), f"{piece!r} for ever was not refused"
        assert not piece.startswith(b"data"), f"{piece!r} for ever was not refused"
    assert held <= 5 * limit + 3, f"holds {held}, limit {limit}, {piece!r}"


def run(budget_s: float, seed: int) -> Section:
    bytes_ = Tally("any bytes, whole and cut: as the standard says")
    limits = Tally("the same under a small limit, memory counted")
    streams = Tally("endless streams, refused or forgotten")
    for case, rng in cases(budget_s, seed):
        body = any_bytes(rng)
        with bytes_.attempt(case):
            for chunks in ([body], cut(body, rng)):
                check_any(body, chunks)
        with limits.attempt(case):
            check_limit(body, cut(body, rng), rng.randrange(1, 80))
        if bytes_.tried % 50 == 1:
            with streams.attempt(case):
                endless(rng, rng.randrange(100, 1000))
    return Section(NAME, [bytes_, limits, streams])
