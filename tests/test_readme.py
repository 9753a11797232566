"""The README: its figures come from the results, its links lead somewhere."""

import json
import re
from pathlib import Path

import pytest

from labkit.readme import README, RESULTS, highlights, marks, read_block, write_block

ROOT = README.parent
TEXT = README.read_text(encoding="utf-8")


def test_the_results_block_is_what_the_results_say():
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert read_block("results", TEXT) == highlights(results)


def test_the_bench_block_names_goals_and_machine():
    block = read_block("bench", TEXT)
    assert block.count("goal: ") >= 6
    assert re.search(r"Measured with `make bench` on Python 3\.\d+\.\d+ on .*\.", block)


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    for link in links:
        assert link.startswith("http") or (ROOT / link).exists(), link


def test_every_make_target_it_names_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"(?:^    |`)make ([a-z-]+)", TEXT, re.M)
    assert named and set(named) <= set(targets)


def test_a_block_is_replaced_and_nothing_else(tmp_path):
    begin, end = marks("x")
    file = tmp_path / "README.md"
    file.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    write_block("x", "new", file)
    assert file.read_text() == f"before\n{begin}\nnew\n{end}\nafter\n"
    with pytest.raises(ValueError, match="one <!-- y: begin -->"):
        write_block("y", "new", Path(file))
