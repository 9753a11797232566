"""`labkit tables`: what it computes, and what it writes."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import published, tables
from labkit.experiments.catalogue import TABLES

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "data" / "results"
VERDICTS = {"exact", "fitted", "within", "differs", "context", "skipped"}


def run(*argv: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "error", "-m", "labkit", "tables", *argv]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=600
    )


# The tables take half a minute, on a busy machine minutes: longer than other tests.
SLOW = 900


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """All tables as `make results` writes them, computed now."""
    folder = tmp_path_factory.mktemp("results")
    done = run("--out", str(folder), "--no-figures")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.timeout(SLOW)
@pytest.mark.xdist_group("tables")
def test_the_committed_results_equal_a_fresh_run(fresh):
    names = {file.name for file in fresh.iterdir() if file.suffix in (".csv", ".json")}
    assert names == {f.name for f in RESULTS.iterdir() if f.suffix in (".csv", ".json")}
    for name in sorted(names):
        assert (fresh / name).read_bytes() == (RESULTS / name).read_bytes(), name


@pytest.mark.timeout(SLOW)
@pytest.mark.xdist_group("tables")
def test_every_row_has_a_verdict_and_a_difference_has_its_reason(fresh):
    results = json.loads((fresh / "tables.json").read_text(encoding="utf-8"))
    assert list(results) == [table.id for table in TABLES]
    for table in TABLES:
        rows = results[table.id]["rows"]
        assert rows or results[table.id]["skipped"]
        for row in rows:
            assert row["verdict"] in VERDICTS
            assert row["reason"] or row["verdict"] not in ("differs", "skipped")
            assert all(key in row for key in table.keys)


@pytest.mark.timeout(SLOW)
@pytest.mark.xdist_group("tables")
def test_only_the_reset_differs_from_the_chapter(fresh):
    results = json.loads((fresh / "tables.json").read_text(encoding="utf-8"))
    differing = [
        (table_id, row.get("ending"))
        for table_id, result in results.items()
        for row in result["rows"]
        if row["verdict"] == "differs"
    ]
    assert differing == [("14.endings", "reset")]


@pytest.mark.timeout(SLOW)
@pytest.mark.xdist_group("tables")
def test_csv_and_json_say_the_same(fresh):
    results = json.loads((fresh / "tables.json").read_text(encoding="utf-8"))
    for table_id, result in results.items():
        with (fresh / f"{table_id}.csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == len(result["rows"])
        assert [line["verdict"] for line in lines] == [
            row["verdict"] for row in result["rows"]
        ]


def test_a_table_that_needs_real_time_waits_to_be_asked_for():
    (table,) = (each for each in TABLES if each.clock == "real")
    result = tables.compute(table, seeds=1)
    assert result["rows"] == [] and "--real" in result["skipped"]


def quick(table) -> list[dict]:
    return tables.compute(table, seeds=1)["rows"]


def test_without_the_published_files_every_row_computes_the_same(monkeypatch, tmp_path):
    chosen = [table for table in TABLES if table.share is None]
    chosen = [table for table in chosen if table.clock != "real"]
    before = {table.id: quick(table) for table in chosen}
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    for table in chosen:
        after = quick(table)
        verdicts = {row.pop("verdict") for row in after}
        assert verdicts <= {"context", "skipped"}
        for ours, theirs in zip(after, before[table.id], strict=True):
            assert ours.items() - {("reason", ours["reason"])} <= theirs.items()


@pytest.mark.parametrize(
    "argv, named",
    [
        (["--seeds", "0"], "--seeds"),
        (["--seeds", "many"], "--seeds"),
        (["--only", "14.tides"], "--only"),
        (["--chapter", "15"], "--chapter"),
    ],
)
def test_bad_options_are_named(argv, named):
    done = run(*argv)
    assert done.returncode == 2 and named in done.stderr


def test_one_table_for_the_terminal():
    done = run("--only", "14.endings")
    assert done.returncode == 0 and done.stderr == ""
    assert "IncompleteStream" in done.stdout
    assert "differs: the chapter's runtime dropped" in done.stdout


@pytest.mark.realtime
def test_a_table_without_a_chapter_shows_both_clocks():
    (table,) = (each for each in TABLES if each.id == "23.stop_lag")
    result = tables.compute(table, 1, real=True)
    lines = tables.compare(table.keys, result, [])
    told = dict(
        zip(zip(lines.clock, lines.tool, strict=True), lines.lag_ms, strict=True)
    )
    assert set(told) == {
        ("virtual", "async"), ("real", "async"), ("real", "blocking, polls"),
        ("real", "blocking, deaf"),
    }  # fmt: skip
    assert all(told.values()) and "skipped" not in tables.as_text(table, result)
    lag_ms = {row["tool"]: row["lag_ms"] for row in result["real_rows"]}
    # It waits for the deaf one, which sleeps for seconds; the others are told at once.
    assert lag_ms["blocking, deaf"] > 3 * lag_ms["blocking, polls"]
