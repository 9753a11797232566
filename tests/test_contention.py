"""The laboratory for backoff, held against the public simulator's numbers."""

import pytest

from labkit.experiments.contention import REFERENCE, contend, contention


def test_one_race_repeats_under_its_seed():
    assert contend(20, "full", seed=3) == contend(20, "full", seed=3)
    assert contend(20, "full", seed=3) != contend(20, "full", seed=4)


def test_without_rivals_each_write_wins():
    race = contend(1, "exponential")
    assert race["calls"] == 1
    assert 20 < race["completion_ms"] < 60  # four times through the network


@pytest.mark.parametrize("strategy", ["none", "full", "equal", "decorrelated"])
@pytest.mark.parametrize("writers", [20, 100])
def test_calls_are_the_references(writers, strategy):
    (row,) = contention((writers,), (strategy,), seeds=8).to_dict("records")
    calls, completion_ms = REFERENCE[writers][strategy]
    assert row["calls"] == pytest.approx(calls, rel=0.08)
    assert row["completion_ms"] == pytest.approx(completion_ms, rel=0.35)
    assert row["runs"] == 8


def test_without_jitter_it_takes_ten_times_as_long():
    (row,) = contention((50,), ("exponential",), seeds=4).to_dict("records")
    assert row["calls"] == pytest.approx(REFERENCE[50]["exponential"][0], rel=0.15)
    assert row["completion_ms"] == pytest.approx(36_411, rel=0.3)
