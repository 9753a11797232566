"""`make verify` in short: nothing fails, what is broken is noticed, and the report in
the tree is one of the same sections without a failure.
"""

import asyncio
import importlib
import re
from types import SimpleNamespace

import pytest

import mock.sockets
from labkit import asking, assemble, state, trace
from tests.verify import __main__ as verify
from tests.verify import decoders, reader
from tests.verify.explore import explore
from tests.verify.report import Outcome, as_markdown
from tests.verify.section import Section, Tally, cases

MODULES = {
    name: importlib.import_module(f"tests.verify.{name}") for name in verify.SECTIONS
}
CHEAP = (
    "decoders", "reader", "assembler", "statefiles", "toolcalls", "tracelines", "door",
)  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_a_second_of_each_section_finds_nothing(name):
    outcome = verify.try_section(name, 1.0, seed=2)
    section = outcome.section
    assert section.failures == []
    assert section.name == MODULES[name].NAME
    assert all(tally.tried == tally.survived > 0 for tally in section.tallies)
    assert not any(tally.leaks for tally in section.tallies)


def few(budget_s, seed, most=None):
    """So many cases, however long they take."""
    return cases(600, seed, 80)


# One fault for each section, of a kind that it is there to find.


def no_ids(self, line, read=reader.SSEDecoder._read_field):
    if not line.startswith(b"id"):
        read(self, line)


def swallow(self, line):
    """A limit that does not hold."""


def ids_as_sent(reply, messages, turn):
    return [call.id for call in reply.tool_calls]


def origin(request):
    return request.headers["origin"]


BREAK = {
    "decoders": (decoders.SSEDecoder, "_read_field", no_ids),
    "reader": (reader.SSEDecoder, "_check", swallow),
    "assembler": (assemble, "mend", lambda text: text),
    "statefiles": (state, "check", lambda found: None),
    "toolcalls": (asking, "call_ids", ids_as_sent),
    "tracelines": (trace, "_is_torn", lambda path: False),
    "door": (mock.sockets, "forbidden", origin),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEAP)
def test_each_section_notices_a_fault(name, monkeypatch):
    monkeypatch.setattr(*BREAK[name])
    monkeypatch.setattr(MODULES[name], "cases", few)
    failures = verify.try_section(name, 1.0, seed=3).section.failures
    assert failures
    assert any(re.search(r"seed 3, |the first \d+ bytes", each) for each in failures)


# The parts that the sections are made of.


def test_what_an_attempt_raises_is_counted_and_told():
    tally = Tally("tries")
    with tally.attempt("case 1"):
        pass
    with tally.attempt("case 2"):
        raise OSError("full")
    assert (tally.tried, tally.survived) == (2, 1)
    [failure] = tally.failures
    assert re.fullmatch(r"case 2: OSError \(test_verify.py, line \d+\): full", failure)
    with pytest.raises(KeyboardInterrupt), tally.attempt("case 3"):
        raise KeyboardInterrupt


def test_leaks_add_up_and_are_failures():
    tally = Tally("visits")
    assert tally.leaks is None
    tally.left_over(0, "tasks")
    assert (tally.leaks, tally.failures) == (0, [])
    tally.left_over(2, "tasks")
    tally.left_over(1, "slots")
    assert tally.leaks == 3
    assert tally.failures == ["left over: 2 tasks", "left over: 1 slots"]


def test_hypothesis_reports_the_smallest_failure():
    from hypothesis import strategies as st

    def check(number):
        assert number < 100

    tally = Tally("numbers")
    explore(tally, st.integers(), check, 20, seed=1)
    assert tally.tried == tally.survived + 1
    [failure] = tally.failures
    assert "seed 1, batch" in failure and "example=100" in failure


def test_hypothesis_ends_in_time():
    from hypothesis import strategies as st

    tally = Tally("numbers")
    explore(tally, st.integers(), lambda number: None, 0.01, seed=1)
    assert tally.tried == tally.survived > 0 and not tally.failures


# The report.


def broken_section(budget_s, seed):
    tally = Tally("doors", leaks=0)
    for case, rng in cases(budget_s, seed, most=8):
        with tally.attempt(case):
            assert rng.random() > 2, "it fell\nin"
    return Section("house", [tally], ["A note."])


def test_a_failure_is_in_the_report_and_in_the_exit_code(monkeypatch, capsys):
    module = SimpleNamespace(NAME="house", run=broken_section)
    monkeypatch.setattr(verify, "SECTIONS", {"house": 1})
    monkeypatch.setattr(verify.importlib, "import_module", lambda name: module)
    assert verify.main(["--only", "house", "--quick", "--seed", "5"]) == 1
    said = capsys.readouterr().out
    assert "seed 5" in said and "8 failures" in said and "## Failures" in said
    assert "    house, doors: seed 5, case 0: AssertionError (test_verify.py" in said
    assert "): it fell in" in said
    assert "    ... and 3 more" in said
    assert "| house | doors | 8 | 0 | none |" in said and "A note." in said


def test_a_section_that_falls_is_a_failure(monkeypatch):
    async def fall():
        raise OSError("no room")

    module = SimpleNamespace(NAME="house", run=lambda *_: asyncio.run(fall()))
    monkeypatch.setattr(verify.importlib, "import_module", lambda name: module)
    outcome = verify.try_section("house", 1, seed=5)
    [failure] = outcome.section.failures
    assert failure.startswith("house, the section itself: seed 5: OSError (")


def test_a_good_report_says_so():
    tally = Tally("doors", tried=1234, survived=1234, leaks=0)
    said = as_markdown([Outcome(Section("house", [tally, Tally("x")]), 2.4)], "today")
    assert "**1,234 cases, no failure; leaks counted 1 times: none.**" in said
    assert "| house | doors | 1,234 | 1,234 | none | 2 |\n|  | x | 0 |" in said
    assert "## Failures" not in said and "## house" not in said


def test_the_report_in_the_tree_is_whole_and_has_no_failure():
    said = verify.REPORT.read_text(encoding="utf-8")
    assert re.search(r"^Last run: 20\d\d-\d\d-\d\d, seed \d+, Python 3", said, re.M)
    assert "no failure" in said and "## Failures" not in said
    rows = re.findall(r"^\| (.*) \| .* \| ([\d,]+) \| ([\d,]+) \| (\S+) \|", said, re.M)
    assert [name for name, *_ in rows if name.strip()] == [
        module.NAME for module in MODULES.values()
    ]
    for _, tried, survived, leaks in rows:
        assert tried == survived != "0" and leaks in ("none", "-")
    streams = re.search(r"random legal streams: [^|]*\| ([\d,]+) \|", said)
    assert streams[1] == f"{decoders.STREAMS:,}"
    assert sum(verify.SECTIONS.values()) < 9 * 60
