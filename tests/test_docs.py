"""What the documents show works: every Python block runs, every command parses, every link leads
somewhere.
"""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from optbench.cli.main import build_parser, main

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "mlflow" / "README.md",
]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("name", ["README.md", "docs/guide.md"])
def test_the_examples_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "\n".join(blocks(ROOT / name, "python"))
    assert "ob.solve(" in code
    (tmp_path / "page.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("page.py", run_name="page")


def test_each_example_of_the_plugin_page_runs_by_itself(tmp_path: Path) -> None:
    found = blocks(ROOT / "docs" / "plugins.md", "python")
    assert len(found) == 7
    for code in found:
        (tmp_path / "page.py").write_text(code)
        runpy.run_path(str(tmp_path / "page.py"), run_name="page")


def test_the_example_of_a_training_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks are the files that the page names. It trains for 2 epochs instead of 200, on two
    devices alike: the speed of a throttled one is checked, which other work would disturb.
    """
    page = ROOT / "docs" / "gnn_training.md"
    model, use = blocks(page, "python")[:2]
    graph, nodes = blocks(page, "csv")
    devices = blocks(page, "json")[0].replace('"gflops": 20', '"gflops": 40')
    files = {"my_model.py": model, "my_graph.csv": graph, "my_nodes.csv": nodes}
    for name, text in {**files, "my.json": devices, "use.py": use}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = shlex.split(blocks(page, "sh")[0])
    assert "node_table=my_nodes.csv" in words[2]
    words[2] += ",epochs=2"
    assert main([*words[1:], "--work-limit", "2"]) == 0
    runpy.run_path("use.py")


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_on_a_page_parse(page: Path) -> None:
    parser, _ = build_parser()
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "optbench":
                parser.parse_args(words[1:])


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_on_a_page_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
