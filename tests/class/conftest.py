"""`make test-class`: what needs nbgrader and a kernel for every page.

The ordinary suite does not come here (`norecursedirs` in pyproject.toml).
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # this folder's name is a keyword: no package

collect_ignore = ["wrong"]  # read by wrong_answers.load
