"""The client against mock, as chapter 14 has them meet; on the virtual clock."""

import asyncio
from random import Random

import pytest

from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.errors import BrokenStream, CallError, DeadlineError, IncompleteStream
from labkit.gate import Gate
from labkit.limits import Limits
from labkit.retry import Retry
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings

HOST = "http://mock.test"
SENTENCE = "A tide gauge is a device that measures sea level over time ."


def at(provider: Provider, fault: str = "", **settings) -> ChatClient:
    base_url = f"{HOST}/{fault}/v1" if fault else f"{HOST}/v1"
    settings.setdefault("rng", Random(1))
    return ChatClient(base_url, transport=MemoryTransport(provider), **settings)


async def read(caller: ChatClient, **body):
    async with caller.stream("What is a tide gauge?", **body) as stream:
        async for _ in stream:
            pass
    return stream.reply


def test_streaming_shows_the_first_word_twelve_times_sooner():
    async def main():
        caller = at(Provider(Settings(delay_ms=60)))
        whole = await caller.complete("What is a tide gauge?")
        return whole, await read(caller)

    whole, streamed = run_virtual(main)
    assert whole.text == streamed.text == SENTENCE
    assert whole.timings.first_token_s == pytest.approx(0.78)
    assert streamed.timings.first_token_s == pytest.approx(0.06)
    assert streamed.timings.complete_s == pytest.approx(0.78)


def test_the_three_endings():
    async def main():
        reply = await read(at(Provider()), max_tokens=5)
        assert (reply.text, reply.finish_reason) == ("A tide gauge is a", "length")
        for how, error in (("close", IncompleteStream), ("reset", BrokenStream)):
            with pytest.raises(error) as caught:
                await read(at(Provider(), f"cut=5,how={how}"))
            assert caught.value.partial == "A tide gauge is a"

    run_virtual(main)


@pytest.mark.parametrize("key", [None, ""])
def test_with_a_key_a_retry_joins_the_answer_under_way(key):
    """It takes 780 ms, and the client gives up at 300 ms, twice. Without a key it
    does not ask again, whatever Retry.idempotent says: that would make two answers."""

    async def main():
        provider = Provider(Settings(delay_ms=60))
        retry = Retry(2, strategy="exponential", base_s=0.5, idempotent=True)
        caller = at(provider, limits=Limits(open_s=0.3), retry=retry)
        try:
            reply = await caller.complete("hi", key=key)
            assert "idempotent-replay" in reply.headers
            return provider.books.generated, [a.error for a in reply.attempts]
        except DeadlineError as error:
            await asyncio.sleep(5)
            return provider.books.generated, [a.error for a in error.attempts]

    if key is None:
        assert run_virtual(main) == (1, ["DeadlineError", None])
    else:
        assert run_virtual(main) == (1, ["DeadlineError"])


@pytest.mark.parametrize("gate", [None, 3])
def test_twenty_clients_before_a_capacity_of_three(gate):
    async def main():
        provider = Provider(Settings(capacity=3, delay_ms=126 / 13))
        shared = Gate(gate) if gate else None
        retry, limits = Retry(50, budget_s=300), Limits(total_s=600, open_s=300)
        settings = {"gate": shared, "retry": retry, "limits": limits}
        callers = [at(provider, rng=Random(n), **settings) for n in range(20)]
        replies = await asyncio.gather(*[caller.complete("hi") for caller in callers])
        assert {reply.text for reply in replies} == {SENTENCE}
        requests = sum(len(reply.attempts) for reply in replies)
        assert provider.books.requests == requests
        return requests, asyncio.get_running_loop().time()

    requests, wall_s = run_virtual(main)
    if gate:
        assert (requests, wall_s) == (20, pytest.approx(7 * 0.126))
    else:
        assert 60 <= requests <= 90 and 3 < wall_s < 10


@pytest.mark.parametrize("leave_after", [1, 4])
def test_leaving_early_stops_the_generation(leave_after):
    async def main():
        provider = Provider(Settings(delay_ms=60))
        async with at(provider).stream("hi") as stream:
            for _ in range(leave_after):
                await anext(stream)
        await asyncio.sleep(5)
        return provider.books.inflight, provider.books.generated_tokens

    inflight, tokens = run_virtual(main)
    assert inflight == 0
    assert leave_after <= tokens < 13


def test_a_hang_ends_at_the_deadline():
    async def main():
        with pytest.raises(CallError) as caught:
            await read(at(Provider(), "hang", limits=Limits(open_s=5)))
        return caught.value.limit, caught.value.after_s

    assert run_virtual(main) == ("open", 5)
