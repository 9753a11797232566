"""The trace: any text in, torn at any byte, added to, and read again."""

import json
import tempfile
from pathlib import Path
from random import Random

from labkit.clock import run_virtual
from labkit.runs.report import as_line
from labkit.trace import KINDS, Trace, read, records
from tests.verify.mutations import change, damage
from tests.verify.section import Section, Tally, cases
from tests.verify.streams import CHARACTERS

NAME = "trace lines"

EVENTS = (
    ("turn", {"turn": 1, "prompt_tokens": 204, "total_tokens": None, "cost_usd": 0.01}),
    ("tool_start", {"tool_name": "look", "args": "{}", "call_id": "c1"}),
    ("tool_progress", {"tool_name": "look", "label": "1 of 2", "call_id": "c1"}),
    ("tool_result", {"tool_name": "look", "ms": 3, "ok": True, "call_id": "c1"}),
    ("approval_required", {"tool_name": "rm", "args": "{}", "call_id": "c2"}),
    ("run_stopped", {"status": "failed", "turns": 1, "detail": "no\n"}),
)
PIECES = (
    *CHARACTERS, "\n", "\r", "\x1b[2J", '"', "\\", "\ud83c",
    '\n{"run_id":"n1","t_s":1,"type":"turn"}\n',
)  # fmt: skip


def odd_text(rng: Random) -> str:
    return "".join(rng.choices(PIECES, k=rng.randrange(6)))


def odd_event(rng: Random) -> tuple[str, dict]:
    """An event as a run would tell it, with any text in its texts."""
    kind, fields = rng.choice(EVENTS)
    texts = {
        name: odd_text(rng)
        for name, value in fields.items()
        if isinstance(value, str) and rng.random() < 0.7
    }
    return kind, fields | texts


def write(path: Path, events: list[tuple[str, dict]]) -> None:
    trace = Trace(path)
    for kind, fields in events:
        trace.write("n1", kind, **fields)
    trace.close()


def check_text(path: Path, rng: Random) -> None:
    """Each event is one line of ASCII, and comes back as it was."""
    path.unlink(missing_ok=True)
    told = [odd_event(rng) for _ in range(rng.randrange(1, 5))]
    write(path, told)
    data = path.read_bytes()
    assert data.isascii() and data.count(b"\n") == len(data.splitlines()) == len(told)
    events, torn = records(path)
    assert not torn
    assert [(e["type"], {k: e[k] for k in f}) for e, (_, f) in zip(
        events, told, strict=True)] == told  # fmt: skip


def check_torn(path: Path, data: bytes, left: int) -> None:
    """A process died after `left` bytes; another one goes on. One line is lost."""
    path.write_bytes(data[:left])
    write(path, [("turn", {"turn": 2})])
    events, torn = records(path)
    whole = data[:left].count(b"\n")
    # All but its line end was there: then nothing is lost.
    kept = whole + (left < len(data) and data[left : left + 1] == b"\n")
    assert len(events) == kept + 1 and events[-1]["turn"] == 2
    assert len(torn) == (left > 0 and data[left - 1 : left] != b"\n" and kept == whole)


def check_damaged(path: Path, data: bytes) -> None:
    """Somebody wrote anything into it: it is read as far as it can be, and shown."""
    path.write_bytes(data)
    write(path, [("turn", {"turn": 3})])
    events, torn = records(path)
    assert events[-1]["turn"] == 3
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    assert len(events) + len(torn) == len(lines)
    frame = read(path)
    assert len(frame) == len(events) and frame.attrs["torn"] == torn
    for event in events:
        as_line(event, since_s=events[0]["t_s"])


def damaged(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.5:
        return damage(data, rng)
    lines = [json.loads(line) for line in data.splitlines()]
    at = rng.randrange(len(lines))
    lines[at] = change(lines[at], rng)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def run(budget_s: float, seed: int) -> Section:
    text = Tally("events with any text in them")
    torn = Tally("traces torn, one after each byte, and gone on with")
    broken = Tally("traces with bytes or values changed")

    async def all_of_them(path):
        write(path, list(EVENTS))
        data = path.read_bytes()
        step = max(1, len(data) // int(100 * budget_s))
        for left in range(0, len(data) + 1, step):
            with torn.attempt(f"the first {left} bytes"):
                check_torn(path, data, left)
        for case, rng in cases(budget_s / 3, seed):
            with text.attempt(case):
                check_text(path, rng)
        for case, rng in cases(budget_s * 2 / 3, seed):
            with broken.attempt(case):
                check_damaged(path, damaged(data, rng))

    assert {kind for kind, _ in EVENTS} == set(KINDS)
    with tempfile.TemporaryDirectory() as folder:
        run_virtual(all_of_them, Path(folder, "t.jsonl"))
    return Section(NAME, [text, torn, broken])
