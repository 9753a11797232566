"""The same client, unchanged, in front of llama.cpp: structure, never its words."""

import asyncio
import os

import pytest

from labkit.client import ChatClient
from labkit.errors import StatusError
from labkit.localmodel import model_file, start_local_model

# .ci/run installs the model and sets LABKIT_NEEDS_MODEL: there, nothing is skipped.
absent = model_file() is None and not os.environ.get("LABKIT_NEEDS_MODEL")
pytestmark = [
    pytest.mark.xdist_group("local model"),
    pytest.mark.skipif(absent, reason="needs make setup-local"),
]


@pytest.fixture(scope="module")
def model():
    with start_local_model() as running:
        yield running


def test_llm_base_url_is_the_only_seam(model, monkeypatch):
    monkeypatch.setenv("LLM_BASE_URL", model.url)

    async def main():
        async with ChatClient(model="smollm2") as client:
            return await client.complete("Say hello.", max_tokens=8, temperature=0)

    reply = asyncio.run(main())
    assert reply.text and reply.finish_reason in ("length", "stop")
    assert 0 < reply.usage.completion_tokens <= 8
    assert len(reply.attempts) == 1


def test_it_streams_and_stops_at_the_limit(model):
    async def main():
        async with (
            ChatClient(model.url) as client,
            client.stream("What is a tide gauge?", max_tokens=12) as stream,
        ):
            pieces = [piece async for piece in stream]
            return pieces, stream.reply

    pieces, reply = asyncio.run(main())
    assert len(pieces) > 1 and "".join(pieces) == reply.text
    assert reply.finish_reason == "length" and reply.usage.completion_tokens == 12
    assert 0 < reply.timings.first_token_s <= reply.timings.complete_s


def test_a_prompt_that_is_too_long_is_refused_once_in_words(model):
    async def main():
        async with ChatClient(model.url) as client:
            await client.complete("tide " * 6000)

    with pytest.raises(StatusError, match="context") as caught:
        asyncio.run(main())
    assert (caught.value.status, caught.value.verdict) == (400, "fatal")
    assert len(caught.value.attempts) == 1
