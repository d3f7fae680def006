"""The built-in studies: all can be read, and the paper's figures in them are those of the reference
run.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.hgnn_ablation import SEEDS, SPECS, VARIANTS, trained
from optbench.study.declared import Study
from optbench.study.study_file import load_study

STUDIES = Path(__file__).parents[2] / "studies"
BASELINES = {"DP": "default_policy", "UCB1": "ucb1", "JointNF": "joint_nf"}
# What search and training may use begins here; reports show what is below.
FIRST_FOR_TUNING = 500


@pytest.fixture(params=sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def study(request: pytest.FixtureRequest, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    return load_study(request.param)


def test_it_asks_something_and_its_formulas_are_sound(study: Study) -> None:
    assert study.question.endswith("?")
    assert study.problems and study.solvers
    assert study.gates or study.claims or study.tune is not None


def test_nothing_is_tuned_on_what_is_reported(study: Study) -> None:
    if study.tune is not None and "geo" in study.name:
        assert min(study.tune["seeds"]) >= FIRST_FOR_TUNING > max(study.seeds)


def test_every_cell_of_the_tables_is_claimed(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs completed and the queue at the end of each day, of three baselines: as the authors'
    simulator wrote them.
    """
    monkeypatch.setenv("OPTBENCH_DATA", str(data_dir))
    reference = json.loads((data_dir / "chsac-af" / "reference" / "results.json").read_text())
    claims = {claim.text: claim for claim in load_study(STUDIES / "chsac_af_paper.toml").claims}
    seen = 0
    for short, name in BASELINES.items():
        completed = claims[f"{short}: jobs completed in the week"]
        assert (completed.paper, completed.ours) == (
            reference[name]["completed"],
            f"completed({name})",
        )
        for day in range(1, 8):
            queue = claims[f"{short}: jobs that wait at the end of day {day}"]
            assert (queue.paper, queue.ours) == (
                reference[name][f"queue_day{day}"],
                f"queue_day{day}({name})",
            )
            assert queue.better == "equal" and queue.tolerance < 1e-6
            seen += 1
        units = claims[f"{short}: J per unit, as its simulator logs units"]
        assert units.paper == pytest.approx(reference[name]["J_per_unit_log"], abs=0.006)
    assert (
        seen == sum(bool(re.search("Table III", claim.source)) for claim in claims.values()) == 21
    )


def test_the_ablation_reads_the_networks_that_its_benchmark_trains() -> None:
    study = load_study(STUDIES / "hgnn_ablation.toml")
    files = {(each.name, each.params.get("checkpoint")) for each in study.solvers}
    folder = Path(".optbench/hgnn_ablation")
    made = {(each.solver, str(each.path)) for each in (trained(folder, v, 0) for v in VARIANTS)}
    assert {(name, str(path)) for name, path in files if path is not None} == made
    assert study.seeds == SEEDS and study.problems == SPECS


def test_flexible_deadlines_share_their_cells_with_the_claims() -> None:
    """What determines a cell is the same: the problem, the solvers with their budgets, the seeds
    and the limit of the bounds.
    """
    whole, part = (load_study(STUDIES / f"hgnn_{name}.toml") for name in ("paper", "flexible"))
    assert set(part.problems) < set(whole.problems) and part.labels.items() < whole.labels.items()
    assert (part.seeds, part.bound_limit_s) == (whole.seeds, whole.bound_limit_s)
