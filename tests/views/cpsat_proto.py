"""A CP-SAT model as a sorted list of readable lines, so that two models can be compared entry by
entry.
"""

from __future__ import annotations

from typing import Any

INFINITY = 2**62


def lines_of(proto: Any) -> list[str]:
    """Every variable, constraint and the objective, by the names of the variables."""
    names = [variable.name for variable in proto.variables]
    intervals = {
        k: constraint.name
        for k, constraint in enumerate(proto.constraints)
        if constraint.has_interval()
    }
    out = [f"var {variable.name} in {domain(variable.domain)}" for variable in proto.variables]
    out += [constraint_line(constraint, names, intervals) for constraint in proto.constraints]
    objective = proto.objective
    terms = [(int(c), names[v]) for c, v in zip(objective.coeffs, objective.vars, strict=True)]
    out.append(
        f"minimize {expression(terms, 0)} offset {objective.offset:g} scaling "
        f"{objective.scaling_factor:g}"
    )
    return sorted(out)


def constraint_line(constraint: Any, names: list[str], intervals: dict[int, str]) -> str:
    prefix = "".join(f"if {literal(k, names)}: " for k in constraint.enforcement_literal)
    if constraint.has_linear():
        linear = constraint.linear
        terms = [(int(c), names[v]) for c, v in zip(linear.coeffs, linear.vars, strict=True)]
        return f"{prefix}{expression(terms, 0)} in {domain(linear.domain)}"
    if constraint.has_interval():
        interval = constraint.interval
        parts = ", ".join(
            affine(part, names) for part in (interval.start, interval.size, interval.end)
        )
        return f"{prefix}interval {constraint.name} [{parts}]"
    if constraint.has_no_overlap():
        return (
            f"{prefix}no overlap "
            f"{' '.join(sorted(intervals[k] for k in constraint.no_overlap.intervals))}"
        )
    if constraint.has_cumulative():
        cumulative = constraint.cumulative
        demands = (affine(demand, names) for demand in cumulative.demands)
        used = sorted(
            f"{intervals[k]}*{demand}"
            for k, demand in zip(cumulative.intervals, demands, strict=True)
        )
        return f"{prefix}cumulative {' '.join(used)} <= {affine(cumulative.capacity, names)}"
    if constraint.has_exactly_one():
        return (
            f"{prefix}exactly one "
            f"{' '.join(sorted(literal(k, names) for k in constraint.exactly_one.literals))}"
        )
    if constraint.has_bool_or():
        return (
            f"{prefix}any "
            f"{' '.join(sorted(literal(k, names) for k in constraint.bool_or.literals))}"
        )
    raise AssertionError(f"a constraint of a kind the comparison does not know: {constraint}")


def literal(index: int, names: list[str]) -> str:
    return names[index] if index >= 0 else f"not {names[-index - 1]}"


def affine(expr: Any, names: list[str]) -> str:
    return expression(
        [(int(c), names[v]) for c, v in zip(expr.coeffs, expr.vars, strict=True)], int(expr.offset)
    )


def expression(terms: list[tuple[int, str]], offset: int) -> str:
    parts = [
        f"{coefficient:+d} {name}" for coefficient, name in sorted(terms, key=lambda term: term[1])
    ]
    return " ".join(parts + ([f"{offset:+d}"] if offset or not parts else []))


def domain(bounds: Any) -> str:
    low, high = (int(bound) for bound in bounds)
    return f"{'-inf' if low <= -INFINITY else low}..{'inf' if high >= INFINITY else high}"
