"""Large programmes by pricing: the value of the whole programme, from a few of its columns."""

from __future__ import annotations

import numpy as np
import pytest

from optbench.bounds import fluid_bound as bounding
from optbench.bounds import pricing
from optbench.bounds.fluid import fluid_model
from optbench.bounds.linear_program import LinearProgram, solve
from optbench.bounds.pricing import first_columns, ranked, restricted, solve_by_pricing
from optbench.model.instance import Bools, Instance
from optbench.plugins.discovery import load_problem

SPECS = (
    "gpu_dag:tasks=60,gpus=12,types=4,gang=4",
    "gpu_dag:tasks=40,gpus=8,types=4,deadlines=tight,hard=yes",
    "gpu_dag:tasks=40,gpus=9,price=yes,power_cap=0.6",
    "flexible_jobshop:jobs=8,machines=6",
)


def instance_of(spec: str) -> Instance:
    return load_problem(spec).instance(4)


@pytest.mark.parametrize("keep_edges", [True, False])
@pytest.mark.parametrize("spec", SPECS)
def test_pricing_proves_as_much_as_the_whole_programme(
    spec: str, keep_edges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = instance_of(spec)
    whole = bounding.solve_fluid(instance, 60.0, keep_edges)
    monkeypatch.setattr(bounding, "LARGE", 0)
    priced = bounding.solve_fluid(instance, 60.0, keep_edges)
    assert whole is not None and priced is not None
    assert priced.bound.value == pytest.approx(whole.bound.value, rel=2 * pricing.NEAR)
    assert priced.proven <= whole.proven * (1 + 10**-6)


def test_one_round_proves_a_bound_and_not_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after the first round the restricted value is no bound; what is proved is one."""
    instance = instance_of(SPECS[0])
    whole = bounding.solve_fluid(instance, 60.0, True)
    monkeypatch.setattr(bounding, "LARGE", 0)
    monkeypatch.setattr(pricing, "NEAR", np.inf)
    monkeypatch.setattr(pricing, "TIME_PRICES", (0.3,))
    early = bounding.solve_fluid(instance, 60.0, True)
    assert whole is not None and early is not None
    assert 0.5 * float(whole.proven) < float(early.proven) < float(whole.proven)
    fluid = fluid_model(instance)
    program = fluid.program()
    keep = np.ones(program.num_columns, dtype=bool)
    keep[fluid.share] = first_columns(fluid)
    assert solve(restricted(program, keep), 10.0).value > float(whole.proven)


def test_what_is_known_without_edges_is_where_the_search_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "LARGE", 0)
    monkeypatch.setattr(pricing, "TIME_PRICES", ())
    instance = instance_of(SPECS[0])
    first = bounding.solve_fluid(instance, 60.0, False)
    assert first is not None and first.reduced is not None
    fluid = fluid_model(instance, keep_edges=False)
    program = fluid.program()
    dual = np.asarray([n / 2**first.certificate.shift for n in first.certificate.numerator])
    # Re-priced, the least reduced cost of every task is 0; the duals before that differ by one number per task.
    known, again = first.reduced, pricing.by_pair(fluid, program, dual)
    pairs = instance.pairs
    for i in range(instance.num_tasks):
        mine = slice(int(pairs.ptr[i]), int(pairs.ptr[i + 1]))
        assert again[mine].min() == pytest.approx(0.0, abs=1e-6)
        assert known[mine] - known[mine].min() == pytest.approx(again[mine], abs=1e-5)
    kept: list[Bools] = []

    def watched(lp: LinearProgram, keep: Bools) -> LinearProgram:
        kept.append(keep.copy())
        return restricted(lp, keep)

    monkeypatch.setattr(pricing, "restricted", watched)
    bounding.solve_fluid(instance, 60.0, True, known)
    whole = fluid_model(instance)
    inside = np.zeros(len(pairs.task), dtype=bool)
    inside[whole.groups.pair] = kept[0][whole.share]
    for i in range(instance.num_tasks):
        mine = slice(int(pairs.ptr[i]), int(pairs.ptr[i + 1]))
        assert inside[mine][np.argsort(known[mine], kind="stable")[: pricing.KNOWN]].all()


def test_no_time_no_duals() -> None:
    fluid = fluid_model(instance_of(SPECS[0]))
    assert solve_by_pricing(fluid, fluid.program(), 0.0) is None


def test_ranks_are_within_groups() -> None:
    assert ranked(np.array([0, 0, 1, 1, 1]), np.array([5.0, 4.0, 1.0, 9.0, 3.0])).tolist() == [1, 0, 0, 2, 1]
