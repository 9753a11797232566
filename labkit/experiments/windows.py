"""Chapter 14, Retry-After: two limits with one header, requests and tokens."""

import pandas as pd

from labkit.backoff import retry_after
from labkit.errors import StatusError
from labkit.experiments.stage import ONCE, QUESTION, Stage, perform
from mock.provider import Settings

PROMPTS = {"short": QUESTION, "long": QUESTION + " Compare it with a buoy." * 150}


def limits(
    requests_per_minute: int = 60, tokens_per_minute: int = 6000, clock: str = "virtual"
) -> pd.DataFrame:
    """Short prompts meet the limit on requests; long ones that on tokens, far below.

    prompt_tokens: of one request, as the provider counts. accepted: requests before
    the first 429. retry_after_s: its header. said: the only difference there is.
    """
    settings = Settings(
        capacity=100, delay_ms=0,
        requests_per_window=requests_per_minute, tokens_per_window=tokens_per_minute,
    )  # fmt: skip
    rows = [
        {"prompt": label} | perform(clock, _until_refused, settings, prompt=prompt)
        for label, prompt in PROMPTS.items()
    ]
    return pd.DataFrame(rows)


async def _until_refused(stage: Stage, prompt: str) -> dict:
    """Ask again and again, until the first 429."""
    accepted = 0
    async with stage.client(retry=ONCE) as client:
        while True:
            try:
                reply = await client.complete(prompt)
            except StatusError as error:
                refused = error
                break
            accepted += 1
    return {
        "prompt_tokens": reply.usage.prompt_tokens,
        "accepted": accepted,
        "status": refused.status,
        "retry_after_s": retry_after(refused.headers, now=0),
        "said": refused.detail,
    }
