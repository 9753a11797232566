"""What the OpenAI SDK makes of the three endings, over a real socket."""

import pytest

from labkit.errors import ConfigError
from labkit.experiments import peers, streaming


def test_the_sdk_ends_normally_without_a_finish_reason():
    pytest.importorskip("openai")
    seen = peers.sdk_endings(delay_ms=1).set_index("ending")
    assert list(seen.index) == list(streaming.ENDINGS)
    closed = seen.loc["closed in order"]
    assert (closed.raised, closed.finish_reason, closed.chunks) == ("", "", 5)
    assert seen.loc["max_tokens=5"].finish_reason == "length"
    assert seen.loc["max_tokens=5"].text == closed.text
    assert seen.loc["reset"].raised == "APIConnectionError"


def test_without_the_sdk_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(peers, "sdk_installed", lambda: False)
    with pytest.raises(ConfigError, match="pip install openai"):
        peers.sdk_endings()
