"""Plans that come back from the store: the same as they were, whatever became of study file and
plug-ins.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from optbench.errors import FileFormatError, OptbenchError
from optbench.run.runner import keep_plan
from optbench.store.run_store import Store
from optbench.store.snapshots import load_plan, load_plans, studies_run
from optbench.study.declared import Study
from optbench.study.instance_sources import MadeInstance
from optbench.study.planning import Plan, plan
from optbench.study.study_file import load_study

TEXT = """
question = "Which?"
problems = ["jobshop:jobs=[2,3],machines=2"]
solvers = ["fcfs", "random_rules:k=[8,16]", { name = "long", solver = "cpsat", time_limit = "9s" }]
seeds = 2
repetitions = 2
time_limit = "2s"
metrics = ["energy_j"]
reference = "fcfs"
[gates]
long = "gap <= 1%"
[[claims]]
text = "Less"
source = "a paper"
paper = -0.34
ours = "rel(objective, long, fcfs)"
"""


def made(study: Study) -> tuple[MadeInstance, ...]:
    return tuple(
        MadeInstance(t, s, f"{t}-{s}", f"hash-{t}-{s}") for t in study.problems for s in study.seeds
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / ".optbench").make()


def kept(folder: Path, store: Store, text: str = TEXT) -> tuple[Path, Plan]:
    path = folder / "mine.toml"
    path.write_text(text)
    study = load_study(path)
    planned = plan(study, (*made(study), MadeInstance("lost", 0, "lost", None, error="why")))
    keep_plan(planned, store)
    return path, planned


def test_a_plan_comes_back_as_it_was(tmp_path: Path, store: Store) -> None:
    path, planned = kept(tmp_path, store)
    for name in ("mine", path, str(path)):
        back = load_plan(name, store)
        assert (back.cells, back.made, back.changed) == (planned.cells, planned.made, None)
        assert [cell.key for cell in back.cells] == [cell.key for cell in planned.cells]
        assert back.study == planned.study
    assert studies_run(store) == ["mine"]
    assert list(load_plans(store)) == [planned]


def test_and_without_its_file(tmp_path: Path, store: Store) -> None:
    path, planned = kept(tmp_path, store)
    path.unlink()
    back = load_plan("mine", store)
    assert back.study == replace(planned.study, path=path.absolute())
    assert back.study.config_hash == planned.study.config_hash
    assert [cell.key for cell in back.cells] == [cell.key for cell in planned.cells]
    assert back.changed is not None and "can no longer be read" in back.changed


def test_words_are_those_of_the_file_as_it_is_now(tmp_path: Path, store: Store) -> None:
    """Gates, claims and labels decide no cell: they may be written after the run."""
    path, planned = kept(tmp_path, store)
    text = TEXT.replace("gap <= 1%", "gap <= 2%").replace("Less", "More").replace("Which?", "Who?")
    path.write_text(text.replace("long", "slow"))
    back = load_plan("mine", store)
    assert back.changed is None
    assert (back.study.gates, back.study.claims[0].text, back.study.question) == (
        {"slow": "gap <= 2%"},
        "More",
        "Who?",
    )
    assert [cell.key for cell in back.cells] == [cell.key for cell in planned.cells]
    assert {cell.label for cell in back.solving} == {
        "fcfs",
        "random_rules:k=8",
        "random_rules:k=16",
        "slow",
    }


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("seeds = 2", "seeds = 3", "seeds"),
        ("repetitions = 2", "repetitions = 1", "repetitions"),
        ("jobs=[2,3]", "jobs=2", "problems"),
        ('"2s"', '"3s"', "solvers or their budgets"),
        ("k=[8,16]", "k=8", "solvers or their budgets"),
        ("\nmetrics", '\nbound_limit = "1s"\nmetrics', "bound_limit"),
        ("seeds = 2\nrepetitions = 2", "seeds = [1, 0]\nrepetitions = 1", "repetitions"),
    ],
)
def test_other_cells_than_were_run_are_said(
    tmp_path: Path, store: Store, old: str, new: str, field: str
) -> None:
    path, planned = kept(tmp_path, store)
    path.write_text(TEXT.replace(old, new))
    back = load_plan("mine", store)
    assert back.cells == planned.cells
    assert back.changed is not None and f"has changed since the last run ({field})" in back.changed


def test_the_order_of_things_is_no_other_configuration(tmp_path: Path, store: Store) -> None:
    path, planned = kept(tmp_path, store)
    turned = (
        TEXT.replace("k=[8,16]", "k=[16,8]")
        .replace("jobs=[2,3]", "jobs=[3,2]")
        .replace("seeds = 2", "seeds = [1, 0]")
    )
    path.write_text(turned)
    assert load_study(path).config_hash == planned.study.config_hash
    assert load_plan("mine", store).changed is None


def test_a_study_and_its_files_may_move_together(tmp_path: Path) -> None:
    hashes = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.txt").write_text("2 2\n0 3 1 2\n0 4 1 2\n")
        (tmp_path / name / "s.toml").write_text('problems = ["shop.txt"]\nsolvers = ["fcfs"]')
        hashes.append(load_study(tmp_path / name / "s.toml").config_hash)
    assert hashes[0] == hashes[1]


def test_a_plug_in_that_has_vanished(tmp_path: Path, store: Store) -> None:
    path, _ = kept(tmp_path, store, TEXT.replace('"fcfs", ', '"fcfs", "heft", '))
    path.write_text(path.read_text().replace('"heft"', '"vanished"'))
    back = load_plan("mine", store)
    assert "heft" in {cell.label for cell in back.cells}
    assert back.changed is not None and "unknown solver 'vanished'" in back.changed


def test_never_run(tmp_path: Path, store: Store) -> None:
    (tmp_path / "mine.toml").write_text(TEXT)
    with pytest.raises(OptbenchError, match="optbench run quickstart"):
        load_plan("quickstart", store)
    with pytest.raises(OptbenchError, match=r"optbench run .*mine\.toml"):
        load_plan(tmp_path / "mine.toml", store)
    with pytest.raises(
        FileFormatError, match=r"absent\.toml: no such file, and no study 'absent' was run here"
    ):
        load_plan(tmp_path / "absent.toml", store)
    kept(tmp_path, store)
    with pytest.raises(OptbenchError, match="did you mean 'mine'"):
        load_plan("mien", store)


def test_a_snapshot_that_cannot_be_read(tmp_path: Path, store: Store) -> None:
    kept(tmp_path, store)
    (snapshot,) = (store.folder / "studies" / "mine").glob("*.json")
    for text in (
        "{",
        "[]",
        '{"format": "optbench-plan", "version": 99}',
        '{"format": "optbench-plan", "version": 1}',
    ):
        snapshot.write_text(text)
        with pytest.raises(FileFormatError, match="the plan cannot be read"):
            load_plan("mine", store)


def test_cells_of_the_same_content_are_one(tmp_path: Path) -> None:
    """A file is one instance, whatever the seed: it is bounded once, and solved with every seed."""
    (tmp_path / "shop.txt").write_text("2 2\n0 3 1 2\n0 4 1 2\n")
    (tmp_path / "s.toml").write_text(
        'problems = ["shop.txt"]\nsolvers = ["fcfs"]\nseeds = 3\nrepetitions = 2'
    )
    study = load_study(tmp_path / "s.toml")
    planned = plan(
        study, tuple(MadeInstance(study.problems[0], seed, "shop", "h") for seed in study.seeds)
    )
    assert len(planned.bounding) == 1 and sum(cell.kind == "bound" for cell in planned.cells) == 1
    assert len(planned.solving) == 6 and len({cell.seed for cell in planned.solving}) == 6


def test_the_file_as_it_was_before_finds_what_was_run_then(tmp_path: Path, store: Store) -> None:
    path, before = kept(tmp_path, store)
    kept(tmp_path, store, TEXT.replace("seeds = 2", "seeds = 3"))
    assert len(load_plan("mine", store).study.seeds) == 3
    path.write_text(TEXT)
    back = load_plan("mine", store)
    assert (back.cells, back.changed) == (before.cells, None)


def test_two_files_of_one_name_are_two_studies(tmp_path: Path, store: Store) -> None:
    plans = []
    for folder, text in (("one", TEXT), ("two", TEXT.replace("jobs=[2,3]", "jobs=4"))):
        (tmp_path / folder).mkdir()
        plans.append(kept(tmp_path / folder, store, text))
    for path, planned in plans:
        back = load_plan(path, store)
        assert (back.cells, back.changed) == (planned.cells, None)


PLUGIN = """
from dataclasses import dataclass
from pathlib import Path
import optbench as ob

@dataclass
class Trained(ob.Solver):
    weights: Path = Path("none")

    def solve(self, instance, run):
        return None
"""


def test_a_workspace_with_files_of_solvers_may_move(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "solvers").mkdir(parents=True)
    (old / "optbench.toml").touch()
    (old / "weights").write_text("1")
    (old / "solvers" / "trained.py").write_text(PLUGIN)
    (old / "mine.toml").write_text(
        'problems = ["jobshop:jobs=2,machines=2"]\nsolvers = ["trained:weights=weights"]'
    )
    script = (
        "from optbench.run.runner import keep_plan; from optbench.store.run_store import Store; "
        "from optbench.store.snapshots import load_plan; from optbench.study.planning import plan; "
        "from optbench.study.study_file import load_study; "
        "from optbench.study.instance_sources import MadeInstance; import sys\n"
        "store = Store().make(); study = load_study('mine.toml')\n"
        "if sys.argv[1:]: keep_plan(plan(study, (MadeInstance('t', 0, 't-0', 'h'),)), store)\n"
        "print(load_plan('mine.toml', store).changed)"
    )
    for root, words in ((old, ["keep"]), (new, [])):
        if root == new:
            old.rename(new)
        env = {**os.environ, "OPTBENCH_WORKSPACE": str(root)}
        command = [sys.executable, "-c", script, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env=env, cwd=root, check=False
        )
        assert done.stdout == "None\n", done.stderr
