"""What a run did, one JSON line for each event (chapter 23, "the trace").

Six kinds: turn, tool_start, tool_progress, tool_result, approval_required,
run_stopped. Each line has the run's id, the time (seconds since 1970) and, where it
is about a call, the call's id: a run over three processes and two days is one query.

Lines are appended, each with a single write. A process that dies in the middle leaves
a torn last line; the next one closes it first, so that it costs one line and not two.
An event is told before it is saved: what is done again after a crash is told twice,
with the same turn or call id.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labkit.clock import wall_time
from labkit.runfile import saving
from labkit.strictjson import encode, parse_object

KINDS = (
    "turn", "tool_start", "tool_progress", "tool_result", "approval_required",
    "run_stopped",
)  # fmt: skip

WHOLE = [
    "turn", "turns", "tool_runs", "ms",
    "prompt_tokens", "completion_tokens", "total_tokens",
]  # fmt: skip


APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class MemoryTrace:
    """The same events, kept as dicts in `events`."""

    def __init__(self):
        self.events: list[dict[str, Any]] = []

    def write(self, run_id: str, type: str, **fields: Any) -> None:
        """Add one event, with the time of the running loop."""
        head = {"run_id": run_id, "t_s": round(wall_time(), 6), "type": type}
        self._keep(head | fields)

    def _keep(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def frame(self):
        """The events as a DataFrame."""
        return as_frame(self.events)


class Trace(MemoryTrace):
    """Appends to the file at `path`, which stays open until `close()`, or until the
    object goes. Processes and subagents may share one file. A disk that does not take
    an event is a SaveError, which ends the run: nothing happens untold."""

    def __init__(self, path: str | os.PathLike):
        super().__init__()
        self.path = Path(path)
        self._file: int | None = None

    def _keep(self, event: dict[str, Any]) -> None:
        # All but ASCII is escaped: no text of a tool can end a line or forge one.
        line = encode(event).encode() + b"\n"
        with saving(self.path):
            if self._file is None:
                line = b"\n" * _is_torn(self.path) + line
                self._file = os.open(self.path, APPEND, 0o666)
            if os.write(self._file, line) < len(line):
                self.close()  # the next event closes the torn line first
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file; the next event opens it again."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self):
        self.close()

    def frame(self):
        """All the events in the file, also those of earlier processes."""
        return read(self.path)


def _is_torn(path: Path) -> bool:
    """Does the file end in the middle of a line?"""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def records(path: str | os.PathLike) -> tuple[list[dict[str, Any]], list[int]]:
    """The events in a file, and the numbers (from 1) of the lines that are torn, or
    no events for another reason."""
    events, torn = [], []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), 1):
        if not line:
            continue
        try:
            event = parse_object(line.decode())
        except ValueError:
            event = {}
        if is_event(event):
            events.append(event)
        else:
            torn.append(number)
    return events, torn


def is_event(event: dict[str, Any]) -> bool:
    """Does it have what every event has: a run, a time in this era, a kind?"""
    names, t_s = (event.get("run_id"), event.get("type")), event.get("t_s")
    timed = isinstance(t_s, int | float) and abs(t_s) < 1e12
    return timed and all(isinstance(name, str) for name in names)


def read(path: str | os.PathLike):
    """A trace as a DataFrame, a line a row. `attrs["torn"]` lists the torn lines."""
    events, torn = records(path)
    frame = as_frame(events)
    frame.attrs["torn"] = torn
    return frame


def as_frame(events: Iterable[dict[str, Any]]):
    """Events as a DataFrame; counts stay whole numbers where a row has none."""
    import pandas as pd  # only here: a run needs no pandas

    events = list(events)
    frame = pd.DataFrame(events)
    # A count that is none, in a line that somebody edited, stays as it is.
    whole = [n for n in WHOLE if n in frame and all(is_count(e.get(n)) for e in events)]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def is_count(value: Any) -> bool:
    """None, or a whole number that 64 bits can hold."""
    return value is None or type(value) is int and abs(value) < 2**63
