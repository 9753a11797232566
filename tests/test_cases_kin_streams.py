"""Siblings of the handed cases about bytes and chunks: the same kinds of fault in
other shapes. docs/cases.md says which decision each belongs to.
"""

import json

import pytest

from labkit.assemble import Assembler, read_stream
from labkit.errors import (
    EmptyStream,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    StreamError,
)
from labkit.sse import SSEEvent
from labkit.usage import Usage
from tests.handed import bodies, load_cases

DONE = "[DONE]"
STREAMS = load_cases("sse") + load_cases("chunks")


def says(content=None, finish=None, **delta) -> dict:
    if content is not None:
        delta["content"] = content
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def asks(index=0, id=None, name=None, arguments=None) -> dict:
    """One piece of a tool call."""
    function = {"name": name, "arguments": arguments}
    return says(tool_calls=[{"index": index, "id": id, "function": function}])


def wire(*chunks: dict | str | bytes) -> bytes:
    """An event each; bytes as they are."""
    texts = (c if isinstance(c, str | bytes) else json.dumps(c) for c in chunks)
    return b"".join(
        t if isinstance(t, bytes) else f"data: {t}\n\n".encode() for t in texts
    )


def heard(*chunks: dict | str | bytes) -> Assembler:
    return read_stream([wire(*chunks)])


def outcome(body: bytes):
    """All that a caller may depend on."""
    try:
        reply = read_stream([body])
    except StreamError as error:
        return type(error), error.partial
    return reply.text, reply.finish_reason, reply.tool_calls, reply.usage


# S07, S16, S18: the same stream in another legal spelling.


def replaced(body: bytes, old: bytes, new: bytes) -> bytes:
    """At the start of a line, the first one too."""
    return (b"\n" + body).replace(old, new)


SPELLINGS = {
    "CRLF": lambda body: body.replace(b"\n", b"\r\n"),
    "CR": lambda body: body.replace(b"\n", b"\r"),
    "mixed line ends": lambda body: body.replace(b"\n\n", b"\r\n\r"),
    "byte order mark": lambda body: b"\xef\xbb\xbf" + body,
    "ids": lambda body: replaced(body, b"\ndata", b"\nid: 7\nretry: 9\ndata"),
    "comments": lambda body: b": hb\n\n" + body.replace(b"\n\n", b"\n: hb\n\n: hb\n\n"),
    "blank lines": lambda body: body.replace(b"\n\n", b"\n\n\n\n"),
    "blank data": lambda body: body.replace(b"\n\n", b"\n\ndata\n\ndata: \n\n"),
    "unknown fields": lambda body: b"field: x\n" + body,
    "no space": lambda body: replaced(body, b"\ndata: ", b"\ndata:"),
    "keep-alives": lambda body: body.replace(
        b"\n\n", b"\n\ndata: : ping\n\nevent: ping\ndata: 1\n\n"
    ),
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case["id"])
def test_a_case_means_the_same_in_every_spelling(case, spell):
    for chunks in bodies(case):
        plain = b"".join(chunks).replace(b"\r\n", b"\n")
        assert outcome(spell(plain)) == outcome(plain)


def test_the_spellings_are_others():
    bodies_ = [b"".join(chunks) for case in STREAMS for chunks in bodies(case)]
    for name, spell in SPELLINGS.items():
        assert any(spell(body) != body for body in bodies_), name


# S01, S20: text.


@pytest.mark.parametrize("char", "\u2028\u2029\x85\ufeff\u200b\xa0\U0001f600")
def test_what_unicode_calls_a_line_end_or_a_space_is_text(char):
    raw = json.dumps(says(f"{char}a{char}"), ensure_ascii=False)
    assert heard(raw, says(finish="stop")).text == f"{char}a{char}"
    call = json.dumps(asks(0, "c", "f", char), ensure_ascii=False)
    assert heard(call, says(finish="tool_calls")).tool_calls[0].arguments == char


@pytest.mark.parametrize("char", "\x0b\x0c\x1c\x1e\x00")
def test_a_control_character_that_json_forbids_is_a_typed_error(char):
    raw = json.dumps(says("a?")).replace("?", char)
    with pytest.raises(MalformedStream) as caught:
        heard(says("so far"), raw)
    assert caught.value.partial == "so far"


# S05: the end mark.


@pytest.mark.parametrize(
    "mark",
    ["[DONE]\u00a0", "[DONE]\0", "[DONE][DONE]", "DONE", "\ufeff[DONE]", "[DONE],"],
)
def test_what_looks_like_the_end_mark_ends_nothing(mark):
    with pytest.raises(MalformedStream) as caught:
        heard(says("par"), says(finish="stop"), mark, {"error": {"message": "late"}})
    assert caught.value.partial == "par"


def test_the_end_mark_as_text_is_text():
    assert heard(says("[DONE]"), says("!", "stop"), DONE).text == "[DONE]!"


# S08: keep-alives sent as data.


@pytest.mark.parametrize("name", ["ping", "Ping", "keepalive", "keep-alive",
                                  "heartbeat"])  # fmt: skip
@pytest.mark.parametrize("data", ["ping", "2023-02-20 08:40:33", "{}", "[DONE]", ": x",
                                  '{"type": "ping"}'])  # fmt: skip
def test_an_event_with_the_name_of_a_keep_alive_is_one(name, data):
    beat = f"event: {name}\ndata: {data}\n\n".encode()
    reply = heard(beat, says("a"), beat, says("b", "stop"), beat, DONE)
    assert reply.text == "ab"
    with pytest.raises(EmptyStream):
        heard(beat)


def test_a_keep_alive_s_name_holds_for_one_event():
    reply = heard(b"event: ping\ndata: 1\n\n", says("a", "stop"))
    assert reply.text == "a"


@pytest.mark.parametrize("data", ["ping", "null", '""', "OK", "<html>"])
def test_a_word_without_such_a_name_is_malformed(data):
    with pytest.raises(MalformedStream) as caught:
        heard(says("a"), data, says("b", "stop"))
    assert caught.value.partial == "a"


# S10, S12: errors in other forms.

ODD_ERRORS = {
    "detail": b'data: {"detail": "boom"}\n\n',
    "message and code": b'data: {"message": "boom", "code": 500}\n\n',
    "errors": b'data: {"errors": ["boom"]}\n\n',
    "no choices": b'data: {"choices": null, "message": "boom"}\n\n',
    "field error": b"error: boom\n\n",
    "no field": b'{"error": "boom"}\n\n',
}


@pytest.mark.parametrize("told", ODD_ERRORS.values(), ids=ODD_ERRORS)
@pytest.mark.parametrize("text", ["", "half an "])
def test_an_error_in_an_unknown_form_is_told_when_no_answer_comes(told, text):
    for end in (b"", wire(DONE)):
        with pytest.raises(IncompleteStream, match="Left over: .*boom") as caught:
            heard(says(text), told, end)
        assert caught.value.partial == text


@pytest.mark.parametrize("data", ["", "[DONE]", ": x", "boom", '{"message": "boom"}'])
@pytest.mark.parametrize("name", ["error", "Error"])
def test_an_event_named_error_is_one_whatever_its_data(name, data):
    told = f"event: {name}\ndata: {data}\n\n".encode()
    for before in ([], [says("par")], [says("par", "stop")]):
        with pytest.raises(ProviderError) as caught:
            heard(*before, told, says("more", "stop"), DONE)
        assert caught.value.partial == ("par" if before else "")


def test_what_is_stray_in_a_whole_answer_does_no_harm():
    assert heard({"detail": "x"}, says("a", "stop"), {"object": "ping"}).text == "a"


# S14: a last event without its blank line.


def test_an_unended_usage_is_unknown_and_not_zero():
    usage = wire({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    assert heard(says("a", "stop"), usage).usage is not None
    reply = heard(says("a", "stop"), usage.removesuffix(b"\n"))
    assert (reply.text, reply.usage) == ("a", None)


def test_an_unended_error_is_told_and_an_unended_mark_is_not_missed():
    told = wire({"error": {"message": "boom"}}).removesuffix(b"\n")
    with pytest.raises(IncompleteStream, match="Left over: .*boom"):
        heard(says("a"), told)
    assert heard(says("a", "stop"), b"data: [DONE]").text == "a"


# S22, C03: an answer of nothing, and a whole one in a single event.


@pytest.mark.parametrize("chunk", [says("", role="assistant"), {}, {"choices": []},
                                   {"type": "ping"}, {"usage": {}}])  # fmt: skip
def test_chunks_that_say_nothing_are_no_answer(chunk):
    for end in ([], [DONE]):
        with pytest.raises(IncompleteStream):
            heard(chunk, *end)


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize("delta", [{}, {"delta": {}}, {"delta": None}])
def test_a_whole_message_in_one_event_is_the_answer(delta):
    message = {"role": "assistant", "content": "all", "tool_calls": [CALL, CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "stop", **delta}
    reply = heard({"object": "chat.completion", "choices": [choice]}, DONE)
    assert reply.text == "all" and len(reply.tool_calls) == 2


def test_a_message_that_repeats_the_deltas_is_not_read_twice():
    """Some servers send what has come so far beside each delta, or at the end."""

    def repeats(content, finish, **delta):
        choice = says(content, finish, **delta)["choices"][0]
        return {"choices": [{**choice, "message": {"content": so_far}}]}

    so_far = "a"
    chunks = [repeats("a", None)]
    so_far = "ab"
    chunks += [repeats("b", None), repeats(None, "stop")]
    assert heard(*chunks, DONE).text == "ab"


def test_a_message_that_grows_is_read_at_its_end():
    def grown(content, finish=None):
        choice = {"message": {"content": content}, "finish_reason": finish}
        return {"choices": [choice]}

    assert heard(grown("a"), grown("ab"), grown("abc", "stop")).text == "abc"
    with pytest.raises(IncompleteStream):
        heard(grown("a"), grown("ab"))


def test_an_answer_that_finished_without_a_word_is_what_it_says():
    """A refusal, or a model that thought until its tokens ran out: the caller sees an
    empty text and the reason."""
    reply = heard(says(refusal="I can't."), says(finish="stop"))
    assert (reply.text, reply.finish_reason) == ("", "stop")
    reply = heard(says(reasoning_content="hm"), says(finish="length"))
    assert (reply.text, reply.finish_reason) == ("", "length")


# C01, C18: usage.

COUNTED = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    "chunks",
    [
        [{"choices": None, "usage": COUNTED}, says("hi", "stop")],
        [says("hi", "stop"), {"usage": COUNTED}],
        [says("hi", "stop") | {"usage": COUNTED}],
        [says("hi") | {"usage": COUNTED}, says(finish="stop") | {"usage": None}],
        [says("hi") | {"usage": COUNTED | {"completion_tokens": 4}},
         says(finish="stop") | {"usage": COUNTED}],
        [says("hi", "stop") | {"usage": COUNTED},
         {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}],
    ],
    ids=["first", "no choices", "with the finish", "early", "on every chunk",
         "zero at the end"],
)  # fmt: skip
def test_usage_is_found_wherever_it_comes(chunks):
    assert heard(*chunks, DONE).usage == Usage(10, 5, 15)


@pytest.mark.parametrize(
    "counted",
    [
        {"prompt_tokens": 0, "completion_tokens": 5},
        {"prompt_tokens": 10**40, "completion_tokens": 5},
        {"prompt_tokens": 5, "completion_tokens": 10**13},
        {"input_tokens": 10, "output_tokens": 5},
    ],
    ids=lambda counted: str(counted)[:30],
)
def test_a_count_that_cannot_be_is_unknown(counted):
    assert Usage.read(counted) is None
    assert heard(says("a", "stop") | {"usage": counted}).usage is None


@pytest.mark.parametrize("total", [None, -1, 1.5, "15", True, 10**40])
def test_a_total_that_cannot_be_is_the_sum(total):
    assert Usage.read(COUNTED | {"total_tokens": total}).total_tokens == 15


# C06, C16, C18: the finish reason.


@pytest.mark.parametrize("word", ["null", "None", ""])
def test_a_null_that_became_a_word_finishes_nothing(word):
    assert heard(says("a", word), says("b", "stop")).text == "ab"
    with pytest.raises(IncompleteStream):
        heard(says("a", word), DONE)


@pytest.mark.parametrize("cut", ["length", "content_filter"])
def test_an_answer_that_was_cut_stays_cut(cut):
    """Also where a gateway adds a "stop" of its own."""
    assert heard(says("a", cut), says(finish="stop"), DONE).finish_reason == cut
    assert heard(says("a", "stop"), says(finish=cut), DONE).finish_reason == cut


def test_no_beginning_of_an_answer_is_taken_for_the_answer():
    whole = wire(
        says("", role="assistant"), says("let me see"), asks(0, "c1", "f", '{"a":'),
        asks(0, None, None, "1}"), asks(1, "c2", "g", ""), says(finish="tool_calls"),
    )  # fmt: skip
    assert len(read_stream([whole]).tool_calls) == 2
    for end in range(len(whole)):
        with pytest.raises(IncompleteStream):
            read_stream([whole[:end]])


# C08 to C14: tool calls.


@pytest.mark.parametrize("reason", ["tool_calls", "function_call"])
def test_a_promised_call_that_never_came_is_no_answer(reason):
    with pytest.raises(MalformedStream, match="the call was lost"):
        heard(says("", role="assistant"), says(finish=reason), DONE)
    # With a text it is an answer: vllm-project/vllm#53255.
    assert heard(says("hello"), says(finish=reason)).text == "hello"


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_call_that_was_cut_off_before_its_arguments_is_no_call(reason):
    """Its "" would be read as no arguments, and the tool would run without any."""
    for pieces in (
        [asks(0, "c", "f", "")],
        [asks(0, "c", "f", "{}"), asks(1, "d", "g")],
    ):
        with pytest.raises(
            MalformedStream, match="cut off.*raise max_tokens"
        ) as caught:
            heard(says("so "), *pieces, says(finish=reason), DONE)
        assert caught.value.partial == "so "


@pytest.mark.parametrize(
    ("reason", "arguments"),
    [("length", "{}"), ("length", '{"a": "un'), ("content_filter", '{"a": 1}'),
     ("stop", ""), ("tool_calls", "")],
)  # fmt: skip
def test_other_calls_are_the_reader_s(reason, arguments):
    """Handed on: what becomes of a cut turn is the harness's to say."""
    reply = heard(asks(0, "c", "f", arguments), says(finish=reason), DONE)
    assert [call.arguments for call in reply.tool_calls] == [arguments]


@pytest.mark.parametrize("arguments", [{"a": 1}, ["a"], 1, True])
def test_arguments_that_are_no_text_are_refused(arguments):
    with pytest.raises(MalformedStream, match="arguments"):
        heard(asks(0, "c", "f", arguments), says(finish="tool_calls"))


# C20: other choices.


def test_another_choice_adds_nothing_and_takes_nothing():
    other = {"index": 1, "delta": {"content": "B", "tool_calls": [{"index": 9}]},
             "finish_reason": "length"}  # fmt: skip
    for place in (0, 1):
        chunks = [says("A"), says("a", "stop")]
        for chunk in chunks:
            chunk["choices"].insert(place, other)
        reply = heard(*chunks)
        assert (reply.text, reply.finish_reason, reply.tool_calls) == ("Aa", "stop", ())
    with pytest.raises(IncompleteStream):
        heard({"choices": [other]}, DONE)


def test_reasoning_is_a_sign_of_life_and_no_text():
    for name in ("reasoning_content", "reasoning", "refusal"):
        reply = Assembler()
        assert reply.add(SSEEvent(json.dumps(says("", **{name: ""})))) == ""
        assert not reply.opened
        assert reply.add(SSEEvent(json.dumps(says(None, **{name: "hm"})))) == ""
        assert reply.opened and reply.signs == 1
