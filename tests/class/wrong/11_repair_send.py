"""Typical wrong answers to exercise 11."""

from wrong_answers import Wrong

NEW_KEY = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    last = 4
    for attempt in range(last + 1):
        floor_s = None
        try:
            headers = {"idempotency-key": str(uuid.uuid4())}
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except (TimeoutError, httpx.TransportError):
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < last:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

SAME_KEY = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {"idempotency-key": str(payload)}
    last = 4
    for attempt in range(last + 1):
        floor_s = None
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except (TimeoutError, httpx.TransportError):
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < last:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

NO_KEY = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {}
    last = 4
    for attempt in range(last + 1):
        floor_s = None
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except (TimeoutError, httpx.TransportError):
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < last:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

ONLY_HTTPX = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {"idempotency-key": str(uuid.uuid4())}
    last = 4
    for attempt in range(last + 1):
        floor_s = None
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except httpx.TransportError:
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < last:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

SUM = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {"idempotency-key": str(uuid.uuid4())}
    last = 4
    for attempt in range(last + 1):
        floor_s = None
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except (TimeoutError, httpx.TransportError):
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < last:
            await asyncio.sleep((floor_s or 0.0) + draw_s(attempt))
    raise RuntimeError("out of attempts")
"""

PRINTED = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    key = str(uuid.uuid4())
    for attempt in range(5):
        async with asyncio.timeout(limit_s):
            headers = {"idempotency-key": key}
            reply = await http.post(url, json=payload, headers=headers)
        if classify(reply.status_code) == "ok":
            return reply
        if classify(reply.status_code) == "fatal":
            raise RuntimeError(f"HTTP {reply.status_code}")
        await asyncio.sleep(draw_s(attempt))
    raise RuntimeError("out of attempts")
"""

STALE = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {"idempotency-key": str(uuid.uuid4())}
    floor_s = None
    for attempt in range(5):
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
        except (TimeoutError, httpx.TransportError):
            pass
        else:
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
            floor_s = retry_after(reply.headers, wall_time())
        if attempt < 4:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

CATCHES_ITS_OWN = """
async def send(http, url, payload, draw_s, limit_s=20.0):
    headers = {"idempotency-key": str(uuid.uuid4())}
    for attempt in range(5):
        floor_s = None
        try:
            async with asyncio.timeout(limit_s):
                reply = await http.post(url, json=payload, headers=headers)
            floor_s = retry_after(reply.headers, wall_time())
            verdict = classify(reply.status_code)
            if verdict == "ok":
                return reply
            if verdict == "fatal":
                raise RuntimeError(f"HTTP {reply.status_code}")
        except Exception:
            pass
        if attempt < 4:
            await asyncio.sleep(max(floor_s or 0.0, draw_s(attempt)))
    raise RuntimeError("out of attempts")
"""

WRONG = [
    Wrong(
        "a new key per attempt",
        {"send": NEW_KEY},
        loses={"repair-once"},
        hint="A new key per attempt",
    ),
    Wrong(
        "a key made of the text",
        {"send": SAME_KEY},
        loses={"repair-once"},
        hint="another call is another answer",
    ),
    Wrong(
        "no key",
        {"send": NO_KEY},
        loses={"repair-once"},
        hint="who will know it again",
    ),
    Wrong(
        "catches the library's errors only",
        {"send": ONLY_HTTPX},
        loses={"repair-timeout"},
        hint="came out of send()",
    ),
    Wrong(
        "header plus draw",
        {"send": SUM},
        loses={"repair-floor"},
        hint="That is the sum",
    ),
    Wrong(
        "as it was printed",
        {"send": PRINTED},
        loses={"repair-timeout", "repair-floor", "repair-end"},
        hint="came out of send()",
    ),
    Wrong(
        "obeys a header of an earlier attempt",
        {"send": STALE},
        loses={"repair-timeout"},
        hint="the reply of the attempt before it",
    ),
    Wrong(
        "catches its own error",
        {"send": CATCHES_ITS_OWN},
        loses={"repair-end"},
        hint="swallow the error",
    ),
]
