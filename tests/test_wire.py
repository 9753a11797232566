"""Odd but legal streams: whoever follows the standard reads the same events."""

import itertools
import json

import httpx_sse
import pytest

from labkit.clock import run_virtual
from labkit.http import httpx
from labkit.sse import SSEDecoder
from mock.answers import message
from mock.hostile import ACCENT, ANSWERS
from mock.memory import MemoryTransport
from mock.plan import Plan
from mock.provider import Provider, Settings
from mock.wire import encode

ODD = {
    "lines": ["lf", "crlf", "cr"],
    "comments": ["0", "1"],
    "split": ["0", "1"],
    "pack": ["1", "3", "1000"],
    "slice": ["none", "1", "37"],
}
VARIANTS = [
    "&".join(f"{name}={value}" for name, value in variant if value != "none")
    for variant in itertools.product(
        *([(name, value) for value in values] for name, values in ODD.items())
    )
]


def body_of(fault: str) -> list[bytes]:
    """The pieces in which a stream is written, with no time between them."""

    async def ask():
        provider = Provider(Settings(delay_ms=0, capacity=None))
        async with httpx.AsyncClient(transport=MemoryTransport(provider)) as http:
            url = f"http://127.0.0.1/v1/chat?{fault}"
            async with http.stream("GET", url) as response:
                assert response.status_code == 200, await response.aread()
                return [piece async for piece in response.aiter_raw()]

    return run_virtual(ask)


def judged(pieces: list[bytes]) -> list[str]:
    """The events' data as httpx-sse reads it."""
    response = httpx.Response(
        200,
        headers={"content-type": "text/event-stream"},
        stream=httpx.ByteStream(b"".join(pieces)),
    )
    return [event.data for event in httpx_sse.EventSource(response).iter_sse()]


def decoded(pieces: list[bytes]) -> list[str]:
    decoder = SSEDecoder()
    return [event.data for piece in pieces for event in decoder.feed(piece)]


def content(data: list[str]) -> str:
    assert data[-1] == "[DONE]"
    chunks = [json.loads(one) for one in data[:-1]]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)


@pytest.mark.parametrize("fault", VARIANTS)
def test_every_variant_says_the_same_to_every_decoder(fault):
    pieces = body_of(f"answer=accent&{fault}")
    ours = decoded(pieces)
    assert content(ours) == ACCENT
    assert judged(pieces) == ours
    if "slice=1" in fault:
        # one byte each, or two where an event follows at once
        assert {len(piece) for piece in pieces} <= {1, 2}


def test_a_slice_cuts_inside_a_character():
    pieces = body_of("answer=accent&slice=1")
    assert any(not piece.isascii() for piece in pieces)
    with pytest.raises(UnicodeDecodeError):
        for piece in pieces:
            piece.decode()


def test_packed_events_come_in_one_write():
    assert len(body_of("pack=1000")) == 1
    assert len(body_of("pack=5")) == 3  # 13 words, the end, [DONE]


def test_a_split_event_has_several_data_lines():
    first, *_ = b"".join(body_of("split=1&max_tokens=1")).split(b"\n\n")
    lines = first.split(b"\n")
    assert len(lines) == 2 and all(line.startswith(b"data: ") for line in lines)


@pytest.mark.parametrize(
    "lines, end", [("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")]
)
def test_line_ends(lines, end):
    raw = encode("x", Plan(lines=lines, comments=True))
    assert raw.endswith(b"data: x" + end + end)
    assert set(raw) & set(b"\r\n") == set(end)


def test_no_text_can_break_an_event():
    """Line ends inside an answer are escaped by JSON; odd characters go as they are."""
    said = json.dumps({"content": "a\r\n\n\u2028\x85b"}, ensure_ascii=False)
    for plan in (Plan(), Plan(lines="cr", comments=True, split=True)):
        assert [json.loads(one) for one in decoded([encode(said, plan)])] == [
            json.loads(said)
        ]


def test_a_tool_call_comes_in_pieces_and_whole():
    whole = message(list(ANSWERS["tool"].first(len(ANSWERS["tool"]))))
    (call,) = whole["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert arguments == {"station": "Cascais", "unit": "m"}
    data = decoded(body_of("answer=tool"))
    deltas = [json.loads(one)["choices"][0]["delta"] for one in data[:-2]]
    assert message(deltas) == whole
    assert len(deltas) == 5 and "id" not in deltas[1]["tool_calls"][0]
