"""One turn: the model is asked, and what it says goes into the transcript."""

from contextlib import suppress
from decimal import Inexact
from typing import Any

from labkit.errors import CallError, ConfigError, StatusError
from labkit.pricing import add, cost, price_of
from labkit.reply import Attempt, Reply
from labkit.retry import may_have_run
from labkit.session import Session, dollars
from labkit.state import RunState, StateError
from labkit.transcript import assistant_message, call_ids
from labkit.usage import Usage


async def ask(session: Session) -> None:
    """Ask for the next turn. When the model asks for nothing more, the state has an
    output (and an error, where that is no whole answer), and the run is over.

    The turn's key is on disk before the turn is sent. After a crash the same turn is
    sent under the same key, and a provider that honours keys doesn't bill it again.
    """
    state = session.state
    turn = state.turns + 1
    key = turn_key(session, turn)
    if state.asking and not (key == state.asking and honours_keys(session)):
        # A process died over it, and this is another request. There may be a budget,
        # so it is not sent before that has been looked at again.
        return cut_off(state)
    before, state.asking = state.asking, key
    try:
        session.save()
        reply = await stream(session, key)
    except BaseException as error:
        state.asking = before
        if may_be_billed(error):
            cut_off(state)
        raise

    ids = call_ids(reply, state.messages, turn)
    state.messages.append(assistant_message(reply, ids))
    state.turns, state.asking = turn, None
    charge(session, reply.usage)
    cut = CUT.get(reply.finish_reason)
    state.error = cut and f"the answer is not whole: {cut}"
    if cut or not reply.tool_calls:
        state.output = reply.text
    session.tell(  # the last step: the turn is paid for, whatever the trace's disk says
        "turn",
        turn=turn,
        **counts(reply.usage),
        cost_usd=dollars(state.cost),
        finish=reply.finish_reason,
    )


# finish_reason -> why such a turn is no answer, and its calls are not to be run
CUT = {
    "length": "it reached the model's limit of tokens (finish_reason length)",
    "content_filter": "the provider's filter cut it (finish_reason content_filter)",
}


def turn_key(session: Session, turn: int) -> str:
    """The same for the same request, in whatever process: never billed twice. With
    other tools, another model or task, or a word more from a person it is another."""
    return f"{session.state.run_id}-turn-{turn}-{session.digest}"


def honours_keys(session: Session) -> bool:
    """Does the provider bill a key once? A client that does not say so, does."""
    return getattr(session.client, "idempotent", True)


def may_be_billed(error: BaseException) -> bool:
    """Was a turn sent and cut off? One that was refused costs nothing."""
    if not isinstance(error, CallError):
        return not isinstance(error, ConfigError | StateError)  # it was not sent then
    tries = list(error.attempts)
    if not tries or tries[-1].error == type(error).__name__:
        tries = tries[:-1]
        if may_have_run(error) and not isinstance(error, StatusError):
            return True
    return any(map(was_taken, tries))


def was_taken(attempt: Attempt) -> bool:
    """An attempt before the last one, under a key: did it reach the provider, and was
    it not refused?"""
    refused = attempt.status is not None and attempt.status >= 400
    return attempt.error != "ConnectError" and not refused


def cut_off(state: RunState) -> None:
    """A turn was sent, and its usage will never come: unknown is not free."""
    state.unpriced_turns += 1
    state.asking = None


async def stream(session: Session, key: str) -> Reply:
    """Every turn streams: what comes late in an agent should at least come early."""
    body: dict[str, Any] = {"model": session.state.model}
    if session.catalogue:  # an empty array is refused by some providers
        body["tools"] = session.catalogue
    asked = session.client.stream(
        session.state.messages, key=key, stop=session.stop, **body
    )
    async with asked as answer:
        async for text in answer:
            if session.on_text:
                session.on_text(text)
    return answer.reply


def charge(session: Session, usage: Usage | None) -> None:
    """Count a turn's tokens and cost. What is not known is counted as not known."""
    state = session.state
    if usage:
        state.prompt_tokens += usage.prompt_tokens
        state.completion_tokens += usage.completion_tokens
        state.context_tokens = usage.prompt_tokens + usage.completion_tokens
    price, total = price_of(state.model, session.prices), None
    if usage and price:
        with suppress(Inexact):  # more digits than a sum can have
            total = add(state.own_cost, cost(usage, price))
    if total is None:
        state.unpriced_turns += 1
    else:
        state.own_cost = total


def counts(usage: Usage | None) -> dict[str, int | None]:
    """The three token counts of a trace line; null where the provider told none."""
    names = "prompt_tokens", "completion_tokens", "total_tokens"
    return {name: getattr(usage, name, None) for name in names}
