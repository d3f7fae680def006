"""The chosen configuration against the defaults on instances that the search has not seen, and the
file that keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optbench import __version__
from optbench.evaluate import stats
from optbench.files import write_whole
from optbench.plugins.specs import name_of
from optbench.store.records import code_version
from optbench.tune.scoring import Records, changes_of, compared, excess, paired_means, values_of
from optbench.tune.search_task import SearchTask
from optbench.tune.storage import shown
from optbench.tune.toml_writer import render
from optbench.tune.trial_evaluation import Evaluator
from optbench.tune.trial_front import front_of, knee

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from optbench.tune.trials import Trials

FOLDER = "tuned"
Verdict = Literal["better", "worse", "level"]


@dataclass(frozen=True)
class TunedComparison:
    """One goal on the validation instances: means, and the mean of the paired relative changes with
    its 95 % interval.
    """

    goal: str
    maximize: bool
    defaults: float | None
    tuned: float | None
    change: stats.Estimate

    @property
    def natural(self) -> stats.Estimate:
        """The change as people mean it: above 0 where the metric has grown, also where that is
        good.
        """
        change = self.change
        if not self.maximize:
            return change
        return replace(change, value=-change.value, low=-change.high, high=-change.low)

    @property
    def verdict(self) -> Verdict:
        """What the interval says; ``change`` below 0 is good, whichever way the goal goes."""
        if not self.change.known or not self.change.apart_from_zero:
            return "level"
        return "better" if self.change.high < 0 else "worse"


@dataclass(frozen=True)
class Validation:
    """What the search came to. ``chosen`` is None where no trial keeps the constraints; ``path`` is
    the parameter file.

    ``seen`` of the instances were the search's too: files, which have no other seeds, or a problem
    that does not use its seed. ``broken`` are constraints that held in the search and do not hold
    here, ``broken_defaults`` those that the defaults break.
    """

    chosen: FrozenTrial | None
    comparisons: tuple[TunedComparison, ...] = ()
    instances: int = 0
    seen: int = 0
    broken: tuple[str, ...] = ()
    broken_defaults: tuple[str, ...] = ()
    failed: int = 0
    failed_defaults: int = 0
    wall_s: float | None = None
    wall_defaults_s: float | None = None
    front: tuple[FrozenTrial, ...] = ()
    path: Path | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the defaults themselves won the search."""
        return self.chosen is not None and bool(self.chosen.user_attrs.get("optbench.defaults"))


def validate(known: Trials, evaluator: Evaluator) -> Validation:
    """Compare, and write the parameter file; cells that the store holds are not run again."""
    task = known.task
    front = tuple(front_of(known.all())) if len(task.section.goals) > 1 else ()
    chosen = knee(front) if front else known.best()
    if chosen is None:
        return Validation(None)
    points = task.validation
    judging, searched = evaluator.instances(points), set(evaluator.instances(task.points).values())
    theirs = evaluator.all_records(task.defaults, points)
    ours = evaluator.all_records(chosen.params, points)
    found = Validation(
        chosen,
        _comparisons(task, ours, theirs),
        instances=len(points),
        seen=sum(instance in searched for instance in judging.values()),
        broken=_broken(task, ours),
        broken_defaults=_broken(task, theirs),
        failed=_failed(ours),
        failed_defaults=_failed(theirs),
        wall_s=_wall_s(ours),
        wall_defaults_s=_wall_s(theirs),
        front=front,
        path=file_of(evaluator.store.folder, task),
    )
    _write(found, known)
    return found


def _comparisons(task: SearchTask, ours: Records, theirs: Records) -> tuple[TunedComparison, ...]:
    reference = {goal.expression: values_of(task, goal, theirs) for goal in task.section.goals}
    out = []
    for goal, changes in zip(task.section.goals, changes_of(task, ours, reference), strict=True):
        tuned, defaults = paired_means(values_of(task, goal, ours), reference[goal.expression])
        estimate = compared(task, goal, ours, theirs, changes)
        out.append(TunedComparison(goal.expression, goal.maximize, defaults, tuned, estimate))
    return tuple(out)


def file_of(store_folder: Path, task: SearchTask) -> Path:
    """``tuned/STUDY.toml`` in the workspace."""
    return store_folder.parent / FOLDER / f"{task.study.name}.toml"


def _broken(task: SearchTask, records: Records) -> tuple[str, ...]:
    return tuple(text for text in task.section.constraints if excess(task, text, records) > 0)


def _failed(records: Records) -> int:
    return sum(record is None or record.objective is None for record in records.values())


def _wall_s(records: Records) -> float | None:
    times = [record.wall_s for record in records.values() if record is not None]
    known = [wall_s for wall_s in times if wall_s is not None]
    return sum(known) / len(known) if known else None


def _write(found: Validation, known: Trials) -> None:
    """The chosen configuration, and of several goals every point of the front beside it, numbered
    along the first goal.
    """
    assert found.path is not None and found.chosen is not None
    found.path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(found.path, render(document(found.chosen, found, known)).encode())
    for stale in found.path.parent.glob(f"{found.path.stem}-front-*.toml"):
        stale.unlink()
    for k, trial in enumerate(found.front, start=1):
        path = found.path.with_name(f"{found.path.stem}-front-{k}.toml")
        write_whole(path, render(document(trial, found, known)).encode())


def document(trial: FrozenTrial, found: Validation, known: Trials) -> dict[str, Any]:
    """A parameter file: what ``params=FILE`` reads, and where it comes from."""
    task = known.task
    varied, params = task.varied("problem", trial.params), task.solver_entry(trial.params).params
    out: dict[str, Any] = {"solver": task.entry.name, "params": dict(params)}
    if varied:
        families = set(map(name_of, task.targets))
        out |= {"problem_name": families.pop()} if len(families) == 1 else {}
        out["problem"] = varied
    return {**out, "provenance": _provenance(trial, found, known)}


def _provenance(trial: FrozenTrial, found: Validation, known: Trials) -> dict[str, Any]:
    task = known.task
    states = [each.state.name for each in known.all()]
    goals = []
    for goal in task.section.goals:
        goals.append(f"{'maximize' if goal.maximize else 'minimize'} {goal.expression}")
    out: dict[str, Any] = {
        "study": task.study.name,
        "search": task.name,
        "trial": trial.number,
        "trials": sum(state in ("COMPLETE", "PRUNED") for state in states),
        "pruned": states.count("PRUNED"),
        "problems": list(task.targets),
        "seeds": list(task.section.seeds),
        "validation_seeds": sorted({point.seed for point in task.validation}),
        "goals": goals,
        "constraints": list(task.section.constraints),
        "validation_constraints_broken": list(found.broken),
        "validation_instances_seen": found.seen,
        "tuned_on_change": list(trial.values),
        "defaults": {name: value for name, value in task.defaults.items() if value is not None},
        "storage": shown(known.url),
        "optbench": __version__,
        "code_version": code_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if found.chosen is not None and trial.number == found.chosen.number:
        for each in found.comparisons:
            key = "".join(char if char.isalnum() else "_" for char in each.goal)
            out[f"validation_{key}"] = {
                "defaults": each.defaults,
                "tuned": each.tuned,
                "change": each.natural.value,
                "change_low": each.natural.low,
                "change_high": each.natural.high,
                "instances": each.change.count,
                "verdict": each.verdict,
            }
    return out
