"""The two providers by name: who answers, and how each usually behaves."""

from mock.answers import Model
from mock.hostile import HOSTILE
from mock.provider import Settings
from mock.scripted import SCRIPTED

KINDS: dict[str, tuple[Model, Settings]] = {
    "hostile": (HOSTILE, Settings()),
    "scripted": (SCRIPTED, Settings(capacity=None, delay_ms=0)),
}
