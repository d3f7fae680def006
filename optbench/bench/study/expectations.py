"""Gates and claims as formulas over a study: looked up when the study is read, so that a slip is found before anything is run."""

from __future__ import annotations

from optbench.bench.formulas import Formula, FormulaError, Scope, condition, number
from optbench.bench.study.declared import Claim, Study
from optbench.errors import FileFormatError, nearest


def scope(study: Study, own: str | None = None) -> Scope:
    """What formulas of a study may name."""
    return Scope(tuple((entry.label, entry.name) for entry in study.solvers), own, study.metrics)


def gate_formula(study: Study, name: str) -> Formula:
    """The condition of a gate. One that has the name of a solver is about that solver; any other names its solvers itself."""
    free = scope(study)
    found = free.candidates(name)
    if len(found) > 1:
        labels = ", ".join(f'"{label}"' for label in found)
        raise FileFormatError(f"{name!r} is any of {labels}; name the gate by one label, or name the solvers in the formula")
    if found:
        return condition(study.gates[name], scope(study, found[0]))
    try:
        return condition(study.gates[name], free)
    except FormulaError as error:
        raise FileFormatError(f"{error}\n  ({name!r} is no solver of the study: {nearest(name, free.all_names())})") from None


def claim_formulas(study: Study, claim: Claim) -> tuple[Formula, Formula | None]:
    """Ours, and what the bounds allow where the claim says so."""
    names = scope(study)
    return number(claim.ours, names), None if claim.bound is None else number(claim.bound, names)
