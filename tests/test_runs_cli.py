"""The runs from the command line: stopped in one process, finished in another."""

import json
import os
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from labkit.__main__ import COMMANDS, main
from labkit.harness import approve, run
from labkit.runs.report import next_steps, outcome, report
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


def test_a_capped_run_waits_for_no_decision_and_the_way_on_is_said(labkit):
    labkit("run", "--scenario", "runaway", "--max-turns=3", "--id=n1")
    status, said = labkit("approve", "n1")
    assert status == 1 and "waits for no decision: it is max_turns_exceeded" in said
    assert "to go on: python -m labkit resume n1 --max-turns 6" in said


@pytest.mark.parametrize("word", ["run", "resume", "approve", "reject", "resolve"])
def test_the_help_says_which_caps_hold(word, capsys):
    with pytest.raises(SystemExit):
        main([word, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    usual = ("20", "none") if word == "run" else ("as before", "as before")
    assert f"the cap on turns ({usual[0]})" in said
    assert f"the cap on dollars ({usual[1]})" in said


def test_a_word_that_is_missing_is_answered_with_the_commands(capsys):
    assert main([]) == 2
    said = capsys.readouterr().err
    assert all(f"\n  {name} " in said for name in COMMANDS)


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

    monkeypatch.setattr("labkit.runs.command.run", pressed)
    status, said = labkit("run", "--id", "n1")
    assert (status, said) == (130, "\nstopped\n")  # nothing was saved: nothing to say

    async def pressed_later(*args, **kwargs):
        await run(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr("labkit.runs.command.run", pressed_later)
    status, said = labkit("run", "--scenario=runaway", "--max-turns=2", "--id=n2")
    assert status == 130 and "next: python -m labkit resume n2" in said
    monkeypatch.undo()


@pytest.mark.parametrize("command", ["run", "tables", "doctor"])
def test_ctrl_c_before_a_command_has_begun_is_no_traceback(
    labkit, monkeypatch, command
):
    def pressed(place):
        raise KeyboardInterrupt

    monkeypatch.setattr("labkit.__main__.find", pressed)
    assert labkit(command) == (130, "\nstopped\n")


def test_a_turn_of_unknown_cost_is_settled_by_a_person(labkit):
    labkit("run", "--scenario", "destructive", "--id", "n1", "--budget", "0.01")
    status, said = labkit("settle", "n1", "0.001")
    assert status == 1 and "the cost of every turn is known" in said
    file = Path("runs/n1.json")
    state = RunState.from_json(file.read_text())
    state.asking = "n1-turn-3-of-another-request"  # a process died over it
    approve(state, "c2")
    file.write_text(state.to_json())

    status, said = labkit("resume", "n1")
    assert status == 3 and "interrupted / unpriced: nobody knows what 1 turn(s)" in said
    assert "next: python -m labkit settle n1 USD" in said
    assert labkit("settle", "n1", "some")[0] == 1
    status, said = labkit("settle", "n1", "0.001")
    assert status == 0 and "completed: Deleted access.log" in said
    state = RunState.from_json(file.read_text())
    assert (state.unpriced_turns, state.turns) == (0, 3)


def test_what_is_said_to_do_next_works_as_it_stands(labkit, server, monkeypatch):
    """With the folder and the provider that were named, quoted for a shell."""
    monkeypatch.delenv("LLM_BASE_URL")
    here = ["--runs", "my runs", "--url", server.url]
    _, said = labkit("run", "--scenario", "destructive", "--id", "n1", *here)
    named = f" --runs 'my runs' --url {server.url}"
    assert f"next: python -m labkit approve n1{named}\n" in said
    assert f'next: python -m labkit reject n1 "why"{named}\n' in said
    (step,) = re.findall("next: python -m labkit (approve .*)", said)
    assert labkit(*shlex.split(step))[0] == 0
    _, said = labkit("run", "--scenario", "runaway", "--max-turns=1", "--id=n2", *here)
    _, said = labkit("approve", "n2", *here)
    assert f"to go on: python -m labkit resume n2 --max-turns 2{named}" in said


@pytest.mark.parametrize("wrong", [["--budget", "abc"], ["--url", "nowhere"]])
def test_a_decision_is_not_written_down_beside_an_option_that_is_wrong(labkit, wrong):
    labkit("run", "--scenario", "destructive", "--id", "n1")
    assert labkit("approve", "n1", *wrong)[0] == 1
    assert RunState.from_json(Path("runs/n1.json").read_text()).approvals == []
    assert labkit("resume", "n1")[0] == 3  # so it still waits


@pytest.mark.parametrize(
    "words", [["run", "--id=n1"], ["resume", "n1"], ["trace", "n1"]]
)
def test_what_the_system_refuses_is_said_in_a_line(labkit, words):
    Path("runs").mkdir()
    Path("runs/n1.jsonl").mkdir()  # no trace can be kept or read there
    labkit("run", "--id", "n1")
    for runs in ("runs", "r" * 300, "runs/n1.json"):
        status, said = labkit(*words, "--runs", runs)
        assert status == 1 and said.count("\n") == 1, said


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize(
    "words", [["run", "--scenario=slow", "--id=n2"], ["trace", "n1"]]
)
def test_who_reads_the_output_changes_nothing(labkit, words):
    """`run | head -0`: what the model is told does not depend on it."""
    labkit("run", "--id", "n1")
    ran = subprocess.Popen(
        [sys.executable, "-m", "labkit", *words], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    ran.stdout.close()
    assert ran.stderr.read() == "" and ran.wait() == 0
    ran.stderr.close()
    if words[0] == "run":
        saved = Path("runs/n2.json").read_text()
        assert "Scanned" in saved and "Broken pipe" not in saved


def test_with_no_provider_named_it_brings_its_own(tmp_path):
    python = [sys.executable, "-m", "labkit"]
    ran = subprocess.run(
        [*python, "run", "--id", "n1", "--runs", str(tmp_path)],
        cwd=ROOT, text=True, capture_output=True,
    )  # fmt: skip
    assert ran.returncode == 0 and "completed: errors.log" in ran.stdout, ran.stderr


def test_how_each_end_is_put_into_words():
    state = RunState("n1", "m", [], status="interrupted")
    for about, said in [
        ({"type": "cancelled", "reason": "Ctrl-C"}, "cancelled: Ctrl-C"),
        ({"type": "stop_condition", "name": "mine"}, "stop_condition: mine"),
        ({"type": "provider", "reason": "503"}, "provider: 503"),
        ({"type": "login", "call_id": "c1"}, "login"),  # of an Exit of one's own
    ]:
        state.interruption = about
        assert outcome(state) == f"interrupted / {said}"
        assert next_steps(state) == ["python -m labkit resume n1"]
    assert "running" in outcome(RunState("n1", "m", []))


def test_what_to_do_where_a_cost_is_not_known():
    about = {"type": "unpriced", "run_id": "n1", "reason": "cut off"}
    state = RunState("n1", "m", [], status="interrupted", interruption=about)
    assert outcome(state) == "interrupted / unpriced: cut off"
    assert next_steps(state) == []  # a price is missing: that is for the code to say
    state.children["c1"] = RunState("n1.c1", "m", [], unpriced_turns=2)
    assert next_steps(state) == ["python -m labkit settle n1 USD"]
    assert "2 turn(s) are not in the cost" in report(state)


@pytest.mark.parametrize(
    ("cost", "enough"), [("0", "0.010"), ("0.0049", "0.010"), ("0.02", "0.040")]
)
def test_the_budget_that_is_named_is_enough_for_a_turn(cost, enough):
    state = RunState("n1", "m", [], status="budget_exceeded", own_cost=Decimal(cost))
    assert next_steps(state) == [f"python -m labkit resume n1 --budget {enough}"]
