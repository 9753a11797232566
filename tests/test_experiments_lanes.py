"""The moments behind the pictures: waves, lanes, and who ended what."""

import pandas as pd

from labkit.experiments.herd import herd
from labkit.experiments.herd_tables import MODEL
from labkit.experiments.lanes import idempotency_lanes, who_stops
from labkit.experiments.stopping import asked_again, ways_to_end
from labkit.experiments.waves import arrivals, by_wave, wave_of, waves
from labkit.limits import Limits


def test_waves_are_the_sums_of_the_waits():
    starts = list(waves(34).starts_s)
    assert starts[:9] == [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 25.4, 45.4]
    assert starts[-1] == 545.4  # a hundred in perfect step, three a wave


def test_the_chapters_walls_are_waves():
    assert [wave_of(wall_s) for wall_s in (65.6, 225.6, 245.7)] == [9, 17, 18]


def test_each_request_of_a_herd_in_step_falls_into_its_wave():
    requests = herd(30, strategy="exponential", **MODEL | {"retry_after": None})
    table = by_wave(requests)
    assert table.sent.sum() == len(requests)
    assert table.served.sum() == 30
    assert list(table.sent - table.served)[:-1] == list(table.sent)[1:]
    late = requests.t_s - requests.attempt.map(table.set_index("wave").starts_s)
    assert late.between(-1e-9, 0.1).all()


def test_arrivals_count_each_request_once():
    requests = pd.DataFrame({"t_s": [0.0, 0.049, 0.05, 0.3, 0.3]})
    counted = arrivals(requests)
    assert list(counted.from_s) == [0.0, 0.05, 0.3]
    assert list(counted.requests) == [2, 1, 2]


def test_idempotency_lanes():
    lanes = idempotency_lanes()
    bills = lanes[lanes.lane == "provider"].groupby("key").size()
    assert dict(bills) == {"no key": 2, "a key": 1, "a key, asked early": 1}
    second = lanes[(lanes.lane == "client") & (lanes.number == 1)].set_index("key")
    assert dict(second.outcome) == {
        "no key": "timeout", "a key": "replayed", "a key, asked early": "joined",
    }  # fmt: skip
    assert dict(second.start_ms) == {
        "no key": 800.0, "a key": 800.0, "a key, asked early": 510.0,
    }  # fmt: skip
    assert second.end_ms["a key"] == 800.0  # at once
    assert second.end_ms["a key, asked early"] == 780.0  # with the first answer


def test_who_stops():
    events = who_stops()
    ends = events[events.event == "end"]
    assert list(zip(ends.by, ends.t_s, strict=True)) == [
        ("the answer", 85.5),
        ("open", 30.0),
        ("open", 30.0),
        ("idle", 25.5),
        ("total", 120.0),
        ("stop", 40.0),
    ]


def test_other_limits_end_other_streams():
    events = who_stops(Limits(open_s=2, idle_s=15, total_s=120))
    ends = events[events.event == "end"]
    assert list(ends.by) == ["open"] * 5 + ["open"]  # the first piece takes 3 s


def test_ways_to_end_leave_nothing_behind():
    ways = ways_to_end().set_index("ended_by")
    assert list(ways.in_flight) == [0, 0, 0, 0]
    assert dict(ways.generated) == {
        "left alone": 13, "Stop": 6, "total_s": 6, "the kernel's interrupt": 6,
    }  # fmt: skip
    assert list(ways.raised) == [
        "", "Stopped: user pressed Stop", "DeadlineError: total", "CancelledError",
    ]  # fmt: skip


def test_what_may_have_run_is_asked_again_only_with_keys():
    table = asked_again()
    assert (table.with_keys == "again").all()
    assert ((table.without_keys == "again") == (table.may_have_run == "no")).all()
    refused = table[table.may_have_run == "no"].failure
    assert list(refused) == ["no connection", "429", "503"]
