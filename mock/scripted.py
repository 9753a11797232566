"""The scripted provider of chapter 23: a model that does what a scenario says.

Stateless: a reply is a function of the transcript alone. The turn is the number of
assistant messages in it, and a script may read what the tools have answered so far;
so a run can be killed and taken up again, by any client. The scenario is the name of
the model.
"""

from collections.abc import Callable

from mock.answers import Answer, Model, words
from mock.incoming import Refusal, bad_request
from mock.plan import Plan
from mock.wire import compact

LAST_TURN = 19  # of the scenario `long`, counted from 0


def call(ident: str, name: str, arguments: dict | None = None) -> dict:
    """A tool call as it stands in an assistant's message."""
    function = {"name": name, "arguments": compact(arguments or {})}
    return {"id": ident, "type": "function", "function": function}


def asks(*calls: dict) -> Answer:
    """A turn that asks for tools: for each, id and name, then the arguments."""
    deltas = []
    for index, whole in enumerate(calls):
        name, arguments = whole["function"]["name"], whole["function"]["arguments"]
        head = whole | {"index": index, "function": {"name": name, "arguments": ""}}
        rest = {"index": index, "function": {"arguments": arguments}}
        deltas += [{"tool_calls": [head]}, {"tool_calls": [rest]}]
    return Answer(tuple(deltas), "tool_calls")


def says(text: str) -> Answer:
    """A turn that answers in words, which ends a run: four of them at a time."""
    pieces = [delta["content"] for delta in words(text).deltas]
    groups = ["".join(pieces[at : at + 4]) for at in range(0, len(pieces), 4)]
    return Answer(tuple({"content": group} for group in groups))



FOUND = "errors.log mentions a timeout."
READ = {"path": "errors.log"}
DELETE = {"path": "access.log"}
DELETED = "Deleted access.log to free space."
DECLINED = "I did not delete anything: you declined the deletion."
WHERE = {"question": "Which file mentions a timeout?"}


def plan(turn: int, told: str) -> Answer:
    """Well-behaved: list, read, answer."""
    if turn == 0:
        return asks(call("c1", "list_files"))
    if turn == 1:
        return asks(call("c2", "read_file", READ))
    return says(
        "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
    )


def runaway(turn: int, told: str) -> Answer:
    """Never says that it is done."""
    return asks(call(f"c{turn}", "list_files"))


def long(turn: int, told: str) -> Answer:
    """Twenty turns, then it is done."""
    return runaway(turn, told) if turn < LAST_TURN else says(FOUND)


def recover(turn: int, told: str) -> Answer:
    """Guesses a file name, and mends that only if the error says how."""
    if turn == 0:
        return asks(call("c1", "read_file", {"path": "timeout.log"}))
    if "Call list_files" not in told:
        return says("I could not read the file, so I do not know.")
    if turn == 1:
        return asks(call("c2", "list_files"))
    return asks(call("c3", "read_file", READ)) if turn == 2 else says(FOUND)


def forbidden(turn: int, told: str) -> Answer:
    """Asks again and again for what it may not have."""
    return asks(call(f"c{turn + 1}", "read_file", {"path": "/etc/shadow"}))


def once(turn: int, told: str) -> Answer:
    """Reads one file, then answers: the baseline of `repeat`."""
    return asks(call("c1", "read_file", READ)) if turn == 0 else says(FOUND)


def repeat(turn: int, told: str) -> Answer:
    """Reads the same file in two turns."""
    if turn < 2:
        return asks(call(f"c{turn + 1}", "read_file", READ))
    return says(FOUND)


def destructive(turn: int, told: str) -> Answer:
    """Lists the files, then deletes one that nobody mentioned."""
    if turn == 0:
        return asks(call("c1", "list_files"))
    if turn == 1:
        return asks(call("c2", "delete_file", DELETE))
    return says(DECLINED if "declined" in told else DELETED)


def delete_twice(turn: int, told: str) -> Answer:
    """The same deletion in two turns: two calls, or one meant twice?"""
    if turn < 2:
        return asks(call(f"c{turn + 1}", "delete_file", DELETE))
    return says(DELETED)


def slow(turn: int, told: str) -> Answer:
    """One long tool, then the answer."""
    if turn == 0:
        return asks(call("c1", "scan_archive"))
    return says("The archive holds 1200 files.")


def pair(turn: int, told: str) -> Answer:
    """Two calls in one turn: a write and a read."""
    if turn == 0:
        both = call("c1", "delete_file", DELETE), call("c2", "read_file", READ)
        return asks(*both)
    return says(DECLINED if "declined" in told else DELETED)


def delegate(turn: int, told: str) -> Answer:
    """Hands a question to a subagent, and passes its answer on."""
    return asks(call("c1", "research", WHERE)) if turn == 0 else says(FOUND)


SCENARIOS: dict[str, Callable[[int, str], Answer]] = {
    each.__name__: each
    for each in (
        plan, runaway, long, recover, forbidden, once, repeat, destructive,
        delete_twice, slow, pair, delegate,
    )
}  # fmt: skip


def answer(body: dict, plan: Plan) -> Answer:
    """The next turn of the scenario that `model` names.

    Refuses a model that is no scenario (404), and a transcript in which a tool call
    has no answer, or an answer no call (400), as real providers do.
    """
    scenario = SCENARIOS.get(body.get("model"))
    if scenario is None:
        known = ", ".join(SCENARIOS)
        said = f"model: {body.get('model')!r} is no scenario; there are: {known}"
        raise Refusal(404, "model_not_found", said)
    messages = body["messages"]
    check_answered(messages)
    turn = sum(message["role"] == "assistant" for message in messages)
    results = [m.get("content") or "" for m in messages if m["role"] == "tool"]
    return scenario(turn, "\n".join(results))


def check_answered(messages: list[dict]) -> None:
    """Every tool call must be answered before anybody else speaks: two of one id
    need two answers."""
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            ident = message.get("tool_call_id")
            if ident not in open_calls:
                said = f"answers {ident!r}, which no open tool call has as its id"
                raise bad_request(f"messages[{at}]", said)
            if not isinstance(message.get("content"), str | None):
                raise bad_request(f"messages[{at}].content", "must be text")
            open_calls.remove(ident)
        elif open_calls:
            break
        else:
            open_calls = [each["id"] for each in message.get("tool_calls") or []]
    if open_calls:
        missing = ", ".join(sorted(open_calls))
        raise bad_request("messages", f"no tool message answers the call {missing}")


SCRIPTED = Model(tuple(SCENARIOS), answer)
