"""The instruments of `benchmarks/rooms.py`, on small trees whose figures are counted by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks._architecture import rewritten, summary
from benchmarks._source_figures import Layers, Source, cycles, diagram, room_of
from benchmarks._walks import TracedCall, Walk, reason_for, visits

ROOT = Path(__file__).parents[1]
SOLVE_AND_TELL = (
    "from optbench.sim import kernel\ndef solve(tell):\n    kernel.step()\n    tell()\n"
)
LAYERS = 'LAYERS = (("optbench.cli",), ("optbench.plugins",), ("optbench.sim", "optbench.model"))\n'


def tree(root: Path, **files: str) -> Path:
    """Files by their path below optbench, with `__` for `/`."""
    for name, text in {"__init__": "", **files}.items():
        inside = name if name == "__init__" else name.replace("__", "/")
        path = root / "optbench" / f"{inside}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "tests").mkdir()
    (root / "tests" / "test_layers.py").write_text(LAYERS)
    return root


def test_cycles_rooms_and_names(tmp_path: Path) -> None:
    source = Source(tree(
        tmp_path,
        cli__main="from optbench.cli.verbs.run import go\nclass Row: ...\n",
        cli__verbs__run="def go():\n    from optbench.cli import main\nclass Row: ...\n",
        model__main="def name(s):\n    return s.partition(':')[0].partition('[')[0]\n",
        sim__kernel=(
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from optbench.cli import main\n"
            "class _Row: ...\n"
        ),
    ))  # fmt: skip
    found = source.figures()
    # main imports run at its top, run imports main late; kernel imports main for types alone.
    assert found["module cycles"] == [["optbench.cli.main", "optbench.cli.verbs.run"]]
    assert found["rooms that import each other"] == ["cli ~ cli.verbs"]
    assert found["top folders that import each other"] == []
    # Row twice, _Row is private; main.py twice.
    assert list(found["repeated public class names"]) == ["Row"]
    mains = ["optbench/cli/main.py", "optbench/model/main.py"]
    assert found["repeated basenames"] == {"main.py": mains}
    assert found["copies of the spec split"] == ["optbench/model/main.py"]
    assert found["files by top folder"] == {"cli": 2, "model": 1, "sim": 1, "optbench": 1}


def test_every_cycle_is_a_group_of_its_own() -> None:
    # a and b reach each other, so do d and e; c reaches both, and nobody reaches c.
    arrows = {"a": {"b"}, "b": {"a"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}
    assert cycles(arrows) == [["a", "b"], ["d", "e"]]


def test_the_diagram_leaves_out_what_follows(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        cli__main="import optbench.plugins.find\nimport optbench.model.data",
        plugins__find="import optbench.model.data",
        model__data="import optbench.sim.kernel",
        sim__kernel="",
    )
    lines = diagram(Source(root), Layers(root)).splitlines()
    # cli → model follows from cli → plugins → model; model → sim goes sideways.
    assert [line.strip() for line in lines if "->" in line] == [
        "optbench_cli --> optbench_plugins",
        "optbench_plugins --> optbench_model",
        "optbench_model -. against the layers .-> optbench_sim",
    ]


def test_a_room_is_entered_again_from_above_alone(tmp_path: Path) -> None:
    def call(caller: str, callee: str) -> TracedCall:
        start = f"optbench/{caller}.py" if caller else ""
        return TracedCall(1, start, "f", f"optbench/{callee}.py", "g")

    calls = [
        call("", "cli/main"),  # the start
        call("cli/main", "model/a"),  # model for the first time
        call("model/a", "model/b"),  # within the room
        call("model/b", "cli/line"),  # from below
        call("cli/main", "model/b"),  # again, but no new file
        call("cli/main", "model/c"),  # again, with a new file
    ]
    walk = Walk("solve", calls, Layers(tree(tmp_path)))
    assert [each.callee for each in walk.firsts] == [c.callee for c in calls if c is not calls[4]]
    assert walk.again == [calls[5]] and walk.again_ever == calls[4:]
    assert walk.figures()["rooms entered again"] == {"model": 1}
    assert room_of("optbench/api.py") == "api" and room_of("solvers/heft.py") == "solvers"


def traced_lines(root: Path) -> list[list[str]]:
    """The lines that each process of `main` writes, those of the first process first."""
    (root / "calls").mkdir()
    tracer = (ROOT / "benchmarks" / "_call_tracer.py").read_text()
    (root / "sitecustomize.py").write_text(tracer)
    tracing = {"OPTBENCH_TRACE_FOLDER": str(root / "calls"), "OPTBENCH_TRACE_ROOT": str(root)}
    subprocess.run(
        [sys.executable, "-c", "from optbench.cli.main import main; main()"],
        env={**os.environ, **tracing, "PYTHONPATH": str(root)}, cwd=root, check=True,
    )  # fmt: skip
    files = sorted((root / "calls").iterdir())
    return [file.read_bytes().rstrip(b"\0").decode().splitlines() for file in files]


def test_a_walk_is_a_tree_of_rooms_by_their_first_calls(tmp_path: Path) -> None:
    def call(caller: str, callee: str, stack: str = "") -> TracedCall:
        start = f"optbench/{caller}.py" if caller else ""
        return TracedCall(1, start, "f", f"optbench/{callee}.py", "g", stack)

    calls = [
        call("", "cli/main"),
        call("cli/main", "plugins/find"),
        call("plugins/find", "model/a"),  # model below plugins
        call("cli/main", "cli/line"),  # still the visit of cli
        call("plugins/find", "model/b"),  # the same visit of model
        call("cli/line", "model/c"),  # model below cli, a path of its own
        call("model/c", "cli/main", "cli>model>cli"),  # a callback
    ]
    walk = Walk("solve", calls, Layers(tree(tmp_path)))
    found = [(depth, visit.room, len(visit.files)) for depth, visit in visits(walk.tree())]
    assert found == [(0, "cli", 2), (1, "plugins", 1), (2, "model", 2), (1, "model", 1)]
    assert walk.again_on_stack == calls[6:]
    assert reason_for(calls[6]) == "no reason is known; mend it"


def test_a_room_that_calls_had_left_is_entered_again_on_the_stack(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        cli__main=(
            "from threading import Thread\n"
            "from optbench.plugins import play, wait\nfrom optbench.sim import kernel\n"
            "def show(): pass\n"
            "def main():\n    kernel.step()\n    play.solve(show)\n"
            "    thread = Thread(target=wait.solve, args=(show,))\n"
            "    thread.start()\n    thread.join()\n"
        ),
        # They call sim, as cli did before, which is no entry again, and cli's show, which is one.
        plugins__play=SOLVE_AND_TELL,
        plugins__wait=SOLVE_AND_TELL,  # in a thread
        sim__kernel="def step(): pass\n",
    )
    (lines,) = traced_lines(root)
    again = [line.split("\t")[2:] for line in lines if line.split("\t")[6]]
    show = ["solve", "optbench/cli/main.py", "show", "cli>plugins>cli"]
    assert again == [[f"optbench/plugins/{name}.py", *show] for name in ("play", "wait")]


def test_calls_are_traced_through_forks_and_not_while_modules_are_imported(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        cli__main=(
            "import os\nfrom optbench.sim import kernel\n"
            "def main():\n    kernel.play()\n"
            "    if os.fork() == 0:\n        from optbench.model import late\n"
            "        late.work()\n        os._exit(0)\n"
            "    os.wait()\n"
        ),
        sim__kernel="from optbench.sim.table import row\nrow()\ndef play(): pass\n",
        sim__table="def row(): pass\n",
        model__late="def work(): pass\n",
    )
    texts = traced_lines(root)
    # The parent enters main and kernel, its child late; row is called during an import alone.
    entered = [[line.split("\t")[4] for line in lines] for lines in texts]
    parent = ["optbench/cli/main.py", "optbench/sim/kernel.py"]
    assert entered == [parent, ["optbench/model/late.py"]]


def test_generated_parts_of_a_page_are_replaced_and_the_rest_is_kept() -> None:
    text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n"
    assert rewritten(text, {"x": "new"}) == "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n"
    with pytest.raises(SystemExit, match="'y'"):
        rewritten(text, {"y": "new"})


def test_a_summary_is_the_first_sentence(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Reads ``a.b``\nand c.json. Then more.\n\nThe rest."""\n')
    assert summary(path) == "Reads `a.b` and c.json"
