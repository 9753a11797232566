"""Where requests go at mock, and what is said to those that go nowhere."""

import pytest

from labkit.clock import run_virtual
from labkit.http import httpx
from mock.memory import MemoryTransport
from mock.provider import Provider, Settings

CHAT = "/v1/chat/completions"



def ask(method, target):
    """One request through memory; both doors are one provider behind it."""

    async def main():
        provider = Provider(Settings(delay_ms=0))
        async with httpx.AsyncClient(
            transport=MemoryTransport(provider), base_url="http://mock", timeout=1
        ) as http:
            try:
                return await http.request(method, target), provider.books
            except httpx.ReadTimeout:
                return None, provider.books

    return run_virtual(main)


@pytest.mark.parametrize("target", ["/", "/v1", "/v1/"])
def test_the_front_page_says_what_this_is(target):
    reply, books = ask("GET", target)
    assert reply.status_code == 200 and books.requests == 0
    assert reply.headers["content-type"].startswith("text/plain")
    for word in ("mock", "/v1", "/journal", "/stats", "hang", "curl"):
        assert word in reply.text


@pytest.mark.parametrize(
    "method, target, allowed",
    [
        ("GET", CHAT, "POST"), ("DELETE", CHAT, "POST"), ("POST", "/v1/chat", "GET"),
        ("POST", "/v1/models", "GET"), ("POST", "/stats", "GET"),
        ("GET", "/admin/reset", "POST"), ("PUT", "/", "GET"),
        ("GET", "/cut=5/v1/chat/completions", "POST"),
    ],
)  # fmt: skip
def test_another_method_is_told_which(method, target, allowed):
    reply, _ = ask(method, target)
    assert reply.status_code == 405 and reply.headers["allow"] == allowed
    assert f"is asked with {allowed}, not with {method}" in reply.text


@pytest.mark.parametrize(
    "target, status, said",
    [
        ("/hnag/v1/chat", 404, "/hang/v1, or NAME=VALUE"),
        ("/stall/v1/models", 404, "of: hang, status, retry_after"),
        ("/colour=red/v1/chat", 400, "no such fault; there are: hang, status"),
        ("/colour=red/v1/models", 400, "no such fault; there are: hang, status"),
        ("/401", 404, "before /v1 stands a fault"),
        ("/nowhere", 404, "there are: POST /chat/completions, GET /chat"),
    ],
)
def test_a_fault_that_is_none_is_told_those_that_are(target, status, said):
    reply, _ = ask("GET", target)
    assert reply.status_code == status and said in reply.text


def test_the_faults_of_a_base_url_are_those_of_its_models_too():
    reply, books = ask("GET", "/503/v1/models?retry_after=2")
    assert reply.status_code == 503 and reply.headers["retry-after"] == "2"
    reply, books = ask("GET", "/hang/v1/models")
    assert reply is None and books.inflight_peak == 0
    assert books.stats()["statuses"] == {"none": 1}
    reply, books = ask("GET", "/cut=2/v1/models")
    assert reply.json()["object"] == "list" and books.journal[0].unfired == ["cut"]
