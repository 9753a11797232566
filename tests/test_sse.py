"""The decoder against the standard, a literal reading of it, and httpx-sse."""

import pickle
import tracemalloc

import httpx_sse
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import MalformedStream
from labkit.http import httpx
from labkit.sse import SSEDecoder, SSEEvent
from tests.cuts import cut_bodies
from tests.verify.standard import read


def decode(*chunks: bytes, max_bytes: int = 1 << 20) -> list[SSEEvent]:
    decoder = SSEDecoder(max_bytes)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


# What the standard says, example by example.


@pytest.mark.parametrize(
    ("body", "data"),
    [
        # The examples of the standard's section 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", ["YHOO\n+2\n10"]),
        (b": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\n",
         ["first", "second"]),
        (b"data\n\ndata\ndata\n\ndata:", ["", "\n"]),
        (b"data:test\n\ndata: test\n\n", ["test", "test"]),
        # One space goes, a second stays; a colon in the value is ordinary text.
        (b"data:  two\n\n", [" two"]),
        (b"data: a: b\n\n", ["a: b"]),
        (b"data:\tx\n\n", ["\tx"]),
        # Three line ends, also mixed; and four that are none.
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: d\r\n\n", ["a", "b", "c", "d"]),
        ("data: \u2028\u0085\x0b\x0c\n\n".encode(), ["\u2028\u0085\x0b\x0c"]),
        # Names are exact: the case, no space before the colon.
        (b"Data: a\n\ndata : b\n\n data: c\n\n", []),
        # An event without data is none: a keep-alive, a lone id, a lone retry.
        (b": ping\n\nid: 1\n\nretry: 5\n\nevent: x\n\n", []),
        # A cut off end is no event.
        (b"data: a\n\ndata: b\n", ["a"]),
        (b"data: a\n\ndata: b", ["a"]),
    ],
)  # fmt: skip
def test_data(body, data):
    assert [event.data for event in decode(body)] == data


def test_event_type_lasts_for_one_event():
    got = decode(b"event: error\ndata: a\n\ndata: b\n\nevent: x\n\ndata: c\n\n")
    assert [event.event for event in got] == ["error", "message", "message"]


def test_id_and_retry_last_until_they_are_set_again():
    got = decode(
        b"id: 7\nretry: 250\ndata: a\n\n"
        b"data: b\n\n"
        b"id\ndata: c\n\n"
        b"id:  8\n\ndata: d\n\n"  # set by a block that is no event itself
    )
    assert [(event.id, event.retry) for event in got] == [
        ("7", 250), ("7", 250), ("", 250), (" 8", 250),
    ]  # fmt: skip


def test_id_with_nul_is_ignored():
    assert decode(b"id: 1\nid: 2\0\ndata: a\n\n")[0].id == "1"


@pytest.mark.parametrize("value", ["", "-1", "+5", "1.5", "1_0", "5 ", "٣", "9" * 5000])
def test_retry_takes_digits_only(value):
    assert decode(f"retry: {value}\ndata: a\n\n".encode())[0].retry is None


@pytest.mark.parametrize(
    ("value", "retry"),
    [("0", 0), ("000", 0), ("007", 7), ("0" * 5000 + "7", 7), ("9" * 20, 10**20 - 1),
     ("1" + "0" * 299, 10**299), ("1" + "0" * 300, None)],
)  # fmt: skip
def test_zeros_in_front_of_a_retry_do_not_count(value, retry):
    """Over 300 digits it is ignored: the standard lets a reader limit what it takes."""
    assert decode(f"retry: {value}\ndata: a\n\n".encode())[0].retry == retry


def test_only_the_first_byte_order_mark_goes():
    bom = b"\xef\xbb\xbf"
    assert decode(bom + b"data: a\n\n") == [SSEEvent("a")]
    assert decode(bom[:1], bom[1:2], bom[2:], b"data: a\n\n") == [SSEEvent("a")]
    assert decode(bom + bom + b"data: a\n\n") == []
    assert decode(b"\n" + bom + b"data: a\n\n") == []
    assert decode(b"data: " + bom + b"\n\n") == [SSEEvent("\ufeff")]


def test_bad_utf8_becomes_the_replacement_character():
    assert decode(b"data: a\xff\xf0\x9f\ndata: \x80b\n\n") == [
        SSEEvent("a\ufffd\ufffd\n\ufffdb")
    ]


def test_an_event_comes_as_soon_as_it_is_whole():
    decoder = SSEDecoder()
    assert [e.data for e in decoder.feed(b"data: a\r\r")] == ["a"]
    assert [e.data for e in decoder.feed(b"\ndata: b\r\n\r")] == ["b"]
    assert [e.data for e in decoder.feed(b"\n")] == []
    # Only the LF right behind the CR belongs to it.
    pieces = [b"data: c\r", b"data: d", b"\n", b"\n"]
    assert [e.data for piece in pieces for e in decoder.feed(piece)] == ["c\nd"]


@pytest.mark.parametrize(
    ("body", "leftover"),
    [
        (b"data: a\n\n", ""),
        (b"data: a\n\ndata: b\ndata: c", "b data: c"),
        (b"data: a\n\nda", "da"),
        (b'error: {"code": 400}\n\ndata: [DONE]\n\n', 'error: {"code": 400}'),
        (b": ping\n\n", ""),
        (b"<html>\n" + b"x" * 5000, "x" * 197 + "..."),
    ],
)
def test_close_tells_what_came_but_was_no_event(body, leftover):
    decoder = SSEDecoder()
    list(decoder.feed(body))
    assert decoder.close() == leftover


# Bounds.


def test_a_line_or_an_event_over_the_limit_is_malformed_and_one_at_it_is_not():
    line = b"data: 9876\n"
    assert len(decode(line, b"\n", (line + b"\n") * 3, max_bytes=10)) == 4
    assert decode(b"data:\n" * 5 + b"\n", max_bytes=10) == [SSEEvent("\n" * 4)]
    over = [b"data: 98765", b"data: 98765\n\n", b": comment..", b": comment..\n",
            line + line, line + b"data: ", b"data:\n" * 7]  # fmt: skip
    for body in over:
        with pytest.raises(MalformedStream, match="longer than 10 bytes"):
            decode(body, max_bytes=10)


def test_the_events_before_an_overlong_line_are_given_out():
    events = SSEDecoder(max_bytes=10).feed(b"data: a\n\n" + b"x" * 11)
    assert next(events).data == "a"
    with pytest.raises(MalformedStream):
        next(events)


def test_comments_without_end_are_no_event_and_fill_nothing():
    assert decode(b": ping\n" * 10_000, max_bytes=100) == []


def test_a_long_line_in_small_pieces_takes_no_more_memory_than_the_limit():
    decoder = SSEDecoder(max_bytes=50_000)
    tracemalloc.start()
    with pytest.raises(MalformedStream):
        for _ in range(50_001):
            list(decoder.feed(b"x"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 50_000


# Generated streams.


@given(cut_bodies())
def test_any_bytes_in_any_cuts_are_read_as_the_standard_says(case):
    body, chunks = case
    assert decode(*chunks) == [SSEEvent(*e) for e in read(body)]


@given(cut_bodies(), st.integers(1, 30))
def test_under_a_limit_the_cuts_change_nothing_and_memory_is_bounded(case, limit):
    body, chunks = case

    def read(chunks):
        decoder, events, held = SSEDecoder(limit), [], 0
        try:
            for chunk in chunks:
                for event in decoder.feed(chunk):
                    events.append(event)
                held = max(held, len(pickle.dumps(vars(decoder))))
        except MalformedStream as error:
            return events, str(error), held
        return events, None, held

    *whole, _ = read([body])
    *cut, held = read(chunks)
    assert cut == whole
    # At most the data, the unfinished line, the type, the id and one unknown line.
    assert held < 400 + 5 * limit


# httpx-sse as a judge. The two agree on streams that are legal and plain. Where they
# differ, the test above holds us to the standard. httpx-sse 0.4.3
# - keeps a byte order mark, and so loses the first line;
# - fires an event for a block without data, once an id, a type or a retry is set;
# - takes for retry all that int() takes ("+5", "1_0"), and forgets it after the event;
# - gives out the event that a CR ends only when the next chunk comes.

PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))
FIELDS = st.one_of(
    PLAIN.map(lambda text: f"data: {text}"),
    PLAIN.map(lambda text: f"id: {text}"),
    PLAIN.map(lambda text: f"event: {text}"),
    PLAIN.map(lambda text: f": {text}"),
    st.integers(0, 10**6).map(lambda ms: f"retry: {ms}"),
)
BLOCKS = st.lists(FIELDS, max_size=4).map(lambda fields: [*fields, "data: x", ""])


@st.composite
def legal_bodies(draw) -> bytes:
    blocks = draw(st.lists(BLOCKS, max_size=5))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return "".join(line + end for block in blocks for line in block).encode()


@given(cut_bodies(legal_bodies()))
def test_httpx_sse_agrees_on_legal_streams(case):
    _, chunks = case
    headers = {"content-type": "text/event-stream"}
    response = httpx.Response(200, headers=headers, content=iter(chunks))
    theirs = httpx_sse.EventSource(response).iter_sse()
    assert [(e.data, e.event, e.id) for e in decode(*chunks)] == [
        (e.data, e.event, e.id) for e in theirs
    ]
