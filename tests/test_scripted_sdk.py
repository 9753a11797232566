"""A client that is not ours drives the scripted provider: tools, turn by turn."""

import openai
import pytest

from labkit.server import start_server
from labkit.tools import catalogue
from labkit.workspace import Workspace, opening
from mock.scripted import SCENARIOS

with Workspace() as described:
    TOOLS = catalogue(described.tools())

FILES = '["access.log","errors.log","notes.txt"]'
LINE = "ERROR timeout: worker 7 timed out after 30000 ms\n"
SAID = "errors.log mentions a timeout: worker 7 timed out after 30000 ms."


@pytest.fixture(scope="module")
def server():
    with start_server("scripted") as running:
        yield running


@pytest.fixture
def sdk(server):
    server.forget()
    options = {"api_key": "none", "timeout": 5, "max_retries": 0}
    with openai.OpenAI(base_url=server.url, **options) as client:
        yield client


def plain(client, messages):
    """One turn: the message as it goes back into the transcript, and its usage."""
    reply = client.chat.completions.create(model="plan", messages=messages, tools=TOOLS)
    choice = reply.choices[0]
    calls = [
        (call.id, call.function.name, call.function.arguments)
        for call in choice.message.tool_calls or ()
    ]
    return choice.message.content, calls, choice.finish_reason, reply.usage


def streamed(client, messages):
    """The same, put together from the deltas as the SDK hands them over."""
    text, calls, finish_reason, usage = None, [], None, None
    with client.chat.completions.create(
        model="plan", messages=messages, tools=TOOLS,
        stream=True, stream_options={"include_usage": True},
    ) as stream:  # fmt: skip
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                finish_reason = choice.finish_reason or finish_reason
                if choice.delta.content:
                    text = (text or "") + choice.delta.content
                for piece in choice.delta.tool_calls or ():
                    if piece.id:
                        calls.append([piece.id, piece.function.name, ""])
                    calls[piece.index][2] += piece.function.arguments
    return text, [tuple(call) for call in calls], finish_reason, usage


@pytest.mark.parametrize("turn", [plain, streamed])
def test_the_sdk_plays_a_whole_scenario(sdk, server, turn):
    messages, finishes, counts = opening(), [], []
    for told in (FILES, LINE, None):
        text, calls, finish_reason, usage = turn(sdk, messages)
        cached = usage.prompt_tokens_details.cached_tokens
        counts.append((usage.prompt_tokens, usage.completion_tokens, cached))
        finishes.append(finish_reason)
        if not calls:
            break
        ((ident, name, arguments),) = calls
        function = {"name": name, "arguments": arguments}
        asked = {"id": ident, "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": text, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": ident, "name": name, "content": told},
        ]
    assert text == SAID and told is None
    assert finishes == ["tool_calls", "tool_calls", "stop"]
    assert counts == [(204, 23, 0), (269, 29, 204), (342, 18, 269)]
    assert server.stats()["billed"] == 3


def test_the_sdk_is_told_which_models_there_are(sdk):
    assert [model.id for model in sdk.models.list()] == list(SCENARIOS)
    with pytest.raises(openai.NotFoundError, match="there are: plan, runaway, long"):
        sdk.chat.completions.create(model="gpt-5", messages=opening())


def test_the_sdk_is_told_of_a_call_without_an_answer(sdk):
    text, ((ident, name, arguments),), _, _ = plain(sdk, opening())
    function = {"name": name, "arguments": arguments}
    asked = {"id": ident, "type": "function", "function": function}
    said = {"role": "assistant", "content": text, "tool_calls": [asked]}
    with pytest.raises(openai.BadRequestError, match="answers the call c1"):
        plain(sdk, [*opening(), said])


@pytest.mark.parametrize("how", ["truncate", "reset"])
def test_a_tool_call_that_breaks_off_is_an_error(sdk, server, how):
    broken = sdk.with_options(base_url=server.at(f"cut=1,how={how}"))
    with pytest.raises(openai.APIConnectionError):
        streamed(broken, opening())


def test_half_a_tool_call_passes_for_a_whole_one(sdk, server):
    """What this bench is for: the SDK hands over a call whose arguments never came."""
    closed = sdk.with_options(base_url=server.at("cut=1,how=close"))
    _, calls, finish_reason, usage = streamed(closed, opening())
    assert calls == [("c1", "list_files", "")]
    assert finish_reason is None and usage is None


def test_a_turn_under_one_key_is_made_once(sdk, server):
    key = {"Idempotency-Key": "turn 0"}
    once = sdk.with_options(default_headers=key)
    assert plain(once, opening()) == plain(once, opening())
    assert server.stats()["billed"] == server.stats()["replayed"] == 1
