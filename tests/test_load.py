"""Many at once, clients that never read, and what is left after each fault: nothing.

The long versions are sections of `make verify` (tests/verify: load, faults).
"""

import asyncio
import sys
import time
from contextlib import suppress

import pytest

from mock.plan import PARSERS, parse
from mock.replies import Reply
from tests.verify import faults, load
from tests.verify.section import Tally

posix = pytest.mark.skipif(sys.platform == "win32", reason="counts open files")


def told(tally: Tally) -> tuple:
    return tally.failures, tally.leaks, tally.tried - tally.survived


@posix
def test_a_thousand_connections_at_once():
    """All are open before the first one asks, and each is answered to its end."""
    tally = Tally("connections")
    totals = load.under(load.many, load.MANY, tally, {"delay_ms": 60})
    assert told(tally) == ([], 0, 0)
    assert tally.tried > 400  # fewer than a thousand only where the system says so
    assert totals["generated"] == totals["requests"] == tally.tried
    assert totals["inflight_peak"] > tally.tried / 2


@posix
def test_clients_that_never_read_hold_nobody_up_and_nothing_back():
    tally = Tally("deaf")
    totals = load.under(load.deaf, 60, tally, {"delay_ms": 0})
    assert told(tally) == ([], 0, 0)
    assert totals["client_left"] == 60 and totals["statuses"] == {"200": 61}
    # What was not read was not written either: it waits for room.
    assert totals["delivered_tokens"] < 60 * 50_000


def test_there_is_a_sample_of_each_fault():
    assert list(faults.FAULTS) == list(PARSERS)
    for field, samples in faults.FAULTS.items():
        for sample in samples:
            pairs = [each.split("=") for each in sample.split("&")]
            assert field in dict(pairs)
            parse(pairs)


@pytest.mark.parametrize("door", ["memory", "sockets"])
def test_nothing_is_left_after_any_fault_by_any_client(door):
    """Each fault with each manner once, streamed or not by turns; counted each time."""
    cases = [case for case in faults.all_cases() if case.door == door]
    mine = [case for at, case in enumerate(cases) if at % 3 == at // 9 % 3]
    assert {case.fault for case in mine} == set(faults.ALL)
    assert {case.body for case in mine} == set(faults.BODIES)
    tally = Tally(door)
    asyncio.run(faults.visits(door, mine, tally, time.monotonic() + 120))
    assert told(tally) == ([], 0, 0) and tally.tried == len(mine)


def test_what_is_left_would_be_seen(monkeypatch):
    """A provider that does not hear its client leave."""
    over = asyncio.Event()

    async def deaf(self):
        with self.generation.listening():
            while not over.is_set():
                with suppress(asyncio.CancelledError):
                    await over.wait()

    async def main():
        async with faults.house("sockets") as opened:
            await opened.visit(faults.Case("sockets", "hang=1", "stream", "read"))
            left = await opened.left_over(within_s=0.2)
            over.set()
            return left, await opened.left_over()

    monkeypatch.setattr(Reply, "hang", deaf)
    left, in_the_end = asyncio.run(main())
    assert {"tasks", "slots"} <= left.keys() and in_the_end == {}
