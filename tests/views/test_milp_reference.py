"""Every coefficient of the array form against a slow restatement of the maths; and every injected
error is noticed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optbench.views.milp import Disjunctive, MilpArrays, TimeIndexed, time_indexed

from . import milp_reference, milp_reference_disjunctive, milp_reference_time_indexed
from .milp_cases import tiny

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tariffs": {"varying": True},
    "tariffs, fixed horizon": {"varying": True, "fixed": True},
    "caps and limits": {"capped": True, "limited": True},
    "all at once": {"varying": True, "limited": True, "capped": True},
    "unary": {"shared": False, "limited": True},
    "one device": {"pools": 1, "shared": False},
    "clocks": {"clocks": True},
}


def table(arrays: MilpArrays) -> milp_reference.Table:
    """The array form in the reference's shape; entries at the same place would add up."""
    names, columns, rows = arrays.column_names(), {}, {}
    for block in arrays.columns:
        for c in range(block.size):
            columns[names[block.first + c]] = (
                block.lower[c],
                block.upper[c],
                block.integer,
                block.cost[c],
            )
    row_names = iter(arrays.row_names())
    for group in arrays.rows:
        for r in range(group.size):
            entries: dict[str, float] = {}
            for at in range(group.ptr[r], group.ptr[r + 1]):
                name = names[group.col[at]]
                entries[name] = entries.get(name, 0.0) + group.value[at]
            rows[next(row_names)] = (entries, group.lower[r], group.upper[r])
    return columns, rows, arrays.constant


def differences(ours: milp_reference.Table, theirs: milp_reference.Table) -> list[str]:
    out = [f"column {name} in one only" for name in ours[0].keys() ^ theirs[0].keys()]
    out += [f"row {name} in one only" for name in ours[1].keys() ^ theirs[1].keys()]
    for name in ours[0].keys() & theirs[0].keys():
        if not all(map(same, ours[0][name], theirs[0][name])):
            out.append(f"column {name}: {ours[0][name]} against {theirs[0][name]}")
    for name in ours[1].keys() & theirs[1].keys():
        (mine, *sides), (other, *others) = ours[1][name], theirs[1][name]
        if (
            mine.keys() != other.keys()
            or not all(same(mine[c], other[c]) for c in mine)
            or not all(map(same, sides, others))
        ):
            out.append(f"row {name}: {ours[1][name]} against {theirs[1][name]}")
    return out if same(ours[2], theirs[2]) else [*out, f"constant {ours[2]} against {theirs[2]}"]


def same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-13)


def targets(
    case: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[MilpArrays, milp_reference.Table]]:
    inst, out = tiny(seed, **CASES[case]), []
    for disaggregated in (False, True):
        monkeypatch.setattr(time_indexed, "DISAGGREGATED_NONZEROS", 1e9 if disaggregated else -1)
        out.append(
            (
                TimeIndexed(inst).arrays,
                milp_reference_time_indexed.time_indexed(inst, disaggregated),
            )
        )
    if "tariffs" not in inst.features:
        out.append((Disjunctive(inst).arrays, milp_reference_disjunctive.disjunctive(inst)))
    return out


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(12))
def test_every_coefficient_is_that_of_the_maths(
    case: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arrays, reference in targets(case, seed, monkeypatch):
        assert differences(table(arrays), reference) == []


def test_the_cases_reach_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, a block that no case produces would go unchecked."""
    seen: set[str] = set()
    for case in CASES:
        for seed in range(12):
            for arrays, _ in targets(case, seed, monkeypatch):
                seen |= {block.name for block in arrays.columns} | {
                    block.name for block in arrays.rows
                }
    expected = """
        start send makespan unfinished mode before flow tardy nothing assign precede
        busy power finish outlast limit_energy_j limit_cost_usd limit_tardiness_s
        send_from receive_at window sequence order late work flow_in flow_out
        flow_source flow_link
        between exclude one_way hold
    """
    assert seen >= set(expected.split())


def mutants(arrays: MilpArrays) -> Any:
    """The same arrays with one number changed, each in turn (blocks are changed in place and put
    back).
    """

    def copied(block: Any) -> Any:
        return replace(
            block,
            **{
                k: np.array(v, dtype=v.dtype)
                for k, v in vars(block).items()
                if isinstance(v, np.ndarray)
            },
        )

    arrays = MilpArrays(
        arrays.name,
        tuple(map(copied, arrays.columns)),
        tuple(map(copied, arrays.rows)),
        arrays.constant,
    )
    blocks: list[Any] = [*arrays.columns, *arrays.rows]
    for block in blocks:
        for field in (
            ("lower", "upper", "cost") if hasattr(block, "cost") else ("lower", "upper", "value")
        ):
            numbers = getattr(block, field)
            for at in range(len(numbers)):
                kept = numbers[at]
                numbers[at] = 0.0 if math.isinf(kept) else kept + 1e-6 * max(1.0, abs(kept))
                yield f"{block.name}.{field}[{at}]", arrays
                numbers[at] = kept
    for block in arrays.rows:
        for at in range(len(block.col)):
            kept = block.col[at]
            block.col[at] = (kept + 1) % arrays.num_columns
            yield f"{block.name}.col[{at}]", arrays
            block.col[at] = kept
    for c, block in enumerate(arrays.columns):
        other = (
            *arrays.columns[:c],
            replace(block, integer=not block.integer),
            *arrays.columns[c + 1 :],
        )
        yield f"{block.name}.integer", replace(arrays, columns=other)
    for r, block in enumerate(arrays.rows):
        yield (
            f"without {block.name}",
            replace(arrays, rows=(*arrays.rows[:r], *arrays.rows[r + 1 :])),
        )
    yield (
        "constant",
        replace(arrays, constant=arrays.constant + 1e-6 * max(1.0, abs(arrays.constant))),
    )


@pytest.mark.parametrize("case", ["all at once", "caps and limits", "unary"])
def test_an_error_injected_into_any_number_is_noticed(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest = min(
        (
            t
            for seed in range(12)
            for t in targets(case, seed, monkeypatch)[-1:]
            if t[0].num_nonzeros > 60
        ),
        key=lambda t: t[0].num_nonzeros,
    )
    arrays, reference = smallest
    assert differences(table(arrays), reference) == []
    count = 0
    for what, changed in mutants(arrays):
        assert differences(table(changed), reference), f"{what} was changed and nothing noticed it"
        count += 1
    assert count > 2 * arrays.num_nonzeros
