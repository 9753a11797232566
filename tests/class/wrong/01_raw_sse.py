"""Typical wrong answers to exercise 1."""

from wrong_answers import Wrong

SPLITLINES = """
def payloads(raw):
    found, data = [], []
    for line in raw.decode().splitlines(keepends=True):
        if line in ("\\n", "\\r\\n"):
            found += ["\\n".join(data)] * bool(data)
            data = []
        elif line.startswith("data:") and line.endswith("\\n"):
            data.append(line[5:].removeprefix(" ").rstrip("\\r\\n"))
    return found
"""

WRONG = [
    Wrong(
        "counts [DONE]",
        {"count-events": "def count_events(raw):\n    return len(payloads(raw))"},
        loses={"raw-sse-count"},
        hint="[DONE] is a mark, not an event of the answer",
    ),
    Wrong(
        "takes [DONE] for a finish",
        {
            "finish-reason": """
def finish_reason(raw):
    for payload in payloads(raw):
        if payload == "[DONE]":
            return "stop"
        for choice in json.loads(payload)["choices"]:
            if choice["finish_reason"]:
                return choice["finish_reason"]
"""
        },
        loses={"raw-sse-finish"},
        hint="[DONE] ends the stream, not the answer",
    ),
    Wrong(
        "splits at LF LF",
        {
            "payloads": """
def payloads(raw):
    blocks = raw.decode().split("\\n\\n")[:-1]
    return [block.removeprefix("data: ") for block in blocks]
"""
        },
        loses={"raw-sse-legal"},
        hint="it makes no event",
    ),
    Wrong(
        "takes the end of the body for the end of an event",
        {
            "payloads": """
def payloads(raw):
    found, data = [], []
    for line in raw.decode().replace("\\r\\n", "\\n").split("\\n"):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            found.append("\\n".join(data))
            data = []
    return found + ["\\n".join(data)] * bool(data)
"""
        },
        loses={"raw-sse-payloads"},
        hint="was not sent to its end: drop it",
    ),
    Wrong(
        "str.splitlines()",
        {"payloads": SPLITLINES},
        loses={"raw-sse-legal"},
        hint="Only LF and CRLF end a line",
    ),
]
