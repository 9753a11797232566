"""Source code on the page: `show(function)` as the last line of a cell."""

import inspect
import textwrap

from labkit.errors import ConfigError


class Source:
    """Some source text. A notebook shows it with its colours."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # Colours inside the tags: a page that is exported or only looked at has no
        # style sheet of ours. (IPython brings pygments, and it alone asks for this.)
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        form = "margin: 0; font-family: monospace; font-size: 13px; line-height: 1.35"
        look = HtmlFormatter(noclasses=True, nobackground=True, prestyles=form)
        return highlight(self.text, PythonLexer(), look)


def show(*objects) -> Source:
    """The source of functions, classes or modules, one after the other.

    >>> from labkit.backoff import full
    >>> show(full).text.startswith("def full(")
    True

    Raises ConfigError for what has no source in Python.
    """
    try:
        texts = [textwrap.dedent(inspect.getsource(each)).strip() for each in objects]
    except (TypeError, OSError):
        raise ConfigError(
            "objects: show() takes functions, classes and modules written in Python",
            field="objects",
        ) from None
    return Source("\n\n\n".join(texts))
