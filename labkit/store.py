"""Runs on disk: one file each, replaced as a whole, held by one process at a time.

A save writes a new file beside the old one and renames it over (os.replace): whoever
reads finds the old state or the new one, never half of one. The promise is that a
run survives the death of its process. It is not that a run survives a power cut: for
that the data would have to be forced to the disk (fsync), at 1 to 10 ms for each save.
"""

import json
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path

from labkit.state import VERSION, RunState, StateError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
BINARY = getattr(os, "O_BINARY", 0)  # Windows alone has another way
HEAD = re.compile(rb'\{"version":%d,"run_id":("[^"]*"),"revision":(\d+)[,}]' % VERSION)


class RunStore:
    """The runs in `folder`, which is made when the first one is saved."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)

    def path(self, run_id: str) -> Path:
        """Where a run is kept. StateError for an id that is no plain name."""
        check_name(run_id)
        return self.folder / f"{run_id}.json"

    def list(self) -> list[str]:
        """The ids of all the runs."""
        return sorted(path.stem for path in self.folder.glob("[!.]*.json"))

    def load(self, run_id: str) -> RunState:
        """A run, as it was saved last. StateError if it is not there or torn."""
        path = self.path(run_id)
        try:
            text = path.read_bytes().decode()
        except FileNotFoundError:
            known = ", ".join(self.list()) or "none"
            raise StateError(
                f"no run {run_id} in {self.folder}; there are: {known}", path=str(path)
            ) from None
        except UnicodeDecodeError as error:
            raise StateError(
                f"cannot read {path}: it is no UTF-8 text at byte {error.start}."
                " Nothing was changed; restore a copy of the file",
                path=str(path), offset=error.start,
            ) from None  # fmt: skip
        state = RunState.from_json(text, str(path))
        if state.run_id != run_id:
            raise _foreign(path, state.run_id)
        return state

    def save(self, state: RunState) -> None:
        """Replace the file of a run. StateError if it is not the one that `state`
        was loaded from: nothing is overwritten that somebody has not seen."""
        self.check(state)
        folder = str(self.folder)
        fresh = f"{folder}/.{state.run_id}.tmp"
        state.revision += 1
        try:
            write_file(fresh, state.to_json().encode())
            os.replace(fresh, f"{folder}/{state.run_id}.json")
        except BaseException:
            state.revision -= 1
            raise

    def check(self, state: RunState) -> None:
        """Raise StateError unless `state` is what the file says, or there is none."""
        check_name(state.run_id)
        start = read_start(f"{self.folder}/{state.run_id}.json")
        if start is None:
            return
        path = self.path(state.run_id)
        head = HEAD.match(start)
        if not head:
            self.load(state.run_id)  # says what is wrong with it
            raise StateError(f"{path}: not written by labkit", path=str(path))
        run_id, revision = json.loads(head[1]), int(head[2])
        if run_id != state.run_id:
            raise _foreign(path, run_id)
        if revision != state.revision:
            raise StateError(
                f"{path} has been saved {revision} times, and this copy of the run"
                f" {state.revision} times: load the run again, or, if this is a new"
                " one, give it another run_id",
                path=str(path),
            )

    @contextmanager
    def lock(self, run_id: str):
        """Hold a run in this block. StateError if another process (or another task)
        holds it. The lock ends with its process, however that ends."""
        self.path(run_id)
        self.folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self.folder / f".{run_id}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                _lock(file)
            except OSError:
                holder = ""
                with suppress(OSError):  # Windows does not let others read it
                    holder = os.read(file, 20).decode(errors="replace")
                raise StateError(
                    f"run {run_id} is being worked on by process {holder or '?'}:"
                    " wait until it is done, or stop it first"
                ) from None
            os.ftruncate(file, 0)
            os.write(file, str(os.getpid()).encode())
            yield
        finally:
            os.close(file)


def check_name(run_id: str) -> None:
    """StateError for an id that is no plain name, such as a path."""
    if not NAME.fullmatch(run_id):
        raise StateError(
            f"run_id is {run_id!r}: use letters, digits, dot, hyphen, underscore,"
            " and begin with a letter or digit"
        )


# The two below run before each effect, so they do without the comfort of `open`.


def read_start(path: str) -> bytes | None:
    """The first bytes of a file; None if there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY | BINARY)
    except FileNotFoundError:
        return None
    try:
        return os.read(file, 512)
    finally:
        os.close(file)


def write_file(path: str, data: bytes) -> None:
    """A new file with this content, in a folder that may not be there yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY
    try:
        file = os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = os.open(path, flags, 0o666)
    try:
        while data:
            data = data[os.write(file, data) :]
    finally:
        os.close(file)


def _foreign(path: Path, run_id: str) -> StateError:
    return StateError(
        f"{path} holds the run {run_id}: give the file its own name back",
        path=str(path),
    )


if os.name == "nt":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 100, os.SEEK_SET)  # not the bytes with the holder's number
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
