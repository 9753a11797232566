"""Which call a piece belongs to: the book's way, and the ways of the wild."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.toolcalls import MAX_CALLS, ToolCall, ToolCalls


def piece(index=..., id=..., name=..., arguments=...) -> dict:
    """A delta with only the keys that are given."""
    function = {"name": name, "arguments": arguments}
    delta = {
        "index": index,
        "id": id,
        "function": {k: v for k, v in function.items() if v is not ...},
    }
    return {key: value for key, value in delta.items() if value is not ...}


def collect(*pieces: dict) -> list[tuple]:
    calls = ToolCalls()
    for delta in pieces:
        calls.add(delta)
    return [(call.id, call.name, call.arguments) for call in calls.whole()]


WAYS = {
    "by the book": [
        piece(0, "c1", "f", ""), piece(0, arguments="{1}"),
        piece(1, "c2", "g", ""), piece(1, arguments="{2}"),
    ],
    "interleaved": [
        piece(0, "c1", "f", "{"), piece(1, "c2", "g", "{"),
        piece(0, arguments="1}"), piece(1, arguments="2}"),
    ],
    "blank id and name later": [
        piece(0, "c1", "f", "{"), piece(0, "", "", "1}"),
        piece(1, "c2", "g", "{2"), piece(1, None, None, "}"),
    ],
    "id and name repeated": [
        piece(0, "c1", "f", "{"), piece(0, "c1", "f", "1}"),
        piece(1, "c2", "g", "{2"), piece(1, "c2", "g", "}"),
    ],
    "no index": [
        piece(id="c1", name="f", arguments="{"), piece(arguments="1}"),
        piece(None, "c2", "g", "{2"), piece(None, arguments="}"),
    ],
    "no index, interleaved by id": [
        piece(id="c1", name="f", arguments="{"), piece(id="c2", name="g"),
        piece(id="c1", arguments="1}"), piece(id="c2", arguments="{2}"),
    ],
    "no index, name later": [
        piece(id="c1"), piece(name="f", arguments="{1}"),
        piece(id="c2", name="g", arguments="{2}"),
    ],
    "some with an index, some without": [
        piece(id="c1", name="f", arguments="{"), piece(0, arguments="1}"),
        piece(1, "c2", "g", "{2"), piece(arguments="}"),
    ],
    "an index for calls that were opened without": [
        piece(id="c1", name="f", arguments="{1}"),
        piece(id="c2", name="g", arguments="{"), piece(1, arguments="2}"),
    ],
    "two calls under one index": [
        piece(0, "c1", "f", "{1}"), piece(0, "c2", "g", "{"), piece(0, arguments="2}"),
    ],
    "another id, but no name": [
        piece(0, "c1", "f", "{1"), piece(0, "other", "", "}"),
        piece(1, "c2", "g", "{2}"),
    ],
    "name later, index with a gap": [
        piece(0, "c1"), piece(0, name="f", arguments="{1}"), piece(7, "c2", "g", "{2}"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("pieces", WAYS.values(), ids=WAYS)
def test_ways_to_send_the_same_two_calls(pieces):
    assert collect(*pieces) == [("c1", "f", "{1}"), ("c2", "g", "{2}")]


def test_calls_with_neither_index_nor_id_are_told_apart_by_their_names():
    assert collect(
        piece(name="f", arguments="{1}"), piece(id="", name="f", arguments="{2}")
    ) == [("", "f", "{1}"), ("", "f", "{2}")]


def test_a_name_in_pieces_is_joined():
    assert collect(piece(0, "c", "read_"), piece(0, name="file")) == [
        ("c", "read_file", "")
    ]


def test_arguments_are_the_text_as_sent():
    pieces = piece(0, "c", "f", "\ud83c"), piece(0, arguments="\udf0a no JSON")
    assert collect(*pieces) == [("c", "f", "\N{WATER WAVE} no JSON")]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, arguments="{}")],
        [piece(arguments="{}")],
        [piece(0, "c1", "f", '{"a"'), piece(1, arguments=":1}")],
        [piece(-1, "c", "f")],
        [piece(MAX_CALLS, "c", "f")],
        [piece(10**30, "c", "f")],
        [piece("0", "c", "f")],
        [piece(0.0, "c", "f")],
        [piece(True, "c", "f")],
        [piece(0, 7, "f")],
        [piece(0, "c", ["f"])],
        [piece(0, "c", "f", {"a": 1})],
        [{"index": 0, "id": "c", "function": "f"}],
        [piece(id=f"c{n}", name="f") for n in range(MAX_CALLS + 1)],
        [piece(0, f"c{n}", "f") for n in range(MAX_CALLS + 1)],
    ],
    ids=lambda pieces: json.dumps(pieces[-1])[:50],
)
def test_what_belongs_to_no_call_or_is_of_no_use_is_refused(pieces):
    with pytest.raises(ValueError):
        collect(*pieces)


CALLS = st.lists(
    st.builds(ToolCall, st.uuids().map(str), st.sampled_from("fgh"), st.text()),
    max_size=5,
)


@given(CALLS, st.data())
def test_however_the_arguments_are_cut_the_calls_come_back(calls, data):
    together = ToolCalls()
    for index, call in enumerate(calls):
        together.add(piece(index, call.id, call.name, ""))
    # Character by character, from whichever call has some left.
    left = {index: call.arguments for index, call in enumerate(calls) if call.arguments}
    while left:
        index = data.draw(st.sampled_from(sorted(left)))
        together.add(piece(index, arguments=left[index][0]))
        left[index] = left[index][1:]
        if not left[index]:
            del left[index]
    assert together.whole() == tuple(calls)
