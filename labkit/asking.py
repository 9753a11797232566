"""One turn: the model is asked, and what it says goes into the transcript."""

from typing import Any

from labkit.conditions import Exit
from labkit.pricing import add, cost, price_of
from labkit.reply import Reply
from labkit.session import Session, dollars
from labkit.transcript import assistant_message, call_ids
from labkit.usage import Usage


async def ask(session: Session) -> None:
    """Ask for the next turn. Raises Exit when the model asks for nothing more.

    The turn's key is on disk before the turn is sent. After a crash the same turn is
    sent under the same key, and a provider that honours keys doesn't bill it again.
    """
    state = session.state
    turn = state.turns + 1
    state.asking = f"{state.run_id}-turn-{turn}"
    session.save()
    reply = await stream(session, state.asking)

    ids = call_ids(reply, state.messages, turn)
    state.messages.append(assistant_message(reply, ids))
    state.turns, state.asking = turn, None
    charge(session, reply.usage)
    session.tell(
        "turn",
        turn=turn,
        **counts(reply.usage),
        cost_usd=dollars(state.cost),
        finish=reply.finish_reason,
    )
    if not reply.tool_calls:
        state.output = reply.text
        raise Exit("completed")


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
    price = price_of(state.model, session.prices)
    if usage and price:
        state.own_cost = add(state.own_cost, cost(usage, price))
    else:
        state.unpriced_turns += 1


def counts(usage: Usage | None) -> dict[str, int | None]:
    """The three token counts of a trace line; null where the provider told none."""
    names = "prompt_tokens", "completion_tokens", "total_tokens"
    return {name: getattr(usage, name, None) for name in names}
