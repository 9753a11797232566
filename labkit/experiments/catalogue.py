"""Every table there is."""

from labkit.experiments.chapter_14 import CHAPTER_14
from labkit.experiments.chapter_23 import CHAPTER_23
from labkit.experiments.table import Table

TABLES: tuple[Table, ...] = CHAPTER_14 + CHAPTER_23
