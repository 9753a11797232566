"""Token counts: the real vocabulary or a clear error, and never an estimate."""

import json
import os
import shutil

import pytest
import tiktoken.load

import mock.tokens as tokens
from mock.tokens import FILE, FOLDER, VocabularyError, count, encoding, usage


@pytest.fixture
def offline(monkeypatch):
    """tiktoken must not even try the network, nor know the vocabulary already."""

    def download(url):
        raise AssertionError(f"tiktoken asks the network for {url}")

    monkeypatch.setattr(tiktoken.load, "read_file", download)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    encoding.cache_clear()
    yield
    encoding.cache_clear()


@pytest.mark.parametrize(
    "text, expected",
    [("", 0), ("A tide gauge", 3), ("[]", 1), ("<|endoftext|>", 7), ("\ud800", 1)],
)
def test_counts(text, expected):
    assert count(text) == expected


def test_the_chapters_rule():
    """14: the sentence's 13 tokens and the `[]` of no tool calls (NUMBERS.md)."""
    text = "A tide gauge is a device that measures sea level over time ."
    body = {"messages": [{"role": "user", "content": "é"}], "tools": []}
    said = usage(body, {"role": "assistant", "content": text})
    assert said["completion_tokens"] == count(text + "[]") == 14
    assert said["prompt_tokens"] == count('[{"role":"user","content":"é"}]')
    assert said["total_tokens"] == said["prompt_tokens"] + said["completion_tokens"]


def test_tools_are_paid_for():
    messages = [{"role": "user", "content": "?"}]
    tools = [{"type": "function", "function": {"name": "read_gauge"}}]
    without = tokens.count_prompt({"messages": messages})
    extra = count(json.dumps(tools, separators=(",", ":")))
    with_tools = tokens.count_prompt({"messages": messages, "tools": tools})
    assert with_tools == without + extra
    assert tokens.count_prompt({"messages": messages, "tools": None}) == without


def test_a_call_counts_as_its_json():
    calls = [{"id": "c", "type": "function", "function": {"name": "f"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    assert tokens.count_completion(message) == count(
        '[{"id":"c","type":"function","function":{"name":"f"}}]'
    )


def test_long_texts_are_counted_and_not_kept():
    tokens._remembered.cache_clear()
    long = "tide " * 20_000
    assert count(long) == count(long) > 20_000
    assert tokens._remembered.cache_info().currsize == 0


def test_the_vocabulary_comes_from_the_checkout(offline, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    assert encoding().n_vocab == 200_019
    assert os.environ["TIKTOKEN_CACHE_DIR"] == "/nowhere"
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    encoding.cache_clear()
    encoding()
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.parametrize("damage", ["absent", "shortened", "changed", "line ends"])
def test_a_damaged_vocabulary_is_an_error_and_is_left_alone(
    offline, damage, tmp_path, monkeypatch
):
    file = tmp_path / FILE
    if damage != "absent":
        raw = (FOLDER / FILE).read_bytes()
        file.write_bytes(
            {
                "shortened": raw[:-1],
                "changed": b"J" + raw[1:],
                "line ends": raw.replace(b"\n", b"\r\n"),  # as a checkout might
            }[damage]
        )
        before = file.read_bytes()
    monkeypatch.setattr(tokens, "FOLDER", tmp_path)
    with pytest.raises(VocabularyError, match="git checkout -- data/tiktoken"):
        encoding()
    if damage == "absent":
        assert not file.exists()
    else:
        assert file.read_bytes() == before


def test_the_file_has_the_name_that_tiktoken_looks_for(offline, tmp_path, monkeypatch):
    """Under any other name tiktoken would go and download it."""
    shutil.copy(FOLDER / FILE, tmp_path / "o200k_base.tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(AssertionError, match="asks the network"):
        tiktoken.get_encoding("o200k_base")
    shutil.copy(FOLDER / FILE, tmp_path / FILE)
    assert tiktoken.get_encoding("o200k_base").n_vocab == 200_019
