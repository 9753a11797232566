"""The client over real sockets: what only the wire can decide."""

import asyncio
import gc
import socket
import time
from contextlib import AsyncExitStack

import pytest

import labkit
from labkit.cancel import Stop
from labkit.client import ChatClient
from labkit.errors import ConnectError, DeadlineError, StatusError, Stopped
from labkit.http import httpx
from labkit.limits import Limits
from labkit.line import Line
from labkit.retry import Retry
from labkit.strictjson import encode
from tests.wires import ANSWER, PLAIN, chunk, send, send_head, socket_server


@pytest.mark.realtime
@pytest.mark.parametrize("hold", [False, True], ids=["ends its body", "holds it open"])
def test_a_connection_is_used_again_if_the_server_ended_the_body(hold):
    async def answer(server, writer):
        await send_head(writer)
        for part in ANSWER:
            await send(writer, part)
        if not hold:
            await asyncio.sleep(0.002)  # the end comes a moment after [DONE]
            await send(writer, b"")

    async def main():
        async with socket_server(answer) as server:
            async with ChatClient(server.url) as caller:
                began = time.perf_counter()
                for _ in range(3):
                    async with caller.stream("hi") as stream:
                        assert (
                            "".join([text async for text in stream]) == "A tide gauge"
                        )
                assert time.perf_counter() - began < 1
            return server.connections, len(server.requests)

    assert asyncio.run(main()) == ((3 if hold else 1), 3)


@pytest.mark.realtime
def test_an_error_leaves_the_connection_fit_for_the_retry():
    async def answer(server, writer):
        status = b"503 No" if len(server.requests) == 1 else b"200 OK"
        writer.write(
            b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n" % (status, len(PLAIN))
        )
        writer.write(PLAIN)

    async def main():
        async with socket_server(answer) as server:
            async with ChatClient(server.url, retry=Retry(base_s=0.01)) as caller:
                reply = await caller.complete("hi")
            return reply.text, len(reply.attempts), server.connections

    assert asyncio.run(main()) == ("A tide gauge", 2, 1)


@pytest.mark.realtime
def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but it does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"

        async def main():
            async with ChatClient(url, retry=Retry(2, strategy="none")) as caller:
                await caller.complete("hi")

        with pytest.raises(ConnectError, match="check that the server runs") as caught:
            asyncio.run(main())
    assert len(caught.value.attempts) == 2


@pytest.mark.realtime
def test_a_compressed_answer_is_read_though_none_was_asked_for():
    import gzip

    packed = gzip.compress(b"".join(ANSWER))

    async def answer(server, writer):
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
        )
        writer.write(packed)

    async def main():
        async with socket_server(answer) as server:
            async with ChatClient(server.url) as caller:
                async with caller.stream("hi") as stream:
                    return "".join([text async for text in stream])

    assert asyncio.run(main()) == "A tide gauge"


@pytest.mark.realtime
def test_a_request_has_the_headers_it_needs_and_brings_no_cookie_along():
    async def answer(server, writer):
        head = b"HTTP/1.1 200 OK\r\nset-cookie: who=me\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(PLAIN) + PLAIN)

    async def main():
        async with socket_server(answer) as server:
            headers = {"X-Team": "tides", "Content-Length": "5"}
            async with ChatClient(server.url, headers=headers) as caller:
                for _ in range(2):
                    await caller.complete("hi", key="k1")
            return server.url, server.requests

    url, requests = asyncio.run(main())
    asked = [{"role": "user", "content": "hi"}]
    body = encode({"model": "mock", "messages": asked, "stream": False})
    assert len(requests) == 2
    for request in requests:
        line, *fields = request.decode().strip().split("\r\n")
        assert line == "POST /v1/chat/completions HTTP/1.1"
        assert dict(field.split(": ") for field in fields) == {
            "host": url.split("/")[2],
            "user-agent": f"labkit/{labkit.__version__}",
            "x-team": "tides",
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "idempotency-key": "k1",
            "content-length": str(len(body)),
        }


@pytest.mark.realtime
@pytest.mark.parametrize("where", [b"/v1", b"http://127.0.0.1:9/", b"mailto:a@b"])
def test_a_redirection_is_a_refusal_wherever_it_leads(where):
    async def answer(server, writer):
        head = b"HTTP/1.1 302 Found\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n"
        writer.write(head % where)

    async def main():
        async with socket_server(answer) as server, ChatClient(server.url) as caller:
            with pytest.raises(StatusError) as caught:
                await caller.complete("hi")
            return caught.value.status, server.connections, len(server.requests)

    assert asyncio.run(main()) == (302, 1, 1)


@pytest.mark.realtime
def test_a_closed_client_connects_no_more():
    asked = asyncio.Event()

    async def answer(server, writer):
        asked.set()
        writer.write(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n")

    async def main():
        retry = Retry(base_s=0.5, strategy="exponential")
        async with socket_server(answer) as server:
            async with ChatClient(server.url, retry=retry) as caller:
                asked_before = caller.stream("hi")
                waiting = asyncio.create_task(caller.complete("hi"))
                await asked.wait()
                await asyncio.sleep(0.1)  # it has its 503, and waits for its retry
            for call in (waiting, asked_before.__aenter__(), caller.complete("hi")):
                with pytest.raises(Stopped, match="closed: make a new one") as caught:
                    await call
                # It tells what was sent before: that may have to be paid for.
                attempts = [attempt.status for attempt in caught.value.attempts]
                assert attempts == ([503] if call is waiting else [])
            await server.open_at_most(0)
            return server.connections

    assert asyncio.run(main()) == 1


@pytest.mark.realtime
@pytest.mark.parametrize("warm", [False, True], ids=["new", "used again"])
@pytest.mark.parametrize("how", ["cancel", "cancel twice", "stop"])
@pytest.mark.parametrize("kind", ["plain", "stream", "refused"])
def test_a_call_given_up_at_any_step_leaves_no_socket(kind, how, warm):
    """The same call again and again, given up one step of the loop later each time.

    At each step where it can be given up: between the connection and the request,
    say, or while the connection goes back to the pool.
    """

    async def answer(server, writer):
        if kind == "stream":
            await send_head(writer)
            await send(writer, b"".join(ANSWER))
            await send(writer, b"")
        else:
            status = b"200 OK" if kind == "plain" else b"400 No"
            head = b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n"
            writer.write(head % (status, len(PLAIN)) + PLAIN)

    async def give_up(caller, steps):
        stop = Stop()
        call = asyncio.create_task(caller.complete("hi", stop=stop))
        for _ in range(steps):
            await asyncio.sleep(0)
        gave_up = not call.done()
        if how == "stop":
            stop.set()
        else:
            call.cancel()
        if how == "cancel twice":
            await asyncio.sleep(0)
            call.cancel()
        await asyncio.wait({call})
        if not call.cancelled():
            call.exception()
        return gave_up

    async def main():
        async with socket_server(answer) as server:
            caller, steps = ChatClient(server.url), 0
            while await give_up(caller, steps):
                steps += 1
                if not warm:
                    await server.open_at_most(1)
                    await caller.aclose()
                    caller = ChatClient(server.url)
            await server.open_at_most(1)  # fit to be used again
            await caller.aclose()
            return steps

    assert asyncio.run(main()) > 10


@pytest.mark.realtime
@pytest.mark.parametrize("kind", ["plain", "stream"])
def test_an_answer_that_the_transport_has_read_is_the_call_s_own(kind):
    """A transport that logs or caches reads it first, and the connection is free."""

    class Logged(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request):
            answer = await super().handle_async_request(request)
            await answer.aread()
            await asyncio.sleep(0.05)  # another call takes the connection meanwhile
            return answer

    async def answer(server, writer):
        said = f"answer {len(server.requests)}"
        if kind == "stream":
            type, body = b"text/event-stream", b"".join([chunk(said), *ANSWER[2:]])
        else:
            type, body = b"application/json", PLAIN.replace(b"A tide", said.encode())
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % (type, len(body)) + body)

    async def main():
        async with (
            socket_server(answer) as server,
            ChatClient(server.url, transport=Logged()) as caller,
        ):
            said = []
            for _ in range(3):
                said.append(asyncio.create_task(caller.complete("hi")))
                await asyncio.sleep(0.02)
            return [(await each).text.removesuffix(" gauge") for each in said]

    assert asyncio.run(main()) == ["answer 1", "answer 2", "answer 3"]


def test_a_call_that_is_given_up_before_it_is_sent_leaves_no_coroutine():
    """One that nobody awaits would be a warning, which is an error here."""

    async def main():
        async def send(request):
            pytest.fail("it was sent")

        call = asyncio.create_task(Line().carry(send, None))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})

    asyncio.run(main())
    gc.collect()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_is_not_lost_in_a_call_that_was_given_up(kind):
    async def main():
        async def send(request):
            call.cancel()
            await asyncio.sleep(0)
            raise kind

        line = Line()
        line.connecting = True  # so it is not cancelled
        call = asyncio.create_task(line.carry(send, None))
        await asyncio.sleep(1)
        return "still running"

    with pytest.raises(kind):
        asyncio.run(main())


@pytest.mark.parametrize("when", ["before it is there", "in the moment it is there"])
def test_an_answer_that_nobody_waits_for_any_more_is_closed(when):
    async def main():
        body = httpx.Response(200, stream=httpx.ByteStream(b"late"))
        loop = asyncio.get_running_loop()

        async def send(request):
            await asyncio.sleep(0)
            if when == "before it is there":
                call.cancel()
            else:  # after the answer is there, and before the call goes on with it
                loop.call_soon(call.cancel)
            return body

        call = asyncio.create_task(Line().carry(send, None))
        await asyncio.wait({call})
        await asyncio.sleep(0.01)
        return call.cancelled(), body.is_closed

    assert asyncio.run(main()) == (True, True)


@pytest.mark.realtime
def test_a_connection_that_is_not_made_is_nothing_sent():
    """open_s is shorter than connect_s here, so it is what runs out."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"

        async def main():
            limits, retry = Limits(open_s=0.1), Retry(2, strategy="none")
            async with ChatClient(url, limits=limits, retry=retry) as caller:
                await caller.complete("hi")

        with pytest.raises(DeadlineError) as caught:
            asyncio.run(main())
        for each in waiting:
            each.close()
    assert (caught.value.limit, caught.value.sent) == ("open", False)
    assert len(caught.value.attempts) == 2


@pytest.mark.realtime
def test_the_environments_proxy_is_not_asked(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    async def answer(server, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(PLAIN))
        writer.write(PLAIN)

    async def main():
        async with socket_server(answer) as server:
            async with ChatClient(server.url) as caller:
                return (await caller.complete("hi")).text

    assert asyncio.run(main()) == "A tide gauge"


@pytest.mark.realtime
def test_no_pool_stands_in_the_way_of_many_streams():
    """The gate is the place to queue, and this client has none."""
    streams = 120  # httpx's own limit is 100

    async def answer(server, writer):
        await send_head(writer)
        await send(writer, ANSWER[0])
        await asyncio.Event().wait()

    async def main():
        async with (
            socket_server(answer) as server,
            ChatClient(server.url) as caller,
            AsyncExitStack() as opened,
        ):
            for _ in range(streams):
                await opened.enter_async_context(caller.stream("hi"))
            return server.open

    assert asyncio.run(main()) == streams
