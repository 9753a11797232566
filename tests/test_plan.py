"""Which fault a request asks for: read strictly, echoed so that it can be read back."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock.plan import PARSERS, BadFault, Plan, is_path_fault, parse, path_pairs

WORKS = {
    "hang": ["", "1", "true", "TRUE"],
    "status": ["200", "401", "529", "599"],
    "retry_after": ["1", "0", "-1", "0.5"],
    "delay": ["0", "0.5", "60", "86400000", "0.0000001"],
    "first": ["0", "1234567.25"],
    "max_tokens": ["1", "1000000"],
    "stall": ["0", "5"],
    "cut": ["0", "5"],
    "how": ["close", "truncate", "reset"],
    "error": ["0", "3"],
    "answer": ["tide", "accent", "tool"],
    "length": ["1", "100000"],
    "role": ["1"],
    "lines": ["lf", "crlf", "cr"],
    "comments": ["1"],
    "split": ["1"],
    "pack": ["1", "1000"],
    "slice": ["1"],
    "leave": ["stop", "finish"],
}
FAILS = {
    "hang": ["yes", "2", " "],
    "status": ["", "99", "199", "600", "4o1", "٤٠١", "-1", "401.0", "0x191"],
    "retry_after": [
        "soon", "nan", "inf", "1e999", "é", "a\nb", "\u2028", "1" * 201,
        "1e3", "1_0", "1.", ".5", "+1", "0x1",
    ],
    "delay": [
        "", "-1", "nan", "inf", "fast", "86400001", "1e999",
        "1e3", "1_0", "1.", " 1", "1\n", "\u0661",
    ],
    "max_tokens": ["0", "-1", "1.5", "1000001", "9" * 5000, "True", "None"],
    "cut": ["-1", "five", "", "1e3", "²"],
    "how": ["", "Reset", "gently"],
    "answer": ["", "storm"],
    "lines": ["\n", "nel"],
    "pack": ["0", "1001"],
    "slice": ["0"],
    "leave": ["stay"],
}  # fmt: skip


@pytest.mark.parametrize("field, text", [(f, t) for f in WORKS for t in WORKS[f]])
def test_a_fault_is_understood_and_its_echo_says_the_same(field, text):
    plan = parse([(field, text)])
    assert parse(parse_qsl(str(plan), keep_blank_values=True)) == plan


@pytest.mark.parametrize("field, text", [(f, t) for f in FAILS for t in FAILS[f]])
def test_a_bad_fault_is_refused_by_name(field, text):
    with pytest.raises(BadFault) as caught:
        parse([(field, text)])
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


def test_an_unknown_fault_is_refused_with_the_known_ones():
    with pytest.raises(BadFault, match="no such fault; there are: hang, status"):
        parse([("colour", "red")])


def test_a_fault_given_twice_is_refused():
    with pytest.raises(BadFault, match="cut: given twice"):
        parse([("cut", "1"), ("cut", "1")])


def test_every_field_of_a_plan_can_be_asked_for():
    assert list(PARSERS) == list(Plan.__dataclass_fields__)


def test_a_plan_is_laid_over_another():
    queued = parse([("status", "503"), ("delay", "5")])
    assert parse([("delay", "7")], queued) == Plan(status=503, delay=7)


def test_a_made_up_retry_after_must_say_that_it_is():
    words = [("retry_after", "Wed, 21 Oct 2015 07:28:00 GMT")]
    with pytest.raises(BadFault, match="use retry_form=raw"):
        parse(words)
    plan = parse([*words, ("retry_form", "raw")])
    assert plan.retry_after == "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize("form", ["seconds", "date", "ms"])
@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1e10", "", "soon"])
def test_a_date_is_only_made_from_a_number(form, text):
    with pytest.raises(BadFault, match="retry_after"):
        parse([("retry_after", text), ("retry_form", form)])


@given(
    st.dictionaries(
        st.sampled_from(list(PARSERS)),
        st.one_of(
            st.integers(0, 1000).map(str), st.floats().map(str), st.text(max_size=12)
        ),
    )
)
def test_any_text_is_understood_or_refused(faults):
    try:
        plan = parse(faults.items())
    except BadFault:
        return
    echo = str(plan)
    assert echo.isascii() and echo.isprintable()  # it must fit into a header
    assert parse(parse_qsl(echo, keep_blank_values=True)) == plan


@pytest.mark.parametrize(
    "segment, pairs",
    [
        ("hang", [("hang", "1")]),
        ("401", [("status", "401")]),
        ("delay=60", [("delay", "60")]),
        ("cut=5,how=close", [("cut", "5"), ("how", "close")]),
        ("hang=1,delay", [("hang", "1"), ("delay", "")]),
    ],
)
def test_a_path_names_its_faults(segment, pairs):
    assert is_path_fault(segment)
    assert path_pairs(segment) == pairs


@pytest.mark.parametrize("segment", ["v1", "", "stats", "admin", "chat"])
def test_other_paths_are_no_faults(segment):
    assert not is_path_fault(segment)
