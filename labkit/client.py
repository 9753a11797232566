"""A chat client for any OpenAI-compatible endpoint (chapter 14).

    async with ChatClient() as client:
        reply = await client.complete("What is a tide gauge?")
        print(reply.text)

        async with client.stream("What is a tide gauge?") as stream:
            async for text in stream:
                print(text, end="")
        print(stream.reply.finish_reason)

The address comes from LLM_BASE_URL and the key from LLM_API_KEY. Without them it
talks to the mock on its usual port.
"""

import os
import uuid
from collections.abc import Mapping
from random import Random

from labkit import __version__
from labkit.call import Call
from labkit.cancel import Stop
from labkit.errors import ConfigError, Stopped
from labkit.exchange import Exchange
from labkit.gate import Gate
from labkit.http import httpx
from labkit.limits import Limits, Watchdog
from labkit.line import Direct, Line
from labkit.reply import Reply
from labkit.request import (
    Messages,
    as_json,
    as_list,
    check_headers,
    check_key,
    endpoint,
    without_keys,
)
from labkit.retry import Retries, Retry
from labkit.secret import Secret
from labkit.stream import Stream

AGENT = f"labkit/{__version__}"
MOCK_URL = "http://127.0.0.1:8787/v1"


class ChatClient:
    """Streams, gives up on time, retries the right things and never the wrong ones.

    base_url: up to and with the version, "https://host/v1".
    limits, retry: see `Limits` and `Retry`. Retry.idempotent=None means: yes for the
        mock (no base_url given, LLM_BASE_URL not set), no for any other provider.
    gate: shared with other clients of the same loop, if they shall queue together.
    transport: httpx's, in place of sockets (mock.memory.MemoryTransport).
    rng: chance for the backoff, a `random.Random`; seeded, the waits repeat.
    headers: sent with each request; `Authorization` here beats `api_key`.

    Raises ConfigError for what cannot work.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        model: str = "mock",
        limits: Limits = Limits(),  # noqa: B008 (frozen, so safe to share)
        retry: Retry = Retry(),  # noqa: B008
        gate: Gate | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        rng: Random | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        base_url = base_url or os.environ.get("LLM_BASE_URL")
        self._url = endpoint(base_url or MOCK_URL)
        headers = check_headers(headers)
        self._secret = Secret(api_key or os.environ.get("LLM_API_KEY"), headers)
        own = {"host": self._url.netloc.decode(), "user-agent": AGENT}
        self._headers = own | without_keys(headers)
        self.model = model
        self.limits = limits
        self.retry = retry
        self.gate = gate
        self.idempotent = not base_url if retry.idempotent is None else retry.idempotent
        self._rng = rng or Random()
        self._closed = False
        # Our watchdog decides about all the waiting but this one.
        self._timeout = httpx.Timeout(None, connect=limits.connect_s).as_dict()
        self._line = Line if transport is None else Direct
        # httpx's transport without its client, which would look for redirects, log-ins
        # and cookies. There are none, and looking costs a sixth of a request's CPU.
        self._transport = transport or httpx.AsyncHTTPTransport(
            trust_env=False,  # no certificates of the environment's
            verify=self._url.scheme == "https",  # else TLS set-up costs 50 ms
            # The gate is the place to queue. A pool with a limit would be a second
            # one, and it loses slots to cancelled requests (encode/httpcore#1093).
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        )

    async def complete(
        self, messages: Messages, *, key: str | None = None, stop: Stop | None = None,
        **body,
    ) -> Reply:  # fmt: skip
        """The whole answer at once (not streamed). Raises a CallError.

        messages: a list as the API takes it, or a str: one message of the user.
        key: the idempotency key; None: a new one for this call; "": none is sent,
            and what may have run is not sent again.
        stop: stops the call wherever it is.
        body: the rest of the request: max_tokens=5, tools=[...], model="...".
        """
        request = self._request(messages, key, {"stream": False}, body)
        return await self._call(request, stop).complete()

    def stream(
        self, messages: Messages, *, key: str | None = None, stop: Stop | None = None,
        **body,
    ) -> Stream:  # fmt: skip
        """The answer piece by piece; for `async with`. Arguments as for `complete`."""
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        request = self._request(messages, key, streamed, body)
        return Stream(lambda: self._call(request, stop))

    def _call(self, request: httpx.Request, stop: Stop | None) -> Call:
        watchdog = Watchdog(self.limits, stop)
        idempotent = self.idempotent and "idempotency-key" in request.headers
        return Call(
            lambda: self._exchange(request, watchdog),
            watchdog,
            Retries(self.retry, self._rng, idempotent),
            self.gate,
            self._secret,
        )

    def _exchange(self, request: httpx.Request, watchdog: Watchdog) -> Exchange:
        if self._closed:  # it would open a connection that nobody closes
            # No ConfigError, which would say that nothing was sent: an attempt may be.
            reason = "the client is closed: make a new one"
            raise Stopped(f"stopped: {reason}", reason=reason)
        line = self._line()
        return Exchange(self._transport, request, watchdog, self._secret, line)

    def _request(
        self, messages: Messages, key: str | None, streamed: dict, body: dict
    ) -> httpx.Request:
        """One request, made once: every attempt sends the same bytes and key."""
        if "stream" in body:
            raise ConfigError("stream: call stream() or complete()", field="stream")
        check_key(key)
        fields = {"model": self.model, "messages": as_list(messages)}
        kind = "text/event-stream" if streamed["stream"] else "application/json"
        headers = self._headers.copy()
        headers["accept"] = kind
        headers["accept-encoding"] = "identity"  # compression would hold pieces back
        headers["content-type"] = "application/json"
        if key != "":
            # A uuid, not the rng: two clients with one seed must not share answers.
            own = key or headers.get("idempotency-key") or str(uuid.uuid4())
            headers["idempotency-key"] = own
        content = as_json({**fields, **streamed, **body})
        headers["content-length"] = str(len(content))
        headers.update(self._secret.headers())  # last: a traceback shows variables
        # A stream, or httpx would look for headers to add: all of them are there.
        request = httpx.Request(
            "POST", self._url, headers=headers, stream=httpx.ByteStream(content),
            extensions={"timeout": self._timeout},
        )  # fmt: skip
        request.read()  # for a transport that looks at `content`
        return request

    async def aclose(self) -> None:
        """Close the connections. What would be sent afterwards is Stopped, and so is
        the retry of a call that waits."""
        self._closed = True
        await self._transport.aclose()

    async def __aenter__(self) -> "ChatClient":
        return self

    async def __aexit__(self, *exc) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"ChatClient({str(self._url.copy_with(query=None))!r})"
