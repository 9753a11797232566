"""Typical wrong answers to exercise 13."""

from wrong_answers import Wrong

BY_NAME = """
def pending(messages):
    at = max(n for n, m in enumerate(messages) if m["role"] in ("user", "assistant"))
    told = {m["name"] for m in messages[at:] if m["role"] == "tool"}
    calls = messages[at].get("tool_calls") or []
    return [call for call in calls if call["function"]["name"] not in told]
"""

BY_COUNT = """
def pending(messages):
    at = max(n for n, m in enumerate(messages) if m["role"] in ("user", "assistant"))
    calls = messages[at].get("tool_calls") or []
    return calls[len(messages) - at - 1 :]
"""

ONLY_THE_LAST_MESSAGE = """
def pending(messages):
    answered = {m["tool_call_id"] for m in messages if m["role"] == "tool"}
    calls = messages[-1].get("tool_calls") or []
    return [call for call in calls if call["id"] not in answered]
"""

MODEL_FIRST = """
async def go_on(messages, run_tool, ask_model):
    while True:
        message = await ask_model(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            messages.append(answer(call, await run_tool(call)))
"""

ANSWERS_AT_THE_END = """
async def go_on(messages, run_tool, ask_model):
    while True:
        calls = pending(messages)
        messages += [answer(call, await run_tool(call)) for call in calls]
        if messages[-1]["role"] == "assistant":
            return messages[-1]["content"]
        messages.append(await ask_model(messages))
"""

ASKS_AGAIN = """
async def go_on(messages, run_tool, ask_model):
    while True:
        for call in pending(messages):
            messages.append(answer(call, await run_tool(call)))
        messages.append(await ask_model(messages))
        if not messages[-1].get("tool_calls"):
            return messages[-1]["content"]
"""

WRONG = [
    Wrong(
        "matches by name",
        {"pending": BY_NAME},
        loses={"pending-same-tool"},
        hint="What in an answer says whose it is?",
    ),
    Wrong(
        "counts the answers",
        {"pending": BY_COUNT},
        loses={"pending-basic", "pending-same-tool", "pending-kill"},
        hint="What in an answer says whose it is?",
    ),
    Wrong(
        "looks at the last message only, as the chapter prints it",
        {"pending": ONLY_THE_LAST_MESSAGE},
        loses={"pending-basic", "pending-same-tool", "pending-kill"},
        hint="look back",
    ),
    Wrong(
        "a resume begins with the model",
        {"go-on": MODEL_FIRST},
        loses={"pending-kill"},
        hint="the model, or the transcript?",
    ),
    Wrong(
        "writes the answers down when all have run",
        {"go-on": ANSWERS_AT_THE_END},
        loses={"pending-kill"},
        hint="is each answer in it",
    ),
    Wrong(
        "asks once more when the run is over",
        {"go-on": ASKS_AGAIN},
        loses={"pending-kill"},
        hint="its last message is words",
    ),
]
