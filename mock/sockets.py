"""Door one: a provider on a loopback port, for any client in any language.

asyncio carries the bytes and h11 the HTTP/1.1 rules; this module drains replies,
notices clients that leave, and ends connections the way the plan says.
"""

import asyncio
import os
import socket
import struct
from contextlib import suppress

import h11

from mock.exchange import Exchange, Request
from mock.incoming import Refusal, forbidden
from mock.replies import BODYLESS, send_refusal

HOST = "127.0.0.1"  # never anything else
BODY_BYTES = 8 * 1024 * 1024
LINGER_S = 1.0  # to take in what a refused client is still sending
# SO_LINGER on, 0 seconds: the only way to make close() send RST instead of FIN
RESET = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class SocketDoor:
    """Serves `provider` on 127.0.0.1. Port 0 takes a free one; see `.url`."""

    def __init__(self, provider):
        self._provider = provider
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task] = set()

    async def open(self, port: int = 0) -> str:
        """Start to listen; returns the base URL. OSError when the port is in use."""
        loop = asyncio.get_running_loop()

        def protocol():
            return asyncio.StreamReaderProtocol(_Reader(), self._connected)

        self._server = await loop.create_server(protocol, HOST, port, backlog=1024)
        return self.url

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"http://{HOST}:{port}/v1"

    async def _connected(self, reader, writer) -> None:
        if not self._server.is_serving():
            return writer.transport.abort()  # came in just before close()
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            await _Connection(self._provider, reader, writer).serve()
        except ConnectionError:
            pass  # the client is gone; its exchange knows
        except asyncio.CancelledError:  # by close()
            # Without waiting for a client that does not read. And not raised again,
            # since Python 3.11's streams would log it as an error.
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            writer.close()

    async def close(self) -> None:
        """Stop listening and end every connection."""
        self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()


class _Reader(asyncio.StreamReader):
    """Says at once when the other end has closed or broken the connection.

    A half-closed connection counts as a client that has left: no client of this
    protocol stops sending and goes on to read.
    """

    exchange: Exchange | None = None
    gone = False

    def feed_eof(self) -> None:
        super().feed_eof()
        self._left()

    def set_exception(self, exc) -> None:
        super().set_exception(exc)
        self._left()

    def _left(self) -> None:
        self.gone = True
        if self.exchange is not None:
            self.exchange.leave()


class _Connection:
    """One connection: requests in turn, each answered before the next is read."""

    def __init__(self, provider, reader: _Reader, writer: asyncio.StreamWriter):
        self._provider, self._reader, self._writer = provider, reader, writer
        self._http = h11.Connection(h11.SERVER)
        self._method = ""  # of the request under way, as far as it has come
        writer.transport.set_write_buffer_limits(high=0)  # drain() means: all sent

    async def serve(self) -> None:
        while True:
            try:
                request = await self._read_request()
            except h11.RemoteProtocolError as error:
                said = f"no HTTP/1.1 that can be understood: {error}"
                status = error.error_status_hint or 400
                return await self._turn_away(Refusal(status, "bad_request", said))
            except Refusal as refusal:
                return await self._turn_away(refusal)
            if request is None:
                return
            refusal = forbidden(request)
            exchange = _refused(refusal) if refusal else self._provider.open(request)
            self._reader.exchange = exchange
            try:
                if self._reader.gone:
                    exchange.leave()
                await self._send(exchange)
            finally:
                exchange.leave()
                self._reader.exchange = None
            if self._http.our_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _read_request(self) -> Request | None:
        """The next request with its whole body; None when the client is done."""
        head, body, self._method = None, bytearray(), ""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._http.send(go_on))
                self._http.receive_data(await self._reader.read(65_536))
            elif isinstance(event, h11.Request):
                head, self._method = event, event.method.decode()
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > BODY_BYTES:
                    said = f"body: is over {BODY_BYTES} bytes"
                    raise Refusal(413, "invalid_request_error", said)
            elif isinstance(event, h11.EndOfMessage):
                headers = {k.decode(): v.decode("latin-1") for k, v in head.headers}
                return Request(self._method, head.target.decode(), headers, bytes(body))
            else:
                return None

    async def _turn_away(self, refusal: Refusal) -> None:
        """Refuse a request that was not read to its end.

        Closing on unread bytes sends RST, which would destroy the refusal on its way.
        """
        await self._send(_refused(refusal))
        with suppress(TimeoutError, OSError):  # the client may be gone already
            self._writer.write_eof()
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(65_536):
                    pass

    async def _send(self, exchange: Exchange) -> None:
        """Drain a reply into the socket, and end as it says."""
        if not await exchange.head():
            return self._reset()
        status, headers = exchange.status, list(exchange.headers.items())
        if "content-length" not in exchange.headers and status not in BODYLESS:
            headers.append(("transfer-encoding", "chunked"))
        reason = exchange.reason.encode()
        head = h11.Response(status_code=status, headers=headers, reason=reason)
        self._writer.write(self._http.send(head))
        bodyless = self._method == "HEAD"  # a refusal too, which has no request
        while (piece := await exchange.read()) is not None:
            if not bodyless:
                self._writer.write(self._http.send(h11.Data(data=piece[1])))
                if not exchange.all_read:  # else it goes with the end
                    await self._writer.drain()
        if exchange.ending not in ("reset", "truncate"):
            self._writer.write(self._http.send(h11.EndOfMessage()))
        await self._writer.drain()
        if exchange.ending == "reset":
            self._reset()

    def _reset(self) -> None:
        """End the connection with RST, unless the client has ended it already."""
        transport = self._writer.transport
        if transport.is_closing():
            return
        with suppress(OSError):  # broken, and asyncio does not know it yet
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        transport.abort()


def _refused(refusal: Refusal) -> Exchange:
    """A reply that never reached the provider."""
    exchange = Exchange(Request("GET", "/"))
    exchange.run(lambda it: send_refusal(it, refusal))
    return exchange
