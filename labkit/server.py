"""A mock provider in a process of its own, for notebooks and tests.

with start_server("hostile", capacity=3) as server:
    client = ChatClient(server.url)
"""

import urllib.parse

from labkit.http import httpx
from labkit.processes import ServerError, ServerProcess, reset

__all__ = ["Server", "ServerError", "reset", "start_server"]


class Server(ServerProcess):
    """A running mock."""

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


def start_server(kind: str = "hostile", **settings) -> Server:
    """Start a mock on a free port and wait until it listens.

    `settings` are the options of `python -m mock KIND`, with underscores:
    `start_server("hostile", capacity=3, delay_ms=20)`. Raises `ServerError` with the
    mock's own words when it refuses them.
    """
    options = [f"--{k.replace('_', '-')}={v}" for k, v in settings.items()]
    return Server("mock", kind, *options, "--port=0", "--with-parent")
