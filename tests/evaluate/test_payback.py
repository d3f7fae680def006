"""When a learned solver has paid back its training: every figure is derived by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from optbench.evaluate.payback import Payback, is_tuned, paybacks, role_of
from optbench.evaluate.rows import table
from optbench.store.records import Record
from optbench.study.cells import Cell
from tests.evaluate.studies_by_hand import failure, record, records_of, study_of

TRAINING = {"energy_j": 600.0, "estimated": True, "unknown": []}


def solved(
    schedule_j: float,
    run_j: float | None = 1.0,
    training: Mapping[str, Any] | None = None,
    **more: Any,
) -> Callable[[Cell], Record]:
    """A record whose schedule has this energy, found by a run that drew ``run_j``."""

    def make(cell: Cell) -> Record:
        energy: dict[str, Any] = {} if run_j is None else {"energy_j": run_j}
        energy |= more if training is None else {"training": training, **more}
        return replace(record(cell, 10.0), metrics={"energy_j": schedule_j}, energy=energy)

    return make


def one(
    results: Mapping[str, Sequence[Any]],
    instances: Sequence[str] = ("a",),
    seeds: Sequence[int] = (0, 1),
) -> Payback:
    """The pay-back of hgnn on the first problem; ``results`` by solver, instance by instance."""
    plan = study_of(list(results), instances, seeds)
    names = [f"{name}-{seed}" for name in instances for seed in seeds]
    given = {
        (label, name): made
        for label, row in results.items()
        for name, made in zip(names, row, strict=False)
        if made is not None
    }
    return paybacks(table(plan, records_of(plan, given)))[0]


def learned(schedule_j: float, run_j: float | None = 11.0, **more: Any) -> Callable[[Cell], Record]:
    return solved(schedule_j, run_j, TRAINING, **more)


def test_training_over_the_mean_saving_inference_included() -> None:
    found = one(
        {
            "hgnn": [learned(100.0), learned(200.0)],
            "fcfs": [solved(140.0), solved(280.0)],
            "heft": [solved(150.0), solved(240.0)],
        }
    )
    # heft has the least mean energy, 195 J (fcfs 210 J). Its runs drew 1 J, the learner's 11 J:
    # ((150 + 1 - 100 - 11) + (240 + 1 - 200 - 11)) / 2 = (40 + 30) / 2 = 35 J; 600 / 35 = 17.1.
    assert (found.rule, found.instances) == ("heft", 2)
    assert found.saving is not None and found.saving.value == pytest.approx(35.0)
    assert found.after == pytest.approx(600.0 / 35.0)
    assert found.words.startswith("after 18 instances (the saving may be chance)")
    told = found.to_dict()
    assert (told["rule_energy_j"], told["learned_energy_j"]) == (195.0, 150.0)
    assert (told["rule_run_j"], told["learned_run_j"], told["after_instances"]) == (1.0, 11.0, 18)
    assert told["training_j"] == 600.0 and told["training_estimated"] and not told["never"]


def test_a_saving_that_inference_eats_up_is_never_paid_back() -> None:
    found = one({"hgnn": [learned(100.0, 31.0)], "heft": [solved(130.0)]}, seeds=(0,))
    # 130 + 1 - 100 - 31 = 0
    assert found.saving is not None and found.saving.value == 0.0
    assert found.after == math.inf and found.words == "never"
    assert found.to_dict()["never"] and found.to_dict()["after_instances"] is None


def test_only_instances_that_both_solved_count() -> None:
    found = one(
        {
            "hgnn": [learned(100.0, 1.0), lambda cell: failure(cell, "crashed"), learned(50.0)],
            "heft": [solved(110.0), solved(10.0), None],
        },
        seeds=(0, 1, 2),
    )
    # Only the first: 111 - 101 = 10 J, and 600 / 10 = 60.
    assert found.instances == 1 and found.after == pytest.approx(60.0)


def test_a_rule_that_solved_few_instances_is_not_the_best() -> None:
    found = one(
        {
            "hgnn": [learned(100.0), learned(100.0)],
            "fcfs": [solved(120.0), solved(120.0)],
            "heft": [solved(101.0), None],
        }
    )
    assert found.rule == "fcfs"


def test_the_seeds_of_an_instance_are_averaged_and_problems_are_apart() -> None:
    plan = study_of(["hgnn", "heft"], ["a", "b"])
    given = {
        ("hgnn", "a-0"): learned(100.0),
        ("heft", "a-0"): solved(200.0),
        ("hgnn", "b-0"): learned(1000.0),
        ("heft", "b-0"): solved(900.0),
    }
    found = paybacks(table(plan, records_of(plan, given)))
    assert [(each.target, each.words.partition(" (")[0]) for each in found] == [
        ("a", "after 7 instances"),  # 600 / (201 - 111) = 6.7
        ("b", "never"),
    ]


@pytest.mark.parametrize(
    ("results", "why"),
    [
        (
            {"hgnn": [solved(100.0)], "heft": [solved(200.0)]},
            "its checkpoint does not say what its training drew",
        ),
        (
            {
                "hgnn": [learned(100.0), solved(100.0, 1.0, {**TRAINING, "energy_j": 1.0})],
                "heft": [solved(200.0), solved(200.0)],
            },
            "its cells have checkpoints of different trainings",
        ),
        (
            {
                "hgnn": [solved(1.0, 1.0, {**TRAINING, "unknown": ["an earlier part"]})],
                "heft": [solved(200.0)],
            },
            "an earlier part was not measured",
        ),
        (
            {
                "hgnn": [solved(1.0, 1.0, {**TRAINING, "complete": False})],
                "heft": [solved(200.0)],
            },
            "the energy of its training was not measured in full",
        ),
        (
            {"hgnn": [learned(100.0, complete=False)], "heft": [solved(200.0)]},
            "the energy of one of the runs was not measured in full",
        ),
        (
            {
                "hgnn": [learned(300.0), learned(300.0, complete=False)],
                "heft": [solved(200.0, complete=False), solved(200.0, complete=True)],
            },
            "the energy of 2 of the runs was not measured in full",
        ),
        ({"hgnn": [None], "heft": [solved(200.0)]}, "it has not run yet"),
        (
            {"hgnn": [lambda cell: record(cell, 10.0)], "heft": [solved(200.0)]},
            "none of its runs has a verified energy_j",
        ),
        (
            {"hgnn": [learned(100.0)], "cpsat": [solved(200.0)]},
            "no rule of the study has a verified energy_j on its instances",
        ),
        (
            {"hgnn": [learned(100.0, None)], "heft": [solved(200.0)]},
            "the energy of the runs was not recorded (`optbench run --force`)",
        ),
    ],
)
def test_what_is_unknown_is_not_guessed(results: Mapping[str, Sequence[Any]], why: str) -> None:
    found = one(results)
    assert found.words == f"unknown: {why}" and found.to_dict()["after_instances"] is None


def test_without_a_saving_the_training_need_not_be_known() -> None:
    found = one({"hgnn": [solved(300.0)], "heft": [solved(200.0)]}, seeds=(0,))
    assert found.words == "never" and found.training_j is None


def test_a_rule_is_tuned_if_its_parameters_are_not_its_defaults() -> None:
    plan = study_of(["hgnn", "tuned_rule"], ["a"])
    given = {("hgnn", "a-0"): learned(100.0), ("tuned_rule", "a-0"): solved(200.0)}
    found = table(plan, records_of(plan, given))
    rows = [each for each in found.rows if each.cell.label == "tuned_rule"]
    assert not is_tuned(rows) and not paybacks(found)[0].rule_tuned
    for params, tuned in (({"depth": 100}, False), ({"depth": 100, "time": 0.5}, True)):
        assert is_tuned([replace(rows[0], cell=replace(rows[0].cell, params=params))]) == tuned


def test_roles() -> None:
    names = ("hgnn", "chsac_af", "gogh", "heft", "tuned_rule", "best_fit", "cpsat", "missing")
    assert [role_of(name) for name in names] == [*["learned"] * 3, *["rule"] * 3, *["other"] * 2]
