"""The openai SDK's own accumulator as a judge, on streams that are by the book."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from labkit.assemble import read_stream

TEXT = st.text(max_size=8)
CALLS = st.lists(
    st.lists(TEXT, max_size=3), max_size=3
)  # each: its arguments in pieces


@st.composite
def streams_by_the_book(draw) -> list[dict]:
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text} for text in draw(st.lists(TEXT, max_size=5))]
    calls = draw(CALLS)
    for index, pieces in enumerate(calls):
        function = {"name": f"tool_{index}", "arguments": ""}
        head = {"index": index, "id": f"c{index}", "type": "function"}
        deltas.append({"tool_calls": [{**head, "function": function}]})
        for piece in pieces:
            function = {"arguments": piece}
            deltas.append({"tool_calls": [{"index": index, "function": function}]})
    reasons = ["stop", "tool_calls"] if calls else ["stop"]
    reason = draw(st.sampled_from(reasons))
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    frame = {
        "id": "cmpl_1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
    }
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return [
        *({**frame, "choices": [choice]} for choice in choices),
        {**frame, "choices": [], "usage": usage},
    ]


@settings(max_examples=30)
@given(streams_by_the_book())
def test_the_openai_sdk_comes_to_the_same_reply(chunks):
    state = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    theirs = state.get_final_completion()
    said = theirs.choices[0].message

    ours = read_stream(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks)
    assert ours.text == (said.content or "")
    assert ours.finish_reason == theirs.choices[0].finish_reason
    assert ours.usage.raw == theirs.usage.model_dump(exclude_none=True)
    assert [(call.id, call.name, call.arguments) for call in ours.tool_calls] == [
        (call.id, call.function.name, call.function.arguments)
        for call in said.tool_calls or []
    ]
