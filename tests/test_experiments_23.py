"""Chapter 23's figures, to the digit, from runs: data/published/ is out of reach."""

import pytest

from labkit import published
from labkit.experiments import (
    error_tables,
    loop_tables,
    people,
    seconds,
    subagents,
    survival,
)
from labkit.experiments.agents import play
from labkit.experiments.stage import perform

TIMEOUT = "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
DELETED = "Deleted access.log to free space."
DECLINED = "I did not delete anything: you declined the deletion."


@pytest.fixture(autouse=True)
def nothing_to_copy_from(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "FOLDER", tmp_path)


def test_plan():
    table = loop_tables.plan().set_index("row")
    run = table.loc["run"]
    assert (run.turns, run.tool_runs) == (3, 2)
    assert (run.prompt_tokens, run.completion_tokens) == (815, 70)
    assert (run.cost_usd, run.status, run.answer) == (0.00247, "completed", TIMEOUT)
    turns = table.loc[["turn 1", "turn 2", "turn 3"]]
    assert list(turns.prompt_tokens) == [204, 269, 342]
    assert list(turns.completion_tokens) == [23, 29, 18]
    assert list(turns.cost_usd) == [0.000684, 0.00157, 0.00247]


@pytest.mark.parametrize(
    "cap, prompt, completion, cost_usd",
    [
        (8, 3_431, 184, 0.00907),
        (20, 16_259, 460, 0.038038),
        (50, 88_649, 1_150, 0.191098),
        (100, 337_299, 2_300, 0.702198),
    ],
)
def test_turn_cap(cap, prompt, completion, cost_usd):
    (row,) = loop_tables.turn_cap((cap,)).itertuples()
    assert (row.turns, row.tool_runs) == (cap, cap - 1)
    assert (row.prompt_tokens, row.completion_tokens) == (prompt, completion)
    assert (row.cost_usd, row.status) == (cost_usd, "max_turns_exceeded")


def test_fifty_to_a_hundred_turns():
    table = loop_tables.turn_cap((50, 100))
    assert round(table.cost_usd[1] / table.cost_usd[0], 1) == 3.7
    assert round(table.prompt_tokens[1] / table.prompt_tokens[0], 1) == 3.8


@pytest.mark.parametrize(
    "budget_usd, turns, cost_usd",
    [("0.010", 9, 0.01078), ("0.050", 24, 0.05179), ("0.250", 58, 0.25137)],
)
def test_budget(budget_usd, turns, cost_usd):
    (row,) = loop_tables.budget((budget_usd,)).itertuples()
    assert (row.turns, row.tool_runs, row.cost_usd) == (turns, turns - 1, cost_usd)
    assert row.status == "budget_exceeded"
    assert 0 <= row.over_usd < row.last_turn_usd


def test_tool_errors():
    table = error_tables.tool_errors().set_index("policy")
    fatal, opaque, words = (table.loc[p] for p in ("fatal", "opaque", "words"))
    assert (fatal.status, fatal.turns, fatal.cost_usd) == ("failed", 1, 0.000756)
    assert (opaque.turns, opaque.tool_runs) == (2, 1)
    assert opaque.answer == "I could not read the file, so I do not know."
    assert (words.turns, words.tool_runs, words.cost_usd) == (4, 3, 0.00355)
    assert words.answer == "errors.log mentions a timeout."
    assert words.times_fatal == 4.6958


def test_permanent_error():
    table = error_tables.permanent_error().set_index("policy")
    fed = table.loc["fed back"]
    assert (fed.turns, fed.tool_runs, fed.prompt_tokens) == (12, 11, 7_079)
    assert (fed.cost_usd, fed.status, fed.answer) == (
        0.018622,
        "max_turns_exceeded",
        "",
    )
    assert fed.times_recovered == 5.2456
    stopped = table.loc["stops the run"]
    assert (stopped.turns, stopped.status) == (1, "failed")
    assert stopped.error == "permission denied: /etc/shadow"


def test_dedupe():
    once, twice, cached = error_tables.dedupe().itertuples()
    assert (once.turns, once.cost_usd) == (2, 0.001396)
    assert (twice.turns, twice.tool_runs, twice.cost_usd) == (3, 2, 0.002446)
    assert (cached.turns, cached.tool_runs, cached.cost_usd) == (3, 1, 0.002446)
    assert twice.more_usd == 0.00105 and int(twice.more_percent) == 75


def test_dedupe_writes():
    everything, reads = error_tables.dedupe_writes().itertuples()
    assert (everything.turns, everything.tool_runs) == (3, 1)
    assert everything.deleted == '["access.log"]'
    assert (reads.turns, reads.tool_runs) == (3, 2)
    assert reads.deleted == '["access.log","access.log"]'


def test_approval():
    waiting, approved, rejected = people.approval().itertuples()
    assert (waiting.turns, waiting.cost_usd) == (2, 0.00157)
    assert (waiting.status, waiting.interruption) == ("interrupted", "approval")
    assert waiting.call == 'delete_file({"path":"access.log"})'
    assert waiting.deleted == rejected.deleted == "[]"
    assert (approved.turns, approved.answer) == (3, DELETED)
    assert approved.deleted == '["access.log"]'
    assert (rejected.turns, rejected.answer) == (3, DECLINED)


def test_a_mute_rejection_becomes_a_lie():
    told, mute = people.rejection().itertuples()
    assert (told.deleted, told.answer) == ("[]", DECLINED)
    assert (mute.deleted, mute.answer) == ("[]", DELETED)
    assert mute.the_model_read == ""


def test_exits():
    table = survival.exits().set_index("exit")
    assert list(table.index) == list(table.status)
    assert list(table.index[table.resumable]) == [
        "max_turns_exceeded", "budget_exceeded", "interrupted",
    ]  # fmt: skip
    assert (table.turns_after > table.turns).equals(table.resumable)


def test_resume_after_a_kill():
    restored, finished = survival.resume().itertuples()
    assert (restored.turns, restored.cost_usd) == (2, 0.00157)
    assert (restored.messages, restored.status) == (6, "running")
    assert (finished.turns, finished.cost_usd) == (3, 0.00247)
    assert finished.status == "completed"
    assert finished.tool_log == "list_files, read_file:errors.log"


def test_two_naive_resumes_against_pending():
    table = survival.parallel().set_index("resume")
    assert tuple(table.loc["pending()"]) == (2, 1, 1)
    assert table.turns_paid["asks the model again"] == 3
    assert table.deletions["runs the tools again"] == 2


def test_cancel():
    alone, stopped, deaf = people.cancel().itertuples()
    assert (alone.wall_ms, alone.status) == (3_000, "completed")
    assert (stopped.wall_ms, stopped.status) == (1_200, "interrupted")
    assert stopped.reason_given == "user pressed Stop"
    assert stopped.last_progress == "scanned 400 of 1200 files"
    assert (deaf.wall_ms, deaf.status) == (3_000, "interrupted")


@pytest.mark.realtime
def test_stop_reaches_async_and_polling_tools_in_real_time():
    lag_ms = people.stop_lag(stop_s=0.7, clock="real").set_index("tool").lag_ms
    assert lag_ms["async"] < 500 and lag_ms["blocking, polls"] < 500
    assert lag_ms["blocking, deaf"] > 2_000


def test_trace():
    table = seconds.trace()
    assert set(table.type) == {
        "turn", "tool_start", "tool_progress", "tool_result", "approval_required",
        "run_stopped",
    }  # fmt: skip
    assert table.run_id.notna().all() and table.t_s.notna().all()
    first = table[table.run_id == "n1"]
    assert list(first.cost_usd.dropna()) == [0.000684, 0.00157, 0.00157]
    about_calls = table.type.isin(
        ["tool_start", "tool_progress", "tool_result", "approval_required"]
    )
    assert table.call_id.notna().equals(about_calls)
    labels = list(table.label.dropna())
    assert labels == [f"scanned {n} of 1200 files" for n in range(200, 1201, 200)]
    stopped = first.iloc[-1]
    assert (stopped.type, stopped.status, stopped.reason) == (
        "run_stopped", "interrupted", "approval",
    )  # fmt: skip


def test_latency_is_turns_times_the_providers():
    table = seconds.latency()
    assert list(table.wall_ms) == [0, 750, 3_000, 6_000]


def test_flaky():
    one, three = seconds.flaky(seeds=60).itertuples()
    assert one.expected_percent == 35.849 and three.expected_percent == 99.75
    assert 15 < one.finished_percent < 60 and three.finished_percent > 90


def test_caching():
    table = loop_tables.caching((8, 100))
    assert table.cost_usd[1] == 0.702198
    assert round(table.cached_cost_usd[1], 3) == 0.107


def test_a_larger_catalogue_costs_on_every_turn():
    table = loop_tables.catalogue().set_index(["tools", "history"])
    assert table.cost_usd[4, 0] == 0.038038
    assert 5 < table.times[200, 0] < 20  # and not hundreds
    assert (table.turns == 20).all()


def test_subagents():
    table = subagents.subagents().set_index(["case", "variant"])
    found = table.loc["the child finds the answer"]
    assert found.cost_usd["as printed"] < found.paid_usd["as printed"]
    assert found.cost_usd["mended"] == found.paid_usd["mended"]
    assert found.parent_messages["mended"] == 5  # one summary, however much was read
    deletes = table.loc["the child wants to delete"]
    assert deletes.the_parent_read["as printed"] == "no result"
    assert deletes.status["mended"] == "interrupted"
    assert deletes.waits_for["mended"] == "approval"
    tight = table.loc["a budget of $0.001"]
    assert tight.status["as printed"] == "completed"
    assert tight.status["mended"] == "budget_exceeded"


@pytest.mark.parametrize("scenario", ["plan", "recover", "pair", "slow"])
def test_both_doors_give_the_same_transcript(scenario):
    async def scene(stage):
        ended = await play(stage, scenario)
        return ended.state.messages, ended.state.cost

    memory = perform("virtual", scene, kind="scripted")
    assert perform("real", scene, kind="scripted") == memory
