"""Stop: who set it first, who is woken, and who cancelled whom."""

import asyncio
import gc
import signal
import threading

import pytest

from labkit.cancel import Stop
from labkit.clock import VirtualClockError, run_virtual
from labkit.errors import Stopped


def now() -> float:
    return asyncio.get_running_loop().time()


def test_the_first_reason_wins():
    stop = Stop()
    assert not stop.is_set and stop.reason is None
    stop.check()
    stop.set("user pressed Stop")
    stop.set("too late")
    assert stop.is_set and stop.reason == "user pressed Stop"
    with pytest.raises(Stopped, match="user pressed Stop") as caught:
        stop.check()
    assert caught.value.reason == "user pressed Stop"


def test_wait_wakes_at_once():
    async def main():
        stop = Stop()
        asyncio.get_running_loop().call_later(1.5, stop.set, "enough")
        return await stop.wait(), now(), await stop.wait(), now()

    assert run_virtual(main) == ("enough", 1.5, "enough", 1.5)


def test_guard_cancels_the_block_and_names_the_reason():
    async def main():
        stop, seen = Stop(), []
        asyncio.get_running_loop().call_later(1, stop.set, "enough")
        with pytest.raises(Stopped) as caught:
            async with stop.guard():
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append(now())
                    raise
        assert asyncio.current_task().cancelling() == 0
        await asyncio.sleep(1)  # the task lives on
        return caught.value.reason, seen, now()

    assert run_virtual(main) == ("enough", [1], 2)


def test_guard_of_a_set_stop_does_not_begin():
    async def main():
        stop = Stop()
        stop.set()
        async with stop.guard():
            pytest.fail("it began")

    with pytest.raises(Stopped):
        run_virtual(main)


def test_a_block_that_ends_first_is_left_alone():
    async def main():
        stop = Stop()
        async with stop.guard():
            await asyncio.sleep(1)
            stop.set()  # nothing is awaited after it
        await asyncio.sleep(1)
        return now()

    assert run_virtual(main) == 2


@pytest.mark.parametrize("set_too", [False, True])
def test_a_cancellation_from_outside_stays_one(set_too):
    """As asyncio.timeout has it: even when both come in the same moment."""

    async def main():
        stop = Stop()

        async def work():
            async with stop.guard():
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await asyncio.sleep(1)
        if set_too:
            stop.set()
        task.cancel("from outside")
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def test_a_timeout_of_the_block_stays_a_timeout():
    async def main():
        async with Stop().guard():
            async with asyncio.timeout(1):
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        run_virtual(main)


def test_an_outer_timeout_passes_through():
    async def main():
        async with asyncio.timeout(1):
            async with Stop().guard():
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        run_virtual(main)


def test_guards_inside_each_other():
    async def main():
        outer, inner = Stop(), Stop()
        asyncio.get_running_loop().call_later(1, inner.set, "inner")
        asyncio.get_running_loop().call_later(2, outer.set, "outer")
        with pytest.raises(Stopped, match="outer"):
            async with outer.guard():
                with pytest.raises(Stopped, match="inner"):
                    async with inner.guard():
                        await asyncio.sleep(60)
                await asyncio.sleep(60)
        return now()

    assert run_virtual(main) == 2


def test_a_parent_stops_its_children_and_not_the_reverse():
    async def main():
        parent = Stop()
        child = parent.child()
        grandchild = child.child()
        other = parent.child()
        other.set("only me")
        assert not parent.is_set and not child.is_set
        asyncio.get_running_loop().call_later(1, parent.set, "everybody")
        with pytest.raises(Stopped, match="everybody"):
            async with grandchild.guard():
                await asyncio.sleep(60)
        assert (child.reason, other.reason) == ("everybody", "only me")
        assert child.child().is_set  # born stopped
        return now()

    assert run_virtual(main) == 1


def test_nothing_is_kept_of_those_who_have_waited():
    async def main():
        parent = Stop()
        for _ in range(3):
            async with parent.child().guard():
                pass
        gc.collect()
        return len(parent._calls)

    assert run_virtual(main) == 0


def test_set_from_another_thread():
    async def main():
        stop = Stop()
        threading.Timer(0.01, stop.set, ["from a thread"]).start()
        async with asyncio.timeout(5):
            async with stop.guard():
                await asyncio.sleep(60)

    with pytest.raises(Stopped, match="from a thread"):
        asyncio.run(main())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_set_from_a_signal_handler():
    stop = Stop()
    before = signal.signal(signal.SIGALRM, lambda *_: stop.set("signal"))

    async def main():
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        async with asyncio.timeout(5):
            return await stop.wait()

    try:
        assert asyncio.run(main()) == "signal"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_many_threads_set_it_and_all_loops_wake():
    stop = Stop()
    woken = []

    def loop_of_its_own():
        async def main():
            async with asyncio.timeout(5):
                woken.append(await stop.wait())

        asyncio.run(main())

    waiting = [threading.Thread(target=loop_of_its_own) for _ in range(4)]
    setting = [threading.Thread(target=stop.set, args=(f"{n}",)) for n in range(4)]
    for thread in waiting + setting:
        thread.start()
    for thread in waiting + setting:
        thread.join()
    assert woken == [stop.reason] * 4


def test_a_loop_that_has_closed_is_no_obstacle():
    stop = Stop()
    loop = asyncio.new_event_loop()
    task = loop.create_task(stop.wait())
    loop.run_until_complete(asyncio.sleep(0))
    task._log_destroy_pending = False
    loop.close()
    stop.set("later")
    assert stop.reason == "later"
    task.get_coro().close()


def test_a_virtual_loop_cannot_be_woken_by_a_thread():
    """It says so, and the flag is up for whoever looks next."""
    stop, raised = Stop(), []

    def press():
        try:
            stop.set("from a thread")
        except VirtualClockError as error:
            raised.append(error)

    async def main():
        with stop.calling(lambda: None):
            thread = threading.Thread(target=press)
            thread.start()
            thread.join()
        return stop.reason

    assert run_virtual(main) == "from a thread"
    assert len(raised) == 1
