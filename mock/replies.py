"""Writing a reply: plain JSON, or a stream with all that can go wrong with it."""

import asyncio
import time
from dataclasses import dataclass

from mock.answers import message
from mock.exchange import Exchange
from mock.generation import Generation
from mock.incoming import Refusal
from mock.ledger import Entry
from mock.plan import Plan
from mock.tokens import usage
from mock.wire import EventWriter, compact

IN_STREAM_ERROR = {
    "error": {"type": "overloaded_error", "message": "Overloaded", "code": 529}
}


BODYLESS = (204, 304)  # RFC 9110: such a reply has no body, nor a length


async def send_json(
    exchange: Exchange, status: int, value, headers: dict[str, str] | None = None
) -> None:
    """A whole JSON reply."""
    data, about = b"", {}
    if status not in BODYLESS:
        data = compact(value).encode(errors="replace")
        about = {"content-type": "application/json", "content-length": str(len(data))}
    exchange.start(status, about | (headers or {}))
    if data:
        await exchange.write(data)
    exchange.end()


async def send_refusal(
    exchange: Exchange, no: Refusal, marks: dict[str, str] | None = None
) -> None:
    """An error in place of an answer."""
    error = {"message": str(no), "type": no.kind, "code": no.status}
    headers = no.headers | (marks or {})
    await send_json(exchange, no.status, {"error": error}, headers)


@dataclass(slots=True)
class Reply:
    """One answer on its way to one client."""

    exchange: Exchange
    entry: Entry
    generation: Generation
    plan: Plan
    body: dict
    model: str

    def _about(self, kind: str) -> dict:
        now = getattr(asyncio.get_running_loop(), "wall_time", time.time)()
        return {
            "id": self.generation.ident,
            "object": kind,
            "created": int(now),
            "model": self.model,
        }

    def _usage(self) -> dict:
        produced = self.generation.answer.first(self.generation.tokens)
        return usage(self.body, message(list(produced)))

    async def hang(self) -> None:
        """Say nothing at all, until the client leaves."""
        with self.generation.listening():
            await asyncio.Event().wait()

    async def plain(self, headers: dict[str, str]) -> None:
        """Wait for the whole answer, then send it."""
        said: list[dict] = []
        with self.generation.listening():
            while (delta := await self.generation.delta(len(said))) is not None:
                said.append(delta)
        self.entry.unfired = unfired(self.plan, None, streamed=False)
        choice = {
            "index": 0,
            "message": message(said),
            "finish_reason": self.generation.answer.finish_reason,
        }
        about = self._about("chat.completion")
        whole = about | {"choices": [choice], "usage": self._usage()}
        self.entry.deliver(len(said))
        await send_json(self.exchange, 200, whole, headers)

    async def stream(self, headers: dict[str, str]) -> None:
        """Send the answer as it is produced, one event a token."""
        kind = {"content-type": "text/event-stream", "cache-control": "no-cache"}
        self.exchange.start(200, kind | headers)
        events = EventWriter(self.exchange, self.plan, self.entry.deliver)
        sent, broken = 0, None
        with self.generation.listening():
            if self.plan.role:
                await events.send(self._chunk({"role": "assistant", "content": ""}))
            while not (broken := self._broken_at(sent)):
                delta = await self.generation.delta(sent)
                if delta is None:
                    break
                await events.send(self._chunk(delta), tokens=1)
                sent += 1
        # The generation has freed its slot before the last bytes go out.
        self.entry.unfired = unfired(self.plan, broken, streamed=True)
        await (self._break_off(events, broken) if broken else self._finish(events))

    def _chunk(self, delta: dict, finish_reason: str | None = None) -> dict:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._about("chat.completion.chunk") | {"choices": [choice]}

    def _broken_at(self, sent: int) -> str | None:
        """Which planned break comes after `sent` events, if any."""
        if sent == self.plan.error:
            return "error"
        return "cut" if sent == self.plan.cut else None

    async def _break_off(self, events: EventWriter, broken: str) -> None:
        if broken == "error":
            await events.send(IN_STREAM_ERROR)
        await events.flush()
        self.exchange.end("close" if broken == "error" else self.plan.how)

    async def _finish(self, events: EventWriter) -> None:
        await events.send(self._chunk({}, self.generation.answer.finish_reason))
        if (self.body.get("stream_options") or {}).get("include_usage"):
            about = self._about("chat.completion.chunk")
            await events.send(about | {"choices": [], "usage": self._usage()})
        await events.send("[DONE]")
        await events.flush()
        self.exchange.end()


BREAKS = ("cut", "error", "stall")
ONLY_STREAMS = ("cut", "error", "lines", "comments", "split", "pack", "slice", "role")


def unfired(plan: Plan, broken: str | None, streamed: bool) -> list[str]:
    """The planned faults that a reply never came to, when it ends as `broken` says.

    A stall that had fired would not have let it end at all.

    >>> unfired(Plan(cut=5), "cut", streamed=True), unfired(Plan(cut=50), None, True)
    ([], ['cut'])
    """
    late = {name for name in BREAKS if getattr(plan, name) is not None} - {broken}
    if not streamed:
        usual = Plan()
        late |= {n for n in ONLY_STREAMS if getattr(plan, n) != getattr(usual, n)}
    return sorted(late)
