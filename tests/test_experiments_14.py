"""Chapter 14's figures, each from a run. Nothing here reads data/published/."""

import pytest

from labkit.experiments import (
    deadlines,
    herd_tables,
    readers,
    streaming,
    triage,
    waiting,
    windows,
)
from labkit.experiments.herd import herd, herd_totals, peak, totals

# The naive herd comes in waves: after 0.2 + 0.4 + ... s, then every 20 s.
GRID_S, STEP_S = 5.4, 20.0


def rows(frame, *columns):
    return [tuple(row) for row in frame[list(columns)].itertuples(index=False)]


def test_streaming_shows_the_first_word_thirteen_times_sooner():
    table = streaming.ttft()
    assert rows(table, *streaming.COLUMNS) == [
        ("blocking", 780.0, 780.0, "stop"),
        ("streaming", 60.0, 780.0, "stop"),
    ]


def test_the_pieces_arrive_every_60_ms():
    table = streaming.arrivals()
    assert list(table.t_ms) == [60.0 * n for n in range(1, 14)] + [780.0]
    assert table.ended.iloc[-1] == "stop"


def test_endings():
    assert rows(
        streaming.endings(), "ending", "raised", "chunks", "finish_reason", "text"
    ) == [
        ("max_tokens=5", "", 5, "length", "A tide gauge is a"),
        ("closed in order", "", 5, "", "A tide gauge is a"),
        ("reset", "ReadError", 5, "", "A tide gauge is a"),
    ]


def test_labkit_tells_the_endings_apart():
    says = list(streaming.endings().labkit_says)
    assert says == [
        "finished: length",
        "IncompleteStream: 'A tide gauge is a'",
        "BrokenStream: 'A tide gauge is a'",
    ]


def test_triage():
    assert rows(triage.triage(), "policy", "requests", "wall_ms", "status") == [
        ("retry everything", 6, 6200.0, 401),
        ("triage first", 1, 0.0, 401),
    ]


def test_nested_retries_multiply():
    table = triage.nested().set_index(["status", "policy"])
    assert table.requests[401, "each layer retries everything"] == 6**3
    assert table.requests[401, "each layer reads the status"] == 1
    assert table.requests[503, "each layer reads the status"] == 6**3
    assert table.requests[503, "one layer owns the retries"] == 6
    assert table.wall_s[503, "each layer reads the status"] > 60


def test_verdicts():
    table = triage.verdicts().set_index("status")
    assert set(table.index[table.classify == "fatal"]) == {400, 401, 402, 403, 404, 422}
    assert set(table.index[table.classify == "retry-after"]) == {429}
    assert set(table.index[table.classify == "retry"]) == {408, 500, 502, 503, 504, 529}
    assert "buy credit" in table.meaning[402]


def test_the_gate_of_three_needs_no_retry():
    run = herd_totals(gates=(3,))
    assert (run["requests"], run["rejected"], run["answers"]) == (20, 0, 20)
    assert run["wall_ms"] == pytest.approx(882, abs=0.001)  # 7 waves of 126 ms
    assert run["identical"]


def test_the_herd_of_twenty():
    table = herd_tables.herd20(seeds=8).set_index("summary")
    assert 69 <= table.requests["median"] <= 77
    assert 4_500 <= table.wall_ms["median"] <= 8_000
    assert (table.answers == 20).all() and table.identical.all()
    assert table.requests["one run"] - table.rejected["one run"] == 20


def test_the_naive_wall_is_on_the_wave_grid():
    for seed in range(3):
        run = herd_totals(
            seed=seed, clients=100, strategy="exponential", retry_after=None,
            **herd_tables.MODEL,
        )  # fmt: skip
        assert (run["wall_s"] - GRID_S) % STEP_S < 0.5
        assert run["wall_s"] > 60


def test_jitter_takes_seconds_and_fewer_than_half_the_requests():
    table = herd_tables.jitter(seeds=3)
    medians = table[table.summary == "median"].set_index("policy")
    assert medians.wall_s["exponential"] > 20 * medians.wall_s["full"]
    assert medians.share_of_naive["full"] < 0.5
    assert medians.peak_50ms["exponential"] > 2 * medians.peak_50ms["full"]


def test_a_herd_repeats_for_its_seed_and_differs_for_another():
    again = [herd(seed=seed).to_csv() for seed in (5, 5, 6)]
    assert again[0] == again[1] != again[2]


def test_the_unluckiest_waits_for_retry_after():
    table = herd_tables.retry_after()
    *waits, last = table.itertuples()
    assert [row.status for row in waits] == [429] * 5 and last.status == 200
    assert all(row.floor_ms == 1000 for row in waits)
    assert all(row.slept_ms == max(row.floor_ms, row.draw_ms) for row in waits)
    assert [row.slept_ms for row in waits[:4]] == [1000.0] * 4
    ends = table.t_ms + table.slept_ms
    assert list(table.t_ms[1:]) == pytest.approx(list(ends[:-1]), abs=0.01)


def test_a_floor_under_the_jitter_keeps_the_herd_together():
    table = herd_tables.retry_after_herd(seeds=2).set_index(["limiter", "floor"])
    capacity = table.loc["capacity"]
    assert capacity.wall_s["max"] > 1.5 * capacity.wall_s["plus"]
    assert capacity.peak_50ms["max"] > 2 * capacity.peak_50ms["plus"]
    window = table.loc["window"]
    assert window.requests["ignore"] > 1.5 * window.requests["max"]


def test_a_gate_that_is_too_wide_brings_the_retries_back():
    table = herd_tables.gate_width(seeds=2).set_index(["width", "processes"])
    assert table.wall_ms[3, 1] == table.wall_ms.min()
    assert table.rejected[3, 1] == 0 < table.rejected[20, 1]
    assert table.rejected[3, 4] > table.rejected[3, 2] > 0


def test_two_limits_with_one_header():
    table = windows.limits().set_index("prompt")
    assert table.accepted["short"] == 60
    assert table.accepted["long"] < 60 / 5
    assert (table.retry_after_s == 60).all() and (table.status == 429).all()
    assert "requests" in table.said["short"] and "tokens" in table.said["long"]


def test_deadlines():
    table = deadlines.deadline().set_index("client")
    assert table.gave_up_after_s["labkit, total_s=5"] == 5.0
    assert table.gave_up_after_s["labkit, as it comes"] == 30.0
    httpx_row = next(row for name, row in table.iterrows() if name.startswith("httpx"))
    assert httpx_row.gave_up_after_s == httpx_row.default_s == 5.0


def test_idempotency():
    table = waiting.idempotency()
    assert rows(table, "key", "attempt", "outcome", "generated", "billed") == [
        ("no", 0, "timeout", 2, 2),
        ("no", 1, "timeout", 2, 2),
        ("yes", 0, "timeout", 1, 1),
        ("yes", 1, "replayed cmpl_1", 1, 1),
        ("yes, in flight", 0, "timeout", 1, 1),
        ("yes, in flight", 1, "joined cmpl_1", 1, 1),
    ]


def test_who_pays_when_the_reader_leaves():
    assert rows(waiting.abandon(), "client", "seen", "generated", "billed") == [
        ("connection closed", 3, 3, 3),
        ("connection left open", 3, 13, 13),
        ("not streamed, closed", 0, 13, 13),
    ]


def test_each_detail_of_the_reader_is_needed():
    table = readers.reader(runs=300).set_index(["body", "reader"])
    amiss = table.wrong + table.raised
    assert amiss["lf", "the chapter's: all three"] == 0
    assert amiss["lf", "without the buffer"] == 1
    assert 0 < amiss["lf", "without streaming decode"] < 0.5
    assert amiss["crlf", "the chapter's: all three"] == 1
    assert (amiss.xs("labkit", level="reader") == 0).all()


def test_peak_counts_a_sliding_window():
    import pandas as pd

    assert peak(pd.Series([0.0, 0.04, 0.06, 0.08, 0.2])) == 3
    assert peak(pd.Series([0.0, 0.05])) == 1
    assert peak(pd.Series([], dtype=float)) == 0


def test_totals_of_a_herd():
    run = totals(herd(3))
    assert (run["requests"], run["rejected"], run["retries"]) == (3, 0, "0 0 0")
    assert run["wall_ms"] == pytest.approx(126, abs=0.001)
