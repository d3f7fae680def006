"""How far a study is, how long it still takes, and what it says meanwhile; all of it without a
clock.
"""

from __future__ import annotations

import pytest

from optbench.cli.terminal import studying
from optbench.cli.terminal.live_line import LiveLine
from optbench.cli.terminal.studying import StudyProgress
from optbench.run.runner import RunProgress
from optbench.run.study_progress import StudyWatch
from optbench.study.instance_sources import MadeInstance
from tests.evaluate.studies_by_hand import failure, record, study_of

PLAN = study_of(["cpsat", "fcfs"], ["alpha", "beta"])
BOUNDS = [cell for cell in PLAN.cells if cell.kind == "bound"]
CPSAT = [cell for cell in PLAN.solving if cell.label == "cpsat"]
FCFS = [cell for cell in PLAN.solving if cell.label == "fcfs"]


def watching(jobs: int = 1) -> StudyWatch:
    watch = StudyWatch(jobs)
    watch.begin([record(cell, bound=8.0) for cell in BOUNDS], PLAN.solving, len(PLAN.cells))
    return watch


def test_what_the_store_had_is_done() -> None:
    watch = watching()
    assert (watch.done, watch.total, watch.failed, watch.best_gap, watch.remaining_s()) == (
        2,
        6,
        0,
        None,
        None,
    )


def test_time_left_is_what_each_solvers_cells_took() -> None:
    watch = watching()
    watch.take(record(CPSAT[0], 10.0, total_s=30.0))
    # One more of cpsat at 30 s; two of fcfs, of which nothing is known: at the mean of all, 30 s.
    assert watch.remaining_s() == 90.0
    watch.take(record(FCFS[0], 10.0, total_s=2.0))
    assert watch.remaining_s() == 30.0 + 2.0
    watch.take(record(FCFS[1], 10.0, total_s=4.0))
    assert watch.remaining_s() == 30.0
    watch.take(record(CPSAT[1], 10.0, total_s=4.0))
    assert watch.remaining_s() == 0.0 and watch.done == watch.total


def test_jobs_share_the_time_but_no_cell_is_split() -> None:
    watch = watching(jobs=2)
    watch.take(record(CPSAT[0], 10.0, total_s=30.0))
    assert watch.remaining_s() == 45.0
    watch.take(record(FCFS[0], 10.0, total_s=2.0))
    assert watch.remaining_s() == 30.0


def test_the_best_gap_is_to_the_better_of_the_own_and_the_shared_bound() -> None:
    watch = watching()
    watch.take(record(FCFS[0], 10.0))
    assert watch.best_gap == pytest.approx(0.2) and watch.best_title == "fcfs | alpha-0 | 0"
    watch.take(record(CPSAT[1], 10.0, bound=9.0))
    assert watch.best_gap == pytest.approx(0.1) and watch.best_title == "cpsat | beta-0 | 0"
    watch.take(failure(CPSAT[0], "crashed"))
    assert watch.failed == 1


def test_a_bound_above_what_another_reached_is_said() -> None:
    watch = watching()
    assert watch.take(record(FCFS[0], 10.0)) is None
    wrong = watch.take(record(CPSAT[0], 12.0, bound=11.0))
    reached = "fcfs | alpha-0 | 0 reached 10.0 and the verifier confirmed it"
    assert wrong == f"false bound: cpsat | alpha-0 | 0 says 11.0, but {reached}"
    late = StudyWatch()
    late.begin([], PLAN.cells, len(PLAN.cells))
    late.take(record(FCFS[0], 10.0))
    assert "bounds | alpha-0 | 0 says 11.0" in (late.take(record(BOUNDS[0], bound=11.0)) or "")


def test_infeasible_is_contradicted_by_a_schedule_whichever_comes_first() -> None:
    denies = record(CPSAT[0], status="infeasible")
    for order in ((denies, record(FCFS[0], 10.0)), (record(FCFS[0], 10.0), denies)):
        watch = watching()
        assert watch.take(order[0]) is None
        said = watch.take(order[1])
        assert (
            said is not None and "cpsat | alpha-0 | 0 says that it is infeasible, but fcfs" in said
        )


def test_progress_on_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LiveLine, "line_every_s", 0.0)
    with StudyProgress("night", StudyWatch(2)) as show:
        show(RunProgress("instance", 1, 2, made=MadeInstance("alpha", 0, "alpha-0", "hash")))
        show(
            RunProgress(
                "instance", 2, 2, made=MadeInstance("gamma", 3, "gamma", None, error="no such file")
            )
        )
        known = {cell.key: record(cell, bound=8.0) for cell in BOUNDS}
        show(RunProgress("plan", 2, 6, known=known, waiting=PLAN.solving))
        show(RunProgress("cell", 3, 6, record=record(FCFS[0], 10.0, total_s=4.0)))
        show(
            RunProgress(
                "cell", 4, 6, record=failure(CPSAT[0], "signal", "11 (SIGSEGV)", total_s=8.0)
            )
        )
        show(RunProgress("cell", 5, 6, record=record(FCFS[1], 8.0, total_s=4.0)))
    said = [line.partition(" s  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [
        "instances 1 of 2",
        "no instance of gamma with seed 3: no such file",
        "instances 2 of 2",
        "2 of 6 cells",
        "3 of 6 cells, best gap 20.0 % (fcfs | alpha-0 | 0), about 6.00 s left",
        "cpsat | alpha-0 | 0: signal: 11 (SIGSEGV)",
        "4 of 6 cells, 1 failed, best gap 20.0 % (fcfs | alpha-0 | 0), about 8.00 s left",
        "5 of 6 cells, 1 failed, 1 optimal, best gap 0 % (fcfs | beta-0 | 0), about 8.00 s left",
    ]


def test_quiet_says_nothing_and_hundreds_of_failures_are_not_said_one_by_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with StudyProgress("night", StudyWatch(), quiet=True) as show:
        show.say("oh")
    assert capsys.readouterr().err == ""
    with StudyProgress("night", StudyWatch()) as show:
        for k in range(300):
            show.say(f"failure {k}")
    err = capsys.readouterr().err
    assert err.count("failure ") == studying.MAX_SAID and "more failures are in the summary" in err
