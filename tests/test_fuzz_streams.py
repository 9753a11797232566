"""Generated streams, short: the reader, the assembler, and the generators themselves.

`make verify` runs the same checks for minutes, and more of them.
"""

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings

from tests.verify.assembler import BODIES, EVENTS, check_body, check_events
from tests.verify.decoders import READERS, SMALLEST, shows
from tests.verify.section import cases
from tests.verify.standard import Ways, read
from tests.verify.streams import cut, legal_stream

short = settings(max_examples=60, derandomize=True)


@short
@given(EVENTS)
def test_any_events_are_a_whole_reply_or_a_typed_error_with_its_text(events):
    check_events(events)


@short
@given(BODIES)
def test_any_body_is_a_whole_reply_or_a_typed_error(body):
    check_body(body)


# The grammar of the standard, "Parsing an event stream", in bytes.
LEGAL = re.compile(
    rb"(\xef\xbb\xbf)?(([^:\r\n]+(:[^\r\n]*)?|:[^\r\n]*)?(\r\n|\r|\n))*"
)  # fmt: skip
SEEN = {
    "a byte order mark": rb"\A\xef\xbb\xbf", "CRLF": rb"\r\n", "CR": rb"\r[^\n]",
    "LF": rb"[^\r]\n", "a comment": rb"(?m)^:", "no colon": rb"(?m)^data$",
    "no space": rb"data:[^ ]", "two spaces": rb"data:  ", "empty data": rb"(?m)^data:$",
    "two data lines": rb"data[^\r\n]*[\r\n]+data", "an id": rb"(?m)^id:.",
    "an id with NUL": rb"(?m)^id:.*\0", "a retry": rb"(?m)^retry: 250",
    "a type": rb"(?m)^event: .", "an unknown field": rb"(?m)^datax",
    "two bytes": rb"[\xc2-\xdf][\x80-\xbf]", "three bytes": rb"\xe2\x80\xa8",
    "four bytes": rb"\xf4\x8f\xbf\xbf", "no last empty line": rb"data[^\r\n]*[\r\n]?\Z",
    "nothing at all": rb"\A\Z",
}  # fmt: skip


def test_the_streams_are_legal_and_have_all_that_the_grammar_has():
    seen = Counter()
    for _, rng in cases(60, seed=1, most=1500):
        body = legal_stream(rng)
        body.decode()
        if body.endswith((b"\n", b"\r")):  # else it is one that was cut off
            assert LEGAL.fullmatch(body), body
        seen.update(name for name, what in SEEN.items() if re.search(what, body))
        chunks = cut(body, rng)
        assert b"".join(chunks) == body
    assert seen.keys() == SEEN.keys()
    assert min(seen.values()) > 5, seen


@pytest.mark.parametrize("way", Ways)
def test_the_smallest_streams_cannot_be_made_smaller(way):
    body = SMALLEST[way]
    assert shows(way, (way,), body)
    for at in range(len(body)):
        assert not shows(way, (way,), body[:at] + body[at + 1 :])


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_the_ways_that_are_told_of_it_and_no_others(name):
    reader, ways = READERS[name]
    for way in Ways:
        body = SMALLEST[way]
        got = list(reader([body]))
        assert got == read(body, *ways)
        if way is not Ways.NO_TYPE:  # it shows in every stream
            assert (got == read(body, *(w for w in ways if w is not way))) == (
                way not in ways
            )


def test_a_case_can_be_repeated():
    first = [(case, rng.random()) for case, rng in cases(60, seed=7, most=3)]
    assert first == [(case, rng.random()) for case, rng in cases(60, seed=7, most=3)]
    assert first[2] == ("seed 7, case 2", Random("7/2").random())
    assert len(list(cases(0, seed=7))) == 1
