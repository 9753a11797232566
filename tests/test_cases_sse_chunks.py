"""The handed cases about bytes and chunks, each read under every cut."""

import re

import pytest

from labkit.assemble import read_stream
from labkit.errors import (
    EmptyStream,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    StreamError,
)
from tests.handed import bodies, load_cases

# The cases name errors by what they mean.
MEANING = {
    "provider": ProviderError,
    "malformed": MalformedStream,
    "empty": EmptyStream,
    "incomplete": IncompleteStream,
}


def read(chunks: list[bytes]) -> dict:
    """What came of a stream, in the words of a `check`."""
    try:
        reply = read_stream(chunks)
    except StreamError as error:
        return {"outcome": "error", "error": error, "partial": error.partial}
    return {
        "outcome": "ok",
        "content": reply.text,
        "finish": reply.finish_reason,
        "tool_calls": reply.tool_calls,
        "usage": reply.usage,
    }


def fits(got: dict, check: dict) -> bool:
    """Does `got` have all that `check` asks for? What it leaves out may be anything."""
    if got["outcome"] != check["outcome"]:
        return False
    for key, wanted in check.items():
        if key == "class":
            fitting = type(got["error"]) is MEANING[wanted]
        elif key == "tool_calls":
            fitting = [vars(call) for call in got[key]] == wanted
        elif key == "usage":
            fitting = wanted.items() <= vars(got[key]).items()
        elif key == "retryable":
            # The client never retries once text is out; here, that there is some.
            fitting = wanted == (got["partial"] == "")
        else:
            fitting = got[key] == wanted
        if not fitting:
            return False
    return True


def by_our_rule(check: dict, body: bytes) -> dict:
    """The check, for a stream that never says how it finished.

    Such a case is about its bytes: the content must come out right. But by the rule
    of chapter 14 the stream did not finish, so the content comes as the partial text
    of an IncompleteStream.
    """
    finishes = re.search(rb'"finish_reason": ?"', body)
    if check["outcome"] == "ok" and not finishes:
        return {"outcome": "error", "class": "incomplete", "partial": check["content"]}
    return check


@pytest.mark.parametrize(
    "case", load_cases("sse") + load_cases("chunks"), ids=lambda case: case["id"]
)
def test_handed_case(case):
    for chunks in bodies(case):
        body = b"".join(chunks)
        checks = [by_our_rule(check, body) for check in case["check"]]
        two_parts = [[body[:cut], body[cut:]] for cut in range(1, len(body))]
        single_bytes = [body[i : i + 1] for i in range(len(body))]
        for cuts in [chunks, [body], single_bytes, *two_parts]:
            got = read(cuts)
            assert any(fits(got, check) for check in checks), (case["expect"], got)


def test_the_rule_for_streams_without_a_finish_is_needed_for_one_case_only():
    def bent(case):
        body = b"".join(bodies(case)[0])
        return [by_our_rule(check, body) for check in case["check"]] != case["check"]

    cases = load_cases("sse") + load_cases("chunks")
    assert [case["id"] for case in cases if bent(case)] == ["S03"]


def test_the_message_of_a_nonstandard_error_line_is_not_lost():
    (case,) = [case for case in load_cases("sse") if case["id"] == "S10"]
    error = read(bodies(case)[0])["error"]
    assert "the request exceeds the context size" in str(error)
