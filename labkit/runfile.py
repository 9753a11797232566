"""The file of one run: a line for each save, and the last whole line counts.

The first save makes the file with its line in it, so there is never one without. Each
later one appends a line with one write. A process that dies in it leaves a torn line,
which is a save that did not happen: the one before it counts, and no effect came
after it. Appending takes microseconds, where replacing a file takes a tenth of a
millisecond of CPU and makes many file systems write to the disk at once; a run saves
before each effect. When a run is let go, its file is cut down to the last line.

The promise is that a run survives the death of its process. It is not that a run
survives a power cut: for that the data would have to be forced to the disk (fsync),
at 1 to 10 ms for each save.

A disk that is full, or may not be written, is a SaveError. What was saved before it
is still there.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

from labkit.state import StateError

TIDY_BYTES = 8 << 20  # a file longer than this is cut down while the run goes on
BINARY = getattr(os, "O_BINARY", 0)  # Windows alone has another way

NO_ROOM = "make room on the disk, then resume the run"
NOT_OURS = "make it writable for you, or keep the runs in another folder"
NO_FOLDER = "move away the file that stands in the place of the folder"
MENDS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), NO_ROOM),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), NOT_OURS),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), NO_FOLDER),
}


class SaveError(StateError, OSError):
    """The disk did not take something. All that was saved before is whole on it, and
    nothing has been done that it does not know of. The cause is the system's error."""


class saving:  # noqa: N801 (used like a function; a generator would cost more)
    """An OSError in this block is a SaveError, with what to do about it."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, OSError) and not isinstance(error, StateError):
            mend = MENDS.get(error.errno, "mend that, then resume the run")
            raise SaveError(
                f"cannot write {self._path}: {error.strerror or error}. What was saved"
                f" before is whole; {mend}",
                path=str(self._path),
            ) from error


def last_line(data: bytes) -> bytes:
    """The line that counts: the last one that has its line end.

    What comes after that is torn, even where it ends in a brace: a state is full of
    braces. Only a file of one line may lack the end, which an editor may have taken.

    >>> last_line(b'{"n":1}\\n{"n":2}\\n{"n":{}'), last_line(b'{"n":1}'), last_line(b"")
    (b'{"n":2}', b'{"n":1}', b'')
    """
    *whole, rest = data.split(b"\n")
    return whole[-1] if whole else rest


class RunFile:
    """Open for saving, by the one process that holds the run."""

    def __init__(self, path: Path):
        self.path = path
        self._file: int | None = None
        self._line = self._size = None
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._line = last_line(data := path.read_bytes())
            if data != self._line + b"\n":  # a torn line, or many: begin with one
                replace(path, self._line)
            self._open()

    def _open(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | BINARY)
        self._size = os.fstat(self._file).st_size
        self._torn = False

    def append(self, line: bytes) -> None:
        """Add a line as a whole, or raise and leave the file as it was."""
        if self._line is None:  # no file yet
            replace(self.path, line)
            self._line = line
            with suppress(OSError):  # the next save will say so
                self._open()
            return
        if self._file is None:
            self._open()
        self._write(line)
        self._line = line
        if self._size > TIDY_BYTES:
            self._tidy()

    def _write(self, line: bytes) -> None:
        data = b"\n" * self._torn + line + b"\n"
        try:
            written = os.write(self._file, data)
            if written < len(data):
                full = errno.ENOSPC
                raise OSError(full, os.strerror(full) + " (the disk is full)")
        except BaseException:
            self._torn = True  # where not even this can be done: it does not count
            os.ftruncate(self._file, self._size)
            self._torn = False
            raise
        if self._torn:
            self._size = os.fstat(self._file).st_size - written
            self._torn = False
        self._size += written

    def _tidy(self) -> None:
        """Cut the file down to its last line, if the disk lets us: all is saved."""
        os.close(self._file)  # Windows replaces no open file
        self._file = None
        with suppress(OSError):
            replace(self.path, self._line)
        with suppress(OSError):  # the next save will say so
            self._open()

    def close(self) -> None:
        """Let go of the file, cut down to its last line if the disk lets us."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
            if self._size > len(self._line) + 1:
                with suppress(OSError):
                    replace(self.path, self._line)


def replace(path: Path, line: bytes) -> None:
    """Put one line in the place of a file: a reader finds the old or the new."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        fresh.write_bytes(line + b"\n")
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
