"""The interrupt button (Ctrl-C, or ■ in a notebook): heard at once, and as a Stop.

    with labkit.stop_button() as stop:
        await run(state, tools, client, stop=stop)

Left alone, an interrupt cancels the task: the run is saved as well, but the cell ends
in a CancelledError and a page of traceback. Pressed a second time it still does: what
does not heed the Stop can be ended after all.
"""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from labkit.cancel import Stop

_open: list[tuple[Stop, str]] = []  # one for each block that is not left yet
_before = signal.SIG_DFL  # whose the button is outside of all blocks


@contextmanager
def stop_button(reason: str = "interrupted by the user") -> Iterator[Stop]:
    """A Stop that the first interrupt sets, while in the block.

    Several blocks at once, one in the other or in tasks side by side, are all stopped
    by it. Signals reach the main thread only: in another one it is a plain Stop.

    >>> with stop_button() as stop:
    ...     signal.raise_signal(signal.SIGINT)
    >>> stop.reason
    'interrupted by the user'
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    block = stop, reason
    _open.append(block)
    _take_button()
    try:
        yield stop
    finally:
        _open.remove(block)
        if all(stop.is_set for stop, _ in _open):
            _give_back_button()


def _pressed(number, frame) -> None:
    _give_back_button()
    for stop, reason in _open:
        stop.set(reason)


def _take_button() -> None:
    global _before
    if signal.getsignal(signal.SIGINT) is not _pressed:
        _before = signal.signal(signal.SIGINT, _pressed)


def _give_back_button() -> None:
    if signal.getsignal(signal.SIGINT) is _pressed:  # else it is somebody else's now
        signal.signal(signal.SIGINT, _before)


def hear_interrupts() -> None:
    """Let the button wake a notebook's kernel whose cell only waits.

    ipykernel schedules the cancellation from its signal handler, and tornado (6.5)
    does so without waking the loop: a cell that awaits a provider that hangs is not
    interrupted before something else happens. A loop that has a handler for any signal
    is woken by all of them (asyncio.loop.add_signal_handler); SIGURG is one that does
    nothing. On Windows the loop is woken anyway.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    try:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGURG, lambda: None)
    except (RuntimeError, NotImplementedError, AttributeError):
        return  # no loop runs: a script; or Windows
