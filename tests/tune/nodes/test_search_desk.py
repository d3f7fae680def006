"""The desk of a search: trials for workers elsewhere, whose locks it holds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from optbench.errors import OptbenchError
from optbench.store.run_store import Store
from optbench.study.declared import Study
from optbench.tune.nodes.node_worker import Letter, Mailbox
from optbench.tune.nodes.search_desk import SearchDesk
from optbench.tune.search_task import task_of
from optbench.tune.trial_evaluation import Evaluator, Stopped, executor_of
from optbench.tune.trials import Trials

SECTION = {
    "solver": "fixed_dvfs",
    "seeds": [1, 2],
    "space": {"low_clock": {"float": [0.0, 1.0]}},
    "minimize": ["objective"],
}


@pytest.fixture
def desk(tmp_path: Path) -> SearchDesk:
    task = task_of(Study("s", "", ("gpu_dag:tasks=5",), (), seeds=(8, 9), tune=SECTION))
    known = Trials(task, str(tmp_path / "trials.journal"), tmp_path / "search")
    store = Store(tmp_path / "store").make()
    evaluator = Evaluator(task, store, executor_of(task, 1), tmp_path, threading.Event())
    return SearchDesk(known, evaluator, total=2)


def test_two_workers_have_two_trials_and_no_third(desk: SearchDesk) -> None:
    first, second = desk.claim("a"), desk.claim("b")
    assert first is not None and second is not None
    assert (first.number, second.number) == (0, 1)
    assert desk.claim("c") is None
    desk.confirm("a", 0)
    with pytest.raises(OptbenchError, match="trial 1 is no longer that of worker a"):
        desk.confirm("a", 1)


def test_the_trial_of_a_lost_worker_is_adopted_as_it_was(desk: SearchDesk) -> None:
    first = desk.claim("a")
    desk.release("a")  # what the crew does when the worker is lost
    again = desk.claim("b")
    assert first is not None and again is not None
    assert (again.number, again.configuration) == (first.number, first.configuration)
    assert again.adopted and not first.adopted
    with pytest.raises(OptbenchError, match="trial 0 is no longer that of worker a"):
        desk.confirm("a", 0)


def test_a_mailbox_brings_answers_until_it_is_stopped() -> None:
    """The worker's thread asks, the other end answers; after the stop nobody waits."""
    box, found = Mailbox(), list[object]()

    def worker() -> None:
        found.append(box.ask("claim"))
        try:
            box.ask("cells", {"x": 1})
        except Stopped:
            found.append("stopped")
        box.end()

    thread = threading.Thread(target=worker)
    thread.start()
    assert box.exchange(is_first=True) == Letter("claim")
    assert box.exchange("trial 4") == Letter("cells", ({"x": 1},))
    box.stop.set()
    assert box.requests.get(timeout=10) == Letter()
    thread.join(10)
    assert found == ["trial 4", "stopped"]
