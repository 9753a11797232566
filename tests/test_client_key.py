"""The API key shows nowhere."""

import json
import traceback
from functools import partial

import pytest

from labkit.client import ChatClient
from labkit.clock import run_virtual
from labkit.errors import CallError
from labkit.http import httpx
from labkit.retry import Retry
from tests.wires import HANG, JSON, RESET, UNREACHABLE, URL, Script, refused, streamed

KEY = "sk-very-secret-0123456789"
ODD = "sk-very/secret+0123456789"  # some write it in another way


def shown(error: BaseException, *, variables: bool) -> str:
    """All that an error shows: its chain, its attributes, the traceback, and the
    variables in it if they are asked for."""
    report = traceback.TracebackException.from_exception(
        error, capture_locals=variables
    )
    everything = "".join(report.format())
    while error:
        everything += f"{error!r}{error.args}{vars(error)}"
        error = error.__cause__ or error.__context__
    return everything


ECHOES = {
    "in an error's body": refused(401, f"no such key: {KEY}".encode()),
    "as JSON": refused(401, json.dumps({"error": {"message": f"{KEY}?"}}).encode()),
    "where it is cut": refused(401, b" " * 150 + b"x" * 170 + KEY.encode()),
    "in a header": refused(401, x_request_id=f"for-{KEY}"),
    "in a stream": streamed(f"data: {KEY}\n\n".encode()),
    "in an error event": streamed(
        b'data: {"error": {"message": "%b", "type": "%b"}}\n\n' % ((KEY.encode(),) * 2)
    ),
    "in a plain body": {"status": 200, "headers": JSON, "steps": [KEY.encode()]},
    "in an unknown field": streamed(f"error: {KEY}\n\n".encode()),
    "cut by us": streamed(b"data: " + b"x" * 40 + KEY.encode() + b"\n\n"),
    "cut by them": refused(401, f"no such key: {KEY[:15]}...".encode()),
    "in an exception": {"before": [httpx.ReadError(f"bad header {KEY}")]},
}


def keyed(**settings) -> ChatClient:
    return ChatClient(URL, KEY, **settings)


async def failure_of(answer, streaming, client=keyed) -> CallError:
    caller = client(transport=Script(answer), retry=Retry(attempts=1))
    with pytest.raises(CallError) as caught:
        if streaming:
            async with caller.stream("hi") as stream:
                async for _ in stream:
                    pass
        else:
            await caller.complete("hi")
    return caught.value


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_that_comes_back_over_the_wire_is_in_no_error(echo, streaming):
    error = run_virtual(failure_of, ECHOES[echo], streaming)
    assert KEY[:8] not in shown(error, variables=False)


@pytest.mark.parametrize(
    "echo",
    [ODD, ODD.replace("/", r"\/"), "sk-very%2Fsecret%2B0123456789",
     "sk-very%2fsecret%2b0123456789", "sk-very/secret%2B0123456789", ODD[:12]],
)  # fmt: skip
def test_a_key_that_comes_back_in_another_spelling(echo):
    answer = refused(401, f"<pre>{echo}</pre>".encode())
    error = run_virtual(failure_of, answer, False, partial(ChatClient, URL, ODD))
    assert "<pre>[API key]</pre>" in str(error)
    assert "0123456789" not in shown(error, variables=False)


@pytest.mark.parametrize("name", ["Authorization", "api-key", "X-API-Key"])
@pytest.mark.parametrize("scheme", ["", "Bearer "])
def test_a_key_in_the_headers_is_a_key(name, scheme):
    answer = refused(401, f"no such key: {KEY}".encode())
    client = partial(ChatClient, URL, headers={name: scheme + KEY})
    error = run_virtual(failure_of, answer, True, client)
    assert KEY[:8] not in shown(error, variables=False)

    async def main():
        script = Script(streamed())
        caller = ChatClient(URL, transport=script, headers={name: scheme + KEY})
        await caller.complete("hi")
        assert script.requests[0].headers[name] == scheme + KEY
        return repr([caller, vars(caller)])

    assert KEY not in run_virtual(main)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "answer", [refused(401), refused(503), RESET, HANG, UNREACHABLE, streamed(b"\n")]
)
def test_the_key_is_not_even_in_the_variables_of_a_traceback(answer, streaming):
    error = run_virtual(failure_of, answer, streaming)
    assert KEY[:8] not in shown(error, variables=True)


def test_the_key_is_in_no_repr():
    async def main():
        caller = ChatClient(URL, KEY, transport=Script(streamed()))
        async with caller.stream("hi") as stream:
            async for _ in stream:
                pass
        objects = [caller, stream, stream.reply, stream._call, stream._call._exchange]
        return repr([(each, vars(each)) for each in objects])

    text = run_virtual(main)
    assert KEY not in text and "Secret(***)" in text
