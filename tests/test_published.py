"""The verdicts: equal, inside the range, different with a reason."""

import json

import pytest

from labkit import published as module
from labkit.published import is_cell, printed, published, verdict

T = {"value": 65, "kind": "T", "low": 59, "high": 90}
P = {"value": 6, "kind": "P"}


@pytest.mark.parametrize(
    "row, cells, expected",
    [
        ({"n": 6}, {"n": P}, "exact"),
        ({"n": 7}, {"n": P}, "differs"),
        ({"n": 6.0}, {"n": P}, "exact"),
        ({"n": None}, {"n": P}, "differs"),
        ({"n": 6, "ms": 60.0}, {"n": P, "ms": T}, "within"),
        ({"n": 6, "ms": 58.9}, {"n": P, "ms": T}, "differs"),
        ({"n": 7, "ms": 60.0}, {"n": P, "ms": T}, "differs"),
        ({"ms": None}, {"ms": T}, "differs"),
        ({"n": 204}, {"n": {"value": 204, "kind": "fitted"}}, "fitted"),
        ({"n": 205}, {"n": {"value": 204, "kind": "fitted"}}, "differs"),
        ({"n": 1}, {"n": {"value": 9, "kind": "context"}}, "context"),
    ],
)
def test_verdicts(row, cells, expected):
    assert verdict({"key": "a"} | row, [{"key": "a"} | cells])[0] == expected


def test_a_difference_has_a_reason_and_the_known_one_is_preferred():
    ours, theirs = {"key": "a", "n": 7}, {"key": "a", "n": P}
    assert verdict(ours, [theirs]) == ("differs", "n: 7, the chapter has 6")
    assert verdict(ours, [theirs | {"reason": "because"}]) == ("differs", "because")


def test_a_row_that_the_chapter_lacks_is_context():
    assert verdict({"key": "b"}, [{"key": "a", "n": P}])[0] == "context"
    assert verdict({"key": "b"}, [])[0] == "context"


def test_a_skipped_row_says_why():
    assert verdict({"key": "a", "skipped": "no wheel"}, []) == ("skipped", "no wheel")


def test_printed_rows_have_plain_values():
    assert printed([{"key": "a", "n": P, "reason": "x"}]) == [{"key": "a", "n": 6}]


def test_the_files_are_well_formed():
    tables = {}
    for file in module.FOLDER.glob("*.json"):
        tables |= json.loads(file.read_text(encoding="utf-8"))
    assert tables
    for table_id, rows in tables.items():
        assert published(table_id) == rows
        for cell in (c for row in rows for c in row.values() if is_cell(c)):
            assert cell["kind"] in module.MET
            assert (cell["kind"] == "T") == ("low" in cell) == ("high" in cell)
            if cell["kind"] == "T":
                assert cell["low"] <= cell["high"]


def test_without_the_files_there_is_nothing_to_compare_with(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert published("14.ttft") == []
