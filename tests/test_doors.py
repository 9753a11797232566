"""The two doors, held against each other: whatever a client does, both look the same.

Each scenario runs through the memory door and through real sockets. What the client
saw, what the journal says and what the totals are must agree. There is one exception:
at a reset, TCP throws away what a slow reader has not read yet, and memory hands it
all over. What such a reader saw through sockets must be the beginning of it.
"""

import asyncio
import re
from urllib.parse import parse_qsl

import pytest

from labkit.http import httpx
from labkit.sse import SSEDecoder
from mock.memory import MemoryTransport
from mock.plan import parse
from mock.provider import Provider, Settings
from mock.sockets import SocketDoor

QUESTION = {"messages": [{"role": "user", "content": "What is a tide gauge?"}]}
STREAM = QUESTION | {"stream": True, "stream_options": {"include_usage": True}}
CHAT = "/v1/chat/completions"


class Client:
    """A client at one of the doors, which writes down all it sees."""

    def __init__(self, http: httpx.AsyncClient, provider: Provider):
        self.http, self.provider = http, provider
        self.seen: list = []

    async def ask(self, fault="", body=STREAM, way="all", key=None, read_s=2.0, **more):
        """One request, read in one `way`; what comes of it is in `seen`."""
        seen: dict = {"events": [], "error": None}
        self.seen.append(seen)
        path = more.pop("path", f"{CHAT}?{fault}" if fault else CHAT)
        request = self.http.build_request(
            more.pop("method", "POST"),
            path,
            headers={"idempotency-key": key} if key else {},
            timeout=httpx.Timeout(5, read=read_s),
            **({"json": body} if body is not None else {}),
            **more,
        )
        try:
            response = await self.http.send(request, stream=True)
            try:
                seen["status"] = response.status_code
                seen["reason"] = response.reason_phrase
                seen["headers"] = known_headers(response)
                await self._read(response, way, seen)
            finally:
                await response.aclose()
        except (httpx.HTTPError, TimeoutError) as error:
            seen["error"] = type(error).__name__
        return seen

    async def _read(self, response, way: str, seen: dict) -> None:
        way, _, count = way.partition(":")
        if way == "unread":
            return
        decoder, body = SSEDecoder(), b""
        streamed = response.headers.get("content-type") == "text/event-stream"
        async for chunk in response.aiter_raw():
            body += chunk
            for event in decoder.feed(chunk) if streamed else ():
                seen["events"].append(timeless((event.event, event.data, event.retry)))
            if way == "slow":
                await asyncio.sleep(0.002)
            if way == "leave" and len(seen["events"]) >= int(count):
                return
            if way == "done" and seen["events"] and seen["events"][-1][1] == "[DONE]":
                # The slot must be free now, with the body not even read to its end.
                await self.ask("delay=0", QUESTION)
                return
        if not streamed:
            seen["body"] = timeless(body.decode())

    async def settled(self) -> None:
        """Wait until the provider has nothing under way."""
        books = self.provider.books
        async with asyncio.timeout(3):
            while (  # noqa: ASYNC110
                books.inflight or books.statuses.total() < books.requests
            ):
                await asyncio.sleep(0.001)

    async def cancelled_after(self, seconds: float, *args, **kwargs) -> None:
        """A request whose caller loses patience: a cancellation, no read timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self.ask(*args, **kwargs)
        except TimeoutError:
            self.seen[-1]["error"] = "cancelled"


def known_headers(response) -> dict:
    """The headers that mean something to a client, dates aside."""
    kept = dict(response.headers)
    kept.pop("transfer-encoding", None)  # how, not what
    if "GMT" in kept.get("retry-after", ""):
        kept["retry-after"] = "a date"
    return kept


def timeless(said):
    if isinstance(said, tuple):
        return tuple(timeless(part) for part in said)
    return re.sub(r'"created":\s*\d+', "", said) if isinstance(said, str) else said


def at_both_doors(scenario, settings: Settings) -> list[dict]:
    """What a scenario comes to at each door."""

    async def at_memory():
        provider = Provider(settings)
        return await play(provider, MemoryTransport(provider), "http://127.0.0.1:8787")

    async def at_sockets():
        provider = Provider(settings)
        door = SocketDoor(provider)
        url = await door.open()
        try:
            return await play(provider, None, url.removesuffix("/v1"))
        finally:
            await door.close()

    async def play(provider, transport, base_url):
        async with httpx.AsyncClient(
            base_url=base_url, transport=transport, trust_env=False, verify=False
        ) as http:
            client = Client(http, provider)
            await scenario(client)
            await client.settled()
        journal = [entry.as_dict() for entry in provider.books.journal]
        for entry in journal:
            del entry["t_s"]
        return {
            "seen": client.seen, "journal": journal, "stats": provider.books.stats()
        }  # fmt: skip

    return [asyncio.run(at_memory()), asyncio.run(at_sockets())]


NARROW = Settings(delay_ms=1, capacity=1)


def agree(scenario, settings=NARROW, slow_reset=False) -> dict:
    """What the scenario comes to. `slow_reset`: the first request may see less."""
    memory, sockets = at_both_doors(scenario, settings)
    if slow_reset:
        whole, beginning = (end["seen"][0].pop("events") for end in (memory, sockets))
        assert beginning == whole[: len(beginning)]
    assert memory["seen"] == sockets["seen"]
    assert memory["journal"] == sockets["journal"]
    assert memory["stats"] == sockets["stats"]
    assert memory["stats"]["inflight"] == 0
    return memory


FAULTS = """
    max_tokens=5  max_tokens=1  length=100&delay=0  first=5&delay=0  role=1
    cut=0&how=close  cut=0&how=truncate  cut=0&how=reset
    cut=5&how=close  cut=5&how=truncate  cut=5&how=reset
    cut=13&how=close  cut=13&how=reset  cut=50  cut=5&how=close&max_tokens=3
    error=0  error=4  error=13  error=50
    answer=accent  answer=tool  answer=tool&cut=2
    lines=crlf  lines=cr  comments=1  split=1  pack=4  pack=1000  slice=60
    answer=accent&lines=crlf&comments=1&split=1&pack=3&slice=90&role=1
    cut=5&how=reset&pack=3
""".split()
REFUSED = """
    status=200  status=204  status=304  status=401  status=402  status=404  status=429
    status=500  status=503&retry_after=2  status=503&retry_after=2&retry_form=date
    status=429&retry_after=0.5&retry_form=ms  status=429&retry_after=-1
    status=429&retry_after=soon&retry_form=raw  status=429&retry_after=&retry_form=raw
    status=529  status=599
    nonsense=1  cut=five  cut=1&cut=2  how=gently  retry_after=soon  status=99
    delay=nan  retry_after=%20&retry_form=raw  retry_after=1e999&retry_form=date
""".split()


@pytest.mark.parametrize("way", ["all", "slow", "done"])
@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_a_stream_read(fault, way):
    async def scenario(client):
        await client.ask(fault, way=way)
        await client.ask("delay=0", QUESTION)  # the slot is free, at once

    seen = agree(scenario, slow_reset=way == "slow" and is_reset(fault))["seen"]
    assert seen[-1]["status"] == 200
    if "[DONE]" in str(seen[0].get("events")):
        assert [one["status"] for one in seen] == [200] * len(seen)


def is_reset(fault: str) -> bool:
    return "cut=" in fault and parse(parse_qsl(fault)).how == "reset"


@pytest.mark.parametrize(
    "fault", ["cut=200&length=400&delay=0", "cut=200&length=400&delay=0&slice=900"]
)
def test_a_reset_before_a_slow_reader_has_read(fault):
    """How much it still gets is TCP's affair, and the one thing the doors differ in."""
    seen_at: list = []

    async def scenario(client):
        seen_at.append(await client.ask(fault, way="slow"))

    end = agree(scenario, slow_reset=True)
    assert [seen["error"] for seen in seen_at] == ["ReadError"] * 2
    assert end["journal"][0]["delivered"] == 200  # written; the rest is not its affair


@pytest.mark.parametrize("how", ["close", "truncate"])
def test_any_other_end_waits_for_a_slow_reader(how):
    async def scenario(client):
        await client.ask(f"cut=60&length=80&delay=0&how={how}", way="slow")

    (seen,) = agree(scenario)["seen"]
    assert len(seen["events"]) == 60


@pytest.mark.parametrize("fault", REFUSED)
def test_a_refusal(fault):
    async def scenario(client):
        await client.ask(fault)
        await client.ask("delay=0", QUESTION)

    assert agree(scenario)["seen"][-1]["status"] == 200


@pytest.mark.parametrize("fault", ["", *FAULTS, *REFUSED])
def test_a_plain_reply(fault):
    async def scenario(client):
        await client.ask(fault, QUESTION)
        await client.ask("delay=0", QUESTION)

    assert agree(scenario)["seen"][-1]["status"] == 200


# What comes after the client has left must not depend on the machine: the next token
# is a minute away, or never comes.
FAR = "first=0&delay=60000"


@pytest.mark.parametrize(
    "fault, way",
    [
        ("first=60000", "unread"),
        ("first=60000&role=1", "leave:1"),
        ("first=60000&role=1&slice=50", "leave:1"),
        ("cut=0&how=reset", "unread"),
        ("cut=5&how=truncate&slice=80&stall=5", "all"),
        ("status=401", "unread"),
        (FAR, "leave:1"),
        (f"{FAR}&leave=stop", "leave:1"),
        (f"{FAR}&cut=2&how=reset", "leave:1"),
        ("first=0&delay=60&leave=finish&max_tokens=3", "leave:1"),
        ("stall=0", "unread"),
        ("stall=5", "leave:5"),
        ("stall=13", "leave:13"),
        ("stall=4&pack=4", "leave:4"),
        ("stall=5&leave=finish", "leave:5"),
    ],
)
def test_a_client_that_leaves_a_stream(fault, way):
    async def scenario(client):
        await client.ask(fault, way=way)
        await client.settled()
        await client.ask("delay=0", QUESTION)

    end = agree(scenario)
    assert end["seen"][-1]["status"] == 200
    finished_first = "cut=0" in fault or "status" in fault or way == "all"
    assert end["stats"]["client_left"] == (0 if finished_first else 1)


@pytest.mark.parametrize("body", [STREAM, QUESTION], ids=["stream", "plain"])
@pytest.mark.parametrize(
    "fault", ["hang=1", "hang=1&leave=finish", "stall=3", "stall=13"]
)
@pytest.mark.parametrize("how", ["read timeout", "cancelled"])
def test_a_silent_provider(fault, body, how):
    """The client's own patience ends it; the slot comes back."""

    async def scenario(client):
        if how == "cancelled":
            await client.cancelled_after(0.06, fault, body)
        else:
            await client.ask(fault, body, read_s=0.04)
        await client.settled()
        await client.ask("delay=0", QUESTION)

    end = agree(scenario)
    wanted = "cancelled" if how == "cancelled" else "ReadTimeout"
    assert [one["error"] for one in end["seen"]] == [wanted, None]
    assert end["journal"][0]["ending"] == "client left"


@pytest.mark.parametrize("fault", ["", "leave=stop", "leave=finish"])
def test_a_plain_client_that_leaves(fault):
    async def scenario(client):
        await client.cancelled_after(
            0.03, f"first=150&delay=0&max_tokens=3&{fault}".rstrip("&"), QUESTION
        )
        await client.settled()
        await client.ask("delay=0", QUESTION)

    end = agree(scenario)
    made = 0 if "stop" in fault else 3
    assert end["journal"][0]["generated"] == made
    assert end["stats"]["billed"] == (1 if made else 0) + 1


async def replayed(client):
    await client.ask(key="a")
    await client.ask(key="a")
    await client.ask("cut=3&how=close", key="a")
    await client.ask(key="b")


async def joined(client):
    first = asyncio.create_task(client.ask("first=150&delay=0", key="a"))
    await asyncio.sleep(0.02)
    await asyncio.gather(first, client.ask(key="a"))


async def joined_by_a_client_that_leaves(client):
    """The one that stays hears it all, whoever came first."""
    first = asyncio.create_task(
        client.cancelled_after(0.05, "first=200&delay=0", QUESTION, key="a")
    )
    await asyncio.sleep(0.02)
    await asyncio.gather(first, client.ask("leave=stop", QUESTION, key="a"))


async def conflict(client):
    await client.ask(key="a")
    await client.ask(body=QUESTION, key="a")


async def stopped_then_tried_again(client):
    await client.ask("stall=3", way="leave:3", key="a")
    await client.settled()
    await client.ask(key="a")
    await client.ask("hang=1", key="a", read_s=0.03)


async def abandoned_then_replayed(client):
    """The chapter's table: given up twice, generated once."""
    await client.cancelled_after(0.03, "first=150&delay=0", QUESTION, key="a")
    await client.settled()
    await client.ask(body=QUESTION, key="a")


async def queued_faults(client):
    fault = {"status": 503, "retry_after": "2"}
    await client.ask(path="/admin/faults", body={"fault": fault, "times": 2})
    await client.ask("nonsense=1")  # a bad request takes nothing from the queue
    for _ in range(3):
        await client.ask()
    for body in ({"fault": {"cut": "x"}}, {"fault": {}}, {"fault": fault, "times": 0}):
        await client.ask(path="/admin/faults", body=body)
    await client.ask(path="/admin/faults", body=None, content=b'{"\\ud800": 1}')
    await client.ask(path="/admin/faults", body={"fault": {"hang": True}})
    await client.ask(read_s=0.04)
    await client.settled()
    await client.ask(path="/admin/reset", body=None)
    await client.ask()


async def path_faults(client):
    for fault in ("401", "503,retry_after=1", "cut=5,how=close", "cut%3D5%2Chow=close"):
        await client.ask(path=f"/{fault}{CHAT}")
    await client.ask(path=f"/{'max_tokens=2'}{CHAT}?delay=0")
    await client.ask(path=f"/max_tokens=2{CHAT}?max_tokens=3")
    await client.ask(path=f"/hang{CHAT}", read_s=0.03)


async def malformed_messages(client):
    said = QUESTION["messages"]
    for message in (
        {"role": "assistant", "tool_calls": 1},
        {"role": "assistant", "tool_calls": [{"id": []}]},
        {"role": "tool", "tool_call_id": [1]},
        {"role": "user", "content": {}},
    ):
        await client.ask(body=STREAM | {"messages": [*said, message]})
    await client.ask(body=STREAM | {"model": []})


async def odd_requests(client):
    await client.ask(method="HEAD", path="/v1/models", body=None)
    await client.ask(method="HEAD", path="/nowhere", body=None)
    await client.ask(method="GET", path="/v1/models", body=None)
    await client.ask(method="GET", path="/v1/chat?max_tokens=3", body=None)
    await client.ask(method="GET", path="/", body=None)
    await client.ask(method="DELETE", path=CHAT, body=None)
    await client.ask(path="/v1/embeddings")
    for content in (b"", b"{", b"[]", b"\xff", b"null", b"[" * 100_000):
        await client.ask(body=None, content=content)
    for body in (
        {}, {"messages": []}, {"messages": [1]}, {"messages": [{"role": 1}]},
        STREAM | {"stream": "yes"}, STREAM | {"stream_options": 1},
        STREAM | {"tools": {}},
        STREAM | {"max_tokens": 0}, STREAM | {"max_tokens": True},
        STREAM | {"max_tokens": None, "max_completion_tokens": 2},
        STREAM | {"stream": None, "stream_options": None, "tools": None},
    ):  # fmt: skip
        await client.ask(body=body)


@pytest.mark.parametrize(
    "scenario",
    [
        replayed, joined, joined_by_a_client_that_leaves, conflict,
        stopped_then_tried_again, abandoned_then_replayed, queued_faults, path_faults,
        odd_requests, malformed_messages,
    ],
)  # fmt: skip
def test_longer_stories(scenario):
    agree(scenario)


@pytest.mark.parametrize(
    "fault, retry_after",
    [
        ("", "1"),
        ("retry_after=7", "7"),
        ("retry_after=7&retry_form=date", "7"),
        ("retry_after=0.25&retry_form=ms", None),
        ("retry_after=soon&retry_form=raw", "soon"),
        ("", None),
    ],
)
def test_a_full_house(fault, retry_after):
    """Twice as many as there is room for, and every form of Retry-After."""

    async def scenario(client):
        holder = asyncio.create_task(client.ask("delay=10", QUESTION))
        await asyncio.sleep(0.03)
        await client.ask(fault)
        await client.ask(fault, QUESTION)
        await holder
        await client.ask(fault)

    settings = Settings(capacity=1, delay_ms=1, retry_after=None if not fault else "1")
    end = agree(scenario, settings)
    assert end["stats"]["statuses"] == {"200": 2, "429": 2}
    headers = end["seen"][1]["headers"]
    if "date" in fault:
        assert headers["retry-after"] == "a date"
    elif "ms" in fault:
        assert headers["retry-after-ms"] == "250"
    elif fault:
        assert headers["retry-after"] == retry_after
    else:
        assert "retry-after" not in headers


def test_windows():
    async def scenario(client):
        for _ in range(4):
            await client.ask("delay=0", QUESTION)
        await client.ask("length=5000&delay=0", QUESTION)

    limits = Settings(requests_per_window=3, tokens_per_window=2000, delay_ms=0)
    seen = agree(scenario, limits)["seen"]
    assert [one["status"] for one in seen] == [200, 200, 200, 429, 400]
    assert seen[3]["headers"]["retry-after"] == "60"


def test_a_share_of_failures():
    async def scenario(client):
        for _ in range(30):
            await client.ask("max_tokens=1&delay=0", QUESTION)

    stats = agree(scenario, Settings(fail_rate=0.5))["stats"]
    assert set(stats["statuses"]) == {"200", "503"}


def test_many_at_once():
    async def scenario(client):
        await asyncio.gather(*(client.ask("delay=2", key=str(n)) for n in range(30)))

    agree(scenario, Settings(capacity=None))
