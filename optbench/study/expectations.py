"""Gates and claims as formulas over a study, resolved when the study is read."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optbench.errors import FileFormatError, naming, nearest
from optbench.plugins.discovery import load_class, problem_named_by
from optbench.plugins.discovery import names as plugin_names
from optbench.shapes.protocol.shape import Shape
from optbench.study import formula_syntax as syntax
from optbench.study.declared import BEST, Claim, SolverEntry, Study
from optbench.study.fields import real, refuse, tables, text, word
from optbench.study.formula_binding import Formula, cell_number, condition, number
from optbench.study.formula_lexer import FormulaError
from optbench.study.formula_names import MEASURED, Scope, probable_name
from optbench.typed_values import check_keys

CLAIM_KEYS = tuple(entry.name for entry in dataclasses.fields(Claim))
BETTER = ("lower", "higher", "equal")


def scope(study: Study, own: str | None = None) -> Scope:
    """Return the names that formulas of a study may use."""
    return Scope(tuple((entry.label, entry.name) for entry in study.solvers), own, study.metrics)


def _ranking_scope(study: Study) -> Scope:
    """Return the names that the rank may use: none of what is measured."""
    found = scope(study, study.solvers[0].label)
    computed = tuple(name for name in found.declared if not name.startswith(MEASURED))
    return dataclasses.replace(found, declared=computed)


def gate_formula(study: Study, name: str) -> Formula:
    """Return the condition of a gate.

    A gate with the name of a solver is about that solver; any other names its solvers itself.
    """
    free = scope(study)
    found = free.candidates(name)
    if len(found) > 1:
        labels = ", ".join(f'"{label}"' for label in found)
        remedy = "name the gate by one label, or name the solvers in the formula"
        raise FileFormatError(f"{name!r} is ambiguous: {labels}; {remedy}")
    if found:
        return condition(study.gates[name], scope(study, found[0]))
    try:
        return condition(study.gates[name], free)
    except FormulaError as error:
        hint = f"{name!r} is not a solver of the study: {nearest(name, free.all_names())}"
        raise FileFormatError(f"{error}\n  ({hint})") from None


def claim_formulas(study: Study, claim: Claim) -> tuple[Formula, Formula | None]:
    """Return the formula of the study's figure, and that of its bound if the claim has one."""
    names = scope(study)
    return number(claim.ours, names), None if claim.bound is None else number(claim.bound, names)


def check_expectations(study: Study) -> None:
    """Check every formula of the study."""
    if study.rank and study.solvers:
        with naming("rank"):
            cell_number(study.rank, _ranking_scope(study))
    for name in study.gates:
        with naming(f"gates.{_key(name)}"):
            gate_formula(study, name)
    for k, claim in enumerate(study.claims):
        if claim.left_to:
            continue
        with naming(f"claims[{k}].ours"):
            number(claim.ours, scope(study))
        with naming(f"claims[{k}].bound"):
            claim_formulas(study, claim)


def read_gates(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        refuse("gates", value, 'a table, such as [gates] with cpsat = "gap <= 0.01" below it')
    allowed = 'a condition in text, such as "gap <= 0.01"'
    return {name: text(formula, f"gates.{_key(name)}", allowed) for name, formula in value.items()}


def read_rank(value: Any) -> str:
    """Return the formula that solvers are ranked by; empty if there is none."""
    allowed = 'a formula of one number per cell, such as "gap_frontier"'
    return "" if value is None else text(value, "rank", allowed)


def read_claims(value: Any) -> tuple[Claim, ...]:
    return tuple(_claim(table, f"claims[{k}]") for k, table in enumerate(tables(value, "claims")))


def read_metrics(value: Any) -> tuple[str, ...]:
    """Return names of metrics, also of single families; probable misspellings are refused."""
    if not isinstance(value, list):
        refuse("metrics", value, 'a list of names, such as ["energy_j", "makespan_s"]')
    for k, name in enumerate(value):
        field = f"metrics[{k}]"
        if not isinstance(name, str) or not name.isidentifier():
            refuse(field, name, "the name of a metric, such as energy_j")
        if name in value[:k]:
            first = f"metrics[{value.index(name)}]"
            raise FileFormatError(f"{field} is {name!r}, which is {first} again")
        meant = probable_name(name)
        if meant is not None:
            hint = f"which no family reports; did you mean {meant!r}?"
            raise FileFormatError(f"{field} is {name!r}, {hint}")
    return tuple(value)


def metrics_of_shapes(targets: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that the shapes in the problems' files compute, and by ``measured.NAME``
    those that can be measured: they stand apart, and solvers are never ranked by them.
    """
    found: dict[str, None] = {}
    for name in dict.fromkeys(filter(None, map(problem_named_by, targets))):
        module = sys.modules[load_class("problem", name).__module__]
        for each in vars(module).values():
            named = getattr(each, "metrics", None)
            if isinstance(each, type) and issubclass(each, Shape) and isinstance(named, Mapping):
                found |= {str(name): None for name, metric in named.items() if not metric.measured}
                measured = (name for name, metric in named.items() if metric.has_readings)
                found |= {f"{MEASURED}{name}": None for name in measured}
    return tuple(found)


def read_reference(value: Any, solvers: Sequence[SolverEntry]) -> str:
    """Return the label of the solver that regret refers to, or "best"."""
    if value is None or value == BEST:
        return BEST
    name = text(value, "reference", f'the label of a solver, or "{BEST}"')
    found = Scope(tuple((entry.label, entry.name) for entry in solvers)).candidates(name)
    if len(found) > 1:
        labels = ", ".join(map(repr, found))
        raise FileFormatError(f"reference is {name!r}, which is ambiguous: {labels}; name one")
    if not found:
        hint = nearest(name, [BEST, *(entry.label for entry in solvers)])
        raise FileFormatError(f"reference is {name!r}, which is not a solver of the study; {hint}")
    return found[0]


def read_trust(value: Any, solvers: Sequence[SolverEntry]) -> tuple[str, ...]:
    """Return names or labels of the solvers whose own bounds count for all."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        refuse("trust", value, 'a list of solvers, such as ["cpsat", "highs"]')
    own = {word for entry in solvers for word in (entry.label, entry.name)}
    known = own | set(plugin_names("solver"))
    for k, each in enumerate(value):
        if each not in known:
            hint = f"which is not a solver; {nearest(each, known)}"
            raise FileFormatError(f"trust[{k}] is {each!r}, {hint}")
    return tuple(dict.fromkeys(value))


def _claim(table: Mapping[str, Any], field: str) -> Claim:
    check_keys(table, CLAIM_KEYS, within=f"{field}.")
    left_to = text(table["left_to"], f"{field}.left_to") if "left_to" in table else ""
    if left_to and ("ours" in table or "bound" in table):
        raise FileFormatError(f"{field} has left_to and a formula; a claim has one of the two")
    for key in ("text", "source", "paper", *(() if left_to else ("ours",))):
        if key not in table:
            parts = "a claim has text, source, paper (the figure) and ours (a formula)"
            raise FileFormatError(f"{field}.{key} is missing; {parts}")
    better: Any = word(table.get("better", "lower"), f"{field}.better", BETTER)
    given, place = table.get("tolerance", 0.1), f"{field}.tolerance"
    tolerance, paper = figure(given, place), figure(table["paper"], f"{field}.paper")
    if tolerance < 0:
        refuse(place, given, 'a number of at least 0, such as 0.1 or "10%"')
    if paper != 0 and tolerance >= 1:  # otherwise 0, or a figure of the other sign, would hold
        refuse(place, given, 'a share of the figure below 1, such as 0.1 or "10%"')
    formula = "a formula in text, such as"
    bound = table.get("bound")
    if bound is not None:
        bound = text(bound, f"{field}.bound", f'{formula} "mean(bound, heft)"')
    return Claim(
        text=text(table["text"], f"{field}.text"),
        source=text(table["source"], f"{field}.source"),
        paper=paper,
        ours=""
        if left_to
        else text(table["ours"], f"{field}.ours", f'{formula} "rel(energy_j, heft, fcfs)"'),
        better=better,
        tolerance=tolerance,
        bound=bound,
        left_to=left_to,
    )


def figure(value: Any, field: str) -> float:
    """Return a number, also from text with a unit: -0.34, "-34%", "10s"."""
    if isinstance(value, str):
        with naming(field):
            found = _constant(syntax.parse(value))
    else:
        found = real(value)
    if not math.isfinite(found):
        refuse(field, value, 'a number, such as -0.34 or "-34%"')
    return found


def _constant(node: syntax.Node) -> float:
    """Return the value of a number with signs before it; NaN for anything else."""
    if isinstance(node, syntax.Unary) and node.op == "-":
        return -_constant(node.operand)
    return node.value if isinstance(node, syntax.Number) else math.nan


def _key(name: str) -> str:
    """Return a key as TOML writes it."""
    return name if name.isidentifier() else f'"{name}"'
