"""labkit.run: one door, with a loop running or without. And labkit.show beside it.

nest-asyncio changes asyncio for the whole process, so what applies it runs in a
process of its own.
"""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import labkit
from labkit.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent


def fresh(code: str) -> str:
    """What a new interpreter prints, with warnings as errors."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def twice(number):
    await asyncio.sleep(0)
    return 2 * number


def test_without_a_loop_it_is_asyncio_run():
    assert labkit.run(twice(21)) == 42
    assert not hasattr(asyncio, "_nest_patched")


def test_it_raises_what_the_coroutine_raises():
    async def fail():
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        labkit.run(fail())


@pytest.mark.parametrize("thing", [twice, 42, None, asyncio.sleep])
def test_what_is_no_coroutine_is_refused(thing):
    with pytest.raises(ConfigError, match="call the async function") as caught:
        labkit.run(thing)
    assert caught.value.field == "coroutine"


NESTED = """
    import asyncio, sys
    import labkit

    async def twice(number):
        await asyncio.sleep(0.001)
        return 2 * number

    async def cell():
        assert not hasattr(asyncio, "_nest_patched")
        return labkit.run(twice(10)) + labkit.run(twice(11))

    print(asyncio.run(cell()))
"""


def test_inside_a_running_loop():
    assert fresh(NESTED) == "42"


def test_importing_labkit_applies_nothing():
    code = """
        import asyncio, sys
        import labkit
        labkit.run
        labkit.run(asyncio.sleep(0))
        print(hasattr(asyncio, "_nest_patched"), "nest_asyncio" in sys.modules)
    """
    assert fresh(code) == "False False"


def test_the_virtual_clock_goes_on_working_after_it():
    code = """
        import asyncio
        import labkit
        from labkit.experiments.streaming import arrivals

        before = arrivals()

        async def cell():
            labkit.run(asyncio.sleep(0))
            return arrivals()

        after = asyncio.run(cell())
        print(before.equals(after), after.t_ms.max())
    """
    assert fresh(code) == "True 780.0"


def test_show_gives_the_source():
    from labkit.backoff import classify, full

    shown = labkit.show(classify, full)
    assert repr(shown).startswith("def classify(")
    assert "\n\n\ndef full(" in shown.text
    assert "font-family: monospace" in shown._repr_html_()


def test_show_dedents_a_method():
    from labkit.sse import SSEDecoder

    assert labkit.show(SSEDecoder.feed).text.startswith("def feed(")


@pytest.mark.parametrize("thing", [len, 42, "text"])
def test_show_refuses_what_has_no_source(thing):
    with pytest.raises(ConfigError, match="written in Python"):
        labkit.show(thing)
