"""A provider without sockets: a request in, a reply out, anything may go wrong.

    >>> import asyncio
    >>> async def ask():
    ...     provider = Provider(Settings(delay_ms=0))
    ...     exchange = provider.open(Request("GET", "/401/v1/chat"))
    ...     await exchange.head()
    ...     return exchange.status
    >>> asyncio.run(ask())
    401
"""

import asyncio
import math
import random
from collections import deque
from dataclasses import dataclass

from mock.admin import ADMIN
from mock.answers import Model
from mock.exchange import Exchange, Request
from mock.generation import Generation
from mock.hostile import HOSTILE
from mock.incoming import Refusal, read_chat, read_plan, retry_after
from mock.ledger import Books, Entry, KeyConflict, Ledger, Window
from mock.plan import Plan
from mock.replies import Reply, send_json, send_refusal, unfired
from mock.routes import nowhere, route, send_front
from mock.tokens import count_prompt

SHORT_FORM = {"messages": [{"role": "user", "content": "What is a tide gauge?"}]}


@dataclass(frozen=True, slots=True)
class Settings:
    """How the provider behaves when a request asks for nothing special."""

    capacity: int | None = 3  # answers made at once; None: no limit
    delay_ms: float = 60.0  # before each token
    first_ms: float | None = None  # before the first one; None: as `delay_ms`
    retry_after: str | None = "1"  # with the 429 of a full house, in seconds
    serial_ms: float = 0.0  # work on each request that is done one at a time
    requests_per_window: int | None = None
    tokens_per_window: int | None = None
    window_s: float = 60.0
    fail_rate: float = 0.0  # this share of the requests is answered 503
    leave_plain: str = "finish"  # client of a plain reply gone: stop or finish
    leave_stream: str = "stop"


class Provider:
    """Takes any number of requests at once. Time comes from the running loop."""

    def __init__(
        self,
        settings: Settings = Settings(),
        model: Model = HOSTILE,
        seed: int = 0,
    ):
        self.settings, self.model = settings, model
        self._seed = seed
        self.reset()

    def reset(self) -> None:
        """Forget everything: totals, journal, keys, windows, queued faults, chance."""
        self.rng = random.Random(self._seed)
        self.books, self.ledger = Books(), Ledger()
        self.queued: deque[Plan] = deque()
        self._answers = 0
        self._busy_until = 0.0
        limits = {
            "requests": self.settings.requests_per_window,
            "tokens": self.settings.tokens_per_window,
        }
        self._windows = {
            kind: Window(limit, self.settings.window_s)
            for kind, limit in limits.items()
            if limit is not None
        }

    def open(self, request: Request) -> Exchange:
        """Take a request; the reply is under way when this returns."""
        exchange = Exchange(request)
        exchange.run(self._reply)
        return exchange

    async def _reply(self, exchange: Exchange) -> None:
        request = exchange.request
        where, faults = route(request)
        entry = None
        try:
            if where == "GET /":
                return await send_front(exchange)
            if where in ADMIN:
                return await send_json(exchange, 200, ADMIN[where](self, request))
            asked = f"{request.method} {request.target}"
            entry = self.books.open(asked, request.headers.get("idempotency-key"))
            await self._serial_work()
            if where == "GET /models":
                await self._list(exchange, entry, faults)
            elif where == "POST /chat/completions":
                await self._chat(exchange, entry, faults, read_chat(request.body))
            elif where == "GET /chat":
                await self._chat(exchange, entry, faults, SHORT_FORM | {"stream": True})
            else:
                raise nowhere(request, where)
        except Refusal as no:
            await send_refusal(exchange, no, _marks(entry))
        except Exception as error:
            if exchange.status is not None:  # too late for words
                raise
            await send_refusal(exchange, _own_fault(error), _marks(entry))
        finally:
            if entry:
                entry.close(exchange)

    async def _list(self, exchange: Exchange, entry: Entry, faults) -> None:
        """The models. A status and a hang apply to them, and take no slot; the other
        faults are of an answer, and the queued ones wait for one."""
        plan = read_plan(faults, {}, Plan())
        entry.plan = str(plan)
        _refuse(plan)
        if plan.hang:
            await asyncio.Event().wait()
        entry.unfired = unfired(plan, None, streamed=False)
        names = self.model.names
        data = [{"id": each, "object": "model", "owned_by": "mock"} for each in names]
        told = {"object": "list", "data": data}
        await send_json(exchange, 200, told, _marks(entry))

    async def _serial_work(self) -> None:
        """Wait for a turn at the work that is done one request at a time."""
        if self.settings.serial_ms:
            now = asyncio.get_running_loop().time()
            turn = max(now, self._busy_until)
            self._busy_until = turn + self.settings.serial_ms / 1000
            await asyncio.sleep(self._busy_until - now)

    async def _chat(self, exchange: Exchange, entry: Entry, faults, body: dict) -> None:
        plan = read_plan(faults, body, self.queued[0] if self.queued else Plan())
        if self.queued:
            self.queued.popleft()
        entry.plan = str(plan)
        _refuse(plan)
        if self.settings.fail_rate and self.rng.random() < self.settings.fail_rate:
            raise Refusal(503, "overloaded_error", "one of the failing few")
        made = entry.generation = self._generation(exchange.request, entry, plan, body)
        named = body.get("model") or self.model.names[0]
        reply = Reply(exchange, entry, made, plan, body, named)
        if plan.hang:
            await reply.hang()
        elif body.get("stream"):
            await reply.stream(_marks(entry))
        else:
            await reply.plain(_marks(entry))

    def _generation(
        self, request: Request, entry: Entry, plan: Plan, body: dict
    ) -> Generation:
        """The answer to this request: a new one, or the one its key stands for."""
        try:
            known = self.ledger.find(entry.key, request.body)
        except KeyConflict:
            raise Refusal(
                422,
                "idempotency_error",
                "Idempotency-Key: came before with another body; one key names one "
                "request, so make a new key",
            ) from None
        if known:
            entry.serve("replayed" if known.finished else "joined")
            return known
        entry.serve("new")
        whole = self.model.answer(body, plan)
        answer = whole.of_length(plan.length).cut_to(plan.max_tokens)
        self._admit(plan, body, len(answer))
        settings = self.settings
        leave = settings.leave_stream if body.get("stream") else settings.leave_plain
        if plan.falls_silent(len(answer)):
            leave = "stop"  # it would hold its slot for ever
        elif plan.leave:
            leave = plan.leave
        self._answers += 1
        made = Generation(
            ident=f"cmpl_{self._answers}",
            answer=answer,
            plan=plan.timed(settings.delay_ms, settings.first_ms),
            leave=leave,
            on_end=self.books.close_answer,
        )
        self.books.take_slot()
        self.ledger.keep(entry.key, request.body, made)
        return made

    def _admit(self, plan: Plan, body: dict, tokens: int) -> None:
        """Refuse what is over a limit: a window first, then the capacity."""
        units = {"requests": 1}
        if "tokens" in self._windows:
            units["tokens"] = count_prompt(body) + tokens
        self._check_windows(units)
        capacity = self.settings.capacity
        if capacity is not None and self.books.inflight >= capacity:
            value, form = self.settings.retry_after, "seconds"
            if plan.retry_after is not None:
                value, form = plan.retry_after, plan.retry_form
            said = f"{capacity} requests are in flight"
            raise Refusal(429, "rate_limit_error", said, retry_after(value, form))
        for kind, window in self._windows.items():
            window.take(units[kind])

    def _check_windows(self, units: dict[str, int]) -> None:
        """Refuse what is over a window, and say truly when it will fit into all."""
        now = asyncio.get_running_loop().time()
        waits = {kind: w.wait_s(units[kind], now) for kind, w in self._windows.items()}
        kind = max(waits, key=waits.get, default=None)
        if kind is None or not waits[kind]:
            return
        window = self._windows[kind]
        said = f"over {window.limit} {kind} in {window.length_s:g} s"
        if waits[kind] == math.inf:
            said = f"{units[kind]} {kind} at once are {said}: waiting changes nothing"
            raise Refusal(400, kind, said)
        wait_s = math.ceil(waits[kind] - window.TICK_S)
        raise Refusal(429, kind, said, {"retry-after": str(wait_s)})


def _refuse(plan: Plan) -> None:
    """Raise the status that is planned, if one is."""
    if plan.status is not None:
        headers = retry_after(plan.retry_after, plan.retry_form)
        raise Refusal(plan.status, "planned", f"status={plan.status}", headers)


def _own_fault(error: Exception) -> Refusal:
    """What is told to the client of a mistake of ours; the terminal gets all of it."""
    about = {"message": "the provider made a mistake", "exception": error}
    asyncio.get_running_loop().call_exception_handler(about)
    said = f"the provider made a mistake: {error!r}; its traceback is where it runs"
    return Refusal(500, "internal_error", said)


def _marks(entry: Entry | None) -> dict[str, str]:
    """The headers that say what the provider made of a request."""
    if entry is None:
        return {}
    marks = {"x-mock-request": str(entry.request), "x-mock-plan": entry.plan}
    if entry.served in ("replayed", "joined"):
        marks["idempotent-replay"] = entry.served
    return marks
