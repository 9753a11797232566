"""The provider itself, without sockets: times to the microsecond, and its books."""

import asyncio
import bisect
import gc
import json
import tracemalloc

import pytest

from labkit.clock import EPOCH, run_virtual
from labkit.http import httpx
from mock.answers import Answer, Model, words
from mock.exchange import BUFFER_BYTES, Exchange, Request
from mock.hostile import HOSTILE
from mock.ledger import JOURNAL_ENTRIES, Books
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings
from mock.scripted import SCRIPTED

QUESTION = {"messages": [{"role": "user", "content": "What is a tide gauge?"}]}
TICK = pytest.approx  # shorter


def post(fault="", stream=True, key=None, **body) -> Request:
    headers = {"idempotency-key": key} if key else {}
    target = f"/v1/chat/completions?{fault}"
    raw = json.dumps(QUESTION | {"stream": stream} | body).encode()
    return Request("POST", target, headers, raw)


async def drain(exchange: Exchange) -> tuple[list[float], bytes]:
    """Read a reply to its end: when each piece was there, and all of the bytes."""
    loop, times, body = asyncio.get_running_loop(), [], b""
    await exchange.head()
    while (piece := await exchange.read()) is not None:
        times.append(loop.time())
        body += piece[1]
    return times, body


async def status_of(provider, *args, **kwargs) -> int:
    exchange = provider.open(post(*args, **kwargs))
    await drain(exchange)
    return exchange.status


def on_virtual_clock(test):
    """The test runs on a virtual clock, which starts at 0."""

    def run():
        run_virtual(test)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


# Times


@on_virtual_clock
async def test_the_first_token_comes_at_60_ms_and_the_last_at_780():
    times, body = await drain(Provider().open(post()))
    expected = [0.06 * n for n in range(1, 14)]  # the end and [DONE] with the last
    assert times == TICK(expected, abs=1e-6)
    assert body.endswith(b"data: [DONE]\n\n")


@on_virtual_clock
async def test_a_plain_reply_comes_whole_at_780_ms():
    times, body = await drain(Provider().open(post(stream=False)))
    assert times == TICK([0.78], abs=1e-6)
    reply = json.loads(body)
    assert reply["created"] == int(EPOCH)
    assert reply["usage"]["completion_tokens"] == 14  # 13 words and the chapter's []
    assert reply["choices"][0]["finish_reason"] == "stop"


@on_virtual_clock
async def test_first_and_delay_are_separate():
    times, _ = await drain(Provider().open(post("first=500&delay=10&max_tokens=3")))
    assert times == TICK([0.5, 0.51, 0.52], abs=1e-6)


@on_virtual_clock
async def test_a_stall_sends_what_was_produced_and_then_nothing():
    provider = Provider()
    exchange = provider.open(post("stall=3"))
    await exchange.head()
    for token in (1, 2, 3):
        written, _ = await exchange.read()
        assert written == TICK(0.06 * token, abs=1e-6)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3600):
            await exchange.read()
    assert provider.books.inflight == 1  # an hour later it still holds its slot
    exchange.leave()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert provider.books.inflight == 0
    assert provider.books.billed_tokens == 3


@on_virtual_clock
async def test_work_that_is_done_one_at_a_time():
    provider = Provider(Settings(serial_ms=10, capacity=None, delay_ms=0))
    replies = [drain(provider.open(post(stream=False))) for _ in range(4)]
    done = [times[-1] for times, _ in await asyncio.gather(*replies)]
    assert done == TICK([0.01, 0.02, 0.03, 0.04], abs=1e-6)


@on_virtual_clock
async def test_latency_counts_both_ways():
    transport = MemoryTransport(Provider(), latency_s=lambda: 0.1)
    async with httpx.AsyncClient(transport=transport) as http:
        loop, times = asyncio.get_running_loop(), []
        async with http.stream("GET", "http://127.0.0.1/v1/chat?max_tokens=2") as reply:
            times.append(loop.time())
            async for _ in reply.aiter_raw():
                times.append(loop.time())
    assert times == TICK([0.2, 0.26, 0.32], abs=1e-6)


# Limits


@on_virtual_clock
async def test_capacity_counts_answers_and_frees_a_slot_with_the_last_token():
    provider = Provider(Settings(capacity=2))
    first = [provider.open(post()), provider.open(post())]
    await asyncio.sleep(0.7799)
    assert await status_of(provider) == 429
    assert provider.books.inflight == 2
    await asyncio.sleep(0.0002)
    assert provider.books.inflight == 0  # though nobody has read a byte of them
    assert await status_of(provider, "delay=0") == 200
    await asyncio.gather(*map(drain, first))
    assert provider.books.inflight_peak == 2


@pytest.mark.parametrize("length_s", [60, 7.3])
@pytest.mark.parametrize("began_s", [0.1, 12.345678, 1e5 / 3])
def test_waiting_exactly_what_the_window_says_is_enough(began_s, length_s):
    async def body():
        limits = Settings(requests_per_window=3, window_s=length_s, delay_ms=0)
        provider = Provider(limits)
        await asyncio.sleep(began_s)
        for _ in range(40):  # forty windows
            for _ in range(3):
                assert await status_of(provider) == 200
                await asyncio.sleep(0.7)
            refused = provider.open(post())
            await drain(refused)
            assert refused.status == 429
            told_s = int(refused.headers["retry-after"])
            assert 1 <= told_s <= length_s + 1
            await asyncio.sleep(told_s)

    run_virtual(body)


@on_virtual_clock
async def test_the_window_does_not_exaggerate():
    provider = Provider(Settings(requests_per_window=1, delay_ms=0))
    await status_of(provider)
    await asyncio.sleep(30)
    refused = provider.open(post())
    await drain(refused)
    assert refused.headers["retry-after"] == "30"
    await asyncio.sleep(29.99)
    assert await status_of(provider) == 429
    await asyncio.sleep(0.01)
    assert await status_of(provider) == 200


@on_virtual_clock
async def test_with_two_windows_the_longer_wait_is_told():
    limits = Settings(requests_per_window=2, tokens_per_window=60, delay_ms=0)
    provider = Provider(limits)
    provider._windows["requests"].wait_s(1, 0.0)  # this window begins at 0 s
    await asyncio.sleep(20)
    for _ in range(2):
        assert await status_of(provider) == 200
    refused = provider.open(post())
    await drain(refused)
    assert refused.headers["retry-after"] == "60"  # not the 40 s of the other
    await asyncio.sleep(60)
    assert await status_of(provider) == 200


@on_virtual_clock
async def test_what_never_fits_is_told_so_without_a_time_to_wait():
    provider = Provider(Settings(tokens_per_window=100, delay_ms=0))
    exchange = provider.open(post("length=101"))
    _, body = await drain(exchange)
    assert exchange.status == 400
    assert "retry-after" not in exchange.headers
    assert "waiting changes nothing" in json.loads(body)["error"]["message"]


@on_virtual_clock
async def test_a_refused_request_takes_nothing_from_a_window():
    provider = Provider(Settings(capacity=1, requests_per_window=2))
    holder = provider.open(post())
    await asyncio.sleep(0.1)
    for _ in range(5):
        assert await status_of(provider) == 429
    await drain(holder)
    assert await status_of(provider) == 200


def statuses_with(seed: int) -> list[int]:
    async def body():
        provider = Provider(Settings(fail_rate=0.3, delay_ms=0), seed=seed)
        first = [await status_of(provider) for _ in range(200)]
        provider.reset()
        assert [await status_of(provider) for _ in range(200)] == first
        return first

    return run_virtual(body)


def test_the_failing_few_are_the_same_for_a_seed():
    assert statuses_with(7) == statuses_with(7) != statuses_with(8)
    assert 40 < statuses_with(7).count(503) < 80


# Idempotency and bills


@on_virtual_clock
async def test_a_key_in_flight_is_joined_and_a_finished_one_replayed():
    provider = Provider(Settings(capacity=1))
    first = asyncio.create_task(drain(provider.open(post(key="a"))))
    await asyncio.sleep(0.3)
    joined = provider.open(post(key="a"))
    times, body = await drain(joined)
    # At once what there is, then in step with the first.
    assert times == TICK([0.06 * n for n in range(5, 14)], abs=1e-6)
    replayed = provider.open(post(key="a"))
    assert (await drain(replayed))[1] == body == (await first)[1]
    marks = [e.headers.get("idempotent-replay") for e in (joined, replayed)]
    assert marks == ["joined", "replayed"]
    stats = provider.books.stats()
    assert (stats["generated"], stats["billed"]) == (1, 1)
    assert (stats["joined"], stats["replayed"], stats["attempts"]) == (1, 1, {"a": 3})


@on_virtual_clock
async def test_the_chapters_idempotency_table():
    """Given up at 300 ms, tried again 500 ms later: made once, replayed at once."""
    for key, generated in ((None, 2), ("a", 1)):
        provider, outcomes = Provider(), []
        for _ in range(2):
            exchange = provider.open(post(stream=False, key=key))
            try:
                async with asyncio.timeout(0.3):
                    outcomes.append(json.loads((await drain(exchange))[1])["id"])
            except TimeoutError:
                exchange.leave()
                outcomes.append(None)
            await asyncio.sleep(0.5)
        await asyncio.sleep(1)
        assert outcomes == ([None, "cmpl_1"] if key else [None, None])
        assert provider.books.generated == provider.books.billed == generated


@pytest.mark.parametrize(
    "stream, leave, tokens", [(True, "", 3), (True, "finish", 13), (False, "", 13),
                              (False, "stop", 3)],
)  # fmt: skip
def test_who_pays_when_the_client_leaves_after_three_tokens(stream, leave, tokens):
    async def body():
        provider = Provider()
        fault = f"leave={leave}" if leave else ""
        exchange = provider.open(post(fault, stream=stream))
        await asyncio.sleep(0.2)
        exchange.leave()
        await asyncio.sleep(0.01)
        assert provider.books.inflight == (tokens > 3)  # it holds its slot
        await asyncio.sleep(2)
        stats = provider.books.stats()
        assert (stats["billed"], stats["billed_tokens"]) == (1, tokens)
        assert stats["client_left"] == 1 and stats["inflight"] == 0
        assert stats["delivered_tokens"] == (3 if stream else 0)

    run_virtual(body)


@on_virtual_clock
async def test_a_joined_answer_goes_on_as_long_as_anyone_listens():
    provider = Provider()
    first = provider.open(post(key="a"))
    await asyncio.sleep(0.1)
    second = provider.open(post("role=1&slice=5", key="a"))
    await asyncio.sleep(0)  # the second is at its role chunk, far from the answer
    first.leave()
    _, body = await drain(second)
    assert body.endswith(b"[DONE]\n\n") and provider.books.generated == 1


@on_virtual_clock
async def test_an_answer_nobody_came_to_hear_is_stopped():
    """The client leaves between the head and the first token."""
    provider = Provider()
    exchange = provider.open(post("role=1&slice=1&stall=2"))
    await exchange.head()
    await exchange.read()
    exchange.leave()
    await asyncio.sleep(0.01)
    assert provider.books.inflight == 0


@on_virtual_clock
async def test_a_client_that_left_before_the_provider_looked_is_written_down():
    provider = Provider()
    exchange = provider.open(post())
    exchange.leave()
    assert await exchange.head() is True  # and does not wait for ever
    assert await exchange.read() is None
    assert exchange.ending == "reset"
    (entry,) = provider.books.journal
    assert (entry.ending, entry.status) == ("client left", 200)
    assert provider.books.inflight == 0


@on_virtual_clock
async def test_a_hang_on_a_key_with_an_answer_still_hangs():
    provider = Provider(Settings(delay_ms=0))
    await drain(provider.open(post(key="a")))
    exchange = provider.open(post("hang=1", key="a"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await exchange.head()
    exchange.leave()


# The journal


@pytest.mark.parametrize(
    "fault, stream, late",
    [
        ("cut=5", True, []), ("cut=13", True, []), ("cut=14", True, ["cut"]),
        ("error=0", True, []), ("error=14", True, ["error"]),
        ("cut=3&error=5", True, ["error"]), ("cut=5&max_tokens=3", True, ["cut"]),
        ("stall=14", True, ["stall"]), ("cut=2&stall=5", True, ["stall"]),
        ("cut=5&lines=cr", False, ["cut", "lines"]), ("stall=20", False, ["stall"]),
        ("delay=1", True, []),
    ],
)  # fmt: skip
def test_faults_that_never_fired_are_written_down(fault, stream, late):
    async def body():
        provider = Provider()
        await drain(provider.open(post(fault, stream=stream)))
        return provider.books.journal[0].unfired

    assert run_virtual(body) == late


@on_virtual_clock
async def test_a_bad_request_takes_nothing_from_the_queue():
    provider = Provider(Settings(delay_ms=0))
    asked = json.dumps({"fault": {"status": 503}, "times": 2}).encode()
    await drain(provider.open(Request("POST", "/admin/faults", body=asked)))
    bad = await status_of(provider, "cut=x")
    assert [bad] + [await status_of(provider) for _ in range(3)] == [400, 503, 503, 200]


@on_virtual_clock
async def test_a_queued_number_may_be_as_small_as_json_can_say():
    provider = Provider()
    asked = json.dumps({"fault": {"delay": 1e-7, "role": True}}).encode()
    assert b"1e-07" in asked
    await drain(provider.open(Request("POST", "/admin/faults", body=asked)))
    assert await status_of(provider) == 200
    assert provider.books.journal[0].plan == "delay=0.0000001&role=1"


@on_virtual_clock
async def test_strange_targets_are_answered():
    provider = Provider(Settings(delay_ms=0))
    for target in ("//[", "*", "/%zz", "", "?cut=1", "http://", "//v1/chat", "/\x7f"):
        exchange = provider.open(Request("GET", target))
        assert await exchange.head()
        front = target in ("", "?cut=1", "http://")  # without a path it is "/"
        answered = front or target == "//v1/chat"
        assert exchange.status == (200 if answered else 404)
        await drain(exchange)


@on_virtual_clock
async def test_packed_tokens_are_delivered_when_they_are_written():
    provider = Provider()
    exchange = provider.open(post("pack=4&stall=6"))
    await asyncio.sleep(60)
    (entry,) = provider.books.journal
    assert (entry.as_dict()["generated"], entry.delivered) == (6, 4)
    exchange.leave()
    await asyncio.sleep(0.01)
    assert (entry.delivered, provider.books.delivered_tokens) == (4, 4)


@pytest.mark.parametrize("fault", ["", "cut=5&how=close", "error=5"])
def test_what_was_packed_is_delivered_at_the_end(fault):
    async def body():
        provider = Provider()
        await drain(provider.open(post(f"pack=4&{fault}".rstrip("&"))))
        return provider.books.journal[0].delivered

    assert run_virtual(body) == (5 if fault else 13)


@pytest.mark.parametrize("stream", [True, False])
def test_a_reset_leaves_what_was_under_way_in_the_old_books(stream):
    async def body():
        provider = Provider()
        exchange = provider.open(post(stream=stream))
        await asyncio.sleep(0.2)
        old = provider.books
        provider.reset()
        await drain(exchange)
        assert old.stats()["statuses"] == {"200": 1}
        assert (old.billed_tokens, old.delivered_tokens) == (13, 13)
        assert old.journal[0].ending == "end"
        assert vars(provider.books) == vars(Books())

    run_virtual(body)


@on_virtual_clock
async def test_a_reset_while_a_request_waits_for_its_turn():
    """Its answer is made in the new house, so it takes a place there."""
    provider = Provider(Settings(serial_ms=100, capacity=1))
    exchange = provider.open(post())
    await asyncio.sleep(0.05)
    old = provider.books
    provider.reset()
    await asyncio.sleep(0.1)
    assert (old.inflight, provider.books.inflight) == (0, 1)
    await drain(exchange)
    assert old.stats()["statuses"] == {"200": 1}
    assert provider.books.inflight == provider.books.requests == 0


# Memory


@on_virtual_clock
async def test_a_reader_that_never_reads_holds_the_provider_up():
    provider = Provider(Settings(delay_ms=0, capacity=None))
    exchange = provider.open(post("length=30000"))
    tracemalloc.start()
    try:
        await asyncio.sleep(60)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * BUFFER_BYTES  # the whole answer would be 5 MB
    assert provider.books.delivered_tokens < 1000
    assert provider.books.generated == 1  # the model does not wait for the network
    exchange.leave()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert provider.books.journal[0].ending == "client left"


def test_an_answer_is_as_small_as_its_sentence():
    long = words("a b c").of_length(1_000_000).cut_to(999_999)
    assert (len(long), len(long.deltas), long.finish_reason) == (999_999, 3, "length")
    assert long[999_998] == {"content": " c"}


def test_the_books_keep_a_bounded_number_of_lines(monkeypatch):
    monkeypatch.setattr("mock.ledger.KEYS", 50)

    async def body():
        yes = Model(("yes",), lambda *_: words("yes"))
        provider = Provider(Settings(delay_ms=0), yes)
        for n in range(80):
            assert await status_of(provider, key=str(n)) == 200
        assert len(provider.books.attempts) == len(provider.ledger._kept) == 50
        replayed = provider.open(post(key="79"))
        await drain(replayed)
        assert replayed.headers["idempotent-replay"] == "replayed"
        assert provider.books.journal.maxlen == JOURNAL_ENTRIES

    run_virtual(body)


@on_virtual_clock
async def test_an_answer_without_a_word_is_an_answer():
    provider = Provider(model=Model(("mute",), lambda *_: Answer(())))
    _, body = await drain(provider.open(post(stream=False)))
    assert json.loads(body)["choices"][0]["message"]["content"] == ""
    assert provider.books.generated == 1 and provider.books.billed == 0


# Mistakes of ours: they must not leave the client waiting, nor pass in silence.


def complaints() -> list[dict]:
    """What the running loop reports from now on."""
    heard: list[dict] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, about: heard.append(about))
    return heard


def broken(*_):
    raise ZeroDivisionError("by zero tokens")


@on_virtual_clock
async def test_a_provider_that_fails_says_so():
    heard = complaints()
    provider = Provider(model=Model(("broken",), broken))
    exchange = provider.open(post())
    _, body = await drain(exchange)
    error = json.loads(body)["error"]
    assert (exchange.status, error["type"]) == (500, "internal_error")
    assert "ZeroDivisionError('by zero tokens')" in error["message"]
    (about,) = heard  # with its traceback, for whoever mends it
    assert isinstance(about["exception"], ZeroDivisionError)
    assert provider.books.inflight == 0
    assert provider.books.stats()["statuses"] == {"500": 1}


@on_virtual_clock
async def test_a_provider_that_fails_after_its_head_breaks_the_connection():
    heard = complaints()
    exchange = Provider().open(post(stream_options={"include_usage": True}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mock.replies.usage", broken)
        _, body = await drain(exchange)
    assert exchange.status == 200 and b"[DONE]" not in body
    assert exchange.ending == "reset"
    del exchange
    gc.collect()
    await asyncio.sleep(0)
    assert len(heard) == 1


# What a client may send


def with_message(**message) -> Request:
    return post(messages=[{"role": "user", "content": "?"}, message])


MALFORMED = [
    (post(model=[]), "model"),
    (post(model={}), "model"),
    (post(model=1), "model"),
    (with_message(role="user", content={}), "messages[1].content"),
    (with_message(role="user", content=1), "messages[1].content"),
    (with_message(role="tool", tool_call_id=[1]), "messages[1].tool_call_id"),
    *[
        (with_message(role="assistant", tool_calls=calls), "messages[1].tool_calls")
        for calls in (1, "x", {"a": 1}, [1], [{}], [{"id": []}], [{"id": None}])
    ],
]


@pytest.mark.parametrize("request_, field", MALFORMED)
@pytest.mark.parametrize("model", [HOSTILE, SCRIPTED], ids=lambda each: each.names[0])
def test_a_malformed_request_is_refused_by_field(model, request_, field):
    async def body():
        heard = complaints()
        exchange = Provider(Settings(delay_ms=0), model).open(request_)
        _, raw = await drain(exchange)
        assert exchange.status == 400
        assert json.loads(raw)["error"]["message"].startswith(field)
        assert not heard

    run_virtual(body)


def is_too_deep(depth: int) -> bool:
    """For json.loads, called as deep in a program as here."""
    try:
        json.loads("[" * depth + "]" * depth)
    except RecursionError:
        return True
    return False


@pytest.mark.parametrize("stream", [True, False])
def test_nesting_is_read_and_counted_or_refused(stream):
    """At every depth, those included that can only just be read: how deep that is,
    depends on the Python."""
    too_deep = bisect.bisect_left(range(100_000), True, key=is_too_deep)
    depths = sorted({*range(900, 1010), *range(too_deep - 100, too_deep + 100)})

    async def body():
        heard, statuses = complaints(), []
        for depth in depths:
            raw = post(stream_options={"include_usage": True}, stream=stream).body
            deep = raw.replace(b'"What is a tide gauge?"', b"[" * depth + b"]" * depth)
            assert deep != raw
            exchange = Provider(Settings(delay_ms=0)).open(
                Request("POST", "/v1/chat/completions", {}, deep)
            )
            await drain(exchange)
            assert exchange.ending == "end"
            statuses.append(exchange.status)
        assert set(statuses) == {200, 400} and statuses == sorted(statuses)
        assert not heard

    run_virtual(body)


def test_a_naive_herd_of_a_hundred_is_cheap():
    """Everyone again after 0.2, 0.4, ... 20 s: four virtual minutes of them."""
    import time

    async def client(http, provider):
        attempt = 0
        while True:
            reply = await http.post("/v1/chat/completions", json=QUESTION)
            if reply.status_code == 200:
                return attempt
            await asyncio.sleep(min(20, 0.2 * 2**attempt))
            attempt += 1

    async def herd():
        provider = Provider(Settings(delay_ms=18 / 13, retry_after=None))
        transport = MemoryTransport(provider, latency_s=lambda: 0.001)
        url = "http://127.0.0.1"
        async with httpx.AsyncClient(
            transport=transport, base_url=url, trust_env=False, timeout=None
        ) as http:
            await asyncio.gather(*(client(http, provider) for _ in range(100)))
        return provider.books.stats()

    began = time.process_time()
    stats = run_virtual(herd)
    spent = time.process_time() - began
    assert stats["statuses"]["200"] == 100
    per_request_ms = 1000 * spent / stats["requests"]
    assert per_request_ms < 1.5, (spent, stats["requests"])
