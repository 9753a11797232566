"""`run(coroutine)`: the door for those who do not write `await` yet.

    reply = labkit.run(client.complete("What is a tide gauge?"))

In a script this is `asyncio.run`. In a notebook a loop runs already, and asyncio
refuses a second one inside it; nest-asyncio lifts that rule. It swaps in slower tasks
written in Python, for the whole process and for good, so it is applied here and
nowhere else, and not before somebody asks. A cell with a top-level `await` never needs
it, and neither does `run_virtual`, which has a thread of its own.
"""

import asyncio
import importlib
import inspect
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from labkit.errors import ConfigError

Result = TypeVar("Result")

# nest_asyncio is broken from Python 3.14 on; the second is its continuation.
NESTING = "nest_asyncio" if sys.version_info < (3, 14) else "nest_asyncio2"


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end and return its result, wherever this is called.

    >>> async def twice(number):
    ...     return 2 * number
    >>> run(twice(21))
    42

    Raises what the coroutine raises; ConfigError for what is none.
    """
    if not inspect.iscoroutine(coroutine):
        raise ConfigError(
            f"coroutine is a {type(coroutine).__name__}: call the async function,"
            " as in run(ask()), not run(ask)",
            field="coroutine",
        )
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    importlib.import_module(NESTING).apply(loop)
    return loop.run_until_complete(coroutine)
