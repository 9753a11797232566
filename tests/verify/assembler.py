"""Any events at all, in any order: a whole reply, or a typed error that keeps the text.

From "nearly a chat stream" to "no JSON", streamed and plain.
"""

import json
from random import Random

from hypothesis import strategies as st

from labkit.assemble import Assembler, read_stream
from labkit.errors import StreamError
from labkit.reply import Reply, Timings
from labkit.sse import SSEEvent
from labkit.state import RunState, new_run
from labkit.transcript import assistant_message, call_ids
from tests.verify.explore import explore
from tests.verify.mutations import change, damage
from tests.verify.section import Section, Tally, cases

NAME = "assembler"

TEXT = st.text(max_size=4) | st.sampled_from(
    ["\ud83c", "\udf0a", "[DONE]", "\0", "\u2028", "{}", '{"a":', "stop", "error"]
)
NUMBERS = st.integers(-2, 130) | st.integers() | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
KEYS = st.sampled_from(
    "id object choices index delta message content tool_calls function name arguments"
    " finish_reason usage prompt_tokens completion_tokens total_tokens error type code"
    " prompt_tokens_details cached_tokens".split()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def perhaps(right: st.SearchStrategy) -> st.SearchStrategy:
    """What belongs there, mostly; sometimes anything."""
    return st.one_of(*[right] * 9, JSON)


def record(**fields: st.SearchStrategy) -> st.SearchStrategy:
    """An object with some of the fields, each mostly right."""
    return st.fixed_dictionaries(
        {}, optional={name: perhaps(value) for name, value in fields.items()}
    )


FUNCTION = record(name=TEXT, arguments=TEXT)
CALL = record(index=st.integers(0, 3), id=TEXT, function=FUNCTION)
DELTA = record(content=TEXT, tool_calls=st.lists(CALL, max_size=3), role=TEXT)
REASON = st.none() | st.sampled_from(["stop", "length", "tool_calls", "error", ""])
CHOICE = record(
    index=st.integers(0, 1), delta=DELTA, message=DELTA, finish_reason=REASON
)
COUNT = st.integers(0, 10**6)
USAGE = record(prompt_tokens=COUNT, completion_tokens=COUNT, total_tokens=COUNT)
CHUNK = record(
    id=TEXT, choices=st.lists(perhaps(CHOICE), max_size=2), usage=st.none() | USAGE
)
DATA = st.one_of(
    *[CHUNK.map(json.dumps)] * 6,
    JSON.map(json.dumps),
    st.sampled_from(["[DONE]", " [DONE]\n", "[DONE]x", "", ": ping", "{", "[" * 5000]),
    st.text(max_size=5),
)
EVENTS = st.lists(
    st.builds(SSEEvent, DATA, st.sampled_from(["message"] * 8 + ["error", "ping"])),
    max_size=8,
)
BODIES = DATA.map(lambda data: data.encode("utf-8", "surrogatepass"))


def chunk(delta: dict, finish: str | None = None, **more) -> dict:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def call(**fields) -> dict:
    return {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}, **fields}]}


# By the book, to be changed.
CHUNKS = (
    chunk({"role": "assistant", "content": ""}, id="cmpl_1"),
    *(chunk({"content": text}) for text in ("A tide", "\ud83c", "\udf0a")),
    chunk(call(id="c1", function={"name": "look", "arguments": ""})), chunk(call()),
    chunk(call(index=1, id="c2", function={"name": "note"})),
    chunk({"tool_calls": [{"id": "c3", "function": {"name": "look"}}]}),
    chunk({}, "stop"), chunk({}, "tool_calls"), chunk({"content": "x"}, "length"),
    {"choices": [], "usage": {"prompt_tokens": 204, "completion_tokens": 23,
                              "prompt_tokens_details": {"cached_tokens": 8}}},
    {"error": {"message": "full", "type": "overloaded", "code": 529}},
)  # fmt: skip
BODY = {
    "id": "cmpl_1", "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "A tide", "tool_calls": [
            {"id": "c1", "function": {"name": "look", "arguments": "{}"}},
            {"id": "c1", "function": {"name": "note", "arguments": "{"}}]}}],
    "usage": {"prompt_tokens": 204, "completion_tokens": 23, "total_tokens": 227},
}  # fmt: skip


def changed_stream(rng: Random) -> list[SSEEvent]:
    """Chunks in any order, a few of them with something wrong."""
    events = []
    for each in rng.choices(CHUNKS[:-1], k=rng.randrange(8)) + [chunk({}, "stop")]:
        value = change(each, rng) if rng.random() < 0.3 else each
        data = json.dumps(value)
        if rng.random() < 0.03:
            data = damage(data.encode(), rng).decode(errors="replace")
        events.append(SSEEvent(data, "error" if rng.random() < 0.01 else "message"))
    if rng.random() < 0.05:
        events.insert(rng.randrange(len(events)), SSEEvent(json.dumps(CHUNKS[-1])))
    return [*events, SSEEvent("[DONE]")][: rng.randrange(1, 12)]


def changed_body(rng: Random) -> bytes:
    body = json.dumps(change(BODY, rng)).encode()
    return damage(body, rng) if rng.random() < 0.1 else body


def check_events(events: list[SSEEvent]) -> bool:
    """A stream, event by event. Was it a whole reply?"""
    reply, given_out, signs = Assembler(), "", 0
    try:
        for event in events:
            given_out += reply.add(event)
            assert reply.signs >= signs
            signs = reply.signs
        reply.finish()
    except StreamError as error:
        assert error.partial == reply.text == given_out
        check_words(error)
        return False
    assert reply.text == given_out
    check_reply(reply)
    return True


def check_body(body: bytes) -> None:
    """The same rules, for the body of a plain answer; and for it as a stream."""
    for get in (Assembler.from_body, lambda body: read_stream([body])):
        try:
            reply = get(body)
        except StreamError as error:
            check_words(error)
        else:
            check_reply(reply)


def check_words(error: StreamError) -> None:
    said = str(error)
    assert said and len(said) < 1000
    f"{said}{error.partial}".encode()  # no half characters


def check_reply(reply: Assembler) -> None:
    """What is called whole can be used: kept in a state, and sent back."""
    assert reply.finish_reason
    assert all(call.name for call in reply.tool_calls)
    whole = Reply(
        reply.text, reply.tool_calls, reply.finish_reason, reply.usage,
        Timings(0, None, 0), (), {}, reply.id,
    )  # fmt: skip
    state = new_run("plan", "hi", run_id="n1")
    ids = call_ids(whole, state.messages, 1)
    assert len(set(ids)) == len(reply.tool_calls) and all(ids)
    state.messages.append(assistant_message(whole, ids))
    assert RunState.from_json(state.to_json()) == state
    if reply.usage:
        assert reply.usage.prompt_tokens >= 0 and reply.usage.completion_tokens >= 0
        json.dumps(reply.usage.raw, allow_nan=False)
    f"{reply.text}{reply.finish_reason}{reply.id}".encode()


def run(budget_s: float, seed: int) -> Section:
    streams = Tally("chat streams with chunks changed, lost and moved")
    answers = Tally("plain answers with values changed")
    events, bodies = Tally("any JSON as events"), Tally("any JSON as a body")
    whole = 0
    for case, rng in cases(budget_s / 2, seed):
        with streams.attempt(case):
            whole += check_events(changed_stream(rng))
        with answers.attempt(case):
            check_body(changed_body(rng))
    explore(events, EVENTS, check_events, budget_s / 4, seed)
    explore(bodies, BODIES, check_body, budget_s / 4, seed)
    note = (
        f"{whole:,} of the changed chat streams were whole all the same: their reply"
        " went into a state and back. The others raised a StreamError with their text."
    )
    return Section(NAME, [streams, answers, events, bodies], [note])
