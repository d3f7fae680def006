"""Gates and claims as formulas over a study. They are resolved when the study is read, so that
mistakes are found before anything is run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optbench.errors import FileFormatError, OptbenchError, nearest
from optbench.plugins.discovery import names as plugin_names
from optbench.study.declared import BEST, Claim, SolverEntry, Study
from optbench.study.fields import real, refuse, tables, text
from optbench.study.formula_binding import Formula, cell_number, condition, number
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import Scope, probable_name
from optbench.study.formula_syntax import Node, Number, Unary, parse
from optbench.typed_values import check_keys

CLAIM_KEYS = ("text", "source", "paper", "ours", "better", "tolerance", "bound")
BETTER = ("lower", "higher", "equal")


def scope(study: Study, own: str | None = None) -> Scope:
    """Return the names that formulas of a study may use."""
    return Scope(tuple((entry.label, entry.name) for entry in study.solvers), own, study.metrics)


def gate_formula(study: Study, name: str) -> Formula:
    """Return the condition of a gate. A gate with the name of a solver is about that solver; any
    other names its solvers itself.
    """
    free = scope(study)
    found = free.candidates(name)
    if len(found) > 1:
        labels = ", ".join(f'"{label}"' for label in found)
        raise FileFormatError(f"{name!r} is ambiguous: {labels}; name the gate by one label, or name the solvers in the formula")
    if found:
        return condition(study.gates[name], scope(study, found[0]))
    try:
        return condition(study.gates[name], free)
    except FormulaError as error:
        raise FileFormatError(f"{error}\n  ({name!r} is not a solver of the study: {nearest(name, free.all_names())})") from None


def claim_formulas(study: Study, claim: Claim) -> tuple[Formula, Formula | None]:
    """Return the formula of the study's figure, and that of what the bounds allow if the claim has
    one.
    """
    names = scope(study)
    return number(claim.ours, names), None if claim.bound is None else number(claim.bound, names)


def check_expectations(study: Study) -> None:
    """Check every formula of the study."""
    for label in [entry.label for entry in study.solvers[:1] if study.rank]:
        try:
            cell_number(study.rank, scope(study, label))
        except OptbenchError as error:
            raise FileFormatError(f"rank: {error}") from None
    for name in study.gates:
        try:
            gate_formula(study, name)
        except OptbenchError as error:
            raise FileFormatError(f"gates.{_key(name)}: {error}") from None
    for k, claim in enumerate(study.claims):
        for field, formula in (("ours", claim.ours), ("bound", claim.bound)):
            try:
                if formula is not None:
                    number(formula, scope(study))
            except OptbenchError as error:
                raise FileFormatError(f"claims[{k}].{field}: {error}") from None


def read_gates(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        refuse("gates", value, 'a table, such as [gates] with cpsat = "gap <= 0.01" below it')
    allowed = 'a condition in text, such as "gap <= 0.01"'
    return {name: text(formula, f"gates.{_key(name)}", allowed) for name, formula in value.items()}


def read_rank(value: Any) -> str:
    """Return the formula that solvers are ranked by; empty if there is none."""
    return "" if value is None else text(value, "rank", 'a formula of one number per cell, such as "gap_frontier"')


def read_claims(value: Any) -> tuple[Claim, ...]:
    return tuple(_claim(table, f"claims[{k}]") for k, table in enumerate(tables(value, "claims")))


def read_metrics(value: Any) -> tuple[str, ...]:
    """Return names of metrics, including those of single families; probable misspellings are
    refused.
    """
    if not isinstance(value, list):
        refuse("metrics", value, 'a list of names, such as ["energy_j", "makespan_s"]')
    for k, name in enumerate(value):
        field = f"metrics[{k}]"
        if not isinstance(name, str) or not name.isidentifier():
            refuse(field, name, "the name of a metric, such as energy_j")
        if name in value[:k]:
            raise FileFormatError(f"{field} is {name!r}, which is metrics[{value.index(name)}] again")
        meant = probable_name(name)
        if meant is not None:
            raise FileFormatError(f"{field} is {name!r}, which no family reports; did you mean {meant!r}?")
    return tuple(value)


def read_reference(value: Any, solvers: Sequence[SolverEntry]) -> str:
    """Return the label of the solver that regret refers to, or "best"."""
    if value is None or value == BEST:
        return BEST
    name = text(value, "reference", f'the label of a solver, or "{BEST}"')
    found = Scope(tuple((entry.label, entry.name) for entry in solvers)).candidates(name)
    if len(found) > 1:
        raise FileFormatError(f"reference is {name!r}, which is ambiguous: {', '.join(map(repr, found))}; name one of them")
    if not found:
        hint = nearest(name, [BEST, *(entry.label for entry in solvers)])
        raise FileFormatError(f"reference is {name!r}, which is not a solver of the study; {hint}")
    return found[0]


def read_trust(value: Any, solvers: Sequence[SolverEntry]) -> tuple[str, ...]:
    """Return names or labels of the solvers whose own bounds count for all."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        refuse("trust", value, 'a list of solvers, such as ["cpsat", "highs"]')
    known = list(dict.fromkeys([*(word for entry in solvers for word in (entry.label, entry.name)), *plugin_names("solver")]))
    for k, each in enumerate(value):
        if each not in known:
            raise FileFormatError(f"trust[{k}] is {each!r}, which is not a solver; {nearest(each, known)}")
    return tuple(dict.fromkeys(value))


def _claim(table: Mapping[str, Any], field: str) -> Claim:
    check_keys(table, CLAIM_KEYS, within=f"{field}.")
    for key in ("text", "source", "paper", "ours"):
        if key not in table:
            raise FileFormatError(f"{field}.{key} is missing; a claim has text, source, paper (the figure) and ours (a formula)")
    better = table.get("better", "lower")
    if better not in BETTER:
        raise FileFormatError(f"{field}.better is {better!r}; {nearest(str(better), BETTER)}")
    tolerance = figure(table.get("tolerance", 0.1), f"{field}.tolerance")
    if tolerance < 0:
        refuse(f"{field}.tolerance", table["tolerance"], 'a number of at least 0, such as 0.1 or "10%"')
    paper = figure(table["paper"], f"{field}.paper")
    if paper != 0 and tolerance >= 1:  # otherwise 0, or a figure of the other sign, would hold
        refuse(f"{field}.tolerance", table["tolerance"], 'a share of the figure below 1, such as 0.1 or "10%"')
    bound = table.get("bound")
    return Claim(
        text=text(table["text"], f"{field}.text"),
        source=text(table["source"], f"{field}.source"),
        paper=paper,
        ours=text(table["ours"], f"{field}.ours", 'a formula in text, such as "rel(energy_j, heft, fcfs)"'),
        better=better,
        tolerance=tolerance,
        bound=None if bound is None else text(bound, f"{field}.bound", 'a formula in text, such as "mean(bound, heft)"'),
    )


def figure(value: Any, field: str) -> float:
    """Return a number, also from text with a unit: -0.34, "-34%", "10s"."""
    found: float | None = None
    if isinstance(value, str):
        try:
            found = _constant(parse(value))
        except FormulaError as error:
            raise FileFormatError(f"{field}: {error}") from None
    else:
        found = real(value)
    if found is None or not math.isfinite(found):
        refuse(field, value, 'a number, such as -0.34 or "-34%"')
    return found


def _constant(node: Node) -> float | None:
    if isinstance(node, Unary) and node.op == "-":
        inner = _constant(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, Number) else None


def _key(name: str) -> str:
    """Return a key as TOML writes it."""
    return name if name.isidentifier() else f'"{name}"'
