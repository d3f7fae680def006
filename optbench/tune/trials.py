"""Who works on which trial: claims that end with their worker, so that no trial is lost and none is
done twice.

A worker holds a kernel lock on a file of its trial's own. A trial that is RUNNING while no
process holds its lock was left by a worker that died; it is adopted with the parameters it had, and
what it had finished is in the store. Claims are made one at a time, under a lock of the search. A
worker elsewhere (another machine, another workspace on one database) cannot be seen by locks: its
trials carry the time of its last sign of life, and are adopted when that is ABANDONED_S old.
"""

from __future__ import annotations

import fcntl
import json
import platform
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from optbench.store.locks import exclusive_lock
from optbench.tune.samplers import distribution_of, pruner_of, sampler_of, within
from optbench.tune.search_task import SearchTask
from optbench.tune.storage import SUFFIX, open_storage

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

# Seconds between signs of life; after which silence a worker elsewhere counts as dead; and after
# which a trial without any sign was left in the middle of a claim. A claim takes milliseconds.
ALIVE_EVERY_S, ABANDONED_S, CLAIMING_S = 60.0, 600.0, 20.0
PLACE, ALIVE, ADOPTED = "optbench.place", "optbench.alive", "optbench.adopted"
CELLS, FAILED, VALUES, TOTAL_S = (
    "optbench.cells",
    "optbench.failed",
    "optbench.values",
    "optbench.total_s",
)
REFERENCE = "optbench.reference"


class TrialLock(Protocol):
    """What keeps others from a trial until it is closed."""

    def close(self) -> None: ...


@dataclass
class TrialClaim:
    """A trial that this process works on, and no other while ``lock`` is held."""

    trial: Trial
    number: int
    configuration: Mapping[str, Any]
    adopted: bool
    lock: TrialLock

    def confirm(self) -> None:
        """Make sure that the trial is still this worker's: a lock of the kernel is."""

    def release(self) -> None:
        self.lock.close()


@dataclass
class Trials:
    """The trials of one search, in one storage."""

    task: SearchTask
    url: str
    folder: Path
    study: Study = field(init=False)

    def __post_init__(self) -> None:
        import optuna

        quiet()
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self.folder / "claims"):
            self.study = optuna.create_study(
                storage=open_storage(self.url),
                study_name=self.task.name,
                directions=["minimize"] * len(self.task.section.goals),
                sampler=sampler_of(self.task, 0),
                pruner=pruner_of(self.task),
                load_if_exists=True,
            )

    @property
    def place(self) -> str:
        """Where locks of this process can be seen."""
        return f"{platform.node()}:{self.folder.resolve()}"

    def all(self) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False)

    def finished(self, total: int) -> list[FrozenTrial]:
        """Of the first ``total`` trials those that are complete or pruned."""
        return [trial for trial in self.all() if trial.state.is_finished() and trial.number < total]

    def reference(self) -> Mapping[str, Mapping[str, float | None]] | None:
        """The results of the defaults, by goal and instance, from the first worker that had them;
        None before that.
        """
        found: Mapping[str, Mapping[str, float | None]] | None = self.study.user_attrs.get(
            REFERENCE
        )
        return found

    def keep_reference(self, values: Mapping[str, Mapping[str, float | None]]) -> None:
        with exclusive_lock(self.folder / "claims"):
            if self.reference() is None:
                named = {goal: dict(each) for goal, each in values.items()}
                self.study.set_user_attr(REFERENCE, named)

    def best(self) -> FrozenTrial | None:
        """Of the complete trials that keep the constraints the one with the lowest value, the first
        of equals.
        """
        found = [trial for trial in self.all() if is_candidate(trial)]
        return min(found, key=lambda trial: (trial.values[0], trial.number), default=None)

    def claim(self, total: int) -> TrialClaim | None:
        """A trial to work on: an abandoned one, or a new one while there are fewer than ``total``;
        None when there is neither.
        """
        with exclusive_lock(self.folder / "claims"):
            known = self.all()
            for trial in known:
                if (
                    trial.state.name == "RUNNING"
                    and trial.number < total
                    and self._is_abandoned(trial)
                ):
                    claim = self._adopt(trial)
                    if claim is not None:
                        return claim
            if not known and self._defaults_can_be_drawn():
                self.study.enqueue_trial(
                    dict(self.task.defaults), user_attrs={"optbench.defaults": True}
                )
                known = self.all()
            if len([trial for trial in known if trial.state.name != "WAITING"]) >= total:
                return None
            return self._new(total)

    def _adopt(self, trial: FrozenTrial) -> TrialClaim | None:
        """The trial of a worker that died; None where it is alive, or was done just now."""
        lock = self._hold(trial.number)
        if lock is None:
            return None
        if self.study._storage.get_trial(trial._trial_id).state.is_finished():
            lock.close()
            return None
        return self._open(trial._trial_id, trial.number, lock, adopted=True)

    def _new(self, total: int) -> TrialClaim | None:
        trial = self.study.ask()
        if trial.number >= total:  # claimed at the same moment from another machine
            import optuna

            self.study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return None
        lock = self._hold(trial.number)
        assert lock is not None, f"trial {trial.number} is new, yet its lock is held"
        return self._open(trial._trial_id, trial.number, lock, adopted=False)

    def _open(self, trial_id: int, number: int, lock: IO[bytes], adopted: bool) -> TrialClaim:
        """The trial with its parameters, drawn where it has none yet."""
        import optuna

        self.study.sampler = sampler_of(self.task, number)
        trial = optuna.trial.Trial(self.study, trial_id)
        trial.set_user_attr(PLACE, self.place)
        if adopted:
            trial.set_user_attr(ADOPTED, trial.user_attrs.get(ADOPTED, 0) + 1)
        self.alive(trial)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {
                axis.name: trial._suggest(axis.name, distribution_of(axis))
                for axis in self.task.section.space
            }
        return TrialClaim(trial, number, found, adopted, lock)

    def alive(self, trial: Trial) -> None:
        """Leave a sign of life."""
        trial.set_user_attr(ALIVE, round(time.time(), 3))

    def _is_abandoned(self, trial: FrozenTrial) -> bool:
        """Whether no process can be at work on it, for a trial of another place; locks decide for
        those of this place.
        """
        place, alive = trial.user_attrs.get(PLACE), trial.user_attrs.get(ALIVE)
        if place == self.place:
            return True
        if place is not None and alive is not None:
            return bool(time.time() - alive > ABANDONED_S)
        if "://" not in self.url:  # a journal beside the lock that this process holds
            return True
        began = trial.datetime_start.timestamp() if trial.datetime_start is not None else 0.0
        return time.time() - began > CLAIMING_S

    def _hold(self, number: int) -> IO[bytes] | None:
        lock = (self.folder / f"trial-{number}").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock

    def _defaults_can_be_drawn(self) -> bool:
        return all(within(axis, self.task.defaults[axis.name]) for axis in self.task.section.space)


def is_candidate(trial: FrozenTrial) -> bool:
    """Complete, and within the constraints."""
    return trial.state.name == "COMPLETE" and all(
        value <= 0 for value in trial.constraints.values()
    )


def quiet() -> None:
    """Optuna writes a line per trial by default; progress is shown elsewhere."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)


def cells_of_search(folder: Path) -> set[str]:
    """Keys of the cells of all trials in the journal in a search's own folder."""
    journal, found = folder / f"trials{SUFFIX}", set[str]()
    if journal.is_file():
        for line in journal.read_text(encoding="utf-8").splitlines():
            if f'"{CELLS}"' in line:
                try:
                    found.update(json.loads(line)["user_attr"][CELLS])
                except (ValueError, KeyError, TypeError):  # truncated by a crash
                    continue
    return found
