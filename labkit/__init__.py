"""labkit: a small LLM client and agent loop that can be read from end to end.

The rooms, in the order in which to read them. None knows one that comes after it.

    the words        errors
    the clock        clock
    the reader       sse, strictjson, badanswer, toolcalls, usage, assemble
    the policy       backoff, cancel, stopbutton, gate, limits, secret, retry
    the client       http, line, wire, request, reply, exchange, call, stream, client
    what a run is    pricing, tools, transcript, state, runfile, store, trace
    what it may do   conditions, decisions, dedupe, toolerrors, execution
    the loop         bareloop, session, asking, answering, harness, subagent
    servers          processes, server, localmodel
    the bench        jail, workspace, experiments/, published, shown, comparison,
                     plots/, figures, tables, bench/, readme
    the notebooks    doctor, running, reading, outputs, notebooks, exercise
    the doors        classroom/, runs/, bundle/

The public names below are imported when they are first used (PEP 562): `import
labkit` is instant, and asking for `labkit.check` does not load pandas.
"""

import importlib

__version__ = "0.1.0"

# public name -> the module of labkit it lives in
_HOME = {
    "ChatClient": "client",
    "Gate": "gate",
    "Limits": "limits",
    "Retry": "retry",
    "Stop": "cancel",
    "check": "doctor",
    "guess": "classroom.guesses",
    "measured": "classroom.guesses",
    "playground": "classroom.sliders",
    "predict": "classroom.guesses",
    "reset": "server",
    "run": "running",
    "run_real": "clock",
    "run_virtual": "clock",
    "save_guesses": "classroom.guessfiles",
    "show": "reading",
    "start_server": "server",
    "stop_button": "stopbutton",
    "table": "reading",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"labkit.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up does not come through here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
