"""The scripted provider: each turn from the transcript alone, counted, and hostile too.

Faults, keys and counts are the provider's own (chapter 14); here they are laid over the
scenarios of chapter 23.
"""

import asyncio
import json

import pytest

from labkit.assemble import Assembler
from labkit.clock import run_virtual
from labkit.execution import call_tool
from labkit.http import httpx
from labkit.sse import SSEDecoder
from labkit.toolcalls import ToolCall
from labkit.tools import PermanentToolError, ToolError, catalogue
from labkit.transcript import tool_message
from labkit.workspace import Workspace, opening
from mock.answers import message
from mock.incoming import Refusal
from mock.kinds import KINDS
from mock.memory import MemoryTransport
from mock.plan import Plan
from mock.provider import Provider, Settings
from mock.scripted import SCENARIOS, SCRIPTED, answer

with Workspace() as described:
    TOOLS = catalogue(described.tools())


def question(model, messages=None, **more) -> dict:
    messages = messages or opening()
    return {"model": model, "messages": messages, "tools": TOOLS} | more


def whole(body: dict) -> dict:
    """The next turn as a message, from the model itself: no provider, no wire."""
    turn = answer(body, Plan())
    said = message(list(turn.first(len(turn))))
    assert turn.finish_reason == ("tool_calls" if "tool_calls" in said else "stop")
    return said


def calls_in(said: dict) -> list[ToolCall]:
    return [
        ToolCall(each["id"], each["function"]["name"], each["function"]["arguments"])
        for each in said.get("tool_calls", ())
    ]


def answered(messages: list[dict], said: dict, told: str) -> list[dict]:
    """The transcript one turn later, each call answered with `told`."""
    return [*messages, said, *(tool_message(call, told) for call in calls_in(said))]


# Turns

LIST, READ = "list_files {}", 'read_file {"path":"errors.log"}'
DELETE = 'delete_file {"path":"access.log"}'
GUESS = 'read_file {"path":"timeout.log"}'
UNKNOWN = "I could not read the file, so I do not know."
FOUND = "errors.log mentions a timeout."
DELETED = "Deleted access.log to free space."
DECLINED = "I did not delete anything: you declined the deletion."
NO_SUCH = "Error: no such file: timeout.log. Call list_files to see what exists."
REFUSED = "Error: the user declined this call."

SCRIPTS = [
    ("plan", "ok", [LIST, READ, f"{FOUND[:-1]}: worker 7 timed out after 30000 ms."]),
    ("runaway", "ok", [LIST] * 60),
    ("long", "ok", [LIST] * 19 + [FOUND] * 3),
    ("recover", NO_SUCH, [GUESS, LIST, READ, FOUND]),
    ("recover", "Error: the tool failed.", [GUESS, UNKNOWN]),
    ("forbidden", "Error: no", ['read_file {"path":"/etc/shadow"}'] * 20),
    ("once", "ok", [READ, FOUND]),
    ("repeat", "ok", [READ, READ, FOUND]),
    ("destructive", "ok", [LIST, DELETE, DELETED]),
    ("destructive", REFUSED, [LIST, DELETE, DECLINED]),
    ("delete_twice", "ok", [DELETE, DELETE, DELETED]),
    ("slow", "ok", ["scan_archive {}", "The archive holds 1200 files."]),
    ("pair", "ok", [f"{DELETE} + {READ}", DELETED]),
    ("pair", REFUSED, [f"{DELETE} + {READ}", DECLINED]),
    ("delegate", "ok",
     ['research {"question":"Which file mentions a timeout?"}', FOUND]),
]  # fmt: skip


@pytest.mark.parametrize("model, told, turns", SCRIPTS)
def test_a_scenario(model, told, turns):
    messages, ids = opening(), set()
    for expected in turns:
        said = whole(question(model, messages))
        calls = calls_in(said)
        asked = " + ".join(f"{call.name} {call.arguments}" for call in calls)
        assert (asked or said["content"]) == expected
        assert not ids & {call.id for call in calls}  # no id comes twice
        ids |= {call.id for call in calls}
        messages = answered(messages, said, told)


def test_every_scenario_is_tested_and_listed():
    assert {model for model, _, _ in SCRIPTS} == set(SCENARIOS) == set(SCRIPTED.names)
    assert KINDS["scripted"][0] is SCRIPTED


@pytest.mark.parametrize("model", SCENARIOS)
def test_the_same_transcript_gets_the_same_answer(model):
    """Asked backwards, twice, and of another provider: nothing is remembered."""
    transcripts = [opening()]
    for _ in range(4):
        said = whole(question(model, transcripts[-1]))
        transcripts.append(answered(transcripts[-1], said, "ok"))

    async def body():
        one, other = Provider(QUICK, SCRIPTED), Provider(QUICK, SCRIPTED)
        for at in (3, 0, 2, 2, 1):
            told = [
                (await ask(provider, question(model, transcripts[at]))).message
                for provider in (one, other)
            ]
            assert told[0] == told[1] == transcripts[at + 1][len(transcripts[at])]

    run_virtual(body)


# What is refused


@pytest.mark.parametrize("model", ["gpt-5", "", "Plan", None])
def test_an_unknown_model_is_told_which_there_are(model):
    with pytest.raises(Refusal) as caught:
        answer(question(model), Plan())
    assert caught.value.status == 404
    assert f"{model!r} is no scenario" in str(caught.value)
    assert all(name in str(caught.value) for name in SCENARIOS)


PAIR = whole(question("pair"))
FIRST, SECOND = (tool_message(call, "ok") for call in calls_in(PAIR))
ASKED = [*opening(), PAIR]
TOLD = [*ASKED, FIRST, SECOND]
HELLO = {"role": "user", "content": "hello?"}
LATER = {"role": "assistant", "content": "well"}
TWINS = [*opening(), PAIR | {"tool_calls": [PAIR["tool_calls"][0]] * 2}]


@pytest.mark.parametrize(
    "messages, said",
    [
        (ASKED, "messages: no tool message answers the call c1, c2"),
        ([*ASKED, FIRST], "messages: no tool message answers the call c2"),
        ([*ASKED, FIRST, HELLO, SECOND], "answers the call c2"),
        ([*ASKED, HELLO], "answers the call c1, c2"),
        ([*opening(), FIRST], "messages[2]: answers 'c1', which no open tool call"),
        ([*TOLD, SECOND], "messages[5]: answers 'c2', which no open"),
        ([*TOLD, LATER, SECOND], "messages[6]: answers 'c2', which no open"),
        ([*TOLD, {"role": "tool", "content": ""}], "messages[5]: answers None"),
        ([*ASKED, FIRST | {"content": ["ok"]}], "messages[3].content: must be text"),
        ([*ASKED, FIRST | {"tool_call_id": "c9"}], "messages[3]: answers 'c9'"),
        ([*TWINS, FIRST], "messages: no tool message answers the call c1"),
        ([*TWINS, FIRST, FIRST, FIRST], "messages[5]: answers 'c1', which no open"),
    ],
)
def test_a_transcript_with_a_gap_is_refused(messages, said):
    with pytest.raises(Refusal) as caught:
        answer(question("pair", messages), Plan())
    assert caught.value.status == 400
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "messages",
    [TOLD, [*TOLD, HELLO], [*ASKED, SECOND, FIRST], [*TWINS, FIRST, FIRST]],
)
def test_a_transcript_without_a_gap_is_not(messages):
    assert whole(question("pair", messages))["content"] == DELETED


# Counts


QUICK = KINDS["scripted"][1]


class Told:
    """One answer as it came over the wire."""

    def __init__(self, response: httpx.Response):
        self.response, self.status = response, response.status_code
        self.events = 0
        if response.headers["content-type"] == "text/event-stream":
            self._assemble(response.content)
        elif self.status == 200:
            body = response.json()
            self.message = body["choices"][0]["message"]
            self.usage = body["usage"]

    def _assemble(self, raw: bytes) -> None:
        reader = Assembler()
        for event in SSEDecoder().feed(raw):
            reader.add(event)
            self.events += 1
        self.finish_reason = reader.finish_reason
        calls = [
            {"id": c.id, "type": "function",
             "function": {"name": c.name, "arguments": c.arguments}}
            for c in reader.tool_calls
        ]  # fmt: skip
        self.message = {"role": "assistant", "content": reader.text}
        if calls:
            self.message |= {"content": reader.text or None, "tool_calls": calls}
        self.usage = reader.usage.raw if reader.usage else None


async def ask(provider, body, fault="", key=None, patience_s=None) -> Told:
    """One request through httpx and memory; `httpx.ReadTimeout` when it is silent."""
    async with httpx.AsyncClient(
        transport=MemoryTransport(provider),
        headers={"idempotency-key": key} if key else {},
        timeout=patience_s,
    ) as http:
        url = f"http://127.0.0.1/v1/chat/completions?{fault}"
        return Told(await http.post(url, json=body))


def streamed(body: dict) -> dict:
    return body | {"stream": True, "stream_options": {"include_usage": True}}


async def run_tools(workspace: Workspace, messages: list[dict], said: dict) -> list:
    """The transcript one turn later, the tools really run."""
    tools = {tool.name: tool for tool in workspace.tools()}
    messages = [*messages, said]
    for call in calls_in(said):
        try:
            told = await call_tool(tools[call.name], json.loads(call.arguments))
        except ToolError as error:
            told = f"Error: {error}"
        messages.append(tool_message(call, told))
    return messages


@pytest.mark.parametrize("form", [dict, streamed], ids=["plain", "streamed"])
@pytest.mark.parametrize(
    "model, prompts, completions",
    [
        ("plan", [204, 269, 342], [23, 29, 18]),
        ("long", [204, 269, 333, 397], [23] * 4),
        ("recover", [204, 280, 345, 418], [29, 23, 29, 7]),
        ("pair", [204, 328], [56, 8]),
    ],
)
def test_every_token_is_counted(model, prompts, completions, form):
    async def body():
        provider, messages, usages = Provider(QUICK, SCRIPTED), opening(), []
        with Workspace() as workspace:
            for _ in prompts:
                told = await ask(provider, form(question(model, messages)))
                usages.append(told.usage)
                messages = await run_tools(workspace, messages, told.message)
        return usages

    assert run_virtual(body) == [
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        for prompt, completion, cached in zip(
            prompts, completions, [0, *prompts[:-1]], strict=True
        )
    ]


# Hostile faults and the ledger, laid over a scenario

SLOW = Settings(delay_ms=60)
TURN = streamed(question("plan"))


@pytest.mark.parametrize(
    "how, error",
    [
        ("close", None),
        ("truncate", httpx.RemoteProtocolError),
        ("reset", httpx.ReadError),
    ],
)
def test_a_call_cut_between_its_name_and_its_arguments(how, error):
    """The same turn, asked again under the same key, is made anew and whole."""

    async def body():
        provider = Provider(SLOW, SCRIPTED)
        if error:
            with pytest.raises(error):
                await ask(provider, TURN, f"cut=1&how={how}", key="turn 0")
        else:
            told = await ask(provider, TURN, f"cut=1&how={how}", key="turn 0")
            assert (told.events, told.finish_reason) == (1, None)
            assert calls_in(told.message) == [ToolCall("c1", "list_files", "")]
        again = await ask(provider, TURN, key="turn 0")
        assert calls_in(again.message) == [ToolCall("c1", "list_files", "{}")]
        assert "idempotent-replay" not in again.response.headers
        books = provider.books
        assert (books.generated, books.billed, books.billed_tokens) == (1, 2, 3)

    run_virtual(body)


@pytest.mark.parametrize("form", [dict, streamed], ids=["plain", "streamed"])
def test_a_refused_turn_is_the_same_turn_later(form):
    """A failure is no part of the transcript, and leaves its key free."""

    async def body():
        provider = Provider(QUICK, SCRIPTED)
        bad = question("no such model")
        assert (await ask(provider, bad, key="turn 0")).status == 404
        fault = "status=503&retry_after=2"
        no = await ask(provider, form(question("plan")), fault, key="turn 0")
        assert (no.status, no.response.headers["retry-after"]) == (503, "2")
        assert provider.books.billed == 0
        told = await ask(provider, form(question("plan")), key="turn 0")
        assert told.message == whole(question("plan"))

    run_virtual(body)


def test_a_hang_ends_with_the_clients_patience():
    async def body():
        provider = Provider(QUICK, SCRIPTED)
        with pytest.raises(httpx.ReadTimeout):
            await ask(provider, TURN, "hang=1", key="turn 0", patience_s=5)
        assert asyncio.get_running_loop().time() == pytest.approx(5)
        told = await ask(provider, TURN, key="turn 0")
        assert told.message == whole(question("plan"))
        assert provider.books.stats()["client_left"] == 1
        assert provider.books.inflight == 0

    run_virtual(body)


@pytest.mark.parametrize("form", [dict, streamed], ids=["plain", "streamed"])
def test_a_turn_under_one_key_is_made_once(form):
    async def body():
        provider, turn = Provider(SLOW, SCRIPTED), form(question("pair"))
        both = await asyncio.gather(*(ask(provider, turn, key="a") for _ in range(2)))
        later = await ask(provider, turn, key="a")
        marks = [t.response.headers.get("idempotent-replay") for t in (*both, later)]
        assert marks == [None, "joined", "replayed"]
        assert all(t.response.content == later.response.content for t in both)
        assert later.message == PAIR
        other = await ask(provider, form(question("pair", TOLD)), key="a")
        assert other.status == 422
        assert (provider.books.generated, provider.books.billed) == (1, 1)

    run_virtual(body)


def test_a_limit_cuts_a_call_short_and_says_so():
    async def body():
        told = await ask(Provider(QUICK, SCRIPTED), TURN, "max_tokens=1")
        assert told.finish_reason == "length"

    run_virtual(body)


def test_the_permission_that_no_model_can_mend():
    """`forbidden` asks for a real path; the workspace never touches it."""

    async def body():
        (call,) = calls_in(whole(question("forbidden")))
        with Workspace() as workspace:
            tool = workspace.tools()[1]
            with pytest.raises(PermanentToolError, match="denied: /etc/shadow"):
                await call_tool(tool, json.loads(call.arguments))
            assert workspace.log == []

    run_virtual(body)
