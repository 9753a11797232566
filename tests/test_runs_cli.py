"""The runs from the command line: stopped in one process, finished in another."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from labkit.__main__ import main
from labkit.runreport import next_steps, outcome
from labkit.server import start_server
from labkit.state import RunState

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def server():
    with start_server("scripted") as server:
        yield server


@pytest.fixture
def labkit(tmp_path, server, capsys, monkeypatch):
    """`labkit("run", ...)`: exit status and output, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_BASE_URL", server.url)
    server.forget()

    def command(*words: str):
        status = main(words)
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    return command


def test_a_run_that_completes(labkit):
    status, said = labkit("run", "--scenario", "plan", "--id", "n1")
    assert status == 0
    assert "completed: errors.log mentions a timeout: worker 7" in said
    assert "turns=3  tools=2  in=815  out=70  cost=$0.002470" in said
    assert {p.name for p in Path("runs").iterdir()} == {
        "n1.json",
        "n1.jsonl",
        ".n1.lock",
    }
    again, said = labkit("resume", "n1")
    assert again == 0 and "cost=$0.002470" in said


def test_a_run_of_no_name_gets_one(labkit):
    _, said = labkit("run")
    assert re.search(r"^run run-[0-9a-f]{12}: completed", said)


def test_approve_finishes_it(labkit):
    status, said = labkit("run", "--scenario", "destructive", "--id", "n1")
    assert status == 3
    assert 'interrupted / approval -> delete_file({"path":"access.log"})' in said
    assert "cost=$0.001570" in said
    assert "next: python -m labkit approve n1" in said
    assert 'next: python -m labkit reject n1 "why"' in said
    assert labkit("resume", "n1")[0] == 3  # nobody has decided
    status, said = labkit("approve", "n1")
    assert status == 0 and "completed: Deleted access.log to free space." in said
    status, said = labkit("approve", "n1")
    assert status == 1 and "waits for no decision: it is completed" in said


def test_reject_finishes_it_in_words(labkit):
    labkit("run", "--scenario", "destructive", "--id", "n1")
    status, said = labkit("reject", "n1", "keep it")
    assert status == 0
    assert "I did not delete anything: you declined the deletion." in said
    saved = json.loads(Path("runs/n1.json").read_text())
    assert "The user declined this call: keep it" in str(saved["messages"])


def test_caps_can_be_raised_and_are_remembered(labkit):
    status, said = labkit("run", "--scenario", "runaway", "--max-turns=3", "--id=n1")
    assert status == 3 and "max_turns_exceeded" in said
    assert "next: python -m labkit resume n1 --max-turns 6" in said
    assert "turns=3 " in labkit("resume", "n1")[1]
    _, said = labkit("resume", "n1", "--max-turns", "40", "--budget", "0.010")
    assert "budget_exceeded" in said and "turns=9  tools=8" in said
    assert "cost=$0.010780" in said and "--budget 0.022" in said


def test_the_trace_is_one_story(labkit):
    labkit("run", "--scenario", "destructive", "--id", "n1")
    labkit("approve", "n1")
    with open("runs/n1.jsonl", "a") as file:
        file.write('{"torn')
    status, said = labkit("trace", "n1")
    assert status == 0
    lines = said.splitlines()
    assert [line.split()[2] for line in lines[:-1]] == [
        "turn", "tool_start", "tool_result", "turn", "approval_required",
        "run_stopped", "tool_start", "tool_result", "turn", "run_stopped",
    ]  # fmt: skip
    assert "cost_usd=0.000684" in lines[0] and "torn" in lines[-1]
    assert all(line.split()[1] == "n1" for line in lines[:-1])


def test_a_subagent_s_scenario(labkit):
    status, said = labkit("run", "--scenario", "delegate", "--id", "n1")
    assert status == 0 and "turns=2  tools=1" in said


def test_a_call_in_doubt_is_resolved_by_a_person(labkit):
    labkit("run", "--scenario", "destructive", "--id", "n1")
    file = Path("runs/n1.json")
    state = RunState.from_json(file.read_text())
    state.started.append("c2")  # as a kill would leave it
    file.write_text(state.to_json())
    status, said = labkit("resume", "n1")
    assert status == 3 and "interrupted / in_doubt -> delete_file" in said
    assert 'next: python -m labkit resolve n1 --ran "its result"' in said
    status, said = labkit("reject", "n1", "no")
    assert status == 1 and "resolve" in said
    status, said = labkit("resolve", "n1", "--ran", "Deleted access.log.")
    assert status == 0 and "turns=3  tools=2" in said


def test_a_call_in_doubt_that_did_not_run_still_needs_its_approval(labkit):
    labkit("run", "--scenario", "destructive", "--id", "n1")
    file = Path("runs/n1.json")
    state = RunState.from_json(file.read_text())
    state.started.append("c2")
    file.write_text(state.to_json())
    status, said = labkit("resolve", "n1", "--not-run", "--call", "c2")
    assert status == 3 and "approval" in said
    assert labkit("approve", "n1")[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resume", "n9"], "no run n9 in runs; there are: none"),
        (["trace", "n9"], "no run n9"),
        (["approve", "n9"], "no run n9"),
        (["run", "--id", "../n1"], "run_id is '../n1'"),
        (["run", "--budget", "much"], "max_budget_usd is 'much'"),
        (["run", "--url", "nowhere"], "base_url"),
    ],
)
def test_what_cannot_be_done_is_said(labkit, words, said):
    status, told = labkit(*words)
    assert status == 1 and said in told and "Traceback" not in told


def test_an_id_that_is_taken_is_refused(labkit):
    labkit("run", "--id", "n1")
    status, said = labkit("run", "--id", "n1")
    assert status == 1 and "there is a run n1" in said


def test_a_run_that_fails_says_why(labkit):
    status, said = labkit("run", "--scenario", "no-such-scenario")
    assert status == 1 and "failed: " in said and "no-such-scenario" in said
    status, said = labkit("run", "--scenario", "forbidden")
    assert status == 1 and "failed: permission denied: /etc/shadow" in said


@pytest.mark.parametrize("wrong", ["-1", "x", "1.5"])
def test_a_number_of_turns_that_is_none(labkit, wrong):
    with pytest.raises(SystemExit):
        labkit("run", f"--max-turns={wrong}")


def test_ctrl_c_leaves_a_run_that_can_go_on(labkit, monkeypatch):
    def pressed(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("labkit.runs.run", pressed)
    status, said = labkit("run", "--id", "n1")
    assert status == 130 and "saved" in said


def test_with_no_provider_named_it_brings_its_own(tmp_path):
    python = [sys.executable, "-m", "labkit"]
    ran = subprocess.run(
        [*python, "run", "--id", "n1", "--runs", str(tmp_path)],
        cwd=ROOT, text=True, capture_output=True,
    )  # fmt: skip
    assert ran.returncode == 0 and "completed: errors.log" in ran.stdout, ran.stderr


def test_how_each_end_is_put_into_words():
    state = RunState("n1", "m", [], status="interrupted")
    for about, said, next_step in [
        ({"type": "cancelled", "reason": "Ctrl-C"}, "cancelled: Ctrl-C", "resume n1"),
        ({"type": "stop_condition", "name": "mine"}, "stop_condition: mine", "resume"),
        ({"type": "unpriced", "run_id": "n1", "reason": "?"}, "unpriced: ?", "resume"),
    ]:
        state.interruption = about
        assert outcome(state) == f"interrupted / {said}"
        assert next_step in next_steps(state)[0]
    assert "running" in outcome(RunState("n1", "m", []))
