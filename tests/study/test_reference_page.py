"""docs/studies.md names all that there is, and its study can be read."""

from __future__ import annotations

import re
from pathlib import Path

from optbench.study.expectations import CLAIM_KEYS
from optbench.study.formula_binding import FUNCTIONS
from optbench.study.formula_names import KNOWN
from optbench.study.statistics_section import OF_CELLS, SCALES, STATISTICS_KEYS
from optbench.study.study_file import KEYS, load_study

PAGE = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")


def test_every_key_metric_and_function_is_on_the_page() -> None:
    text = re.sub(r"^```.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert {*KEYS, *CLAIM_KEYS, *KNOWN, *FUNCTIONS} <= named
    assert {*STATISTICS_KEYS, *OF_CELLS, *SCALES} <= named


def test_its_study_can_be_read(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "page.toml").write_text(text)
    study = load_study(tmp_path / "page.toml")
    assert [entry.label for entry in study.solvers] == [
        "cpsat",
        "heft",
        "random_rules:k=8",
        "random_rules:k=128",
        "slow clock",
    ]
    assert (
        set(study.gates) == {"cpsat", "random_rules:k=128", "best rule"} and len(study.claims) == 1
    )
