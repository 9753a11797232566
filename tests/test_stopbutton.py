"""The interrupt button as a Stop: pressed once, pressed twice, and put back after."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

import pytest
from jupyter_client.manager import start_new_kernel

from labkit.errors import Stopped
from labkit.harness import new_run, run
from labkit.stopbutton import stop_button
from tests.players import Counted, Player, calls


def press():
    signal.raise_signal(signal.SIGINT)


def test_a_run_ends_as_interrupted_and_nothing_is_raised():
    async def main():
        async def wait(args, context):
            asyncio.get_running_loop().call_later(0.01, press)
            await asyncio.sleep(60)

        slow = Counted(result=wait, read_only=True)
        state = new_run("plan", "hi")
        player = Player(calls(("c1", "look", "{}")))
        with stop_button() as stop:
            return await run(state, [slow.tool], player, stop=stop)

    state = asyncio.run(main())
    assert state.status == "interrupted" and state.resumable
    assert state.interruption["reason"] == "interrupted by the user"


def test_pressed_twice_it_is_an_interrupt_again():
    async def main():
        with stop_button() as stop:
            press()
            assert stop.is_set
            with pytest.raises(KeyboardInterrupt):
                press()

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()  # asyncio.run would make a cancellation of it
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)


def test_afterwards_the_button_is_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped), stop_button() as stop:
        assert signal.getsignal(signal.SIGINT) is not before
        press()
        stop.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_one_press_stops_the_blocks_within_each_other():
    before = signal.getsignal(signal.SIGINT)
    with stop_button("outer") as outer:
        with stop_button("inner") as inner:
            press()
        assert (outer.reason, inner.reason) == ("outer", "inner")
        assert signal.getsignal(signal.SIGINT) is before  # a second press is heard
        with stop_button() as later:
            press()
        assert later.is_set
        assert signal.getsignal(signal.SIGINT) is before


def test_one_press_stops_the_blocks_side_by_side_and_none_keeps_the_button():
    async def block(leave: asyncio.Event) -> bool:
        with stop_button() as stop:
            await leave.wait()
            return stop.is_set

    async def main(presses: int):
        before = signal.getsignal(signal.SIGINT)
        events = [asyncio.Event() for _ in range(2)]
        tasks = [asyncio.create_task(block(event)) for event in events]
        await asyncio.sleep(0)
        for event, task in zip(events, tasks, strict=True):  # the first leaves first
            event.set()
            await asyncio.wait([task])
            if presses and event is events[0]:
                press()
        assert signal.getsignal(signal.SIGINT) is before
        return [task.result() for task in tasks]

    assert asyncio.run(main(0)) == [False, False]
    assert asyncio.run(main(1)) == [False, True]


def test_a_handler_that_was_put_in_meanwhile_is_left_alone():
    def other(number, frame):
        pass

    before = signal.getsignal(signal.SIGINT)
    try:
        with stop_button():
            signal.signal(signal.SIGINT, other)
        assert signal.getsignal(signal.SIGINT) is other
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_it_is_a_plain_stop():
    seen = []

    def work():
        with stop_button() as stop:
            seen.append(stop.is_set)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


@pytest.mark.realtime
@pytest.mark.skipif(sys.platform == "win32", reason="there the loop is woken anyway")
def test_a_kernel_whose_cell_only_waits_hears_the_button():
    quiet = ["--log-level=ERROR"]
    manager, client = start_new_kernel(extra_arguments=quiet, stderr=subprocess.DEVNULL)

    def ends(code: str, press_after_s: float | None = None) -> str:
        """How a cell ends: "ok", or the name of what it raised."""
        asked = client.execute(code)
        if press_after_s is not None:
            time.sleep(press_after_s)
            manager.interrupt_kernel()
        while True:
            reply = client.get_shell_msg(timeout=60)
            if reply["parent_header"]["msg_id"] == asked:
                return reply["content"].get("ename", reply["content"]["status"])

    try:
        assert ends("import asyncio, labkit; labkit.check()") == "ok"
        assert ends("await asyncio.sleep(600)", 2) == "CancelledError"
        assert ends("with labkit.stop_button() as stop: await stop.wait()", 2) == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
