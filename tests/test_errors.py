"""The error tree: its shape, and that errors survive a journey."""

import copy
import pickle
import re

import pytest

from labkit import errors
from labkit.errors import CallError, ConfigError, DeadlineError, StatusError

ONE_OF_EACH = [
    errors.LabkitError("m"),
    errors.ConfigError("m", field="total_s"),
    errors.CallError("m"),
    errors.ConnectError("m"),
    errors.StatusError("m", status=429, verdict="retry-after", detail="slow down",
                       headers={"retry-after": "1"}),
    errors.OutOfCredit("m", detail="buy credit"),
    errors.DeadlineError("m", limit="idle", after_s=1.5),
    errors.Stopped("m", reason="user pressed Stop"),
    errors.StreamError("m"),
    errors.IncompleteStream("m"),
    errors.EmptyStream("m"),
    errors.BrokenStream("m"),
    errors.MalformedStream("m"),
    errors.ProviderError("m", type="overloaded_error", code=529),
]  # fmt: skip


def test_the_drawing_is_the_tree():
    """The docstring draws each class, indented under its parent."""
    drawn, above = {}, {}
    for line in errors.__doc__.splitlines():
        found = re.match(r"    ([│├└─ ]*)([A-Z]\w+)", line)
        if found:
            depth = len(found[1]) // 4
            above[depth] = found[2]
            drawn[found[2]] = above.get(depth - 1, "Exception")
    real = {type(e).__name__: type(e).__mro__[1].__name__ for e in ONE_OF_EACH}
    assert drawn == real
    assert {*real, "shorten"} == set(errors.__all__)


@pytest.mark.parametrize("error", ONE_OF_EACH, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "travel",
    [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_errors_travel_whole(error, travel):
    if isinstance(error, CallError):
        error.partial = "A tide gauge"
        error.attempts = [{"number": 0, "status": 503}]
    there = travel(error)
    assert type(there) is type(error)
    assert str(there) == str(error) == "m"
    assert vars(there) == vars(error)


def test_each_error_has_a_list_of_attempts_of_its_own():
    CallError("m").attempts.append(1)
    assert CallError("m").attempts == []


def test_errors_are_also_what_python_calls_them():
    assert isinstance(DeadlineError("m", limit="open", after_s=30.0), TimeoutError)
    assert isinstance(ConfigError("m", field="f"), ValueError)


def test_what_an_error_is_about_must_be_named():
    for cls in (ConfigError, DeadlineError, StatusError):
        with pytest.raises(TypeError):
            cls("m")


def test_shorten_makes_one_printable_line_of_anything():
    assert errors.shorten("a\x1b[31m\r\n\tb\ud800c") == "a [31m b c"
    assert errors.shorten("x" * 200) == "x" * 200
    assert errors.shorten("x" * 201) == "x" * 197 + "..."
    assert errors.shorten(" " * 10**6 + "far") == "..."
