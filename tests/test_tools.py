"""The catalogue, and the model's arguments: whatever it sends is read or refused."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labkit.errors import ConfigError
from labkit.state import RunState
from labkit.tools import NO_PARAMETERS, Tool, as_text, catalogue, read_arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "mode": {"type": "string", "enum": ["head", "tail"]},
        "after": {"type": ["string", "null"]},
    },
    "required": ["path"],
}


OPEN = {"type": "object", "additionalProperties": True}


def tool(parameters=SCHEMA, name="read_file") -> Tool:
    return Tool(name, "Read.", parameters, run=print)


def test_the_catalogue_has_its_keys_in_order():
    said = json.dumps(catalogue([tool(NO_PARAMETERS)]))
    assert said == (
        '[{"type": "function", "function": {"name": "read_file", "description":'
        ' "Read.", "parameters": {"type": "object", "properties": {}}}}]'
    )


@pytest.mark.parametrize("tools", [[tool(), tool()], [tool(name="")]])
def test_two_tools_of_one_name_are_refused(tools):
    with pytest.raises(ConfigError, match="tools"):
        catalogue(tools)


@pytest.mark.parametrize("text", ["", "  ", "{}", " {} \n"])
def test_nothing_is_no_arguments(text):
    assert read_arguments(text, tool(NO_PARAMETERS)) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "path is missing"),
        ('{"lines": 3}', "path is missing"),
        ('{"path": 3}', "path must be of type string"),
        ('{"path": "a", "lines": "3"}', "lines must be of type integer"),
        ('{"path": "a", "lines": true}', "lines must be of type integer"),
        ('{"path": "a", "lines": 1.5}', "lines must be of type integer"),
        ('{"path": "a", "mode": "all"}', 'mode must be one of ["head", "tail"]'),
        ('{"path": "a", "after": 1}', "after must be of type string or null"),
        ('{"path": "a", "file": "b"}', "file is unknown"),
        (f'{{"path": "a", "{"b" * 9_000}": 1}}', f"{'b' * 57}... is unknown"),
        ("[1]", "one JSON object"),
        ("null", "one JSON object"),
        ('"{}"', "one JSON object"),
        ('{"path": NaN}', "NaN"),
        ('{"path": "a", "lines": Infinity}', "Infinity"),
        ('{"path": "a", "lines": 1e999}', "JSON"),
        ('{"path": "a"', "one JSON object"),
        ('{"path": "a"} and more', "follows"),
        ("not json", "one JSON object"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_fault_is_named_with_its_mend(text, said):
    with pytest.raises(ValueError) as error:
        read_arguments(text, tool())
    words = str(error.value)
    assert said in words
    assert "read_file" in words
    assert "path (string)" in words and "lines (integer, optional)" in words
    assert len(words) < 400  # the model pays for each of them, turn after turn


def test_what_fits_is_read():
    text = '{"path": "a", "lines": 3, "mode": "tail", "after": null}'
    assert read_arguments(text, tool()) == json.loads(text)


def test_unknown_names_are_for_a_tool_that_says_so():
    open_schema = SCHEMA | {"additionalProperties": True}
    assert read_arguments('{"path": "a", "b": 1}', tool(open_schema))["b"] == 1


def test_a_type_that_we_do_not_know_is_not_checked():
    odd = {"type": "object", "properties": {"x": {"type": "date"}, "y": {}}}
    assert read_arguments('{"x": true, "y": []}', tool(odd)) == {"x": True, "y": []}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text() | json_values.map(json.dumps))
@example('{"path": "\\ud800"}')
def test_any_text_is_read_or_refused_in_words(text):
    """Never another exception; and what was read can be written again."""
    for schema in (SCHEMA, {"type": "object", "additionalProperties": True}):
        try:
            arguments = read_arguments(text, tool(schema))
        except ValueError as error:
            assert "read_file" in str(error)
        else:
            assert isinstance(arguments, dict)
            json.dumps(arguments, allow_nan=False)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def can_be_read(depth: int) -> bool:
    with suppress(ValueError):
        return bool(read_arguments(nested(depth), tool(OPEN)))
    return False


def test_what_is_read_can_stand_in_a_state_however_deep_it_is():
    """Between what Python reads and what it writes there are a few levels."""
    good, bad = 1, 200_000
    assert can_be_read(good) and not can_be_read(bad)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if can_be_read(middle) else (good, middle)
    state = RunState("n1", "m", [], status="interrupted")
    for depth in range(max(good - 3, 1), good + 1):
        about = {"type": "approval", "args": json.loads(nested(depth))}
        state.interruption = about
        text = RunState("n0", "m", [], children={"c1": state}).to_json()
        # The texts, since Python 3.12 compares no dicts as deep as it reads them.
        assert RunState.from_json(text).to_json() == text


@pytest.mark.parametrize("anything", [True, {}])
def test_a_property_that_may_be_anything(anything):
    schema = {"type": "object", "properties": {"a": anything}, "required": ["a"]}
    assert read_arguments('{"a": [1]}', tool(schema)) == {"a": [1]}
    with pytest.raises(ValueError, match=r"a is missing. It takes a \(any\)"):
        read_arguments("{}", tool(schema))


def test_results_are_text():
    assert as_text("as it is") == "as it is"
    assert as_text(["ä", 1]) == '["ä",1]'
    assert as_text(None) == "null"
    assert as_text({1, 2}.__class__) == json.dumps(str(set))
