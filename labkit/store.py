"""Runs on disk: a file each, seen before it is added to, held by one at a time.

What stands in the file, and what it survives: labkit.runfile.
"""

import json
import os
import re
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from labkit.runfile import RunFile, last_line, saving
from labkit.state import VERSION, RunState, StateError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# On Windows these are devices, whatever comes after a dot.
DEVICES = re.compile(r"(CON|PRN|AUX|NUL|(COM|LPT)[0-9])(\..*)?", re.IGNORECASE)
HEAD = re.compile(rb'\{"version":%d,"run_id":("[^"]*"),"revision":(\d+)[,}]' % VERSION)


@dataclass
class Held:
    """What the holder of a run knows of its file, and need not look up again."""

    file: RunFile | None = None
    revision: int | None = None


class RunStore:
    """The runs in `folder`, which is made when the first one is saved."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self._held: dict[str, Held] = {}  # the runs that this store holds

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
            text = last_line(read(path)).decode()
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
        """Add the state to the file of its run. StateError if it does not follow on
        what stands there: nothing is superseded that somebody has not seen. SaveError
        if the disk does not take it: the run on it is then as it was."""
        held = self._held.get(state.run_id)
        if held is None:
            with self.lock(state.run_id):
                return self.save(state)
        self.check(state)
        path = self.path(state.run_id)
        if held.file is None:
            with saving(path):
                held.file = RunFile(path)
        state.revision += 1
        try:
            with saving(path):
                held.file.append(state.to_json().encode())
        except BaseException:
            state.revision -= 1
            raise
        held.revision = state.revision

    def check(self, state: RunState) -> None:
        """Raise StateError unless `state` is what the file says, or there is none."""
        path, held = self.path(state.run_id), self._held.get(state.run_id)
        revision = held.revision if held else None
        if revision is None:  # nobody looked yet, or somebody else may write
            revision = self._revision(path, state.run_id)
        if revision not in (None, state.revision):
            raise StateError(
                f"{path} has been saved {revision} times, and this copy of the run"
                f" {state.revision} times: load the run again, or, if this is a new"
                " one, give it another run_id",
                path=str(path),
            )

    def _revision(self, path: Path, run_id: str) -> int | None:
        """How often the run in a file was saved; None if there is no file."""
        try:
            line = last_line(read(path))
        except FileNotFoundError:
            return None
        head = HEAD.match(line)
        if not head:
            self.load(run_id)  # says what is wrong with it
            raise StateError(f"{path}: not written by labkit", path=str(path))
        if json.loads(head[1]) != run_id:
            raise _foreign(path, json.loads(head[1]))
        return int(head[2])

    @contextmanager
    def lock(self, run_id: str):
        """Hold a run in this block. StateError if another process (or another task)
        holds it. The lock ends with its process, however that ends."""
        self.path(run_id)
        path = self.folder / f".{run_id}.lock"
        with saving(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                _lock(file)
            except OSError:
                raise StateError(
                    f"run {run_id} is being worked on by process {_holder(file)}:"
                    " wait until it is done, or stop it first"
                ) from None
            with suppress(OSError):  # it is for the words above only
                os.ftruncate(file, 0)
                os.write(file, str(os.getpid()).encode())
            held = self._held[run_id] = Held()
            try:
                yield
            finally:
                del self._held[run_id]
                if held.file:
                    held.file.close()
                with suppress(OSError):  # the next holder has another number
                    os.ftruncate(file, 0)
        finally:
            os.close(file)


def read(path: Path) -> bytes:
    """What stands in a file. FileNotFoundError, or StateError for any other reason."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(str(path)) from error
    except OSError as error:
        raise StateError(
            f"cannot read {path}: {error.strerror}. Nothing was changed", path=str(path)
        ) from error


def _holder(file: int) -> str:
    """The number of the process that holds the lock, as soon as it has written it."""
    for _ in range(100):
        with suppress(OSError):  # Windows does not let others read it
            os.lseek(file, 0, os.SEEK_SET)
            if holder := os.read(file, 20).decode(errors="replace"):
                return holder
        time.sleep(0.001)
    return "?"


def check_name(run_id: str) -> None:
    """StateError for an id that is no plain name, such as a path."""
    if not NAME.fullmatch(run_id):
        raise StateError(
            f"run_id is {run_id!r}: use letters, digits, dot, hyphen, underscore,"
            " and begin with a letter or digit"
        )
    if DEVICES.fullmatch(run_id):
        raise StateError(f"run_id is {run_id!r}: on Windows that is a device")


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
