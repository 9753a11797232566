"""The cases from public bug reports in tests/cases/cases.json.

Each case has an `id`, its `area` (sse, chunks, retry, timeout, agent, state or
budget), a `tier` (1 is the core), `source` and `essence` (who reported what),
`input` (byte streams as base64), `expect` and `why` in words, and `status`:
settled by a standard or by maintainers; policy: choose and say so; conflict: they
disagree, and all that `expect` lists will do. Where there is a `check`, it lists the
acceptable outcomes as data.
"""

import json
from base64 import b64decode
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "cases" / "cases.json"


@cache
def _all_cases() -> list[dict]:
    return json.loads(FILE.read_text(encoding="utf-8"))["cases"]


def load_cases(area: str) -> list[dict]:
    """The cases of one area, in the order of the file."""
    return [case for case in _all_cases() if case["area"] == area]


def bodies(case: dict) -> list[list[bytes]]:
    """The byte streams of a case, each as the list of its network chunks.

    Most cases have one; some list variants, which must all come out alike.
    """
    sent = case["input"]
    if "variants_b64" in sent:
        return [[b64decode(body)] for body in sent["variants_b64"]]
    return [[b64decode(chunk) for chunk in sent["chunks_b64"]]]
