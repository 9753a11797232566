"""The virtual clock: exact, repeatable, and honest about what it cannot do."""

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest

from labkit.clock import (
    EPOCH,
    DeadlockError,
    VirtualClockError,
    run_real,
    run_virtual,
    wall_time,
)
from labkit.errors import LabkitError
from labkit.http import httpx
from mock.memory import MemoryTransport
from mock.provider import Provider

ROOT = Path(__file__).resolve().parent.parent
DAY = 86_400


def now() -> float:
    return asyncio.get_running_loop().time()


# Exact times


@pytest.mark.parametrize("seconds", [0, 1e-6, 0.1, 1 / 3, 240, 25 * 3600, 1e7, 9e8])
def test_a_sleep_takes_what_it_says(seconds):
    async def nap():
        await asyncio.sleep(seconds)
        return now()

    began = time.perf_counter()
    assert run_virtual(nap) == pytest.approx(seconds, rel=1e-12, abs=1e-6)
    assert time.perf_counter() - began < 2


def test_timers_still_fire_where_floats_are_coarse():
    async def naps():
        await asyncio.sleep(5e8)
        for _ in range(100):
            await asyncio.sleep(0.1)
        return now()

    assert run_virtual(naps) == pytest.approx(5e8 + 10, abs=1e-3)


@pytest.mark.parametrize("seconds", [float("inf"), 1e12])
def test_an_endless_sleep_is_a_deadlock(seconds):
    with pytest.raises(DeadlockError, match="thirty virtual years"):
        run_virtual(asyncio.sleep, seconds)


def test_a_thousand_short_sleeps_do_not_drift():
    async def naps():
        for _ in range(1000):
            await asyncio.sleep(0.1)
        return now()

    assert run_virtual(naps) == pytest.approx(100, abs=1e-6)


def test_timers_fire_in_the_order_of_their_times():
    async def body():
        fired = []
        delays = [0.3, 0.1, 2.0, 0.2, 0.1]
        await asyncio.gather(*(note(fired, at, d) for at, d in enumerate(delays)))
        return fired

    async def note(fired, at, delay):
        await asyncio.sleep(delay)
        fired.append((at, round(now(), 9)))

    assert run_virtual(body) == [(1, 0.1), (4, 0.1), (3, 0.2), (0, 0.3), (2, 2.0)]


def test_the_date_moves_with_the_clock():
    async def body():
        first = wall_time()
        await asyncio.sleep(3 * DAY)
        return first, wall_time()

    assert run_virtual(body) == (EPOCH, EPOCH + 3 * DAY)
    assert run_real(lambda: body_of(wall_time)) == pytest.approx(time.time(), abs=5)


async def body_of(function):
    return function()


def test_timeouts_fire_exactly():
    async def body():
        try:
            async with asyncio.timeout(5.25):
                await asyncio.sleep(3600)
        except TimeoutError:
            first = now()
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 2)
        except TimeoutError:
            return first, now()

    assert run_virtual(body) == pytest.approx((5.25, 7.25), abs=1e-6)


def test_a_timeout_inside_a_timeout():
    async def body(inner_s, outer_s):
        try:
            async with asyncio.timeout(outer_s):
                try:
                    async with asyncio.timeout(inner_s):
                        await asyncio.Event().wait()
                except TimeoutError:
                    return "inner", now()
        except TimeoutError:
            return "outer", now()

    assert run_virtual(body, 1, 2) == ("inner", 1)
    assert run_virtual(body, 2, 1) == ("outer", 1)


@pytest.mark.parametrize(
    "path, body, gave_up_s",
    [
        ("/hang/v1/chat/completions", {}, 5),
        ("/stall=3/v1/chat/completions", {"stream": True}, 5.18),
        ("/delay=5001/v1/chat/completions", {"stream": True}, 5),
        ("/delay=1000/v1/chat/completions", {}, 5),
    ],
)
def test_httpx_gives_up_at_its_read_timeout(path, body, gave_up_s):
    async def ask():
        transport = MemoryTransport(Provider())
        async with httpx.AsyncClient(transport=transport) as http:
            messages = [{"role": "user", "content": "?"}]
            with pytest.raises(httpx.ReadTimeout) as caught:
                await http.post(
                    f"http://127.0.0.1{path}", json={"messages": messages} | body
                )
            assert caught.value.request.url.path == path
        return now()

    assert run_virtual(ask) == pytest.approx(gave_up_s, abs=1e-6)


def test_an_outer_timeout_beats_httpx_and_is_not_taken_for_its_own():
    async def ask():
        transport = MemoryTransport(Provider())
        async with httpx.AsyncClient(transport=transport) as http:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await http.get("http://127.0.0.1/hang/v1/chat")
        return now()

    assert run_virtual(ask) == pytest.approx(1.5, abs=1e-6)


def test_a_cancellation_arrives_at_its_time():
    async def body():
        times = []

        async def sleeper():
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                times.append(now())
                await asyncio.sleep(0.5)  # cleaning up takes time too
                times.append(now())
                raise

        task = asyncio.create_task(sleeper())
        asyncio.get_running_loop().call_later(2, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        return times

    assert run_virtual(body) == pytest.approx([2, 2.5], abs=1e-6)


# What nothing can end


@pytest.mark.parametrize(
    "wait",
    [
        lambda: asyncio.Event().wait(),
        lambda: asyncio.get_running_loop().create_future(),
        lambda: asyncio.Queue().get(),
        lambda: asyncio.gather(asyncio.Event().wait(), asyncio.sleep(9)),
    ],
    ids=["event", "future", "queue", "one of two"],
)
def test_a_deadlock_is_reported_at_once(wait):
    cleaned = []

    async def body():
        try:
            await wait()
        finally:
            cleaned.append(now())

    began = time.perf_counter()
    with pytest.raises(DeadlockError, match="no timer is set"):
        run_virtual(body)
    assert time.perf_counter() - began < 1
    assert len(cleaned) == 1  # `finally` blocks run, as after a cancellation


def test_a_hang_without_a_deadline_is_a_deadlock():
    async def ask():
        transport = MemoryTransport(Provider())
        async with httpx.AsyncClient(transport=transport, timeout=None) as http:
            await http.get("http://127.0.0.1/hang/v1/chat")

    with pytest.raises(DeadlockError):
        run_virtual(ask)


def test_a_deadlock_during_the_cleaning_up_ends_too():
    async def body():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run_virtual(body)


# What takes real time is refused


async def connect():
    await asyncio.open_connection("127.0.0.1", 9)


async def listen():
    await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)


async def look_up():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def datagram():
    await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
    )


async def run_process():
    await asyncio.create_subprocess_exec(sys.executable, "-V")


async def in_thread():
    await asyncio.to_thread(time.sleep, 0)


async def in_executor():
    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0)


async def raw_socket():
    with socket.socket() as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", 9))


async def datagram_socket():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_recvfrom(sock, 1)


async def watch_a_socket():
    with socket.socket() as sock:
        asyncio.get_running_loop().add_reader(sock, print)


async def ask_with_real_transport():
    async with httpx.AsyncClient(trust_env=False, verify=False) as http:
        await http.get("http://127.0.0.1:9/")


@pytest.mark.parametrize(
    "body",
    [
        connect, listen, look_up, datagram, run_process, in_thread, in_executor,
        raw_socket, datagram_socket, watch_a_socket,
    ],
)  # fmt: skip
def test_real_work_is_refused_with_the_mend(body):
    with pytest.raises(VirtualClockError, match="ordinary loop") as caught:
        run_virtual(body)
    assert not isinstance(caught.value, DeadlockError)
    assert isinstance(caught.value, LabkitError)


def test_httpx_on_its_own_transport_is_refused():
    with pytest.raises(ExceptionGroup) as caught:  # anyio tries addresses in a group
        run_virtual(ask_with_real_transport)
    matching, rest = caught.value.split(VirtualClockError)
    assert matching and rest is None


def test_another_thread_is_refused_where_it_calls():
    refused = []

    async def body():
        loop = asyncio.get_running_loop()

        def call_in():
            try:
                loop.call_soon_threadsafe(print)
            except VirtualClockError as error:
                refused.append(error)

        thread = threading.Thread(target=call_in)
        thread.start()
        thread.join()
        loop.call_soon_threadsafe(refused.append, "from its own thread")
        await asyncio.sleep(0)

    run_virtual(body)
    assert "race the jumping clock" in str(refused[0])
    assert refused[1] == "from its own thread"


def test_coroutines_sent_from_another_thread_are_refused():
    async def body():
        loop, errors = asyncio.get_running_loop(), []

        def send():
            coro = asyncio.sleep(0)
            try:
                asyncio.run_coroutine_threadsafe(coro, loop)
            except VirtualClockError as error:
                errors.append(error)
            coro.close()

        thread = threading.Thread(target=send)
        thread.start()
        thread.join()
        return errors

    assert len(run_virtual(body)) == 1


# Where it runs


def test_it_runs_inside_a_running_loop():
    async def nap():
        await asyncio.sleep(60)
        return now()

    async def notebook():
        first = now()
        assert run_virtual(nap) == 60
        return now() - first

    assert asyncio.run(notebook()) < 5


def test_it_runs_inside_itself():
    async def inner():
        await asyncio.sleep(60)
        return now()

    async def outer():
        await asyncio.sleep(1)
        return run_virtual(inner), now()

    assert run_virtual(outer) == (60, 1)


def test_results_errors_and_context_come_through():
    from contextvars import ContextVar

    name = ContextVar("name")
    name.set("here")

    async def body(*args, **kwargs):
        return name.get(), args, kwargs

    assert run_virtual(body, 1, coro_fn=2) == ("here", (1,), {"coro_fn": 2})

    async def fail():
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        run_virtual(fail)
    with pytest.raises(TypeError):
        run_virtual(body_of)  # an argument is missing


def press_interrupt_after(seconds: float) -> None:
    """What the kernel's interrupt button does: SIGINT for the main thread."""
    threading.Timer(seconds, lambda: signal_main()).start()


def signal_main() -> None:
    import signal

    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("run", [run_virtual, run_real])
def test_the_interrupt_button_stops_it_and_cleans_up(run):
    cleaned = []

    async def body():
        try:
            while True:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    press_interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        run(body)
        time.sleep(5)  # the signal may come in late; not outside of this block
    assert cleaned == [True]


SAME_RUN = """
import asyncio, random, sys
sys.path.insert(0, {root!r})
from labkit.clock import run_virtual
from labkit.http import httpx
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings

async def client(http, rng, trace, name):
    for attempt in range(50):
        reply = await http.post("/v1/chat/completions", json={body!r})
        now = asyncio.get_running_loop().time()
        trace.append((name, attempt, reply.status_code, now))
        if reply.status_code == 200:
            return
        await asyncio.sleep(rng.uniform(0, min(20, .2 * 2 ** attempt)))

async def herd(seed):
    rng, trace = random.Random(seed), []
    provider = Provider(Settings(delay_ms=2))
    transport = MemoryTransport(provider, lambda: rng.expovariate(500))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1",
                                 trust_env=False, verify=False, timeout=None) as http:
        async with asyncio.TaskGroup() as group:
            for name in range(20):
                group.create_task(client(http, rng, trace, name))
    return trace

print(run_virtual(herd, int(sys.argv[1])))
"""


def trace_of(seed: int, hash_seed: str) -> str:
    body = {"messages": [{"role": "user", "content": "?"}]}
    code = SAME_RUN.format(root=str(ROOT), body=body)
    return subprocess.check_output(
        [sys.executable, "-c", code, str(seed)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        text=True,
    )


def test_the_same_seed_gives_the_same_trace_in_any_process():
    first = trace_of(1, "0")
    assert trace_of(1, "1") == trace_of(1, "4242") == first
    assert trace_of(2, "0") != first
    assert first.count("200") >= 20


AFTER_NEST_ASYNCIO = """
import asyncio, sys
sys.path.insert(0, {root!r})
import nest_asyncio
from labkit.clock import run_virtual, DeadlockError

async def nap():
    async with asyncio.timeout(100):
        await asyncio.sleep(60)
    return asyncio.get_running_loop().time()

async def notebook():
    nest_asyncio.apply()
    print(run_virtual(nap))
    try:
        run_virtual(asyncio.Event().wait)
    except DeadlockError:
        print("deadlock")

asyncio.run(notebook())
"""


def test_it_works_where_nest_asyncio_has_been_applied():
    code = AFTER_NEST_ASYNCIO.format(root=str(ROOT))
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said.split() == ["60.0", "deadlock"]


def test_chance_is_the_callers():
    async def draw(rng):
        await asyncio.sleep(rng.random())
        return now()

    runs = [run_virtual(draw, random.Random(seed)) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_a_traceback_begins_where_the_reader_s_code_does():
    """A gap in an exercise is one of those, and asyncio's frames explain nothing."""

    async def gap():
        raise NotImplementedError

    with pytest.raises(NotImplementedError) as caught:
        run_virtual(gap)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "gap" and len(frames) <= 4
    assert not any("asyncio" in frame.filename for frame in frames)
