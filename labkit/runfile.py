"""The file of one run: a line for each save, and the last whole line counts.

A save appends one line with one write. A process that dies in it leaves a torn line,
which is a save that did not happen: the one before it counts, and no effect came
after it. Appending takes microseconds, where replacing a file takes a tenth of a
millisecond of CPU and makes many file systems write to the disk at once; a run saves
before each effect. When a run is let go, its file is cut down to the last line.

The promise is that a run survives the death of its process. It is not that a run
survives a power cut: for that the data would have to be forced to the disk (fsync),
at 1 to 10 ms for each save.
"""

import os
from pathlib import Path

TIDY_BYTES = 8 << 20  # a file longer than this is cut down while the run goes on
BINARY = getattr(os, "O_BINARY", 0)  # Windows alone has another way


def last_line(data: bytes) -> bytes:
    """The line that counts: the last one, or the one before it if that is torn.

    >>> last_line(b'{"n":1}\\n{"n":2}\\n{"n"'), last_line(b'{"n":1}'), last_line(b"")
    (b'{"n":2}', b'{"n":1}', b'')
    """
    *whole, rest = data.split(b"\n")
    if rest.endswith(b"}") or not whole:  # all there but its line end, or all there is
        return rest
    return whole[-1]


class RunFile:
    """Open for saving, by the one process that holds the run."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes() if path.exists() else b""
        line = last_line(data)
        if data and data != line + b"\n":
            replace(path, line)  # a torn line, or many: begin with the one that counts
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY
        self._file: int | None = os.open(path, flags, 0o666)
        self._size = os.fstat(self._file).st_size
        self._line = line

    def append(self, line: bytes) -> None:
        """Add a line as a whole, or raise and leave the file as it was."""
        try:
            written = os.write(self._file, line + b"\n")
            if written <= len(line):
                raise OSError(f"no room for {self.path.name}: the disk is full")
        except BaseException:
            os.ftruncate(self._file, self._size)
            raise
        self._size += written
        self._line = line
        if self._size > TIDY_BYTES:
            self._tidy()

    def _tidy(self) -> None:
        os.close(self._file)
        self._file = None
        replace(self.path, self._line)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | BINARY)
        self._size = len(self._line) + 1

    def close(self) -> None:
        """Let go of the file, cut down to its last line."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if self._size > len(self._line) + 1:
                replace(self.path, self._line)


def replace(path: Path, line: bytes) -> None:
    """Put one line in the place of a file: a reader finds the old or the new."""
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_bytes(line + b"\n")
    os.replace(fresh, path)
