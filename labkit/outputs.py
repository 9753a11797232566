"""What a notebook shows: is it fit for any machine, and is it what was committed?

Both questions return complaints in words, one for each thing that is amiss.
"""

import difflib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REAL_TIME = "real-time"  # the tag of a cell whose numbers come from real time

# What must not stand in an output: it would be wrong on the next machine.
FORBIDDEN = {
    "a warning": re.compile(r"\w*Warning\b: .*"),
    "a memory address": re.compile(r"\b0x[0-9a-fA-F]{4,}"),
    "an absolute path": re.compile(
        r"(?<![\w.:/])/(?:home|root|Users|tmp|usr|opt|mnt|private|var)/\S*"
        rf"|{re.escape(str(ROOT))}\S*|\b[A-Z]:\\(?:Users|Windows|Program)\S*"
    ),
}


def blemishes(notebook) -> list[str]:
    """What must not be in an output: errors, warnings, addresses, paths."""
    complaints = []
    for number, cell in code_cells(notebook):
        for output in cell.outputs:
            text = as_text(output)
            found = {kind: pattern.search(text) for kind, pattern in FORBIDDEN.items()}
            amiss = {kind: match[0] for kind, match in found.items() if match}
            if output.output_type == "error":
                amiss = {"an error": text}
            elif output.get("name") == "stderr" and not amiss:
                amiss = {"a text on stderr": text.strip()}
            for kind, what in amiss.items():
                complaints.append(f"{place(number, cell)} shows {kind}: {what}")
    return complaints


def differences(committed, fresh) -> list[str]:
    """Where the outputs are other than committed, cells of real time left out."""
    complaints = []
    pairs = zip(code_cells(committed), code_cells(fresh), strict=True)
    for (number, old), (_, new) in pairs:
        if REAL_TIME in old.metadata.get("tags", ()):
            continue
        if old.execution_count != new.execution_count:
            said = f"numbered {old.execution_count}, not {new.execution_count}"
            complaints.append(f"{place(number, old)} is {said}: refresh the notebook")
        before, after = (
            "\n".join(as_text(output, False) for output in cell.outputs)
            for cell in (old, new)
        )
        if portable(before) != portable(after):
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), "committed", "now",
                lineterm="", n=1,
            )  # fmt: skip
            said = "\n".join(lines)
            complaints.append(f"{place(number, old)} shows something else:\n{said}")
        elif pictures(old) != pictures(new):
            complaints.append(f"{place(number, old)} shows another picture")
    return complaints


def portable(text: str) -> str:
    """An output without the version of Python that `labkit.check()` names."""
    return re.sub(r"\bPython 3\.\d+", "Python 3", text)


def code_cells(notebook) -> list[tuple[int, dict]]:
    """The code cells, with their numbers in the notebook, from 1."""
    cells = enumerate(notebook.cells, 1)
    return [(number, cell) for number, cell in cells if cell.cell_type == "code"]


def place(number: int, cell) -> str:
    first = cell.source.partition("\n")[0]
    return f"cell {number} ({first})"


def as_text(output, everything: bool = True) -> str:
    """What an output says, pictures left out. Not `everything`: the plain text only,
    since the HTML of a table says the same and its form depends on versions."""
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    kinds = sorted(output.data) if everything else ["text/plain"]
    texts = [output.data.get(kind, "") for kind in kinds if kind != "image/png"]
    return "\n".join(text if isinstance(text, str) else repr(text) for text in texts)


def pictures(cell) -> list[str]:
    """The PNGs of a cell, in base64."""
    shown = (output.get("data", {}) for output in cell.outputs)
    return ["".join(data["image/png"].split()) for data in shown if "image/png" in data]
