"""Instances and results of a user's own shape and of an MPS file, in notebooks and as pages."""

from __future__ import annotations

import base64
import json
import re
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import optbench as ob
from optbench.shapes.protocol.measurements import Measurements
from tests.html.html_pages import outline
from tests.sample_files.knapsack_workspace import KNAPSACK, MAXIMISED_MPS


@pytest.fixture(scope="module", name="module")
def module_fixture() -> Any:
    found = types.ModuleType("knapsack_of_this_test")
    sys.modules[found.__name__] = found  # dataclasses look their module up
    exec(compile(KNAPSACK, "knapsack.py", "exec"), found.__dict__)
    return found


@pytest.fixture(scope="module", name="instance")
def instance_fixture(module: Any) -> Any:
    """Two of three jobs fit: 8 + 5 - 3 of rent earns 10, with 6 + 4 of 10 GB."""
    jobs = module.Jobs((5.0, 6.0, 4.0), (6.0, 8.0, 5.0), 10.0, 3.0)
    return module.Knapsack().instance("<three> jobs", jobs)


@pytest.fixture(scope="module", name="result")
def result_fixture(instance: Any) -> ob.Result:
    return ob.solve(instance, "highs", time_limit_s=20)


def test_an_instance_shows_its_data_metrics_and_constraints(instance: Any) -> None:
    assert repr(instance) == (
        "<Instance '<three> jobs' of shape 'knapsack': 3 memory_gb, 3 profit_usd>"
    )
    shown = instance._repr_html_()
    assert "script" not in outline(shown).tags and "<three>" not in shown
    for part in ("&lt;three&gt; jobs", "shape knapsack", "maximise earned_usd", "5, 6, 4"):
        assert part in shown
    for part in ("USD", "profit of the jobs that run, minus the rent", "the chosen jobs fit"):
        assert part in shown


def test_a_result_has_its_figures_with_units_and_its_picture(result: ob.Result) -> None:
    assert result.objective == 10.0
    shown = replace(result, bound=12.5, gap=0.25, status="feasible")._repr_html_()
    parsed = outline(shown)
    assert parsed.tags.count("img") == 1 and not {"script", "rect"} & set(parsed.tags)
    for part in ("<td>10</td>", "<td>12.5</td>", "25.0 %", "USD", "minus the rent"):
        assert part in shown
    (picture,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)" alt="memory"', shown)
    assert b'<rect width="10"' in base64.b64decode(picture)


def test_a_maximisation_names_the_lowest_of_its_bounds(result: ob.Result) -> None:
    bounds = (ob.Bound(40.0, "loose", "solver"), ob.Bound(11.0, "tight", "exact-lp"))
    shown = replace(result, bounds=bounds)._repr_html_()
    assert "tight (exact-lp)" in shown and "loose" not in shown


def test_violations_and_readings_are_named(result: ob.Result) -> None:
    readings = Measurements({"wall_s": (1.0, 2.0, 4.5)})
    refused = replace(
        result, verified=False, violations=("memory: <b>15 GB</b>",), measured=readings
    )
    shown = refused._repr_html_()
    assert "the verifier refuses this decision" in shown and "img" not in outline(shown).tags
    assert "memory: &lt;b&gt;15 GB&lt;/b&gt;" in shown
    # Their mean is 7.5 / 3.
    assert "<td>2.5</td>" in shown and "mean of 3 readings from 1 to 4.5" in shown


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (lambda *_: {"p": "<b>no svg</b>"}, "picture &#x27;p&#x27; is no SVG text"),
        (
            lambda *_: dict[str, str]()["absent"],
            "no picture: Drawn: .*test_decision_page.py:[0-9]+: pictures()",
        ),
    ],
)
def test_a_picture_that_fails_says_why(
    module: Any, instance: Any, result: ob.Result, drawn: Any, words: str
) -> None:
    shape = type("Drawn", (module.Knapsack,), {"pictures": drawn})()
    other = replace(result, instance_data=replace(instance, shape=shape))
    shown = other._repr_html_()
    assert re.search(words.replace("()", r"\(\)"), shown) and "img" not in outline(shown).tags


def test_pages_and_files(module: Any, instance: Any, result: ob.Result, tmp_path: Path) -> None:
    result.html(tmp_path / "run.html")
    instance.html(tmp_path / "instance.html")
    for name, part in (("run", "<img src="), ("instance", "the chosen jobs fit")):
        page = (tmp_path / f"{name}.html").read_text()
        outline(page.replace("<!doctype html>", ""))
        assert part in page and instance.hash[:12] in page
    instance.save(tmp_path / "jobs.json")
    document = json.loads((tmp_path / "jobs.json").read_text())
    assert module.Knapsack().read(document).hash == instance.hash
    instance.save(tmp_path / "jobs.mps", format="mps")
    assert ob.solve(str(tmp_path / "jobs.mps"), "highs", time_limit_s=20).objective == 10.0
    with pytest.raises(ob.UnsupportedError, match="'jobshop' is no format of a knapsack"):
        instance.save(tmp_path / "jobs.txt", format="jobshop")


def test_an_mps_file_is_shown_and_saved(tmp_path: Path) -> None:
    (tmp_path / "bag.mps").write_text(MAXIMISED_MPS)
    bag: Any = ob.load(tmp_path / "bag.mps")
    assert "3 columns (3 whole), 1 rows" in bag._repr_html_()
    shown = ob.solve(bag, "highs", time_limit_s=20)._repr_html_()
    assert "<td>13</td>" in shown and "maximise objective" in shown
    bag.save(tmp_path / "bag.json")
    assert ob.load(tmp_path / "bag.json").hash == bag.hash
