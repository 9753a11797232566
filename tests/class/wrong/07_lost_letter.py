"""Typical wrong answers to exercise 7."""

from wrong_answers import Wrong

IGNORE = """
async def read(chunks, show):
    async for chunk in chunks:
        if text := chunk.decode("utf-8", errors="ignore"):
            show(text)
"""

REPLACE = """
async def read(chunks, show):
    async for chunk in chunks:
        show(chunk.decode("utf-8", errors="replace"))
"""

STRICT = """
async def read(chunks, show):
    async for chunk in chunks:
        show(chunk.decode())
"""

AT_THE_END = """
async def read(chunks, show):
    body = b""
    async for chunk in chunks:
        body += chunk
    show(body.decode("utf-8", errors="replace"))
"""

CHARACTERS = """
def lost_letters(text, places):
    return "".join(text[place] for place in places if place < len(text))
"""

WHOLE_OR_NOTHING = """
async def read(chunks, show):
    body = b""
    async for chunk in chunks:
        body += chunk
        try:
            text = body.decode()
        except UnicodeDecodeError:
            continue
        if text:
            show(text)
        body = b""
    if body:
        show(body.decode(errors="replace"))
"""

WRONG = [
    Wrong(
        'errors="ignore"',
        {"lost-letter": IGNORE},
        loses={"lost-letter-cuts", "lost-letter-end"},
        hint='errors="ignore" drops',
    ),
    Wrong(
        'errors="replace", chunk by chunk',
        {"lost-letter": REPLACE},
        loses={"lost-letter-cuts", "lost-letter-end"},
        hint="signs for bad bytes",
    ),
    Wrong(
        "strict, chunk by chunk",
        {"lost-letter": STRICT},
        loses={"lost-letter-cuts", "lost-letter-end"},
        hint="Half a letter is no error",
    ),
    Wrong(
        "waits for the end",
        {"lost-letter": AT_THE_END},
        loses={"lost-letter-time"},
        hint="as soon as it has it",
    ),
    Wrong(
        "counts characters, not bytes",
        {"lost-letters": CHARACTERS},
        loses={"lost-letter-find"},
        hint="Count bytes",
    ),
    Wrong(
        "keeps a chunk back for half a letter at its end",
        {"lost-letter": WHOLE_OR_NOTHING},
        loses={"lost-letter-time"},
        hint="do those before it have to wait?",
    ),
]
