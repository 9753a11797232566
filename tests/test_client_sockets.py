"""The client over real sockets: what only the wire can decide."""

import asyncio
import socket
import time

import pytest

from labkit.client import ChatClient
from labkit.errors import ConnectError
from labkit.retry import Retry
from tests.wires import ANSWER, PLAIN, send, send_head, socket_server


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
