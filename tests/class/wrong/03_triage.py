"""Typical wrong answers to exercise 3."""

from wrong_answers import Wrong

WRONG = [
    Wrong(
        "every 4xx retries",
        {
            "triage": """
def triage(status):
    return "retry-after" if status == 429 else "retry"
"""
        },
        loses={"triage-fatal"},
        hint="is a 4xx that no waiting mends",
    ),
    Wrong(
        "no 4xx retries",
        {
            "triage": """
def triage(status):
    return "retry" if status >= 500 else "fatal"
"""
        },
        loses={"triage-retry", "triage-says-when"},
        hint="nothing is wrong with the request: it came too soon",
    ),
    Wrong(
        "does not read what the server asks",
        {
            "triage": """
def triage(status):
    return "retry" if status in (408, 409, 429) or status >= 500 else "fatal"
"""
        },
        loses={"triage-says-when"},
        hint="obey its header",
    ),
    Wrong(
        "knows the codes of the table only",
        {
            "triage": """
def triage(status):
    if status == 429:
        return "retry-after"
    known = (408, 409, 500, 502, 503, 504, 529)
    return "retry" if status in known else "fatal"
"""
        },
        loses={"triage-retry"},
        hint="Do you know all of 5xx?",
    ),
]
