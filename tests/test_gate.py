"""The gate: never too many, nobody overtaken, no slot lost."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.clock import run_virtual
from labkit.errors import ConfigError
from labkit.gate import Gate


@pytest.mark.parametrize("width", [0, -1, 1.5, "3", None, True])
def test_a_width_that_cannot_work(width):
    with pytest.raises(ConfigError, match="width") as caught:
        Gate(width)
    assert caught.value.field == "width"


def test_first_come_first_served():
    async def main():
        gate, order = Gate(2), []

        async def visit(number):
            async with gate:
                order.append((number, asyncio.get_running_loop().time()))
                await asyncio.sleep(1)

        await asyncio.gather(*[visit(number) for number in range(5)])
        return order, gate.peak, gate.in_use, gate.waiting

    served = [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)]
    assert run_virtual(main) == (served, 2, 0, 0)


def test_a_newcomer_does_not_overtake_the_queue():
    async def main():
        gate, order = Gate(1), []

        async def visit(name):
            async with gate:
                order.append(name)

        await gate.enter()
        queued = asyncio.create_task(visit("queued"))
        await asyncio.sleep(0)
        gate.leave()  # the slot is the queued one's, though it has not run yet
        await visit("newcomer")
        await queued
        return order

    assert run_virtual(main) == ["queued", "newcomer"]


@pytest.mark.parametrize("cancel_first", [True, False])
def test_cancelled_while_a_slot_is_handed_over(cancel_first):
    async def main():
        gate = Gate(1)
        await gate.enter()
        task = asyncio.create_task(gate.enter())
        await asyncio.sleep(0)
        for step in (task.cancel, gate.leave)[:: 1 if cancel_first else -1]:
            step()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (gate.in_use, gate.waiting) == (0, 0)
        await asyncio.wait_for(gate.enter(), 1)

    run_virtual(main)


VISIT = st.tuples(st.integers(0, 20), st.integers(0, 9), st.none() | st.integers(0, 30))


@given(st.integers(1, 4), st.lists(VISIT, max_size=30))
def test_no_slot_is_lost_or_shared(width, visits):
    """Visitors come at, stay for, and are perhaps cancelled at such a time."""

    async def main():
        gate, inside = Gate(width), 0

        async def visit(come, stay):
            nonlocal inside
            await asyncio.sleep(come)
            async with gate:
                inside += 1
                assert inside <= gate.in_use <= width  # one may be on its way in
                try:
                    await asyncio.sleep(stay)
                finally:
                    inside -= 1

        loop, tasks = asyncio.get_running_loop(), []
        for come, stay, cancelled_at in visits:
            tasks.append(asyncio.create_task(visit(come, stay)))
            if cancelled_at is not None:
                loop.call_at(cancelled_at, tasks[-1].cancel)
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError)
        assert (gate.in_use, gate.waiting) == (0, 0)
        assert gate.peak <= width

    run_virtual(main)
