"""A clock that jumps: four minutes of waiting in a third of a second.

An asyncio loop that has nothing to do asks its selector to sleep until the next
timer. The loop here has a selector that moves the clock forward instead. The same
code then runs in the same order, at the same times, for the same random seed, as
fast as the processor allows.

    >>> import asyncio
    >>> async def nap(seconds):
    ...     await asyncio.sleep(seconds)
    ...     return asyncio.get_running_loop().time()
    >>> run_virtual(nap, 240.0)
    240.0

Sockets and threads do their work in real time and would race the jumping clock, so
this loop refuses them. Code that needs them belongs on the ordinary loop.
"""

import asyncio
import contextlib
import contextvars
import os
import selectors
import threading
import time

from labkit.errors import LabkitError

EPOCH = 1_767_225_600.0  # virtual time starts on 2026-01-01 at 00:00:00 UTC
END_S = 1e9


class VirtualClockError(LabkitError, RuntimeError):
    """Something that takes real time was asked for under the virtual clock."""


class DeadlockError(VirtualClockError):
    """Every task waits, and no timer will ever wake one of them."""


class _JumpingSelector(selectors.BaseSelector):
    """Watches nothing. Asked to wait, it moves the loop's clock instead."""

    def __init__(self):
        self.now = 0.0
        self.interrupted = False

    def select(self, timeout=None):
        if self.interrupted:
            self.interrupted = False  # the clean-up that follows may still wait
            raise KeyboardInterrupt
        if timeout is None:
            raise DeadlockError(
                "every task is waiting and no timer is set, so nothing can ever "
                "happen; look for an Event, Future or queue that nobody fills"
            )
        if timeout and self.now > END_S:
            raise DeadlockError(
                "thirty virtual years have passed and every task is still waiting; "
                "look for an endless sleep"
            )
        self.now += timeout
        return []

    def interrupt(self):
        self.interrupted = True

    def register(self, fileobj, events, data=None):
        return selectors.SelectorKey(fileobj, -1, events, data)

    unregister = modify = register

    def get_map(self):
        return {}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` is virtual seconds since the run began."""

    def __init__(self):
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        # What is this near is due: more than a float's last digit anywhere before
        # END_S, or the loop would wait for ever for a timer that is due "now".
        self._clock_resolution = 1e-7

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._jumping.now

    def wall_time(self) -> float:
        """The virtual date, in seconds since 1970 (UTC): it starts at EPOCH."""
        return EPOCH + self._jumping.now

    def _add_reader(self, fd, callback, *args):
        """Accept the loop's own wake-up pipe, which nothing here ever writes to."""

    def _remove_reader(self, fd):
        return False

    def call_soon_threadsafe(self, callback, *args, context=None):
        if threading.get_ident() != self._thread_id:
            raise VirtualClockError(
                "another thread called into a virtual loop; its real work would "
                "race the jumping clock: run this on the ordinary loop"
            )
        return self.call_soon(callback, *args, context=context)


def _refuse(name: str, kind: str):
    def refused(self, *args, **kwargs):
        raise VirtualClockError(
            f"loop.{name}() needs {kind}, which work in real time; under "
            "run_virtual() use the memory door (mock.memory.MemoryTransport), or "
            "run this code on the ordinary loop"
        )

    return refused


for _name in """create_connection create_server create_datagram_endpoint
    create_unix_connection create_unix_server connect_accepted_socket sock_connect
    sock_accept sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into
    sock_sendall sock_sendto sock_sendfile getaddrinfo
    getnameinfo add_reader add_writer connect_read_pipe connect_write_pipe
    subprocess_exec subprocess_shell start_tls sendfile""".split():
    setattr(VirtualLoop, _name, _refuse(_name, "sockets or processes"))
VirtualLoop.run_in_executor = _refuse("run_in_executor", "threads")


def wall_time() -> float:
    """The date of the running loop, in seconds since 1970: virtual or real."""
    return getattr(asyncio.get_running_loop(), "wall_time", time.time)()


def run_virtual(coro_fn, /, *args, **kwargs):
    """Run `coro_fn(*args, **kwargs)` to its end on a virtual clock.

    Works from a script and from a notebook cell: the loop lives in a thread of its
    own, so a loop that already runs is left in peace. Chance is the caller's: hand
    `coro_fn` a seeded `random.Random` and the run repeats exactly.

    Raises whatever the coroutine raises; `DeadlockError` as soon as nothing can
    happen any more; `VirtualClockError` when it asks for a socket or a thread.
    """
    __tracebackhide__ = True  # in a notebook: from the cell to its own code
    loop = VirtualLoop()
    return _run_in_thread(loop, loop._jumping.interrupt, coro_fn, args, kwargs)


def run_real(coro_fn, /, *args, **kwargs):
    """The same on an ordinary loop: real time, real sockets."""
    loop = asyncio.new_event_loop()

    def interrupt():
        with contextlib.suppress(RuntimeError):  # it has just ended by itself
            loop.call_soon_threadsafe(_cancel_all, loop)

    return _run_in_thread(loop, interrupt, coro_fn, args, kwargs)


def _cancel_all(loop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()


def _beyond_asyncio(traceback):
    """A traceback without its first frames, the runner's: they explain nothing."""
    runners = (__file__, os.path.dirname(asyncio.__file__))
    first = traceback
    while first and first.tb_frame.f_code.co_filename.startswith(runners):
        first = first.tb_next
    return first or traceback


def _run_in_thread(loop, interrupt, coro_fn, args, kwargs):
    __tracebackhide__ = True
    outcome, ended = {}, threading.Event()

    def body():
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                outcome["result"] = runner.run(coro_fn(*args, **kwargs))
        except BaseException as error:
            outcome["error"] = error
        finally:
            ended.set()

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(body,), daemon=True)
    thread.start()
    pressed = None
    # No join(): interrupted, it takes the thread for dead (Python 3.11 and 3.12).
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt as error:  # the kernel's interrupt button
            pressed = error
            interrupt()
    if pressed:
        raise pressed
    if "error" in outcome:
        error = outcome["error"]
        raise error.with_traceback(_beyond_asyncio(error.__traceback__))
    return outcome["result"]
