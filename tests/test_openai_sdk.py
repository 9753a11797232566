"""A client that is not ours: the OpenAI SDK drives mock over real sockets.

It shows that mock speaks the protocol, and what that SDK makes of its faults.
"""

import time

import openai
import pytest

from labkit.server import start_server
from mock.hostile import ARGUMENTS, TIDE

MESSAGES = [{"role": "user", "content": "What is a tide gauge?"}]


@pytest.fixture(scope="module")
def server():
    with start_server("hostile", delay_ms=0) as running:
        yield running


@pytest.fixture
def sdk(server):
    """A client for a fault in the path: only the base URL changes."""
    server.forget()
    opened = []

    def build(fault: str = "", **options) -> openai.OpenAI:
        url = server.at(fault) if fault else server.url
        client = openai.OpenAI(base_url=url, api_key="none", timeout=5, **options)
        opened.append(client)
        return client

    yield build
    for client in opened:
        client.close()


def ask(client, **options):
    return client.chat.completions.create(
        model="tide-1", messages=MESSAGES, **options
    )


def test_a_plain_reply(sdk):
    reply = ask(sdk())
    assert reply.choices[0].message.content == TIDE
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.completion_tokens == 14
    assert reply.id == "cmpl_1"


def test_a_stream_with_usage(sdk):
    with ask(sdk(), stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == TIDE
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 14


@pytest.mark.parametrize(
    "fault", ["lines=crlf", "comments=1,split=1,pack=3", "slice=100", "role=1"]
)
def test_a_stream_that_is_odd_but_legal(sdk, fault):
    with ask(sdk(fault), stream=True) as stream:
        assert "".join(c.choices[0].delta.content or "" for c in stream) == TIDE


def test_a_tool_call_in_pieces(sdk):
    with ask(sdk("answer=tool"), stream=True) as stream:
        deltas = [chunk.choices[0] for chunk in stream]
    pieces = [piece for c in deltas for piece in c.delta.tool_calls or []]
    assert len(pieces) == 5 and pieces[0].function.name == "read_gauge"
    assert "".join(p.function.arguments for p in pieces) == ARGUMENTS
    assert deltas[-1].finish_reason == "tool_calls"


def test_a_tool_call_whole(sdk):
    (call,) = ask(sdk("answer=tool")).choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == (
        "read_gauge", ARGUMENTS,
    )  # fmt: skip


def test_max_tokens(sdk):
    reply = ask(sdk(), max_tokens=5)
    assert reply.choices[0].message.content == "A tide gauge is a"
    assert reply.choices[0].finish_reason == "length"


def test_models(sdk):
    assert [model.id for model in sdk().models.list()] == ["tide-1"]


def test_twice_503_then_fine(sdk, server):
    server.queue(2, status=503, retry_after="0.05", retry_form="ms")
    assert ask(sdk(max_retries=2)).choices[0].message.content == TIDE
    assert server.stats()["statuses"] == {"200": 1, "503": 2}


def test_three_times_503_is_one_too_many(sdk, server):
    server.queue(3, status=503, retry_after="0.05", retry_form="ms")
    with pytest.raises(openai.InternalServerError) as caught:
        ask(sdk(max_retries=2))
    assert caught.value.status_code == 503
    assert server.stats()["requests"] == 3


def test_retry_after_is_heeded(sdk, server):
    server.queue(1, status=429, retry_after=1)
    began = time.monotonic()
    ask(sdk(max_retries=1))
    assert 0.9 < time.monotonic() - began < 3


@pytest.mark.parametrize(
    "status, error",
    [
        (400, openai.BadRequestError), (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError), (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError), (402, openai.APIStatusError),
    ],
)  # fmt: skip
def test_what_is_never_retried(sdk, server, status, error):
    with pytest.raises(error):
        ask(sdk(str(status), max_retries=5))
    assert server.stats()["requests"] == 1


def test_an_idempotency_key_is_honoured(sdk):
    client, key = sdk(), {"Idempotency-Key": "one-question"}
    first, second = (ask(client, extra_headers=key) for _ in range(2))
    assert first == second
    with pytest.raises(openai.UnprocessableEntityError, match="make a new key"):
        ask(client, extra_headers=key, max_tokens=3)


def test_a_reset_in_mid_stream_is_an_error(sdk):
    text = ""
    with pytest.raises(openai.APIConnectionError):
        with ask(sdk("cut=5,how=reset"), stream=True) as stream:
            for chunk in stream:
                text += chunk.choices[0].delta.content
    assert text == "A tide gauge is a"


@pytest.mark.parametrize("fault", ["cut=5,how=close", "cut=0,how=close"])
def test_half_an_answer_passes_for_a_whole_one(sdk, fault):
    """What this bench is for: closed in order without finish_reason, the SDK returns
    what came as a success. labkit raises IncompleteStream here."""
    with ask(sdk(fault), stream=True) as stream:
        chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content for chunk in chunks)
    assert text == ("A tide gauge is a" if "5" in fault else "")
    assert not any(chunk.choices[0].finish_reason for chunk in chunks)


def test_an_error_event_in_a_stream(sdk):
    with pytest.raises(openai.APIError, match="Overloaded"):
        with ask(sdk("error=3"), stream=True) as stream:
            list(stream)


def test_a_hang_lasts_as_long_as_the_deadline(sdk, server):
    began = time.monotonic()
    with pytest.raises(openai.APITimeoutError):
        ask(sdk("hang", max_retries=0).with_options(timeout=0.2))
    assert time.monotonic() - began < 2
    until = time.monotonic() + 2
    while server.stats()["inflight"] and time.monotonic() < until:
        time.sleep(0.01)
    assert server.stats()["inflight"] == 0
    assert server.stats()["client_left"] == 1
