"""Typical wrong answers to exercise 9."""

from wrong_answers import Wrong

FAILED = """
def missing_file(path, lister="list_files"):
    return "Error: failed"
"""

NOT_WHAT_TO_DO = """
def missing_file(path, lister="list_files"):
    return f"no such file: {path}"
"""

ALL_TO_THE_MODEL = """
def read_failed(path, error):
    if isinstance(error, FileNotFoundError):
        return ToolError(missing_file(path))
    return ToolError(f"cannot read {path}: {error.strerror}")
"""

AS_PYTHON_SAYS_IT = """
def read_failed(path, error):
    if isinstance(error, PermissionError):
        return PermanentToolError(str(error))
    return ToolError(str(error))
"""

WITHOUT_THE_SENTENCE = """
def read_failed(path, error):
    text = f"{path}: {error.strerror}"
    if isinstance(error, PermissionError):
        return PermanentToolError(text)
    return ToolError(text)
"""

RAISES = """
def read_failed(path, error):
    raise ToolError(f"{path}: {error.strerror}")
"""

WRONG = [
    Wrong(
        "Error: failed",
        {"missing-file": FAILED},
        loses={"error-text-recovers"},
        hint="The model read 'Error: Error: failed'",
    ),
    Wrong(
        "says what happened, not what to do",
        {"missing-file": NOT_WHAT_TO_DO},
        loses={"error-text-recovers"},
        hint="what it can do about it",
    ),
    Wrong(
        "a missing permission is told to the model",
        {"read-failed": ALL_TO_THE_MODEL},
        loses={"error-text-permanent"},
        hint="12 turns",
    ),
    Wrong(
        "names a folder of the machine",
        {"read-failed": AS_PYTHON_SAYS_IT},
        loses={"error-text-private"},
        hint="where the folder is on this machine",
    ),
    Wrong(
        "its sentence is for nobody",
        {"read-failed": WITHOUT_THE_SENTENCE},
        loses={"error-text-private"},
        hint="Where is your sentence from above",
    ),
    Wrong(
        "raises what it should return",
        {"read-failed": RAISES},
        loses={"error-text-permanent", "error-text-private"},
        hint="do not raise it",
    ),
]
