"""Token counts with the real o200k_base vocabulary, by the chapter's rule.

- JSON is compact and keeps non-ASCII as it is.
- prompt = tokens(the `messages` array) + tokens(the `tools` array)
- completion = tokens(content, directly followed by the array of tool calls); plain
  text therefore counts what `[]` adds to it

There is never an estimate: without the vocabulary file, `VocabularyError`.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from mock.wire import compact

FOLDER = Path(__file__).resolve().parent.parent / "data" / "tiktoken"
FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # tiktoken's name for o200k_base
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

REMEMBER = 50_000  # characters: counts of longer texts are not kept


class VocabularyError(RuntimeError):
    """The vocabulary file is missing or is not the one it should be."""


@lru_cache(maxsize=1)
def encoding():
    """The o200k_base encoding, from the file in data/tiktoken; never downloaded."""
    import tiktoken

    file = FOLDER / FILE
    # Checked before tiktoken sees it: tiktoken deletes a file whose hash is off and
    # asks the network for another.
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
        raise VocabularyError(
            f"data/tiktoken/{FILE} is missing or damaged; restore it with "
            "'git checkout -- data/tiktoken'"
        )
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(FOLDER)
    try:
        return tiktoken.get_encoding("o200k_base")
    finally:
        del os.environ["TIKTOKEN_CACHE_DIR"]
        if before is not None:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def count(text: str) -> int:
    """Tokens in a text; a text that looks like a special token is only text.

    >>> count("A tide gauge"), count("<|endoftext|>")
    (3, 7)
    """
    return _remembered(text) if len(text) <= REMEMBER else _count(text)


def _count(text: str) -> int:
    return len(encoding().encode(text, disallowed_special=()))


_remembered = lru_cache(maxsize=4096)(_count)


def count_prompt(body: dict) -> int:
    """Prompt tokens of a request: its messages, and its tools if it has any."""
    parts = [body["messages"]] + ([body["tools"]] if body.get("tools") else [])
    return sum(count(compact(part)) for part in parts)


def count_completion(message: dict) -> int:
    """Completion tokens of an assistant's message.

    >>> count_completion({"role": "assistant", "content": "A tide gauge"})
    4
    """
    calls = message.get("tool_calls") or []
    return count((message.get("content") or "") + compact(calls))


def count_cached(body: dict) -> int:
    """Prompt tokens that a provider with a prompt cache has seen before: those of the
    request that led to the last assistant message; 0 before there is one."""
    messages = body["messages"]
    for at in range(len(messages) - 1, 0, -1):
        if messages[at]["role"] == "assistant":
            return count_prompt(body | {"messages": messages[:at]})
    return 0


def usage(body: dict, message: dict) -> dict:
    """The `usage` object of a reply."""
    prompt, completion = count_prompt(body), count_completion(message)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": count_cached(body)},
    }
