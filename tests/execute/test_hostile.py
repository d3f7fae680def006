"""Hostile solvers next to honest ones, from the command line: each is recorded with its reason, and
harms nobody else.
"""

from __future__ import annotations

import sys

import pytest

from optbench.store.records import Record
from tests.execute.conftest import on_cluster
from tests.execute.engine_programs import EngineUnderTest, until
from tests.hostile.cases import CASES, HONEST, Case, Study, make_workspace, marked, run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits over a process tree need Linux"
)


@pytest.fixture(scope="module", params=["local", pytest.param("ray", marks=pytest.mark.slow)])
def engine(request: pytest.FixtureRequest) -> EngineUnderTest:
    if request.param == "local":
        return EngineUnderTest("local")
    return on_cluster(request.getfixturevalue("ray_session"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of the honest solvers alone, at home."""
    return run(make_workspace(tmp_path_factory.mktemp("honest") / "ws"), HONEST)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, engine: EngineUnderTest) -> Study:
    root = make_workspace(tmp_path_factory.mktemp("hostile") / "ws")
    return engine.study(root, [*(case.spec for case in CASES), *HONEST])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.spec.replace(",victim={victim}", ""))
def test_each_is_recorded_with_its_reason(case: Case, study: Study) -> None:
    (record,) = [record for record in study.records().values() if case.is_of(record)]
    if case.later:
        assert record.reason is None
        assert any(case.says in each for each in study.summary["contradictions"]), study.summary[
            "contradictions"
        ]
        return
    assert (record.reason.kind if record.reason else None) == case.reason, record.reason
    assert case.says in str(record.reason)
    assert (record.objective is None) == (case.reason is not None)


def test_the_honest_cells_are_unharmed(study: Study, undisturbed: Study) -> None:
    assert (study.code, undisturbed.code) == (5, 0), study.errors + undisturbed.errors
    assert study.honest() == undisturbed.honest() and len(study.honest()) == len(HONEST)


def test_a_process_that_certifies_its_own_bound_is_not_believed(study: Study) -> None:
    (record,) = [
        record
        for record in study.records().values()
        if record.cell.params.get("how") == "certified"
    ]
    assert record.gap == 0.0 and {bound["proof"] for bound in record.bounds} == {"solver"}


def test_nothing_is_left(study: Study) -> None:
    until(lambda: marked(study.root) == [])
    assert list((study.root / ".optbench" / "work").iterdir()) == []
    assert (
        not (study.root / ".optbench" / "new").exists()
        and not (study.root / ".optbench" / "renamed").exists()
    )


def test_records_tell_what_the_cells_used(study: Study) -> None:
    def of(spec: str) -> Record:
        (record,) = [
            record for record in study.records().values() if record.cell.label.startswith(spec)
        ]
        return record

    # It takes 50 MB at a time, and is seen within a few of them, however busy the machine is.
    assert 400 < of("eats:how=touch").peak_memory_mb < 4000
    assert of("spawns:how=busy").cpu_s > 1.0
    assert of("loops:how=python").total_s >= 1.0
    assert (
        "about to die"
        in (
            study.root / ".optbench" / "cells" / of("dies:how=segfault").key / "output.txt"
        ).read_text()
    )
    assert of("dies:how=segfault").machine["sandbox"]["tree"] is True
