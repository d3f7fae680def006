"""The workflow of the public forge runs the steps of .ci/run, and its files can be read."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
# PyYAML ships no types.
yaml: Any = importlib.import_module("yaml")


def read_job() -> dict[str, Any]:
    job: dict[str, Any] = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())["jobs"][
        "test"
    ]
    return job


def test_the_workflow_runs_the_steps_of_ci_run() -> None:
    steps = re.findall(
        r"^(?:timeout \d+ )?(make \w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE
    )
    assert len(steps) == 5
    assert [step["run"] for step in read_job()["steps"] if "run" in step] == steps


def test_the_time_limit_of_the_suite_is_that_of_ci_run() -> None:
    (seconds,) = re.findall(
        r"^timeout (\d+) make test$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE
    )
    assert read_job()["steps"][-1]["timeout-minutes"] * 60 == int(seconds)


def test_the_workflow_has_the_torch_of_the_makefile_and_the_oldest_python() -> None:
    (pinned,) = re.findall(r"^TORCH \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    (oldest,) = re.findall(
        r'^requires-python = ">=(\S+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    job = read_job()
    (setup,) = (
        step["with"]
        for step in job["steps"]
        if step.get("uses", "").startswith("actions/setup-python@")
    )
    assert job["env"]["TORCH"] == f"${{{{ vars.TORCH || '{pinned}' }}}}"
    assert setup["python-version"] == oldest and (ROOT / setup["cache-dependency-path"]).is_file()


@pytest.mark.parametrize("name", ["bug", "feature"])
def test_an_issue_template_has_fields_with_labels_of_their_own(name: str) -> None:
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    fields = [field["id"] for field in form["body"]]
    assert form["name"] and form["description"] and len(set(fields)) == len(fields) >= 3
    assert all(field["attributes"]["label"] for field in form["body"])
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_paths_named_in_a_file_exist() -> None:
    """Names with a folder, and names in capitals such as CHANGELOG.md."""
    pattern = re.compile(r"(?<![\w/])((?:\.?\w+/)+\w+\.(?:md|py|yml)|[A-Z]+\.md|\.ci/run)")
    texts = [path.read_text() for path in GITHUB.rglob("*.*") if path.is_file()]
    named = {name for text in texts for name in pattern.findall(text)}
    assert {"CHANGELOG.md", "docs/decisions.md"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
