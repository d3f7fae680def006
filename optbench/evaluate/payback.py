"""After how many scheduled instances a learned solver has paid back the energy of its training.

Per problem of a study, with sums over each of its instances that were solved by both (means over
its cells, where there are several):

    saving  = mean over instances of (E_rule + D_rule) − (E_learned + D_learned)
    pays back after  training energy / saving  instances; never where the saving is not positive

E is the verified energy of the schedule (``energy_j``), D what the solver's own run drew, inference
included. The learned solver is one with a checkpoint. The rule is the best one of the study: of all
policies that are neither learned nor clairvoyant, with the parameters that the study gives them,
the one of least mean energy_j among those that solved most of the learned solver's instances. It is
stated whether these parameters were chosen, as by a tuning, or are the rule's defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from optbench.errors import OptbenchError
from optbench.evaluate.references import clairvoyant_labels
from optbench.evaluate.rows import Row, Table
from optbench.evaluate.stats import Estimate
from optbench.evaluate.summaries import (
    difference,
    instance_means,
    over_instances,
    rows_by_label,
)
from optbench.plugins.discovery import load_class
from optbench.plugins.policy import Policy
from optbench.plugins.process_policy import ProcessPolicy
from optbench.plugins.specs import parameters
from optbench.plugins.training_energy import CHECKPOINT, is_complete

METRIC = "energy_j"
Role = Literal["learned", "rule", "other"]


@dataclass(frozen=True)
class Payback:
    """A learned solver on a problem beside the best rule: joules per instance, both with the runs
    that found them. ``unknown`` says why there is no figure; ``after`` is infinite for "never".
    """

    label: str
    target: str
    rule: str | None = None
    instances: int = 0
    training_j: float | None = None
    training_estimated: bool = False
    learned_j: float | None = None
    rule_j: float | None = None
    learned_run_j: float | None = None
    rule_run_j: float | None = None
    saving: Estimate | None = None
    after: float | None = None
    unknown: str | None = None
    rule_tuned: bool = False

    @property
    def words(self) -> str:
        """``after 1,234 instances``, ``never``, or ``unknown: ...``; with a remark where the
        interval of the saving holds zero.
        """
        if self.unknown is not None or self.after is None:
            return f"unknown: {self.unknown}"
        if math.isinf(self.after):
            return "never"
        count = math.ceil(self.after)
        chance = self.saving is not None and not self.saving.apart_from_zero
        remark = " (the saving may be chance)" if chance else ""
        return f"after {count:,} instance{'' if count == 1 else 's'}{remark}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; ``after_instances`` is null for never and for unknown."""
        saving = self.saving
        ends = (saving.low, saving.high) if saving is not None and saving.known else (None, None)
        never = self.after is not None and math.isinf(self.after)
        return {
            "solver": self.label,
            "problem": self.target,
            "rule": self.rule,
            "rule_tuned": self.rule_tuned,
            "instances": self.instances,
            "training_j": self.training_j,
            "training_estimated": self.training_estimated,
            "learned_energy_j": self.learned_j,
            "rule_energy_j": self.rule_j,
            "learned_run_j": self.learned_run_j,
            "rule_run_j": self.rule_run_j,
            "saving_j": None if saving is None else saving.value,
            "saving_low_j": ends[0],
            "saving_high_j": ends[1],
            "after_instances": None if self.after is None or never else math.ceil(self.after),
            "never": never,
            "unknown": self.unknown,
        }


def paybacks(table: Table) -> list[Payback]:
    """Return one per learned solver and problem, in the order of the study."""
    unranked = clairvoyant_labels(table)
    rows = {label: each for label, each in rows_by_label(table).items() if label not in unranked}
    roles = {label: role_of(each[0].cell.solver) for label, each in rows.items() if each}
    out = []
    for label, role in roles.items():
        if role != "learned":
            continue
        for target in dict.fromkeys(row.cell.target for row in rows[label]):
            rules = {
                rule: _of_target(rows[rule], target)
                for rule, other in roles.items()
                if other == "rule"
            }
            out.append(_payback(label, target, _of_target(rows[label], target), rules))
    return out


def role_of(solver: str) -> Role:
    """Return what a solver is here, by the plug-in as it is installed now."""
    try:
        cls = load_class("solver", solver)
    except OptbenchError:
        return "other"
    if any(entry.name == CHECKPOINT for entry in parameters(cls)):
        return "learned"
    return "rule" if issubclass(cls, (Policy, ProcessPolicy)) else "other"


def is_tuned(rows: Sequence[Row]) -> bool:
    """Whether a solver has parameters of its own, from a parameter file or the study itself, and
    not only its defaults.
    """
    cell = rows[0].cell
    cls = load_class("solver", cell.solver)
    return any(getattr(cls, name, None) != value for name, value in cell.params.items())


def verified_j(row: Row) -> float | None:
    """Return the verified energy of a cell's schedule."""
    value = None if row.record is None or row.objective is None else row.record.metrics.get(METRIC)
    return value if value is not None and math.isfinite(value) else None


def run_j(row: Row) -> float | None:
    """Return what the cell's own run drew."""
    return None if row.record is None else row.record.energy.get("energy_j")


def in_all_j(row: Row) -> float | None:
    """Return both together, where both are known."""
    schedule, run = verified_j(row), run_j(row)
    return None if schedule is None or run is None else schedule + run


def _is_incomplete(row: Row) -> bool:
    return row.record is not None and not is_complete(row.record.energy)


def _of_target(rows: Sequence[Row], target: str) -> list[Row]:
    return [row for row in rows if row.cell.target == target]


def _payback(
    label: str, target: str, ours: Sequence[Row], rules: Mapping[str, Sequence[Row]]
) -> Payback:
    training, estimated, unknown = training_of(ours)
    base = Payback(label, target, training_j=training, training_estimated=estimated)
    if not any(row.record is not None for row in ours):
        return _without(base, "it has not run yet")
    if not instance_means(ours, verified_j)[0]:
        return _without(base, "none of its runs has a verified energy_j")
    rule = best_rule(ours, rules)
    if rule is None:
        return _without(base, "no rule of the study has a verified energy_j on its instances")
    theirs = rules[rule]
    saving = difference(theirs, ours, in_all_j)
    if saving is None:
        return _without(base, "the energy of the runs was not recorded (`optbench run --force`)")
    both = {*instance_means(ours, in_all_j)[0]} & {*instance_means(theirs, in_all_j)[0]}
    ours, theirs = ([r for r in rows if r.cell.instance_hash in both] for rows in (ours, theirs))
    after = None
    if incomplete := sum(_is_incomplete(row) for row in (*ours, *theirs)):
        runs = f"{incomplete:,} of the runs" if incomplete > 1 else "one of the runs"
        unknown = f"the energy of {runs} was not measured in full"
    elif unknown is None and training is not None:
        after = training / saving.value if saving.value > 0 else math.inf
    elif saving.value <= 0:  # whatever the training drew
        after, unknown = math.inf, None
    return Payback(
        label,
        target,
        rule,
        len(both),
        training,
        estimated,
        _mean(ours, verified_j),
        _mean(theirs, verified_j),
        _mean(ours, run_j),
        _mean(theirs, run_j),
        saving,
        after,
        unknown,
        is_tuned(theirs),
    )


def _without(base: Payback, why: str) -> Payback:
    return Payback(
        base.label,
        base.target,
        training_j=base.training_j,
        training_estimated=base.training_estimated,
        unknown=why,
    )


def training_of(rows: Sequence[Row]) -> tuple[float | None, bool, str | None]:
    """Return the energy of the training of these cells' checkpoint, whether it is estimated, and
    why it is unknown; of the cells that solved their instances.
    """
    solved = [row.record for row in rows if verified_j(row) is not None]
    found = [record.energy.get("training") for record in solved if record is not None]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None, False, "its checkpoint does not say what its training drew"
    figures = {each["energy_j"] for each in known}
    if len(figures) > 1:
        return None, False, "its cells have checkpoints of different trainings"
    missing = known[0].get("unknown", ())
    unknown = f"{' and '.join(missing)} was not measured" if missing else None
    if unknown is None and not is_complete(known[0]):
        unknown = "the energy of its training was not measured in full"
    return float(known[0]["energy_j"]), bool(known[0].get("estimated")), unknown


def best_rule(ours: Sequence[Row], rules: Mapping[str, Sequence[Row]]) -> str | None:
    """Return the rule of least mean energy among those that solved most of our instances."""
    wanted = instance_means(ours, verified_j)[0].keys()
    found = []
    for place, (label, rows) in enumerate(rules.items()):
        solved = [each for each in rows if each.cell.instance_hash in wanted]
        count = len(instance_means(solved, verified_j)[0])
        if count:
            found.append((-count, _mean(solved, verified_j), place, label))
    return min(found)[-1] if found else None


def _mean(rows: Sequence[Row], value: Callable[[Row], float | None]) -> float:
    found = over_instances(rows, value)
    return math.nan if found is None else float(found.value)
