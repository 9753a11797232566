"""Servers in processes of their own, which never outlive the one that started them.

A server prints its URL when it listens, and ends when its standard input closes: with
`close()`, with `reset()` for all of them, and in any case with this process.
"""

import atexit
import subprocess
import sys
import tempfile
from pathlib import Path

from labkit.errors import LabkitError

ROOT = Path(__file__).resolve().parent.parent
_running: set["ServerProcess"] = set()


class ServerError(LabkitError):
    """A server did not start, or did not do what it was asked."""


class ServerProcess:
    """A running server. `url` is the base URL for a client, ending in /v1."""

    def __init__(self, *command: str):
        """Run `python -m COMMAND` and wait until it listens.

        Raises ServerError with the last line that it wrote to standard error.
        """
        # Popen, since asyncio's subprocesses fail in a Windows kernel; the folder
        # makes sure that it is this checkout's modules that run.
        with tempfile.TemporaryFile() as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=ROOT, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            )  # fmt: skip
            _running.add(self)
            self.url = self._process.stdout.readline().strip()
            if not self.url:
                self.close()
                complaints.seek(0)
                lines = complaints.read().decode(errors="replace").split("\n")
                said = [line for line in lines if line.strip()]
                raise ServerError(said[-1] if said else f"{command[0]}: ended at once")

    def close(self) -> None:
        """End the server. Twice does no harm."""
        _running.discard(self)
        if self._process.stdin:
            self._process.stdin.close()  # the server watches for this
            self._process.stdin = None
            self._process.stdout.close()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.url}>"


def reset() -> None:
    """End every server that this process started."""
    for server in list(_running):
        server.close()


atexit.register(reset)
