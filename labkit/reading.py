"""The last line of a cell: `show(function)` for source, `table(frame)` for words."""

import inspect
import re
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


class Table:
    """A table for the page: sentences stand at the left, and wrap."""

    def __init__(self, frame):
        self.frame = frame

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        from pandas import option_context
        from pandas.api.types import is_numeric_dtype

        frame = self.frame
        if any(frame.index.names):
            frame = frame.reset_index()
        with option_context("display.max_colwidth", None):
            html = frame.to_html(index=False, border=0)
        sides = ["right" if is_numeric_dtype(frame[c]) else "left" for c in frame]

        def aligned(row: re.Match) -> str:
            # Inside the tags, as above: a notebook's own style says right for all.
            side = iter(sides)
            mark = r"<(t[dh])>"
            return re.sub(
                mark, lambda m: f'<{m[1]} style="text-align: {next(side)}">', row[0]
            )

        return re.sub(r"<tr.*?</tr>", aligned, html, flags=re.DOTALL)


def table(frame) -> Table:
    """A DataFrame whose columns hold words, as the last line of a cell.

    >>> import pandas as pd
    >>> table(pd.DataFrame({"said": ["ebb"]}))._repr_html_().count("text-align: left")
    2
    """
    return Table(frame)
