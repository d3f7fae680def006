"""Claims: which trials there are, who works on them, what becomes of those that were left."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from optbench.errors import ParameterError
from optbench.study.declared import Study
from optbench.tune.samplers import distribution_of, pruner_of, sampler_of, within
from optbench.tune.search_task import task_of
from optbench.tune.storage import KernelLock, open_storage, shown, storage_url
from optbench.tune.trial_front import front_of, knee
from optbench.tune.trials import ABANDONED_S, ALIVE, PLACE, TrialClaim, Trials

SPACE = {"low_clock": {"float": [0.0, 1.0]}, "load": {"float": [0.0, 1.0]}}


def study(**more: Any) -> Study:
    section = {
        "solver": "fixed_dvfs",
        "seeds": [1, 2],
        "space": SPACE,
        "minimize": ["objective"],
        "startup": 4,
        **more,
    }
    return Study("s", "", ("gpu_dag:tasks=5",), (), seeds=(8, 9), tune=section)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "search"


def trials(folder: Path, url: str | None = None, **more: Any) -> Trials:
    return Trials(task_of(study(**more)), storage_url(url, folder), folder)


def loss(claim: TrialClaim) -> float:
    """Lowest at low_clock 0.25 and load 0.75."""
    return float(
        (claim.configuration.get("low_clock", 0.0) - 0.25) ** 2
        + (claim.configuration["load"] - 0.75) ** 2
    )


def finish(known: Trials, claim: TrialClaim) -> None:
    known.study.tell(claim.trial, loss(claim))
    claim.release()


def claims(known: Trials, total: int) -> Iterator[TrialClaim]:
    while (claim := known.claim(total)) is not None:
        yield claim


def search(known: Trials, total: int) -> list[dict[str, Any]]:
    for claim in claims(known, total):
        finish(known, claim)
    return [dict(trial.params) for trial in known.all()]


def test_the_defaults_come_first_and_there_are_as_many_as_asked_for(folder: Path) -> None:
    found = search(trials(folder), 6)
    assert found[0] == {"low_clock": 0.6, "load": 0.5}
    assert len(found) == 6 and len({tuple(each.values()) for each in found}) == 6


def test_defaults_outside_of_the_space_are_no_trial(folder: Path) -> None:
    found = search(trials(folder, space={"load": {"float": [0.6, 1.0]}}), 3)
    assert all(0.6 <= each["load"] <= 1.0 for each in found)


def test_a_search_in_parts_draws_what_one_in_a_row_draws(folder: Path, tmp_path: Path) -> None:
    for total in (1, 2, 5, 9):
        parts = search(trials(folder), total)
    assert parts == search(trials(tmp_path / "other"), 9)
    assert parts == search(trials(tmp_path / "third", f"sqlite:///{tmp_path}/third.db"), 9)
    assert parts[1:] != search(trials(tmp_path / "fourth", seed=1), 9)[1:]


def test_two_workers_never_hold_the_same_trial(folder: Path) -> None:
    one, other = trials(folder), trials(folder)
    first, second = one.claim(10), other.claim(10)
    assert first is not None and second is not None
    assert (first.number, second.number) == (0, 1)
    assert one.claim(2) is None and other.claim(2) is None


def test_an_abandoned_trial_is_adopted_with_its_parameters(folder: Path) -> None:
    left = trials(folder).claim(10)
    assert left is not None
    left.release()  # what the kernel does when a worker is gone
    other = trials(folder)
    adopted = other.claim(10)
    assert adopted is not None and adopted.adopted
    assert (adopted.number, adopted.configuration) == (left.number, left.configuration)
    finish(other, adopted)
    assert [trial.state for trial in other.all()] == [TrialState.COMPLETE]


def test_a_trial_without_parameters_is_adopted_and_drawn(folder: Path) -> None:
    known = trials(folder)
    known.study.ask()  # killed in the middle of a claim
    adopted = known.claim(10)
    assert adopted is not None and adopted.adopted and set(adopted.configuration) == set(SPACE)


def test_a_trial_told_at_the_last_moment_is_not_adopted(folder: Path) -> None:
    known = trials(folder)
    claim = known.claim(10)
    assert claim is not None
    seen = known.all()[0]
    finish(known, claim)
    assert known._adopt(seen) is None
    assert known._hold(seen.number) is not None  # the lock was given back


def test_trials_of_another_place_are_left_until_they_are_silent(folder: Path) -> None:
    known = trials(folder)
    claim = known.claim(10)
    assert claim is not None
    claim.release()
    claim.trial.set_user_attr(PLACE, "elsewhere:/store")
    claim.trial.set_user_attr(ALIVE, time.time() - ABANDONED_S / 2)
    assert known.claim(1) is None
    claim.trial.set_user_attr(ALIVE, time.time() - 2 * ABANDONED_S)
    adopted = known.claim(1)
    assert adopted is not None and adopted.number == 0


def test_the_reference_of_the_first_worker_counts(folder: Path) -> None:
    known = trials(folder)
    assert known.reference() is None
    known.keep_reference({"objective": {"a": 1.0, "b": None}})
    trials(folder).keep_reference({"objective": {"a": 2.0, "b": 3.0}})
    assert trials(folder).reference() == {"objective": {"a": 1.0, "b": None}}


def test_a_lock_of_the_journal_ends_with_its_holder_and_half_a_line_goes(tmp_path: Path) -> None:
    journal = tmp_path / "j.journal"
    journal.write_bytes(b'{"a": 1}\n{"half')
    code = (
        "import sys, time; from pathlib import Path; from optbench.tune.storage import KernelLock\n"
        "lock = KernelLock(Path(sys.argv[1])); lock.acquire(); print('held', flush=True); "
        "time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(journal)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (tmp_path / "j.journal.lock").open("ab") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder.kill()
    holder.wait()
    lock = KernelLock(journal)
    assert lock.acquire()
    lock.release()
    assert journal.read_bytes() == b'{"a": 1}\n'
    open_storage(str(tmp_path / "new.journal"))


def test_storage_is_a_journal_or_a_database(tmp_path: Path) -> None:
    assert storage_url(None, tmp_path) == str(tmp_path / "trials.journal")
    assert storage_url("sqlite:///x.db", tmp_path) == "sqlite:///x.db"
    with pytest.raises(ParameterError, match="storage 'redis://x': unknown kind of database"):
        storage_url("redis://x", tmp_path)
    with pytest.raises(ParameterError, match="cannot be used"):
        open_storage(f"sqlite:///{tmp_path}/no/such/folder/x.db")
    assert shown("postgresql://me:secret@host:5432/db") == "postgresql://me@host:5432/db"
    assert shown("some/file.journal") == "some/file.journal"


def test_front_and_knee(folder: Path) -> None:
    known = trials(folder, minimize=["energy_j", "makespan_s"])
    # Of these (4, 4) is beaten by (2, 3), (2, 3) stands twice. Scaled to [0, 1]: (0, 1), (1/8,
    # 1/4), (1, 0).
    values = [(1.0, 9.0), (2.0, 3.0), (4.0, 4.0), (9.0, 0.0), (2.0, 3.0), (9.0, 1.0)]
    for value in values:
        claim = known.claim(len(values))
        assert claim is not None
        known.study.tell(claim.trial, value)
        claim.release()
    front = front_of(known.all())
    assert [(trial.number, *trial.values) for trial in front] == [
        (0, 1.0, 9.0),
        (1, 2.0, 3.0),
        (3, 9.0, 0.0),
    ]
    best = knee(front)
    assert best is not None and best.number == 1
    assert knee([]) is None


def test_the_best_keeps_the_constraints(folder: Path) -> None:
    known = trials(folder, constraints=["energy_j <= 5"])
    for value, over in ((1.0, 0.5), (3.0, -0.5), (2.0, 0.0), (2.0, -1.0)):
        claim = known.claim(9)
        assert claim is not None
        claim.trial.set_constraint("energy_j <= 5", over)
        known.study.tell(claim.trial, value)
        claim.release()
    best = known.best()
    assert best is not None and best.number == 2


def test_ranges_and_samplers() -> None:
    space = {
        "low_clock": {"float": [0.2, 1.0], "step": 0.2},
        "load": {"float": [0.1, 1.0], "log": True},
        "problem.gang": {"int": [1, 4]},
        "problem.shape": {"choice": ["layered", "chains"]},
    }
    task = task_of(study(space=space, minimize=["energy_j"]))
    step, log, whole, choice = task.section.space
    assert [within(step, value) for value in (0.2, 0.6, 0.5, 1.2, "x")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [within(whole, value) for value in (1, 4, 5, True)] == [True, True, False, False]
    assert within(choice, "chains") and not within(choice, "random")
    assert distribution_of(log).log and distribution_of(choice).choices == ("layered", "chains")  # type: ignore[attr-defined]
    assert distribution_of(whole).high == 4  # type: ignore[attr-defined]
    for sampler in ("tpe", "random", "nsga2"):
        assert sampler_of(task_of(study(sampler=sampler)), 3) is not None
    for pruner in ("median", "wilcoxon", "none"):
        assert pruner_of(task_of(study(pruner=pruner))) is not None


def test_a_search_finds_its_way(folder: Path) -> None:
    """The tree-structured sampler ends nearer to the lowest point than the random start."""
    known = trials(folder)
    search(known, 30)
    values = [trial.values[0] for trial in known.all()]
    assert sum(values[-10:]) < sum(values[1:5]) * 10 / 4
    best = known.best()
    assert best is not None and best.values[0] == min(values)
