"""A process that is killed at one exact point, with no chance to tidy up."""

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from labkit.http import httpx


class FileLog(list):
    """A log that outlives the process that writes it."""

    def __init__(self, path: Path):
        super().__init__(path.read_text().splitlines() if path.exists() else [])
        self._path = path

    def append(self, line: str) -> None:
        super().append(line)
        with self._path.open("a") as file:
            file.write(f"{line}\n")


def die() -> None:
    """Like a deploy or the out-of-memory killer: nothing after this line runs."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


class Mortal(httpx.AsyncBaseTransport):
    """Takes the process with it when request number `last` is to be sent."""

    def __init__(self, inner: httpx.AsyncBaseTransport, last: int):
        self._inner, self._left = inner, last

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._left -= 1
        if not self._left:
            die()
        return await self._inner.handle_async_request(request)


def in_a_process_that_dies(function: Callable[[str], None], folder: Path) -> None:
    """Run `function(folder)` in a process of its own, and see to it that it dies."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:  # the dead do not tidy up
        process = context.Process(target=_run, args=(function, str(folder), scratch))
        process.start()
        process.join()
    if process.exitcode in (0, 1):  # it came to its end, or to an exception
        raise RuntimeError(f"{function.__name__} was to be killed, and was not")


def _run(function: Callable[[str], None], folder: str, scratch: str) -> None:
    tempfile.tempdir = scratch
    function(folder)
