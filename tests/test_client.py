"""The client: what it sends, and what it makes of answers."""

import itertools
import traceback
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.assemble import ToolCall, Usage
from labkit.client import MOCK_URL, ChatClient
from labkit.clock import run_virtual
from labkit.errors import (
    BrokenStream,
    ConfigError,
    EmptyStream,
    IncompleteStream,
    LabkitError,
    MalformedStream,
    ProviderError,
    StatusError,
    Stopped,
)
from labkit.http import httpx
from labkit.limits import Limits
from labkit.reply import Attempt
from labkit.retry import Retry
from tests.wires import (
    ANSWER,
    DONE,
    PLAIN,
    SSE,
    URL,
    USAGE,
    Script,
    chunk,
    client,
    complete,
    plain,
    read,
    refused,
    streamed,
)

KEY = "sk-very-secret-0123456789"


# What is sent


def test_the_request():
    script = Script(plain())
    complete(script, api_key=KEY, model="tide-1", body={"max_tokens": 5})
    (request,) = script.requests
    assert (request.method, str(request.url)) == ("POST", f"{URL}/chat/completions")
    assert script.bodies() == [
        {
            "model": "tide-1",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": False,
            "max_tokens": 5,
        }
    ]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert len(request.headers["idempotency-key"]) == 36


def test_a_stream_asks_for_the_usage():
    script = Script(streamed())
    read(script)
    (body,) = script.bodies()
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert script.requests[0].headers["accept"] == "text/event-stream"
    assert "authorization" not in script.requests[0].headers


def test_the_caller_has_the_last_word():
    script = Script(streamed())
    read(script, body={"stream_options": None, "model": "other"}, headers={"x-a": "b"})
    (body,) = script.bodies()
    assert (body["stream_options"], body["model"]) == (None, "other")
    assert script.requests[0].headers["x-a"] == "b"


@pytest.mark.parametrize("key", [None, "", "mine"])
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "in a header"}])
def test_whose_idempotency_key(key, headers):
    script = Script(plain())
    complete(script, headers=headers, body={"key": key})
    sent = script.requests[0].headers.get("idempotency-key")
    own = headers.get("Idempotency-Key")
    assert sent == (key or own) if key or own else (sent is None) == (key == "")


def test_two_clients_with_one_seed_have_different_keys():
    script = Script(plain())
    for _ in range(2):
        complete(script, rng=Random(1))
    first, second = (each.headers["idempotency-key"] for each in script.requests)
    assert first != second


def test_a_list_of_messages_goes_out_as_it_is():
    messages = [
        {"role": "system", "content": "Kürze!"},
        {"role": "user", "content": "?"},
    ]
    script = Script(plain())
    complete(script, messages=messages)
    assert script.bodies()[0]["messages"] == messages


def test_faults_in_the_path_and_a_query_stay_in_the_address():
    script = Script(plain())
    complete(script, base_url="http://127.0.0.1:1/cut=5,how=close/v1/?delay=60")
    assert (
        str(script.requests[0].url)
        == "http://127.0.0.1:1/cut=5,how=close/v1/chat/completions?delay=60"
    )


# What cannot work


@pytest.mark.parametrize(
    "base_url",
    ["127.0.0.1:8787/v1", "/v1", "ftp://host/v1", "http://", "http:///v1", "http://host:port/v1",
     "localhost", "http://user:password@host/v1", 7, "http://host:65536/v1",
     "http://host:0/v1"],
)  # fmt: skip
def test_a_base_url_that_is_none(base_url):
    with pytest.raises(ConfigError, match="https://host/v1") as caught:
        ChatClient(base_url)
    assert caught.value.field == "base_url"
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} ", f"“{KEY}”", f"{KEY}\0"])
def test_a_key_that_no_header_can_carry(key):
    with pytest.raises(ConfigError, match="api_key") as caught:
        ChatClient(URL, key)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("key", [5, b"sk-0123456789", True])
def test_a_key_that_is_no_text(key):
    with pytest.raises(ConfigError) as caught:
        ChatClient(URL, key)
    assert caught.value.field == "api_key"


@pytest.mark.parametrize("key", ["cl\u00e9", 5, b"x", True, "a\nb", " a"])
def test_an_idempotency_key_that_no_header_can_carry(key):
    script = Script(plain())
    with pytest.raises(ConfigError) as caught:
        complete(script, body={"key": key})
    assert (caught.value.field, script.requests) == ("key", [])


@pytest.mark.parametrize(
    "headers",
    [{"api-key": f"{KEY}\n"}, {"Authorization": f"Bearer {KEY}\u00e9"}, {"a": 5},
     {"a": f" {KEY}"}, {f"a {KEY}": "b"}, {"": "b"}, {5: "b"}, {"a\n": "b"}, ["a"], 7],
)  # fmt: skip
def test_headers_that_cannot_be_sent(headers):
    with pytest.raises(ConfigError, match="headers") as caught:
        ChatClient(URL, headers=headers)
    assert caught.value.field == "headers"
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_request_that_httpx_refuses_is_not_quoted():
    failure = {"before": [httpx.LocalProtocolError(f"Illegal header value {KEY}")]}
    with pytest.raises(ConfigError, match="check the headers") as caught:
        complete(Script(failure))
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_a_key_in_the_headers_is_the_only_one(name):
    script = Script(plain())
    complete(script, api_key=KEY, headers={name: "Basic abc", "X-A": "1", "x-a": "2"})
    sent = script.requests[0].headers
    assert sent.get_list("authorization") == ["Basic abc"]
    assert sent.get_list("x-a") == ["2"]


@pytest.mark.parametrize("messages", [[], ["hi"], None, 7, {"role": "user"}])
def test_messages_that_are_none(messages):
    with pytest.raises(ConfigError) as caught:
        complete(Script(plain()), messages=messages)
    assert caught.value.field == "messages"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"stream": True}, "stream"),
        ({"seed": {1}}, "body"),
        ({"t": float("nan")}, "body"),
    ],
)
def test_a_body_that_cannot_be_sent(body, field):
    with pytest.raises(ConfigError) as caught:
        complete(Script(plain()), body=body)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"attempts": 1.5}, {"attempts": True}, {"budget_s": -1},
     {"base_s": float("nan")}, {"cap_s": "20"}, {"strategy": "hope"}, {"floor": "min"}],
)  # fmt: skip
def test_a_policy_that_cannot_work(wrong):
    (field,) = wrong
    with pytest.raises(ConfigError, match=field) as caught:
        Retry(**wrong)
    assert caught.value.field == field


def test_the_environment(monkeypatch):
    monkeypatch.delenv("LLM_BASE_URL", raising=False)
    assert repr(ChatClient()) == f"ChatClient('{MOCK_URL}/chat/completions')"
    assert ChatClient().idempotent
    assert not ChatClient(MOCK_URL).idempotent
    monkeypatch.setenv("LLM_BASE_URL", URL)
    monkeypatch.setenv("LLM_API_KEY", KEY)
    assert repr(ChatClient()) == f"ChatClient('{URL}/chat/completions')"
    assert not ChatClient().idempotent
    assert ChatClient(retry=Retry(idempotent=True)).idempotent
    script = Script(plain())
    complete(script, base_url=None)
    assert script.requests[0].headers["authorization"] == f"Bearer {KEY}"


# What comes back


def test_a_streamed_reply_and_its_times():
    role = chunk("", role="assistant")
    steps = [1, role, 2, chunk("A tide"), 4, chunk(" gauge"), 8, chunk(finish="stop")]
    answer = streamed(*steps, USAGE, 0.5, DONE, 32)
    answer["before"] = [0.5]
    answer["headers"] = {**SSE, "X-Mock-Request": "7", "server": "s"}
    pieces, reply = read(Script(answer), limits=Limits(idle_s=60))
    assert pieces == ["A tide", " gauge"]
    assert (reply.text, reply.finish_reason) == ("A tide gauge", "stop")
    assert reply.usage == Usage(10, 5, 15)
    assert reply.timings.opened_s == 0.5
    assert reply.timings.first_token_s == 3.5
    assert reply.timings.complete_s == 16
    assert reply.headers == {"x-mock-request": "7"}
    assert reply.attempts == (Attempt(0, 0, 16, 200),)


def test_a_plain_reply_and_its_times():
    answer = plain()
    answer["before"] = [2]
    answer["steps"] = [PLAIN[:40], 1, PLAIN[40:]]
    reply = complete(Script(answer))
    assert (reply.text, reply.id, reply.usage) == ("A tide gauge", "cmpl_1", None)
    assert reply.timings.opened_s == 2
    assert reply.timings.first_token_s == reply.timings.complete_s == 3


def test_tool_calls_open_an_answer_that_has_no_text():
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    delta = chunk(tool_calls=[call])
    steps = [10, delta, 10, chunk(finish="tool_calls"), DONE]
    limits = Limits(open_s=11, idle_s=11)
    pieces, reply = read(Script(streamed(*steps)), limits=limits)
    assert pieces == []
    assert reply.tool_calls == (ToolCall("c1", "f", "{}"),)
    assert reply.timings.first_token_s is None


def test_a_server_that_ignores_stream():
    pieces, reply = read(Script(plain()))
    assert (pieces, reply.text) == (["A tide gauge"], "A tide gauge")


def test_a_server_that_always_streams():
    reply = complete(Script(streamed()))
    assert (reply.text, reply.finish_reason) == ("A tide gauge", "stop")


def test_a_plain_answer_is_read_whatever_its_content_type():
    answer = plain()
    answer["headers"] = {"content-type": "text/plain"}
    assert complete(Script(answer)).text == "A tide gauge"


@given(st.lists(st.integers(0, 400), max_size=8))
def test_the_cuts_of_the_network_change_nothing(cuts):
    body = b"".join([chunk("A tide"), b": ping\r\n\r\n", chunk(" gäuge"), *ANSWER[2:]])
    ends = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    parts = [body[a:b] for a, b in zip(ends, ends[1:], strict=False)]
    pieces, reply = read(Script(streamed(*parts)))
    assert (pieces, reply.text) == (["A tide", " gäuge"], "A tide gäuge")


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([DONE], EmptyStream),
        ([b": ping\n\n"], EmptyStream),
        (ANSWER[:2], IncompleteStream),
        ([*ANSWER[:2], DONE], IncompleteStream),
        ([*ANSWER[:2], httpx.ReadError("")], BrokenStream),
        ([*ANSWER[:2], httpx.RemoteProtocolError("cut short")], BrokenStream),
        ([*ANSWER[:2], b"data: [DONE]oops\n\n"], MalformedStream),
        ([*ANSWER[:2], b'data: {"error": {"message": "m"}}\n\n'], ProviderError),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_an_end_that_is_none(steps, error, whole):
    """Whole: in one chunk, so that the failure arrives together with the text."""
    exceptions = [step for step in steps if isinstance(step, Exception)]
    if whole:
        steps = [b"".join(s for s in steps if isinstance(s, bytes)), *exceptions]
    script, seen = Script(streamed(*steps)), []

    async def main():
        async with client(script).stream("hi") as stream:
            async for text in stream:
                seen.append(text)

    with pytest.raises(error) as caught:
        run_virtual(main)
    expected = "" if error is EmptyStream else "A tide gauge"
    assert caught.value.partial == "".join(seen) == expected
    assert type(caught.value) is error
    assert script.open == 0


def test_a_connection_that_breaks_after_the_finish_costs_nothing():
    _, reply = read(Script(streamed(*ANSWER[:3], httpx.ReadError("reset"))))
    assert reply.text == "A tide gauge"


def test_a_plain_answer_has_a_limit(monkeypatch):
    monkeypatch.setattr("labkit.exchange.PLAIN_LIMIT", len(PLAIN))
    assert complete(Script(plain())).text == "A tide gauge"
    script = Script(plain(PLAIN + b" "))
    with pytest.raises(MalformedStream, match=f"longer than {len(PLAIN)} bytes"):
        complete(script)


ARGUMENTS = {"function": {"arguments": "0123456789"}}
CALL = {"index": 0, "id": "c", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (chunk("."), chunk("0123456789")),
        (chunk(tool_calls=[CALL]), chunk(tool_calls=[{"index": 0, **ARGUMENTS}])),
    ],
    ids=["text", "tool call"],
)
def test_a_streamed_answer_has_a_limit(first, more, monkeypatch):
    monkeypatch.setattr("labkit.assemble.ANSWER_LIMIT", 1000)
    complete(Script(streamed(first, *[more] * 99, *ANSWER[2:])))
    flood = itertools.repeat(more, 1000)
    steps = itertools.chain([first], flood)
    script = Script({"status": 200, "headers": SSE, "steps": steps})
    with pytest.raises(MalformedStream, match="longer than 1000 characters"):
        complete(script)
    assert len(list(flood)) > 800  # the rest of it was not read


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"choices": []}', b"\xff"])
def test_a_plain_body_that_is_no_answer(body):
    with pytest.raises(MalformedStream):
        complete(Script(plain(body)))


def test_a_stream_is_only_read_inside_its_block():
    async def main():
        stream = client(Script(streamed())).stream("hi")
        with pytest.raises(LabkitError, match="async with"):
            await anext(stream)
        async with stream:
            assert await anext(stream) == stream.text == "A tide"
            with pytest.raises(LabkitError, match="to its end"):
                stream.reply  # noqa: B018
        for _ in range(2):
            with pytest.raises(Stopped, match="closed before its end") as caught:
                await anext(stream)
        assert caught.value.partial == "A tide"

    run_virtual(main)


def test_after_an_error_a_stream_raises_it_again():
    script = Script(streamed(*ANSWER[:2]))

    async def main():
        async with client(script).stream("hi") as stream:
            with pytest.raises(IncompleteStream) as first:
                [text async for text in stream]
            with pytest.raises(IncompleteStream) as second:
                [text async for text in stream]
        return first.value, second.value

    first, second = run_virtual(main)
    assert first is second
    assert (first.partial, len(first.attempts)) == ("A tide gauge", 1)


@pytest.mark.parametrize("answer", [streamed(), refused(400)])
def test_a_stream_is_entered_once(answer):
    script = Script(answer)

    async def main():
        stream = client(script).stream("hi")
        with suppress(StatusError):
            async with stream:
                [text async for text in stream]
        with pytest.raises(LabkitError, match="entered once"):
            await stream.__aenter__()

    run_virtual(main)
    assert len(script.requests) == 1


def test_after_its_end_a_stream_stays_ended():
    async def main():
        async with client(Script(streamed())).stream("hi") as stream:
            first = [text async for text in stream]
            return first, [text async for text in stream], stream.reply.text

    assert run_virtual(main) == (["A tide", " gauge"], [], "A tide gauge")
