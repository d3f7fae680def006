"""Failures that lie in the machine as well as in the solver, and how often they are confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from optbench.execute.base import Job, JobKind, JobOutcome
from optbench.execute.ray_cluster.doubtful_outcomes import (
    CONFIRMED,
    CellWork,
    Confirmations,
    failure_of,
    failure_words,
)
from optbench.store.records import REASONS, Reason
from optbench.study.declared import CellBudget


@pytest.mark.parametrize(
    ("answer", "reason", "kind", "words"),
    [
        ({"result": {"status": "feasible"}}, None, "", ""),
        ({"bounds": []}, None, "", ""),
        ({"result": {"status": "error", "message": "no cuda"}}, None, "crashed", "no cuda"),
        ({"refusal": "unavailable", "message": "no torch"}, None, "unavailable", "no torch"),
        (None, Reason("exited", "exit code 3"), "exited", "exit code 3"),
    ],
)
def test_how_a_cell_has_failed(
    answer: dict[str, Any] | None, reason: Reason | None, kind: str, words: str
) -> None:
    outcome = JobOutcome("key", answer, reason)
    assert failure_of(outcome) == kind and kind in {"", *REASONS}
    assert failure_words(outcome) == (f"{kind}: {words}" if kind else ": ")


def test_the_first_crashes_of_a_solver_on_a_node_are_confirmed_and_all_signals() -> None:
    confirmations, heft, fcfs = (
        Confirmations(),
        CellWork("solve", "heft"),
        CellWork("solve", "fcfs"),
    )
    for _ in range(CONFIRMED):
        assert confirmations.needed("crashed", heft, "a")
        confirmations.agreed(heft, "a")
    assert not confirmations.needed("crashed", heft, "a")
    assert not confirmations.needed("exited", heft, "a")
    assert confirmations.needed("signal", heft, "a")
    # Another node and another solver have not been seen; what a limit ended is the solver's.
    assert confirmations.needed("crashed", heft, "b")
    assert confirmations.needed("crashed", fcfs, "a")
    assert not confirmations.needed("time_limit", fcfs, "a")
    assert not confirmations.needed("", fcfs, "a")


def test_work_differs_by_the_kind_of_job_the_solver_and_its_parameters(tmp_path: Path) -> None:
    def work(kind: JobKind, **payload: object) -> CellWork:
        return CellWork.of(Job("key", kind, payload, CellBudget(), tmp_path))

    on_gpu = work("solve", solver="hgnn", params={"device": "cuda", "k": 1}, seed=1)
    assert on_gpu == work("solve", solver="hgnn", params={"k": 1, "device": "cuda"}, seed=2)
    assert on_gpu.solver == "hgnn"
    others = [
        work("solve", solver="hgnn", params={"device": "cpu", "k": 1}),
        work("solve", solver="heft", params={"device": "cuda", "k": 1}),
        work("bound", solver="hgnn", params={"device": "cuda", "k": 1}),
        work("verify"),
    ]
    assert len({on_gpu, *others}) == 5
