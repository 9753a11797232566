"""Typical wrong answers to exercise 5."""

from wrong_answers import Wrong

NO_EXCEPTION = """
async def finished(events):
    text = ""
    try:
        async for data in events:
            if data == "[DONE]":
                break
            for choice in json.loads(data).get("choices", []):
                text += choice["delta"].get("content") or ""
    except httpx.TransportError:
        return False, text
    return True, text
"""

DONE = """
async def finished(events):
    text, done = "", False
    try:
        async for data in events:
            if data == "[DONE]":
                done = True
                continue
            for choice in json.loads(data).get("choices", []):
                text += choice["delta"].get("content") or ""
    except httpx.TransportError:
        pass
    return done, text
"""

ONLY_STOP = """
async def finished(events):
    text, done = "", False
    try:
        async for data in events:
            if data != "[DONE]":
                for choice in json.loads(data).get("choices", []):
                    text += choice["delta"].get("content") or ""
                    done = done or choice["finish_reason"] == "stop"
    except httpx.TransportError:
        pass
    return done, text
"""

NOT_CAUGHT = """
async def finished(events):
    text, reason = "", None
    async for data in events:
        if data != "[DONE]":
            for choice in json.loads(data).get("choices", []):
                text += choice["delta"].get("content") or ""
                reason = choice["finish_reason"] or reason
    return reason is not None, text
"""

WRONG = [
    Wrong(
        "no exception means finished",
        {"finished": NO_EXCEPTION},
        loses={"finished-silent"},
        hint="No exception came",
    ),
    Wrong(
        "[DONE] means finished",
        {"finished": DONE},
        loses={"finished-silent"},
        hint="[DONE] ends a stream",
    ),
    Wrong(
        "only `stop` is an end",
        {"finished": ONLY_STOP},
        loses={"finished-whole"},
        hint="`length` is an end that was meant",
    ),
    Wrong(
        "a broken connection loses the text",
        {"finished": NOT_CAUGHT},
        loses={"finished-broken"},
        hint="come are lost",
    ),
]
