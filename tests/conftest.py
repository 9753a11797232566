"""What holds for every test: nothing leaves this machine, and real time gets quiet."""

import os
import signal
import sys
import threading

import pytest
from hypothesis import settings

# A shell has a job in the background ignore SIGINT, and all that it starts with it.
# The tests of the interrupt need it as it usually is.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A developer's own endpoint and key must not be reached by a test run; a proxy must
# not stand between a test and 127.0.0.1. Subprocesses inherit this.
for name in list(os.environ):
    if name.upper().startswith("LLM_") or name.upper().endswith("_PROXY"):
        del os.environ[name]
os.environ["MPLBACKEND"] = "Agg"

# No deadline for a single example: on two shared cores it finds only the neighbours.
# The same examples each time where a failure could not be looked into.
settings.register_profile("labkit", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("labkit")


def stay_at_home(event: str, args: tuple) -> None:
    """An audit hook: a connection to anywhere but this machine is a fault."""
    if event != "socket.connect" or not isinstance(args[1], tuple):
        return
    host = args[1][0]
    if isinstance(host, bytes):
        host = host.decode()
    if not (host.startswith("127.") or host in ("::1", "localhost")):
        raise RuntimeError(f"a test tried to reach {host}: only 127.0.0.1 is allowed")


sys.addaudithook(stay_at_home)


def pytest_collection_modifyitems(config, items) -> None:
    """Real-time tests go first and all to one worker, so no two of them compete."""
    items.sort(key=lambda item: item.get_closest_marker("realtime") is None)
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.get_closest_marker("realtime"):
                item.add_marker(pytest.mark.xdist_group("realtime"))
