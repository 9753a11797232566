"""From chunks to a reply: what is kept, what is refused, and when it is whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.assemble import Assembler, read_stream
from labkit.errors import (
    EmptyStream,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    StreamError,
)
from labkit.sse import SSEEvent
from labkit.toolcalls import ToolCall
from labkit.usage import Usage
from tests.cuts import BODIES, cut_bodies


def says(content=None, *, finish=None, **delta) -> dict:
    """A chunk with one choice, as the providers send it."""
    if content is not None:
        delta["content"] = content
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def event(chunk: dict | str) -> SSEEvent:
    return SSEEvent(chunk if isinstance(chunk, str) else json.dumps(chunk))


def assemble(*chunks: dict | str) -> Assembler:
    reply = Assembler()
    for chunk in chunks:
        reply.add(event(chunk))
    reply.finish()
    return reply


def wire(*chunks: dict | str) -> bytes:
    return b"".join(f"data: {event(chunk).data}\n\n".encode() for chunk in chunks)


def body(message=None, finish="stop", **more) -> bytes:
    """A plain answer."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more}).encode()


# The end.


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "tool_calls"])
def test_a_finish_reason_makes_it_whole_with_done_or_without(finish):
    chunks = [says("hi"), says(finish=finish)]
    for end in ([], ["[DONE]"], [{"choices": []}, "[DONE]"]):
        reply = assemble(*chunks, *end)
        assert (reply.text, reply.finish_reason) == ("hi", finish)
        assert reply.done == bool("[DONE]" in end)


@pytest.mark.parametrize("end", [[], ["[DONE]"], [says(finish="")], [says()]])
def test_without_a_finish_reason_it_stopped(end):
    with pytest.raises(IncompleteStream, match="without a finish_reason") as caught:
        assemble(says("half an"), *end)
    assert caught.value.partial == "half an"
    assert type(caught.value) is IncompleteStream


@pytest.mark.parametrize("sent", [b"", b": hb\n\n", b"data: [DONE]\n\n", b"data:\n\n",
                                  b"data: : keepalive\n\n", b"data: {}"])  # fmt: skip
def test_no_data_is_an_empty_stream(sent):
    with pytest.raises(EmptyStream, match="check the base URL"):
        read_stream([sent])


def test_what_came_but_was_no_event_is_in_the_message():
    with pytest.raises(EmptyStream, match="Left over: '<html>Sign in"):
        read_stream([b"<html>Sign in to the wifi</html>"])
    with pytest.raises(IncompleteStream, match="Left over: .*finish_reason"):
        read_stream([wire(says("hi")), wire(says(finish="stop")).removesuffix(b"\n")])


@pytest.mark.parametrize("end", [" [DONE]", "[DONE]\n", "\t[DONE] "])
def test_done_may_have_white_space_around_it(end):
    assert assemble(says("a", finish="stop"), end).done


@pytest.mark.parametrize("end", ["[DONE]oops", "[DONE] {}", "[done]", '"[DONE]"'])
def test_nothing_else_is_done(end):
    with pytest.raises(MalformedStream) as caught:
        assemble(says("par", finish="stop"), end)
    assert caught.value.partial == "par"


def test_nothing_counts_after_done():
    whole = says("a", finish="stop")
    assert assemble(whole, "[DONE]", says("b"), "{bad", {"error": 1}).text == "a"
    # Not even an overlong line in the same chunk.
    assert read_stream([wire(whole, "[DONE]") + b"x" * (1 << 21)]).text == "a"


# What is refused.


@pytest.mark.parametrize(
    "data",
    [
        "{bad", "null", "[]", "1", '"text"', "ping", '{"a": 1} trailing',
        '{"choices": NaN}', '{"x": [Infinity]}', "[" * 100_000, "9" * 5000,
        '{"x": 1e999}', '{"x": [-1e999]}',
        '{"choices": {}}', '{"choices": [1]}', '{"choices": [{"index": "0"}]}',
        '{"choices": [{"delta": "hi"}]}', '{"choices": [{"delta": {"content": 5}}]}',
        '{"choices": [{"delta": {"content": [{"text": "hi"}]}}]}',
        '{"choices": [{"finish_reason": 1}]}',
        '{"choices": [{"delta": {"content": "lost", "tool_calls": {}}}]}',
        '{"choices": [{"delta": {"content": "lost", "tool_calls": [null]}}]}',
        '{"choices": [{"delta": {"content": "lost", "tool_calls": [{"index": 4}]}}]}',
    ],
)  # fmt: skip
def test_what_is_no_chunk_is_malformed_and_keeps_the_text(data):
    reply = Assembler()
    assert reply.add(event(says("so far"))) == "so far"
    with pytest.raises(MalformedStream, match="chunk 2") as caught:
        reply.add(event(data))
    assert caught.value.partial == reply.text == "so far"
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("sent", "type", "code"),
    [
        (event({"error": {"message": "full", "type": "T", "code": 529}}), "T", 529),
        (event({"error": "full"}), None, None),
        (event({"object": "error", "message": "full", "code": "c"}), None, "c"),
        (
            event({"type": "error", "error": {"message": "full", "type": "T"}}),
            "T",
            None,
        ),
        (SSEEvent('{"message": "full", "code": 1}', "error"), None, 1),
        (SSEEvent('{"error": {"message": "full", "type": {}}}', "error"), None, None),
        (SSEEvent("full", "error"), None, None),
        (event({"choices": [{"error": {"message": "full", "code": 502}}]}), None, 502),
    ],
)
def test_an_error_told_inside_the_stream(sent, type, code):
    reply = Assembler()
    reply.add(event(says("Partial")))
    with pytest.raises(ProviderError, match="200 answer: full") as caught:
        reply.add(sent)
    error = caught.value
    assert (error.type, error.code, error.partial) == (type, code, "Partial")


def test_the_finish_reason_error_is_an_error():
    with pytest.raises(ProviderError):
        assemble(says("Partial"), says(finish="error"))


def test_an_error_that_is_null_is_none():
    assert assemble({"error": None, **says("a", finish="stop")}).text == "a"


def test_a_fault_of_the_decoder_keeps_the_text_too():
    with pytest.raises(MalformedStream, match="longer than") as caught:
        read_stream([wire(says("so far")) + b"x" * (1 << 21)])
    assert caught.value.partial == "so far"


# What is kept.


def test_only_text_of_choice_0_is_text():
    reply = assemble(
        says(None, role="assistant"),
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"index": 1, "delta": {"content": "B"}, "finish_reason": "stop"}]},
        says(reasoning_content="hm", refusal="no", function_call={"name": "f"}),
        {"choices": [{"delta": {"content": "A"}}, {"delta": {"content": "?"}}]},
        says("a", finish="stop"),
    )
    assert reply.text == "Aa"


def test_the_finish_reason_is_remembered():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    reply = assemble(
        {"id": "cmpl_1", **says("OK", finish="stop")},
        says(finish=""),
        {"id": "cmpl_1", "choices": [], "usage": usage},
    )
    assert (reply.finish_reason, reply.id) == ("stop", "cmpl_1")
    assert reply.usage == Usage(10, 5, 15)


def test_usage_on_every_chunk_counts_up_and_a_torn_one_changes_nothing():
    def counted(n):
        return {"usage": {"prompt_tokens": 3, "completion_tokens": n}}

    torn = {"usage": {"prompt_tokens": 3}}
    reply = assemble(
        says("a") | counted(1), says("b") | counted(2), says(finish="stop") | torn
    )
    assert reply.usage == Usage(3, 2, 5)


@pytest.mark.parametrize(
    "raw",
    [
        *[None, {}, [], "10", {"prompt_tokens": 1}],
        {"prompt_tokens": 0, "completion_tokens": 0},
        *[
            {"prompt_tokens": odd, "completion_tokens": 2}
            for odd in (-1, 1.5, True, "1")
        ],
    ],
)
def test_a_usage_that_is_no_count_is_unknown_not_zero(raw):
    assert assemble(says("a", finish="stop") | {"usage": raw}).usage is None


def test_the_details_of_a_usage_are_kept():
    raw = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10,
           "prompt_tokens_details": {"cached_tokens": 8}}  # fmt: skip
    usage = assemble(says("a", finish="stop") | {"usage": raw}).usage
    assert usage.raw["prompt_tokens_details"]["cached_tokens"] == 8


def test_signs_of_life_are_content_tool_calls_and_the_finish():
    reply = Assembler()
    piece = {"index": 0, "id": "c", "function": {"name": "f"}}
    signs = []
    silent = [says("", role="assistant"), {"choices": [], "usage": {}}, ": ping"]
    empty = says(tool_calls=[{"index": 0, "function": {"arguments": ""}}])
    spoken = [says("a"), says(tool_calls=[piece]), empty, says(finish="stop")]
    for chunk in [*silent, *spoken]:
        reply.add(event(chunk))
        signs.append((reply.signs, reply.opened))
    assert signs == [(0, False)] * 3 + [(1, True), (2, True), (2, True), (3, True)]


# Characters.


def test_a_surrogate_pair_cut_in_two_is_one_character():
    reply = Assembler()
    halves = [says("a\ud83c"), says("\udf0ab")]  # json.dumps escapes each as it is
    assert [reply.add(event(half)) for half in halves] == ["a", "\N{WATER WAVE}b"]


@pytest.mark.parametrize("end", [["\ud83c"], ["\udf0a"], ["\ud83c", "", ""]])
def test_half_a_pair_at_the_end_becomes_the_replacement_character(end):
    reply = assemble(says("a"), *map(says, end), says(finish="stop"))
    assert reply.text == "a\ufffd"


def test_text_is_what_was_given_out():
    reply = Assembler()
    pieces = ["x\ud83c", "\ud83c", "\udf0a", "y", "\udf0a\ud83c", "z\ud83c"]
    given_out = [reply.add(event(says(piece))) for piece in pieces]
    given_out.append(reply.add(event(says(finish="stop"))))
    assert "".join(given_out) == reply.text
    assert reply.text == "x\ufffd\N{WATER WAVE}y\ufffd\ufffdz\ufffd"


# A plain answer.


def test_a_plain_answer_is_read_by_the_same_rules():
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    sent = body({"content": "hi"}, id="c1", usage=usage)
    reply = Assembler.from_body(b"\xef\xbb\xbf" + sent + b"\n")  # a BOM does no harm
    assert (reply.text, reply.finish_reason, reply.id) == ("hi", "stop", "c1")
    assert reply.usage == Usage(1, 2, 3)
    assert reply.done


def test_the_tool_calls_of_a_plain_answer_are_calls_each_even_with_one_id():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "tool_calls": [call, call]}
    reply = Assembler.from_body(body(message, "tool_calls"))
    assert reply.tool_calls == (ToolCall("c", "f", "{}"),) * 2
    assert Assembler.from_body(body({"content": "a", "tool_calls": None})).text == "a"


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", EmptyStream),
        (b" \n", EmptyStream),
        (b"<html>Bad gateway</html>", MalformedStream),
        (b"{}", MalformedStream),
        (b'{"detail": "not found"}', MalformedStream),
        (b'{"choices": []}', MalformedStream),
        (b'{"choices": [{"index": 1, "message": {"content": "B"}}]}', MalformedStream),
        (b'{"choices": [{"finish_reason": "stop"}]}', MalformedStream),
        (b'{"choices": [{"message": {"content": 1}}]}', MalformedStream),
        (b'{"error": {"message": "full", "type": "over"}}', ProviderError),
        (body({"content": "half"}, None), IncompleteStream),
        (body({"tool_calls": [{"id": "c", "function": {}}]}), MalformedStream),
    ],
)
def test_a_plain_answer_that_is_none(sent, error):
    with pytest.raises(StreamError) as caught:
        Assembler.from_body(sent)
    assert type(caught.value) is error


def test_a_half_plain_answer_keeps_its_text():
    with pytest.raises(IncompleteStream) as caught:
        Assembler.from_body(body({"content": "half"}, None))
    assert caught.value.partial == "half"
    assert "[DONE]" not in str(caught.value)


# Generated streams.


@given(st.lists(st.text()), st.booleans())
def test_any_text_comes_back(pieces, ascii_only):
    chunks = [json.dumps(says(piece), ensure_ascii=ascii_only) for piece in pieces]
    reply = read_stream([wire(*chunks, says(finish="stop"), "[DONE]")])
    assert reply.text == "".join(pieces)


CHUNKS = st.lists(
    st.sampled_from(
        [says("a"), says("\ud83c"), says("\udf0a"), says(finish="stop"), "[DONE]",
         ": ping", "{bad", {"error": {"message": "full"}}, {"choices": [], "usage": {}},
         says(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f"}}])]
    ),
    max_size=8,
)  # fmt: skip


def outcome(chunks: list[bytes]) -> tuple:
    """What came of a stream. An error that is not ours goes through."""
    try:
        reply = read_stream(chunks)
    except StreamError as error:
        return type(error), error.partial
    return reply.text, reply.finish_reason, reply.tool_calls, reply.usage


@given(cut_bodies(st.builds(lambda chunks, tail: wire(*chunks) + tail, CHUNKS, BODIES)))
def test_however_it_is_cut_the_outcome_is_the_same(case):
    whole, chunks = case
    assert outcome(chunks) == outcome([whole])


KEYS = (
    "choices index delta message content tool_calls function name id arguments"
    " finish_reason usage error type code"
).split()
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(JSON, st.sampled_from(["message", "error", "ping"]))
def test_no_json_at_all_raises_anything_untyped(value, name):
    data = json.dumps({"choices": [value]} if isinstance(value, dict) else value)
    for read in (
        lambda: Assembler().add(SSEEvent(data, name)),
        lambda: Assembler.from_body(data.encode()),
    ):
        try:
            read()
        except StreamError as error:
            str(error).encode()
