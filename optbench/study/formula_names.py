"""Names that a formula may use: measures of each cell, and solvers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from optbench.model.objective import METRICS

# Conditions of a cell; their mean over cells is a share.
CONDITIONS = {
    "failed": "it has a reason for failing",
    "solved": "it has a verified schedule",
    "optimal": "its study_gap is closed",
    "proved": "its gap is closed, by bounds of its own run",
}
# Numbers of a cell that every family has; a failed cell only has what was measured of its process.
LAST_LEVEL = "gap_last_level"
MEASURES = {
    "objective": "verified objective (none for lexicographic objectives)",
    "bound": (
        "best certified or trusted bound of the instance in the study (none for "
        "lexicographic objectives)"
    ),
    "gap": "between the objective and the best bound of the same run; 1 where either is missing",
    "study_gap": (
        "to the best certified or trusted bound of the instance, or the run's own; 1 "
        "where there is none"
    ),
    LAST_LEVEL: (
        "gap of the last level of a lexicographic objective to the bounds of the same run, with "
        "the levels before it held at what the run reached; 1 where either is missing"
    ),
    "rpd": "(objective - best known) / best known",
    "regret": "(objective - that of the reference) / that of the reference",
    "wall_s": "solving time",
    "time_to_first_s": "time to the first schedule",
    "total_s": "time of the process",
    "cpu_s": "processor time of the process",
    "peak_memory_mb": "highest memory of the process",
}
# Before the name of a metric: the mean of the readings that a cell's machine took of it.
MEASURED = "measured."
# Former names, and what replaced them.
RENAMED = {"own_gap": "gap"}
# Metrics as the verifier recomputes them; a family may have others, which `metrics` of the study
# declares.
OF_SCHEDULES = METRICS
# Metrics of instances with arrivals, as the verifier recomputes them.
OF_STREAMS = (
    "arrivals",
    "completed",
    "in_progress",
    "queue_end",
    "queue_mean",
    "units_offered",
    "units_done",
    "j_per_unit",
    "j_per_unit_logged",
    "slo_violation",
    "sojourn_mean_s",
    "sojourn_p50_s",
    "sojourn_p95_s",
    "sojourn_p99_s",
    "sojourn_censored_s",
    "service_mean_s",
)
# Metrics of instances whose tasks have users; ``slo_violation`` is one of them too.
OF_USERS = ("fairness", "throughput_per_s", "utilisation")
# Metrics of instances with cooled places, and of those whose devices fail.
OF_HARDWARE = ("peak_temperature_c", "expected_failures")
# The distance of schedules of arriving work from certified floors: at their own units, at all
# units offered, at their own mean sojourn time.
OF_FLOORS = (
    "floor_own_j_per_unit",
    "gap_own",
    "floor_offered_j_per_unit",
    "gap_offered",
    "floor_frontier_j_per_unit",
    "gap_frontier",
)
KNOWN = (*CONDITIONS, *MEASURES, *OF_SCHEDULES, *OF_STREAMS, *OF_USERS, *OF_HARDWARE, *OF_FLOORS)
# An unknown metric this similar to a known one is a misspelling and not a metric of another family.
SLIP = 0.8


def probable_name(name: str) -> str | None:
    """Return the known metric that a name was probably meant to be."""
    close = get_close_matches(name, [each for each in KNOWN if each != name], n=1, cutoff=SLIP)
    return close[0] if close and name not in KNOWN else None


@dataclass(frozen=True)
class Scope:
    """``solvers`` are pairs of label and name; ``own`` is the label that a bare metric is of."""

    solvers: tuple[tuple[str, str], ...]
    own: str | None = None
    declared: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(label for label, _ in self.solvers)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*KNOWN, *self.declared)))

    def candidates(self, text: str) -> Sequence[str]:
        """Return the label itself, or all labels with that plain name."""
        if text in self.labels:
            return (text,)
        return tuple(label for label, name in self.solvers if name == text)

    def all_names(self) -> Iterable[str]:
        return dict.fromkeys(word for pair in self.solvers for word in pair)
