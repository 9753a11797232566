"""What a failure becomes: words for the model, or the end of the run (chapter 23).

The same fault costs a run, or is mended in two turns, depending on one sentence. That
sentence is written for a reader, so the tool writes it.
"""

import asyncio

POLICIES = ("words", "opaque", "fatal")
OPAQUE = "Error: the tool failed."


def as_words(error: BaseException, policy: str = "words") -> str:
    """The answer to a call that raised.

    >>> as_words(FileNotFoundError("no such file: a.txt. Call list_files."))
    'Error: no such file: a.txt. Call list_files.'
    >>> as_words(FileNotFoundError("no such file: a.txt"), "opaque")
    'Error: the tool failed.'
    """
    return OPAQUE if policy == "opaque" else f"Error: {said(error)}"


def said(error: BaseException) -> str:
    """What an exception says, with its name where that would say too little.

    >>> said(KeyError("port")), said(SystemExit(1)), said(ZeroDivisionError())
    ("KeyError: 'port'", 'the tool tried to end the process', 'ZeroDivisionError')
    """
    if isinstance(error, SystemExit):
        return "the tool tried to end the process"
    if isinstance(error, asyncio.CancelledError):
        return "what the tool waited for was cancelled"
    name = type(error).__name__
    if isinstance(error, KeyError):  # its text is the key alone
        return f"{name}: {error}"
    try:
        return str(error) or name
    except Exception:  # a fault in its own __str__ must not end the run
        return name
