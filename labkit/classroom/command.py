"""`python -m labkit class WORD`: what a teacher hands out, and takes in.

    student   make the student copies of the exercises, or check that they are fresh
    copies    the notebooks as a class gets them: no outputs, and no solutions
    course    a course folder for nbgrader, to grade what students hand in
    points    what each student has, from the course's gradebook
"""

import argparse
import tempfile
from pathlib import Path

from labkit import notebooks
from labkit.classroom import course
from labkit.errors import LabkitError

EXERCISES = notebooks.FOLDER / "exercises"
COPIES = notebooks.ROOT / "out" / "class"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")

    def word(name: str, said: str) -> argparse.ArgumentParser:
        return words.add_parser(name, help=said, description=said)

    student = word("student", "make the student copies from the solutions")
    student.add_argument("--check", action="store_true", help="write nothing, compare")
    student.add_argument("--only", metavar="NN", help="the number of one exercise")
    copies = word("copies", "all notebooks without outputs, exercises included")
    copies.add_argument("--out", type=Path, default=COPIES, metavar="FOLDER")
    begin = word("course", "begin a course folder for nbgrader")
    begin.add_argument("folder", type=Path)
    points = word("points", "what each student has")
    points.add_argument("folder", type=Path, help="the course folder")


def main(args: argparse.Namespace) -> int:
    """0 when done; with `student --check`, when every copy is fresh."""
    try:
        return WORDS[args.word](args)
    except (LabkitError, OSError) as error:
        print(error)
        return 1


def student(args: argparse.Namespace) -> int:
    made = student_copies(args.only)
    there = {path.name: path.read_bytes() for path in course.find(EXERCISES, args.only)}
    stale = sorted(
        name for name in {*made, *there} if made.get(name) != there.get(name)
    )
    for name in stale:
        print(f"{name}: {'stale' if args.check else 'written'}", flush=True)
        if not args.check:
            write(EXERCISES / name, made.get(name))
    if args.check and stale:
        print("make them anew: python -m labkit class student")
    elif not stale:
        print(f"{len(made)} student copies, all fresh")
    return 1 if args.check and stale else 0


def student_copies(number: str | None = None) -> dict[str, bytes]:
    """The student copies by file name, as they should be. Takes some seconds.

    The same sources give the same bytes. Raises CourseError without nbgrader.
    """
    with tempfile.TemporaryDirectory() as scratch:
        course.create(Path(scratch), number)
        made = course.generate(Path(scratch), "--no-db")
        return {path.name: as_bytes(notebooks.read(path)) for path in made}


def as_bytes(notebook) -> bytes:
    """A notebook as it is committed: normalised, one line end, UTF-8."""
    import nbformat

    return (nbformat.writes(notebooks.normalise(notebook)) + "\n").encode()


def write(path: Path, content: bytes | None) -> None:
    """Write a file; None: there should be none."""
    if content is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copies(args: argparse.Namespace) -> int:
    """Into an empty folder only: in another may lie a student's work."""
    if args.out.exists() and any(args.out.iterdir()):
        print(f"{args.out.name} is not empty: remove it, or give another --out")
        return 1
    pages = [*notebooks.find(), *course.find(EXERCISES)]
    for path in pages:
        content = as_bytes(without_outputs(notebooks.read(path)))
        write(args.out / path.relative_to(notebooks.FOLDER), content)
    for path in notebooks.FOLDER.glob("*.md"):  # pages that the notebooks link to
        write(args.out / path.name, path.read_bytes())
    print(f"{len(pages)} notebooks without outputs in {args.out.name}")
    return 0


def without_outputs(notebook):
    """The same notebook, as if it had never been run."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def begin_course(args: argparse.Namespace) -> int:
    course.require()  # before a half-made course stands in the way
    course.create(args.folder)
    course.generate(args.folder)
    print(f"{args.folder.name} is ready. Hand out what is in release/, put what comes")
    print("back into submitted/STUDENT/exercises/, and grade it there:")
    print(f"  nbgrader autograde {course.ASSIGNMENT}")
    return 0


def points(args: argparse.Namespace) -> int:
    import pandas as pd

    found = pd.DataFrame(course.scores(args.folder), columns=course.Score._fields)
    whole = found.assign(notebook="total")
    rows = pd.concat([found, whole])  # sorted by name, the total comes last
    by = rows.groupby(["student", "notebook"], as_index=False)[["score", "most"]].sum()
    by["points"] = by.score.map("{:g}".format) + "/" + by.most.map("{:g}".format)
    print(by.pivot(index="notebook", columns="student", values="points").to_string())
    return 0


WORDS = {
    "student": student,
    "copies": copies,
    "course": begin_course,
    "points": points,
}
