"""The trace: one event a line, whatever is in it and whoever died writing it."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.clock import EPOCH, run_virtual
from labkit.trace import MemoryTrace, Trace, read, records


def write(path, *events, trace=None):
    async def main():
        for run_id, type, fields in events:
            (trace or Trace(path)).write(run_id, type, **fields)

    run_virtual(main)


def test_a_line_has_run_time_and_kind_first(tmp_path):
    path = tmp_path / "n1.jsonl"

    async def main():
        trace = Trace(path)
        await asyncio.sleep(1.25)
        trace.write("n1", "turn", turn=1, cost_usd=0.000684)

    run_virtual(main)
    said = f'{{"run_id":"n1","t_s":{EPOCH + 1.25},"type":"turn","turn":1,"cost_usd":'
    assert path.read_text() == said + "0.000684}\n"


def test_processes_append_to_one_file(tmp_path):
    path = tmp_path / "t.jsonl"
    write(path, ("a", "turn", {"turn": 1}))
    write(path, ("b", "turn", {"turn": 1}))
    assert [event["run_id"] for event in records(path)[0]] == ["a", "b"]


WHOLE = b'{"run_id":"n0","t_s":1,"type":"turn"}'


@pytest.mark.parametrize(
    "torn",
    [WHOLE[:-1], WHOLE[:9], WHOLE, b"\xff\xfe", b"[1,2]", b"{}", b"[" * 5000,
     WHOLE.replace(b"1", b"NaN"), WHOLE.replace(b"1", b'"1"'),
     WHOLE.replace(b"1", b"1" * 400)],
)  # fmt: skip
def test_a_torn_line_costs_one_line_and_is_reported(tmp_path, torn):
    path = tmp_path / "t.jsonl"
    path.write_bytes(WHOLE + b"\n" + torn)
    write(path, ("n1", "turn", {}), ("n1", "turn", {}))
    events, lines = records(path)
    assert events[0] == json.loads(WHOLE)
    assert [event["run_id"] for event in events[-2:]] == ["n1", "n1"]
    assert lines == ([] if torn == WHOLE else [2])
    assert read(path).attrs["torn"] == lines


@pytest.mark.parametrize("turn", ["3", 1.5, 1e308, 2**70, [1], True])
def test_a_count_that_is_none_does_not_hide_the_trace(tmp_path, turn):
    write(tmp_path / "t.jsonl", ("n1", "turn", {"turn": turn}), ("n1", "turn", {}))
    assert read(tmp_path / "t.jsonl").turn[0] == turn


@given(st.text())
def test_no_text_can_cut_or_forge_a_line(text):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.jsonl"
        forged = '\n{"run_id":"x","type":"turn"}\n'
        write(path, ("n1", "tool_progress", {"label": text + "\u2028\u0085" + forged}))
        with open(path, "rb") as file:
            data = file.read()
        assert data.isascii() and data.count(b"\n") == 1
        [event], torn = records(path)
        assert event["label"].startswith(text) and not torn
        assert len(data.splitlines()) == 1


def test_no_literal_that_is_no_json(tmp_path):
    with pytest.raises(ValueError):
        write(tmp_path / "t.jsonl", ("n1", "turn", {"cost_usd": float("nan")}))
    assert not (tmp_path / "t.jsonl").exists()


def test_a_frame_keeps_counts_whole(tmp_path):
    path = tmp_path / "t.jsonl"
    write(
        path,
        ("n1", "turn", {"turn": 1, "prompt_tokens": 204}),
        ("n1", "tool_start", {"tool_name": "list_files", "call_id": "c1"}),
    )
    frame = read(path)
    assert list(frame.columns[:3]) == ["run_id", "t_s", "type"]
    assert frame.prompt_tokens[0] == 204 and str(frame.prompt_tokens.dtype) == "Int64"
    assert Trace(path).frame().equals(frame)


def test_in_memory_it_is_the_same(tmp_path):
    events = [("n1", "turn", {"turn": 1, "finish": "stop"})]
    memory = MemoryTrace()
    write(None, *events, trace=memory)
    write(tmp_path / "t.jsonl", *events)
    assert memory.events == [json.loads((tmp_path / "t.jsonl").read_text())]
    assert len(memory.frame()) == 1


def test_an_empty_trace_is_an_empty_frame(tmp_path):
    (tmp_path / "t.jsonl").touch()
    assert read(tmp_path / "t.jsonl").empty
