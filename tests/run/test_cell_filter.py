"""--only: fields, keys and text."""

from __future__ import annotations

import pytest

from optbench.run.cell_filter import SelectionError, select
from tests.evaluate.studies_by_hand import study_of

PLAN = study_of(
    ["cpsat", "random_rules:k=8", "random_rules:k=128"], ["alpha", "beta:n=3"], seeds=(0, 1)
)


def titles(*filters: str) -> list[str]:
    return [cell.title for cell in select(PLAN.cells, filters)]


def test_without_filters_everything_is_run() -> None:
    assert select(PLAN.cells, []) == PLAN.cells and len(PLAN.cells) == 4 * (1 + 3)


def test_bounds_are_part_of_it_wherever_one_of_their_solves_is() -> None:
    assert titles("solver=cpsat", "seed=1") == [
        "bounds | alpha-1 | 1",
        "bounds | beta:n=3-1 | 1",
        "cpsat | alpha-1 | 1",
        "cpsat | beta:n=3-1 | 1",
    ]


def test_a_seed_is_the_instances_where_nothing_is_solved() -> None:
    assert [title for title in titles("seed=0") if title.startswith("bounds")] == [
        "bounds | alpha-0 | 0",
        "bounds | beta:n=3-0 | 0",
    ]
    assert len(titles("seed=0")) == 2 * (1 + 3)


def test_filters_of_one_field_widen_and_of_different_fields_narrow() -> None:
    assert len(titles("solver=cpsat", "solver=random_rules:k=8")) == 4 + 8
    assert len(titles("solver=random_rules")) == 4 + 8
    assert titles("target=beta", "solver=cpsat", "seed=0") == [
        "bounds | beta:n=3-0 | 0",
        "cpsat | beta:n=3-0 | 0",
    ]
    assert titles("instance=alpha-0", "k=128") == [
        "bounds | alpha-0 | 0",
        "random_rules:k=128 | alpha-0 | 0",
    ]


def test_a_star_stands_for_anything() -> None:
    assert titles("solver=random_rules:k=1*", "instance=alpha-0") == [
        "bounds | alpha-0 | 0",
        "random_rules:k=128 | alpha-0 | 0",
    ]
    assert titles("target=*") == [cell.title for cell in PLAN.cells]
    with pytest.raises(SelectionError, match=r"no cell has target 'gamma\*'"):
        titles("target=gamma*")


def test_text_may_be_anything_of_the_title_even_with_an_equals_sign() -> None:
    assert len(titles("random_rules:k=8 | alpha")) == 2 + 2
    assert len(titles("k=8", "cpsat")) == 4 + 8


def test_the_beginning_of_a_key() -> None:
    cell = PLAN.solving[2]
    assert [each for each in select(PLAN.cells, [cell.key[:12]]) if each.kind == "solve"] == [cell]


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (["solver=cpsta"], "no cell has solver 'cpsta'; did you mean 'cpsat'?"),
        (["solvr=cpsat"], "'solvr' is not a field; did you mean 'solver'?"),
        (["cpsta"], "'cpsta' occurs in no cell; did you mean 'cpsat'?"),
        (["seed=7"], "no cell has seed '7'; known: 0, 1"),
        (["0123456789ab"], "'0123456789ab' occurs in no cell"),
        ([" "], "' ' occurs in no cell"),
        (["instance=alpha-0", "seed=1"], "no cell matches all of them"),
    ],
)
def test_a_filter_without_cells_is_answered_with_the_nearest(
    filters: list[str], words: str
) -> None:
    with pytest.raises(SelectionError) as caught:
        titles(*filters)
    assert words in str(caught.value)
