"""A run goes through JSON whole, and nothing else passes for one."""

import dataclasses
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.conditions import RunLimits
from labkit.state import (
    DEPTH,
    KINDS,
    LIMITS,
    STATUSES,
    RunState,
    StateError,
    new_run,
    pending,
)
from labkit.toolcalls import ToolCall
from labkit.transcript import call_ids, tool_message
from tests.players import calls, says

text = st.text(max_size=20)
ids = st.text(min_size=1, max_size=8)


@st.composite
def asking(draw):
    asked = draw(st.dictionaries(ids, st.tuples(text, text), max_size=3))
    return {
        "role": "assistant",
        "content": draw(st.none() | text),
        "tool_calls": [
            {"id": id, "type": "function", "function": {"name": n, "arguments": a}}
            for id, (n, a) in asked.items()
        ],
    }


messages = st.lists(
    st.builds(lambda r, c: {"role": r, "content": c}, st.sampled_from("us"), text)
    | asking()
    | st.builds(
        lambda i, c: {"role": "tool", "tool_call_id": i, "content": c}, ids, text
    ),
    max_size=5,
)
decisions = st.lists(
    st.fixed_dictionaries(
        {"call_id": ids, "tool_name": text, "arguments": text, "words": text}
    ),
    max_size=2,
)
childless = st.just({})
count = st.integers(0, 10**12)


def states(children):
    return st.builds(
        RunState, run_id=text, model=text, messages=messages,
        status=st.sampled_from(STATUSES),
        interruption=st.none() | st.dictionaries(text, text, max_size=3).map(
            lambda about: {"type": "approval"} | about
        ),
        turns=count, tool_runs=count, prompt_tokens=count, completion_tokens=count,
        context_tokens=count, unpriced_turns=count, revision=count,
        own_cost=st.decimals(0, 10**6, allow_nan=False, places=9),
        asking=st.none() | text, approvals=decisions, rejections=decisions,
        started=st.lists(text, max_size=2), children=children,
        remembered=st.dictionaries(text, text, max_size=2),
        output=st.none() | text, error=st.none() | text,
        limits=st.none() | st.just({"max_turns": 20, "max_budget_usd": "0.05"}),
    )  # fmt: skip


@given(states(st.dictionaries(ids, states(childless), max_size=2)))
def test_a_run_goes_through_json_whole(state):
    said = state.to_json()
    assert said.isascii() and "\n" not in said
    again = RunState.from_json(said)
    assert again == state
    assert again.to_json() == said
    assert again.cost == state.cost


def test_every_field_is_in_the_file():
    assert {each.name for each in dataclasses.fields(RunState)} == set(KINDS)
    assert RunLimits().as_dict().keys() == LIMITS


def asks(**function) -> dict:
    """A message with a call."""
    function = {"name": "look", "arguments": "{}"} | function
    return {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}


def decided(**changes) -> dict:
    return {"call_id": "c1", "tool_name": "rm", "arguments": "{}"} | changes


def file(**changes) -> str:
    return json.dumps(
        json.loads(new_run("plan", "hi", run_id="n1").to_json()) | changes
    )


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("{bad json", "Expecting"),
        ("null", "not an object"),
        ("[]", "not an object"),
        (file() + "trailing", "follows"),
        (file()[:-1], "Expecting"),
        ('{"a": 1}', "version is None"),
        (file(version=2), "version 2, and this labkit reads up to 1: update labkit"),
        (file(version="1"), "version is '1'"),
        (file(version=True), "version is True"),
        (file(extra=1), "unknown: extra"),
        (file(**{"\ud83c\n\x1b[2J": 1}), "unknown: [2J. Nothing"),
        (file(**{"x" * 10_000: 1}), "xxx.... Nothing"),
        (file(turns="3"), "`turns` is of type str, not int"),
        (file(turns=True), "`turns` is of type bool"),
        (file(status="done"), "`status` is 'done'"),
        (file(own_cost="much"), "own_cost is 'much'"),
        (file(own_cost="NaN"), "own_cost"),
        (file(own_cost=0.1), "`own_cost` is of type float"),
        (file(turns=-1), "`turns` is -1"),
        (file(started=[1]), "`started` holds something that is no text"),
        (file(remembered={"look {}": 1}), "`remembered` holds"),
        (file(interruption={"type": []}), "`interruption` holds"),
        (file(limits={"max_turns": 1}), "`limits` must be"),
        (file(limits={"max_turns": 1, "max_budget_usd": None, "x": 1}), "`limits`"),
        (file(messages=[1]), "`messages[0]` is no message"),
        (file(messages=[asks(name={})]), "`messages[0]` is torn"),
        (file(messages=[asks(arguments=None)]), "`messages[0]` is torn"),
        (file(messages=[{"role": "tool", "tool_call_id": ["c1"]}]), "is torn"),
        (file(messages=[{"role": "tool", "content": ""}]), "`messages[0]` is torn"),
        (file(messages=[{"role": "assistant", "tool_calls": [{}]}]), "is torn"),
        (file(approvals=["c1"]), "`approvals`"),
        (file(approvals=[decided(tool_name=None)]), "`approvals` holds"),
        (file(rejections=[decided()]), "`rejections` holds something that names"),
        (file(rejections=[decided(words=1)]), "`rejections` holds something that is"),
        (file(children={"c1": {}}), "version is None"),
        (file(children={"c1": 1}), "not an object"),
    ],
)
def test_what_is_no_state_is_refused_with_its_place(said, about):
    with pytest.raises(StateError) as error:
        RunState.from_json(said, "runs/n1.json")
    words = str(error.value)
    assert about in words
    assert words.encode() and len(words) < 600  # fit for a terminal
    assert "runs/n1.json" in words and error.value.path == "runs/n1.json"
    assert "Nothing was changed" in words and "restore" in words


@pytest.mark.parametrize("depth", [3, 150, 151, 400, 495, 3000])
def test_subagents_in_subagents_without_end_are_refused_in_words(depth):
    start, end = file().split('"children": {}')
    said = (start + '"children": {"c":') * depth + file() + ("}" + end) * depth
    if depth <= DEPTH:
        assert RunState.from_json(said).to_json()
    else:
        with pytest.raises(StateError, match="deep"):
            RunState.from_json(said)


def test_the_place_of_a_tear_is_told():
    with pytest.raises(StateError) as error:
        RunState.from_json("{bad json", "n1.json")
    assert error.value.offset == 1


@given(st.text())
def test_any_text_is_a_state_or_a_state_error(said):
    try:
        RunState.from_json(said)
    except StateError as error:
        assert error.path is None


@given(st.data())
def test_any_damage_is_a_state_error_or_another_state(data):
    """A file with a byte changed never raises anything else."""
    said = file()
    at = data.draw(st.integers(0, len(said) - 1))
    damaged = said[:at] + data.draw(st.characters()) + said[at + 1 :]
    try:
        RunState.from_json(damaged)
    except StateError:
        pass


def test_a_new_run():
    state = new_run("plan", "hi", "be brief")
    assert [message["role"] for message in state.messages] == ["system", "user"]
    assert state.run_id != new_run("plan", "hi").run_id
    opening = [{"role": "user", "content": "hi"}]
    assert new_run("plan", opening).messages == opening
    assert new_run("plan", opening).messages is not opening


def test_cost_counts_the_children_s_children():
    def costing(amount, **children):
        return RunState("n", "m", [], own_cost=Decimal(amount), children=children)

    state = costing("0.1", a=costing("0.1", b=costing("0.1")), c=costing("0.7"))
    assert state.cost == 1


@given(messages, st.data())
def test_pending_is_what_was_asked_last_and_is_not_answered(before, data):
    """Whatever came before, and whichever of the calls have been answered."""
    asked = data.draw(asking())
    state = RunState("n1", "m", [*before, asked])
    wanted = [
        ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"])
        for c in asked["tool_calls"]
    ]
    assert pending(state) == wanted
    for call in data.draw(st.permutations(wanted)):
        state.messages.append(tool_message(call, "ok"))
        wanted.remove(call)
        assert pending(state) == wanted
    state.messages.append({"role": "user", "content": "and now?"})
    assert pending(state) == []


def test_ids_that_cannot_be_kept_are_made_up_and_stable():
    reply = calls(("", "f", ""), ("c1", "f", ""), ("c1", "g", ""), ("", "f", ""))
    ids = call_ids(reply, [], turn=3)
    assert ids == ["call_3_0", "c1", "call_3_2", "call_3_3"]
    assert ids == call_ids(reply, [], turn=3)
    clash = calls(("call_3_1", "f", ""), ("", "g", ""))
    assert call_ids(clash, [], turn=3) == ["call_3_1", "call_3_1_1"]
    assert call_ids(says("done"), [], turn=1) == []


def test_where_somebody_has_spoken_after_it_no_call_waits_any_more():
    """No provider takes its answer then, so it must not be run either."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    spoken = {"role": "user", "content": "never mind"}
    assert len(pending(RunState("n1", "m", [asked]))) == 1
    assert pending(RunState("n1", "m", [asked, spoken])) == []
