"""The tables of chapter 14, in the order of the chapter."""

from labkit.experiments import (
    deadlines,
    herd_tables,
    readers,
    streaming,
    triage,
    waiting,
    windows,
)
from labkit.experiments.table import Table

CHAPTER_14 = (
    Table(
        "14.ttft",
        "When does the first word come, and when the last?",
        streaming.ttft,
        keys=("mode",),
    ),
    Table(
        "14.reader",
        "What does each detail of the reader buy?",
        readers.reader,
        keys=("reader", "body"),
        clock="none",
        real=False,
    ),
    Table(
        "14.endings",
        "Can a reader tell the endings apart?",
        streaming.endings,
        keys=("ending",),
    ),
    Table(
        "14.verdicts",
        "What does a status tell a client to do?",
        triage.verdicts,
        keys=("status",),
        clock="none",
        real=False,
    ),
    Table(
        "14.triage",
        "What does it cost not to read the status?",
        triage.triage,
        keys=("policy",),
    ),
    Table(
        "14.nested",
        "What do retries inside retries come to?",
        triage.nested,
        keys=("status", "policy"),
        real=False,
    ),
    Table(
        "14.herd20",
        "What do twenty clients make of a provider that serves three?",
        herd_tables.herd20,
        keys=("summary",),
        share=1,
    ),
    Table(
        "14.gate",
        "And the same twenty behind a gate of three?",
        herd_tables.gate,
        keys=("clients",),
    ),
    Table(
        "14.gate_width",
        "How wide should a gate be?",
        herd_tables.gate_width,
        keys=("width", "processes"),
        share=0.25,
        real=False,
    ),
    Table(
        "14.jitter",
        "What does jitter buy a hundred clients?",
        herd_tables.jitter,
        keys=("policy", "summary", "seed"),
        share=1,
    ),
    Table(
        "14.retry_after",
        "What does Retry-After do to the unluckiest client?",
        herd_tables.retry_after,
        keys=("attempt",),
    ),
    Table(
        "14.retry_after_herd",
        "A floor under the jitter, added to it, or no floor?",
        herd_tables.retry_after_herd,
        keys=("limiter", "floor"),
        share=0.15,
        real=False,
    ),
    Table(
        "14.limits",
        "Which limit was it, when the header is the same?",
        windows.limits,
        keys=("prompt",),
    ),
    Table(
        "14.deadline",
        "How long does a client wait by itself?",
        deadlines.deadline,
        keys=("client",),
    ),
    Table(
        "14.idempotency",
        "What does it cost to ask again after giving up?",
        waiting.idempotency,
        keys=("key", "attempt"),
    ),
    Table(
        "14.abandon",
        "Who pays when the reader leaves?",
        waiting.abandon,
        keys=("client",),
    ),
)
