"""The suite of shapes passes for a right shape, and each mistake fails the test that is for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from optbench.errors import ContradictionError, ShapeError
from optbench.testing import ProblemConformance, ShapeConformance, SolverConformance
from tests.loaded_modules import forget_modules_of
from tests.sample_files.packing_workspace import FIRST_FIT, PACKING

# Tests of the suite by the mistake that they must find: (old text, new text, test, message).
MEMORY = 'found.require(load <= data.gpu_gb[g], "memory", f"GPU {g} holds {load} GB", load)'
PLACED = 'found.require(placed, "placed", "a service has no GPU")'
ON_USED = "data.memory_gb[s] * m.on[s, g] for s in m.S) <= data.gpu_gb[g] * m.used[g])"
MISTAKES = {
    "verify_forgets": (
        MEMORY,
        "pass",
        "test_model_and_verify_agree_on_decisions",
        r"verify accepts a decision that the model forbids: row memory\[\d\] is",
    ),
    "verify_is_too_strict": (
        "load <= data.gpu_gb[g]",
        "load <= 0.5 * data.gpu_gb[g]",
        "test_model_and_verify_agree_on_points",
        r"the model allows a decision that verify refuses: GPU \d holds .*constraint 'memory'",
    ),
    "model_forgets": (
        ON_USED,
        "m.on[s, g] for s in m.S) <= 99 * m.used[g])",
        "test_model_and_verify_agree_on_decisions",
        r"the model allows a decision that verify refuses: GPU .*the model lacks it",
    ),
    "never_violated": (
        '"memory": "the services on a GPU fit"}',
        '"memory": "the services on a GPU fit", "power": "no GPU is too hot"}',
        "test_each_constraint_can_be_violated",
        r"no decision that was tried violates \['power'\]; yield one that does",
    ),
    "undeclared": (
        '"placed": "each service has a GPU", ',
        "",
        "test_what_verify_finds_is_declared",
        r"verify names a constraint 'placed', which is not declared in constraints",
    ),
    "other_objective": (
        "sum(data.price_usd[g] for g in used), ",
        "sum(data.price_usd[g] for g in used) + 1, ",
        "test_model_and_verify_agree_on_points",
        r"the model allows cost_usd = .* of which verify computes",
    ),
    "another_each_time": (
        "rng = np.random.default_rng(seed)",
        "rng = np.random.default_rng()",
        "test_same_seed_same_instance",
        "assert",
    ),
    "without_words": (
        '"placed": "each service has a GPU"',
        '"placed": ""',
        "test_it_is_documented",
        "constraint 'placed' needs words",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of plug-ins with the right shape and all wrong ones, each under its own name."""
    root = tmp_path_factory.mktemp("shapes")
    patch = pytest.MonkeyPatch()
    for folder in ("problems", "solvers"):
        (root / folder).mkdir()
        package = importlib.import_module(f"optbench.plugins.{folder}")
        patch.setattr(package, "__path__", [str(root / folder), *package.__path__])
    texts = {"boxes": PACKING}
    for name, (old, new, *_) in MISTAKES.items():
        assert old in PACKING, name
        texts[name] = PACKING.replace(old, new)
    for name, text in texts.items():
        named = text.replace('name = "packing"', f'name = "{name}"')
        (root / "problems" / f"{name}.py").write_text(named)
    shapes = ", ".join(f'"{name}"' for name in texts)
    first_fit = FIRST_FIT.replace('{"packing"}', f"{{{shapes}}}")
    (root / "solvers" / "first_fit.py").write_text(first_fit)
    importlib.invalidate_caches()
    yield root
    patch.undo()
    forget_modules_of(root)


class TestBoxes(ShapeConformance):
    problem = "boxes:services=3"
    num_changes = 100


class TestBoxesProblem(ProblemConformance):
    problem = "boxes:services=3"


def suite(name: str) -> Any:
    body = {"problem": f"{name}:services=3", "num_changes": 100}
    return type(f"Suite_{name}", (ShapeConformance,), body)()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str) -> None:
    _, _, test, message = MISTAKES[name]
    refused = (AssertionError, ContradictionError, ShapeError, pytest.fail.Exception)
    with pytest.raises(refused, match=message):
        getattr(suite(name), test)()


@pytest.mark.parametrize(
    "name", [name for name in dir(SolverConformance) if name.startswith("test_")]
)
def test_a_solver_of_a_shape_meets_the_suite_of_solvers(name: str) -> None:
    made = first_fit_suite()
    cases = made.supported()
    assert [case.name for case in cases] == ["boxes:services=3-0", "boxes:services=3-1"]
    method = getattr(made, name)
    for arguments in [(case,) for case in cases] if "case" in method.__annotations__ else [()]:
        method(*arguments)


def first_fit_suite() -> Any:
    body = {"solver": "first_fit", "problems": ("boxes:services=3",)}
    return type("FirstFitSuite", (SolverConformance,), body)()


def test_a_solver_of_no_case_is_told_how_to_name_one() -> None:
    made = type("NoCase", (SolverConformance,), {"solver": "first_fit"})()
    with pytest.raises(AssertionError, match="name small problems of other shapes in `problems`"):
        made.test_it_runs_on_something()
