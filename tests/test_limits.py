"""Limits and the watchdog: which one fires, exactly when, and who is left alone."""

import asyncio
import math

import pytest

from labkit.cancel import Stop
from labkit.clock import run_virtual
from labkit.errors import ConfigError, DeadlineError, Stopped
from labkit.limits import Limits, Watchdog

LIMITS = Limits(connect_s=1, open_s=30, idle_s=15, total_s=120)


@pytest.mark.parametrize("field", ["connect_s", "open_s", "idle_s", "total_s"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, None, "5", True])
def test_a_limit_that_cannot_work(field, value):
    with pytest.raises(ConfigError, match=field) as caught:
        Limits(**{field: value})
    assert caught.value.field == field


async def fired(*steps, limits=LIMITS, limit="open", stop=None):
    """Numbers are silence, "sign" is progress. Returns (what fired, when)."""
    watchdog = Watchdog(limits, stop)
    try:
        async with watchdog.watch(limit):
            for step in steps:
                if step == "sign":
                    watchdog.progress()
                else:
                    await asyncio.sleep(step)
    except DeadlineError as error:
        assert error.limit == watchdog.fired
        assert isinstance(error, TimeoutError)
        return error.limit, error.after_s
    except Stopped as error:
        assert watchdog.fired == "stop"
        return error.reason, watchdog.elapsed_s
    return watchdog.fired, watchdog.elapsed_s


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ((29,), (None, 29)),
        ((31,), ("open", 30)),
        ((29, "sign", 14, "sign", 14), (None, 57)),
        ((29, "sign", 16), ("idle", 44)),
        ((20, "sign") + (10, "sign") * 20, ("total", 120)),
        (("sign",) + (14, "sign") * 8 + (9,), ("total", 120)),
    ],
)
def test_which_limit_fires_and_when(steps, outcome):
    assert run_virtual(fired, *steps) == outcome


def test_the_total_fires_first_where_it_is_shorter():
    limits = Limits(open_s=30, total_s=10)
    assert run_virtual(fired, 60, limits=limits) == ("total", 10)


def test_the_total_runs_on_between_two_waits():
    async def main():
        watchdog = Watchdog(LIMITS)
        for _ in range(11):
            async with watchdog.watch("idle"):
                await asyncio.sleep(1)
            await asyncio.sleep(10)  # the caller's own time: never cut short
        assert (watchdog.elapsed_s, watchdog.left_s) == (121, -1)
        with pytest.raises(DeadlineError) as caught:
            async with watchdog.watch("idle"):
                await asyncio.sleep(1)
        return caught.value.limit, caught.value.after_s

    assert run_virtual(main) == ("total", 121)


def test_a_stop_is_told_apart_from_a_deadline():
    async def main():
        stop = Stop()
        asyncio.get_running_loop().call_later(3, stop.set, "enough")
        outcome = await fired(60, stop=stop)
        return outcome, await fired(60, stop=stop)

    assert run_virtual(main) == (("enough", 3), ("enough", 0))


def test_progress_does_not_undo_a_stop():
    async def main():
        stop = Stop()
        watchdog = Watchdog(LIMITS, stop)
        with pytest.raises(Stopped):
            async with watchdog.watch("open"):
                stop.set("enough")
                await asyncio.sleep(0)  # the timer is set to now, but has not fired
                watchdog.progress()
                await asyncio.sleep(60)
        return watchdog.elapsed_s

    assert run_virtual(main) == 0


def test_a_stop_during_the_clean_up_after_a_deadline_changes_nothing():
    async def main():
        stop = Stop()
        watchdog = Watchdog(LIMITS, stop)
        asyncio.get_running_loop().call_later(31, stop.set)
        with pytest.raises(DeadlineError) as caught:
            async with watchdog.watch("open"):
                try:
                    await asyncio.sleep(60)
                finally:
                    await asyncio.sleep(5)
        return caught.value.limit

    assert run_virtual(main) == "open"


def test_a_cancellation_from_outside_stays_one():
    async def main():
        task = asyncio.create_task(fired(60, stop=Stop()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def test_a_timeout_of_the_block_stays_a_timeout():
    async def main():
        async with Watchdog(LIMITS).watch("open"):
            raise TimeoutError("the block's own")

    with pytest.raises(TimeoutError, match="own"):
        run_virtual(main)


def test_a_limit_that_fired_once_does_not_colour_the_next_wait():
    async def main():
        watchdog = Watchdog(Limits(open_s=5, idle_s=2, total_s=12))
        limits = []
        for signs in (0, 1, 0):
            with pytest.raises(DeadlineError) as caught:
                async with watchdog.watch("open"):
                    for _ in range(signs):
                        watchdog.progress()
                    await asyncio.sleep(60)
            limits.append((caught.value.limit, caught.value.after_s))
        return limits

    assert run_virtual(main) == [("open", 5), ("idle", 7), ("total", 12)]
