"""Typical wrong answers to exercise 2."""

from wrong_answers import Wrong

WRONG = [
    Wrong(
        "streaming ends sooner",
        {
            "last-word": """
def last_word_s(first_s, gap_s, words, latency_s, streaming):
    if streaming:  # the words are there already while the next ones are made
        return latency_s + words * gap_s
    return latency_s + first_s + (words - 1) * gap_s + latency_s
"""
        },
        loses={"last-word-streaming"},
        hint="Streaming does not end sooner",
    ),
    Wrong(
        "waits for the way back with every word",
        {
            "last-word": """
def last_word_s(first_s, gap_s, words, latency_s, streaming):
    back_s = words * latency_s if streaming else latency_s
    return latency_s + first_s + (words - 1) * gap_s + back_s
"""
        },
        loses={"last-word-streaming"},
        hint="How often does one wait for the way back?",
    ),
    Wrong(
        "the first word comes first in either case",
        {
            "first-word": """
def first_word_s(first_s, gap_s, words, latency_s, streaming):
    return latency_s + first_s + latency_s
"""
        },
        loses={"first-word-both"},
        hint="What must be made before one can read a word?",
    ),
    Wrong(
        "words by all the time",
        {
            "pace": """
def pace(first_read_s, last_read_s, words):
    return words / last_read_s
"""
        },
        loses={"words-a-second"},
        hint="counts the wait for the first word",
    ),
]
