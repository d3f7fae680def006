"""A workspace file with a shape of its own is solved, bounded and verified like a built-in one."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import numpy as np
import pytest

import optbench as ob
from optbench.errors import ContradictionError, FileFormatError, ModelError, PluginError
from optbench.shapes import Findings
from tests.sample_files.packing_workspace import FIRST_FIT, PACKING


@pytest.fixture(scope="module")
def module() -> Any:
    found = types.ModuleType("packing_of_this_test")
    sys.modules[found.__name__] = found  # dataclasses look their module up
    exec(compile(PACKING, "packing.py", "exec"), found.__dict__)
    return found.__dict__


def services(module: Any) -> Any:
    """Two services of 20 GB and one of 4: a GPU of 24 GB and one of 40, or one of 80."""
    return module["Services"]((20.0, 20.0, 4.0), (24.0, 40.0, 80.0), (0.5, 1.1, 2.0))


def test_the_file_is_short() -> None:
    assert len(PACKING.splitlines()) <= 90 and len(FIRST_FIT.splitlines()) <= 17


def test_the_optimum_by_hand(module: Any) -> None:
    # 20 + 4 on 24 GB and 20 on 40 GB: 0.5 + 1.1; everything on 80 GB: 2.0.
    instance = module["Packing"]().instance("three", services(module))
    result = ob.solve(instance, "highs", time_limit_s=20)
    assert result.status == "optimal" and result.objective == 1.6
    assert result.metrics == {"cost_usd": 1.6, "gpus": 2.0}


def changed(module: Any, **methods: Any) -> Any:
    """The shape with other methods."""
    return type("Changed", (module["Packing"],), methods)()


def test_a_model_that_forgets_a_constraint_is_stopped(module: Any) -> None:
    def model(self: Any, data: Any) -> Any:
        out = module["Packing"].model(self, data)
        out.memory.deactivate()
        return out

    shape = changed(module, model=model)
    # Without the rows of memory no GPU is needed: the model's cost is 0 whatever is decoded.
    for solver in ("highs", "cpsat"):
        with pytest.raises(ContradictionError, match="the model lacks"):
            ob.solve(shape.instance("x", services(module)), solver, time_limit_s=20)
    small = module["Services"]((20.0, 20.0), (24.0, 24.0), (0.5, 0.5))
    verdict = shape.verdict_of(shape.instance("x", small), module["Placement"]((0, 0)))
    assert [each.constraint for each in verdict.violations] == ["memory"]


def test_a_verifier_that_forgets_a_constraint_is_stopped(module: Any) -> None:
    def verify(self: Any, data: Any, decision: Any) -> Findings:
        found: Findings = module["Packing"].verify(self, data, decision)
        found.violations.clear()
        return found

    class Stack(ob.Solver):
        shapes = frozenset({"packing"})

        def solve(self, instance: Any, run: ob.Run) -> Any:
            return module["Placement"]((0, 0, 0))

    instance = changed(module, verify=verify).instance("x", services(module))
    with pytest.raises(ContradictionError, match=r"model forbids: row memory\[0\] is 20, above 0"):
        ob.solve(instance, Stack(), time_limit_s=20)


def test_metrics_that_differ_are_stopped(module: Any) -> None:
    def verify(self: Any, data: Any, decision: Any) -> Findings:
        found: Findings = module["Packing"].verify(self, data, decision)
        found.metrics["cost_usd"] -= 0.1
        return found

    instance = changed(module, verify=verify).instance("x", services(module))
    with pytest.raises(ContradictionError, match=r"verify computes cost_usd = 1.5"):
        ob.solve(instance, "highs", time_limit_s=20)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minimize": None}, "set one of `minimize` and `maximize`"),
        (
            {"minimize": "cost_us"},
            "verify computes no metric 'cost_us', the objective; did you mean 'cost_usd'",
        ),
        ({"name": ""}, r"name is ''; write name = "),
        ({"solution": None}, "solution is missing; write solution = Placement"),
        ({"data": tuple}, "data is <class 'tuple'>; write data = Services, a dataclass"),
        ({"metrics": {"cost_usd": "USD"}}, "metric 'cost_usd' is 'USD'; write Metric"),
        ({"decode": lambda self, data, m: [1]}, "decode returned list; it must return a Placement"),
        ({"model": lambda self, data: None}, "model returned None; return the Pyomo model"),
        ({"verify": lambda self, data, decision: None}, "verify returned NoneType"),
        ({"encode": lambda self, data, decision, m: None}, "encode gives variable .* no value"),
    ],
)
def test_mistakes_are_named(module: Any, change: dict[str, Any], message: str) -> None:
    shape = type("Wrong", (module["Packing"],), change)()
    with pytest.raises(PluginError, match=message) as refused:
        ob.solve(shape.instance("x", services(module)), "highs", time_limit_s=20)
    functions = [each for each in change.values() if callable(each) and each is not tuple]
    if functions:
        assert f"{__file__}:{functions[0].__code__.co_firstlineno}: " in str(refused.value)


@pytest.mark.parametrize("value", ["many", None])
def test_metrics_are_numbers(module: Any, value: Any) -> None:
    def verify(self: Any, data: Any, decision: Any) -> Findings:
        return Findings({"cost_usd": value})

    instance = changed(module, verify=verify).instance("x", services(module))
    with pytest.raises(PluginError, match=f"{__file__}:.*verify computes cost_usd = {value!r}; it"):
        ob.solve(instance, "highs", time_limit_s=20)


def test_files_keep_the_identity(module: Any) -> None:
    shape = module["Packing"]()
    instance = shape.instance("three", services(module))
    document = json.loads(json.dumps(shape.write(instance)))
    again = shape.read(document)
    assert again.hash == instance.hash and again.data == instance.data
    document["data"]["gpu_gb"][1] = "wide"
    with pytest.raises(FileFormatError, match=r"data.gpu_gb\[1\] is 'wide'; it must be a number"):
        shape.read(document)


@pytest.mark.parametrize("method", ["verify", "model", "encode", "decode"])
def test_an_exception_of_the_author_is_named_with_its_method(module: Any, method: str) -> None:
    def fails(self: Any, *arguments: Any) -> Any:
        raise ZeroDivisionError("by the author")

    instance = changed(module, **{method: fails}).instance("x", services(module))
    words = rf"test_packing_shape.py:\d+: {method}\(\) raised ZeroDivisionError: by the author"
    with pytest.raises(PluginError, match=words):
        ob.solve(instance, "highs", time_limit_s=20)


def test_numbers_are_those_that_a_file_says(module: Any) -> None:
    """Whole numbers, arrays and lists are turned into what the fields' types are."""
    plain = module["Services"]([20, 20, 4], np.array([24.0, 40, 80]), [0.5, 1.1, 2])
    shape = module["Packing"]()
    instance = shape.instance("x", plain)
    assert instance.data == services(module)
    assert instance.hash == shape.instance("y", services(module)).hash
    with pytest.raises(ModelError, match=r"data.memory_gb\[0\] is true; it must be a number"):
        shape.instance("x", module["Services"]((True,), (2.0,), (1.0,)))
