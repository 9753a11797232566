"""One logical call: attempts, with waits between them, until one has an answer.

`complete()` and `stream()` of the client are both this. The difference is how much
of the answer has to be there before an attempt has succeeded: all of it, or its
beginning.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from labkit.clock import wall_time
from labkit.errors import CallError
from labkit.exchange import Exchange
from labkit.gate import Gate
from labkit.limits import Watchdog
from labkit.reply import Attempt, Reply, Timings
from labkit.retry import Decision, Retries, verdict_of
from labkit.secret import Secret


class Call:
    """new_exchange: makes the next attempt, from the same request and key.

    gate: its slot is held from before the first attempt until the call is closed,
        through the waits too. A call that let go of it to wait would make room for
        one more call at the provider that has just said it has no room.
    """

    def __init__(
        self,
        new_exchange: Callable[[], Exchange],
        watchdog: Watchdog,
        retries: Retries,
        gate: Gate | None,
        secret: Secret,
    ):
        self._new_exchange = new_exchange
        self._watchdog = watchdog
        self._retries = retries
        self._gate = gate
        self._slot = AsyncExitStack()
        self._secret = secret
        self._exchange: Exchange | None = None
        self._attempts: list[Attempt] = []
        self.reply: Reply | None = None

    @property
    def text(self) -> str:
        """What has come of the answer so far."""
        return self._exchange.assembler.text if self._exchange else ""

    async def complete(self) -> Reply:
        """Try until an answer is whole. Raises a CallError if none will be."""
        await self._try_until_done(Exchange.read_all)
        await self.close()
        return self._settle()

    async def open(self) -> None:
        """Try until an answer opens: from then on there is no retry."""
        await self._try_until_done(Exchange.open)

    async def piece(self) -> str:
        """The next content of the open answer; "" at its end, with `reply` there."""
        try:
            piece = await self._exchange.piece()
        except BaseException as error:
            if isinstance(error, CallError):
                verdict = verdict_of(error)
                why_not = "" if verdict == "fatal" else "the answer had begun"
                self._record(error, Decision(verdict, why_not=why_not))
            await self._fail(error)
            raise
        if not piece:
            await self.close()
            self._settle()
        return piece

    async def close(self) -> None:
        """Hang up, wherever the call stands, and free the slot. Twice does no harm."""
        if self.reply:  # it was closed when it was whole
            return
        self._watchdog.close()
        try:
            if self._exchange:
                await self._exchange.close()
        finally:
            await self._slot.aclose()

    async def _try_until_done(self, work: Callable[[Exchange], Awaitable]) -> None:
        try:
            if self._gate:
                async with self._watchdog.watch("total"):
                    await self._slot.enter_async_context(self._gate)
            while True:
                self._exchange = self._new_exchange()
                try:
                    return await work(self._exchange)
                except CallError as error:
                    decision = self._decide(error)
                    self._record(error, decision)
                    if not decision.again:
                        raise
                await self._sleep(decision.sleep_s)
        except BaseException as error:
            await self._fail(error)
            raise

    async def _sleep(self, sleep_s: float) -> None:
        began_s = self._watchdog.elapsed_s
        try:
            async with self._watchdog.watch("total"):
                await asyncio.sleep(sleep_s)
        except CallError:  # stopped: tell how long it was in truth
            slept_s = self._watchdog.elapsed_s - began_s
            self._attempts[-1] = replace(self._attempts[-1], slept_s=slept_s)
            raise

    def _decide(self, error: CallError) -> Decision:
        return self._retries.decide(
            error,
            attempt=len(self._attempts),
            left_s=self._watchdog.left_s,
            now=wall_time(),
        )

    def _record(self, error: CallError | None, decision: Decision) -> None:
        """Add an attempt to the story; the error says why it was the last one."""
        if error and decision.why_not:
            said = str(error).rstrip(".")
            error.args = (f"{said}; not retried: {decision.why_not}",)
        exchange = self._exchange
        if exchange.started_s is None:  # stopped before anything was sent
            return
        self._attempts.append(
            Attempt(
                number=len(self._attempts),
                started_s=exchange.started_s,
                ended_s=self._watchdog.elapsed_s if error else exchange.complete_s,
                status=exchange.status,
                error=type(error).__name__ if error else None,
                verdict=decision.verdict,
                floor_s=decision.floor_s,
                draw_s=decision.draw_s,
                slept_s=decision.sleep_s,
            )
        )

    def _settle(self) -> Reply:
        """The answer is whole: make the reply of it."""
        self._record(None, Decision("ok"))
        exchange, answer = self._exchange, self._exchange.assembler
        self.reply = Reply(
            text=answer.text,
            tool_calls=answer.tool_calls,
            finish_reason=answer.finish_reason,
            usage=answer.usage,
            timings=Timings(
                exchange.opened_s, exchange.first_token_s, exchange.complete_s
            ),
            attempts=tuple(self._attempts),
            headers=exchange.headers,
            id=answer.id,
        )
        return self.reply

    async def _fail(self, error: BaseException) -> None:
        """Whatever failed, the call is closed. Its errors leave with the story of the
        attempts, and without the API key."""
        if isinstance(error, CallError):
            error.attempts = list(self._attempts)
            error.sent = error.sent and bool(self._attempts)
            self._secret.scrub_error(error)
        await self.close()
