"""A mock provider in a process of its own, for notebooks and tests.

    with start_server("hostile", capacity=3) as server:
        client = ChatClient(server.url)

The server listens on a free loopback port. It ends with `close()`, with `reset()`
for all of them, and in any case with the process that started it.
"""

import atexit
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

from labkit.errors import LabkitError
from labkit.http import httpx

ROOT = Path(__file__).resolve().parent.parent
_running: set["Server"] = set()


class ServerError(LabkitError):
    """The mock did not start, or did not do what it was asked."""


class Server:
    """A running mock. `url` is the base URL for a client, ending in /v1."""

    def __init__(self, process: subprocess.Popen, url: str):
        self._process, self.url = process, url
        _running.add(self)

    def at(self, fault: str) -> str:
        """The base URL of the same server with a fault in its path.

        `server.at("hang")`, `server.at("401")`, `server.at("cut=5,how=close")`
        """
        return f"{self._root}/{fault}/v1"

    @property
    def _root(self) -> str:
        return urllib.parse.urljoin(self.url, "/").rstrip("/")

    def stats(self) -> dict:
        """The provider's totals: requests, statuses, generated, billed, ..."""
        return self._ask("GET", "/stats")

    def journal(self) -> list[dict]:
        """One dict a request, in order of arrival."""
        return self._ask("GET", "/journal")

    def queue(self, times: int = 1, **fault) -> None:
        """Let the next `times` requests fail: `server.queue(2, status=503)`."""
        self._ask("POST", "/admin/faults", {"fault": fault, "times": times})

    def forget(self) -> None:
        """Set totals, journal, keys and queued faults back to nothing."""
        self._ask("POST", "/admin/reset")

    def _ask(self, method: str, path: str, body: dict | None = None):
        try:
            with httpx.Client(trust_env=False, verify=False) as http:
                answer = http.request(method, self._root + path, json=body)
        except httpx.TransportError as error:
            said = f"the mock at {self.url} does not answer; start another"
            raise ServerError(said) from error
        if answer.status_code != 200:
            raise ServerError(answer.json()["error"]["message"])
        return answer.json()

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

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<mock at {self.url}>"


def start_server(kind: str = "hostile", **settings) -> Server:
    """Start a mock on a free port and wait until it listens.

    `settings` are the options of `python -m mock KIND`, with underscores:
    `start_server("hostile", capacity=3, delay_ms=20)`. Raises `ServerError` with the
    mock's own words when it refuses them.
    """
    options = [f"--{k.replace('_', '-')}={v}" for k, v in settings.items()]
    options += ["--port=0", "--with-parent"]
    command = [sys.executable, "-m", "mock", kind, *options]
    # Popen, since asyncio's subprocesses fail in a Windows kernel; the folder makes
    # sure that this checkout's mock is the one that starts.
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command, cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
        )  # fmt: skip
        url = process.stdout.readline().strip()
        if url:
            return Server(process, url)
        process.stdin.close()
        process.stdout.close()
        process.wait()
        complaints.seek(0)
        lines = complaints.read().decode(errors="replace").strip().splitlines()
    raise ServerError(lines[-1] if lines else f"mock {kind} ended without a word")


def reset() -> None:
    """End every server that this process started."""
    for server in list(_running):
        server.close()


atexit.register(reset)
