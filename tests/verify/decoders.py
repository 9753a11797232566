"""Three readers of the same random legal streams, and the standard as the judge."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import httpx_sse
from openai._streaming import SSEDecoder as OpenAIDecoder

from labkit.http import httpx
from labkit.sse import RETRY_DIGITS, SSEDecoder
from tests.verify.section import Section, Tally, cases
from tests.verify.standard import Read, Ways, read
from tests.verify.streams import cut, legal_stream

NAME = "decoders"
STREAMS = 100_000


def ours(chunks: Iterable[bytes]) -> Iterator[Read]:
    decoder = SSEDecoder()
    for chunk in chunks:
        for event in decoder.feed(chunk):
            yield event.data, event.event, event.id, event.retry


def httpx_sse_s(chunks: Iterable[bytes]) -> Iterator[Read]:
    headers = {"content-type": "text/event-stream"}
    response = httpx.Response(200, headers=headers, content=iter(chunks))
    for event in httpx_sse.EventSource(response).iter_sse():
        yield event.data, event.event, event.id, event.retry


def openai_s(chunks: Iterable[bytes]) -> Iterator[Read]:
    for event in OpenAIDecoder().iter_bytes(iter(chunks)):
        yield event.data, event.event or "", event.id or "", event.retry


Reader = Callable[[Iterable[bytes]], Iterator[Read]]
COMMON = (Ways.BOM, Ways.NO_DATA, Ways.ANY_INT, Ways.FORGETS)
# Each reader, and all the ways in which it leaves the standard.
READERS: dict[str, tuple[Reader, tuple[Ways, ...]]] = {
    "labkit": (ours, ()),
    "httpx-sse": (httpx_sse_s, COMMON),
    "openai": (openai_s, (*COMMON, Ways.NO_TYPE)),
}
# The smallest stream on which each way shows.
SMALLEST = {
    Ways.BOM: b"\xef\xbb\xbfdata\n\n",
    Ways.NO_DATA: b"id:1\n\n",
    Ways.NO_TYPE: b"data\n\n",
    Ways.ANY_INT: b"retry:+1\ndata\n\n",
    Ways.FORGETS: b"retry:1\ndata\n\ndata\n\n",
}


def compare(name: str, body: bytes, chunks: list[bytes]) -> None:
    """Raise AssertionError unless the reader does what is known of it."""
    reader, ways = READERS[name]
    got, wanted = list(reader(chunks)), read(body, *ways)
    assert got == wanted, f"{chunks!r}: got {got!r}, not {wanted!r}"


def shows(way: Ways, ways: tuple[Ways, ...], body: bytes) -> bool:
    """Would a reader with these ways read the body otherwise without this one?"""
    return read(body, *ways) != read(body, *(w for w in ways if w is not way))


def run(budget_s: float, seed: int) -> Section:
    tallies = {
        "labkit": Tally("random legal streams: labkit reads them as the standard says"),
        **{
            name: Tally(f"the same: {name} differs only in the ways listed below")
            for name in ("httpx-sse", "openai")
        },
    }
    claims = Tally("smallest streams, and other claims of the list below")
    check_claims(claims)
    chunkings, counts = 0, Counter()
    for case, rng in cases(budget_s, seed, STREAMS):
        body = legal_stream(rng)
        cuts = [[body], cut(body, rng), cut(body, rng)]
        chunkings += len(cuts)
        with tallies["labkit"].attempt(case):
            for chunks in cuts:
                compare("labkit", body, chunks)
        for name in ("httpx-sse", "openai"):
            with tallies[name].attempt(case):
                compare(name, body, cuts[1])
        for name, (_, ways) in READERS.items():  # ours has none
            counts.update((name, way) for way in ways if shows(way, ways, body))
    told = (
        f"Each stream whole and in two random chunkings: {chunkings:,} in all. Each"
        " kind of difference between the readers; the standard backs ours in all:"
    )
    return Section(NAME, [*tallies.values(), claims], [told, table(counts), *MORE])


def check_claims(tally: Tally) -> None:
    """What the report says of the readers is true of the versions installed."""
    for name, (_, ways) in READERS.items():
        for way in ways:
            with tally.attempt(f"{name}, {way.name}"):
                body = SMALLEST[way]
                compare(name, body, [body])
                assert shows(way, (way,), body)
        with tally.attempt(f"{name}, in time"):
            assert late(name) == (name == "httpx-sse")
        with tally.attempt(f"{name}, a byte that is no UTF-8"):
            refused = name == "openai"
            assert on_bad_utf8(name) == ("UnicodeDecodeError" if refused else "\ufffd")
    with tally.attempt("httpx-sse, charset"):
        assert by_charset() == "\xc3\xa9"


def table(counts: Counter) -> str:
    """The ways in which readers leave the standard, in Markdown."""
    lines = [
        "| what a reader does | which, on how many streams | smallest | the standard |",
        "|---|---|---|---|",
    ]
    for way in Ways:
        does, says = way.value
        who = ", ".join(
            f"{name} {counts[name, way]:,}"
            for name, (_, ways) in READERS.items()
            if way in ways
        )
        body = repr(SMALLEST[way])[2:-1]
        lines.append(f"| {does} | {who} | `{body}` | {says} |")
    return "\n".join(lines)


def late(name: str) -> bool:
    """Does the reader hold an event back that a CR has ended, until more comes?"""
    asked_for_more = []

    def chunks():
        yield b"data\r\r"
        asked_for_more.append(True)
        yield b"data\r\r"

    next(READERS[name][0](chunks()))
    return bool(asked_for_more)


def on_bad_utf8(name: str) -> str:
    """What the reader makes of a byte that is no UTF-8."""
    try:
        return list(READERS[name][0]([b"data:\xff\n\n"]))[0][0]
    except ValueError as error:
        return type(error).__name__


def by_charset() -> str:
    """What httpx-sse reads where the header names another charset than UTF-8."""
    headers = {"content-type": "text/event-stream; charset=latin-1"}
    response = httpx.Response(200, headers=headers, content="data:é\n\n".encode())
    return next(httpx_sse.EventSource(response).iter_sse()).data


MORE = (
    "When an event is given out: `data\\r\\r` is a whole event. httpx-sse holds it back"
    " until the next bytes come, in case they begin with the LF of a CRLF; labkit and"
    " openai give it out at once.",
    "A byte that is no UTF-8 (no legal stream): the standard puts U+FFFD in its place,"
    " as do labkit and httpx-sse; openai raises UnicodeDecodeError. A `charset` in the"
    " header: the standard reads UTF-8 all the same, as do labkit and openai, which"
    " take bytes; httpx-sse obeys the header.",
    f"A `retry` of more than {RETRY_DIGITS} digits is ignored by ours, so that nobody's"
    " float overflows: the standard (section 2.1.8) lets a reader limit what it takes.",
)
