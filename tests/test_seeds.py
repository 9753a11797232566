"""Sweeps: every case under every seed, and a bar only where somebody looks."""

import pytest

from labkit.experiments import seeds
from labkit.experiments.seeds import sweep


def numbered(seed, add):
    return {"sum": seed + add}


@pytest.fixture
def many(monkeypatch):
    """More runs than go inline, and a bar that does not wait for two seconds."""
    asked = []

    def bar(done, what, total, *, disable, leave, **more):
        asked.append((what, total, disable, leave))
        return done

    monkeypatch.setattr(seeds, "tqdm", bar)
    monkeypatch.setattr(seeds, "CORES", 2)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    return asked


def test_a_row_for_each_case_and_seed():
    rows = sweep(numbered, [{"add": 10}, {"add": 20}], 2, "sums")
    assert list(rows["sum"]) == [10, 11, 20, 21]
    assert list(rows.case) == [0, 0, 1, 1] and list(rows.seed) == [0, 1, 0, 1]


def test_no_bar_in_a_log_and_one_in_a_notebook(many, monkeypatch):
    with seeds.workers():  # started once for the three
        sweep(numbered, [{"add": 1}], 9, "sums")
        monkeypatch.setattr(seeds, "in_a_kernel", lambda: True)
        rows = sweep(numbered, [{"add": 1}], 9, "sums")
        monkeypatch.setenv("TQDM_DISABLE", "1")
        sweep(numbered, [{"add": 1}], 9, "sums")
    assert list(rows["sum"]) == list(range(1, 10))
    # It leaves nothing behind: a saved page would keep how far it had come.
    assert many == [("sums", 9, off, False) for off in (True, False, True)]


def test_the_bar_is_text_also_in_a_notebook():
    """A widget's text, which a saved page keeps, is that of its first moment."""
    assert seeds.tqdm.__module__ == "tqdm.std"


def test_this_is_no_notebook():
    assert not seeds.in_a_kernel()
