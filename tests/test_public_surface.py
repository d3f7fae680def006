"""What plug-ins may import: the public modules, which are documented and used by nobody inside."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import optbench
import optbench.rules
import optbench.testing
from tests.test_docs import blocks
from tests.test_layers import imports

ROOT = Path(__file__).parents[1]
PUBLIC = ("optbench", "optbench.rules", "optbench.shapes", "optbench.testing")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TEMPLATES = sorted((ROOT / "optbench" / "templates").glob("*.py.txt"))
LISTED = re.compile(r"<!-- surface -->\n(.*?)<!-- end of surface -->", re.DOTALL)


def names_of(module: str) -> set[str]:
    """The names that a public module exports."""
    found = import_module(module)
    if module == "optbench.testing":
        return set(found.__all__)
    return {*found._HOME, *getattr(found, "_MODULES", ())}


def not_public(source: str) -> list[str]:
    """What a text imports of optbench beyond the public names."""
    allowed = {f"{module}.{name}" for module in PUBLIC for name in names_of(module)}
    allowed |= {*PUBLIC, "optbench.__version__"}
    found = imports(source, "plugin", False)
    return [each for each in found if each.split(".")[0] == "optbench" and each not in allowed]


def plain_rules() -> Iterator[Path]:
    """Solvers that are a rule and nothing more."""
    for path in sorted((ROOT / "solvers").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(base) in ("RulePolicy", "ob.RulePolicy") for base in node.bases
            ):
                yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_the_documents_import_public_names_only(page: Path) -> None:
    assert [name for code in blocks(page, "python") for name in not_public(code)] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_import_public_names_only(template: Path) -> None:
    source = template.read_text().replace("$CLASS", "Plugin").replace("$NAME", "plugin")
    assert not_public(source) == []


def test_plain_rules_import_public_names_only() -> None:
    rules = list(plain_rules())
    assert {path.stem for path in rules} >= {"fcfs", "edf", "heft", "min_energy", "fixed_dvfs"}
    assert {path.name: not_public(path.read_text()) for path in rules} == {
        path.name: [] for path in rules
    }


def test_an_import_from_inside_is_seen() -> None:
    assert not_public("import optbench as ob\nfrom optbench.rules import list_rule") == []
    assert not_public("from optbench.sim.rules import list_rule") == [
        "optbench.sim.rules.list_rule"
    ]
    assert not_public("def f():\n    import optbench.cli") == ["optbench.cli"]
    assert not_public("from optbench.rules import nothing") == ["optbench.rules.nothing"]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there_and_documented(module: str) -> None:
    found = import_module(module)
    assert [name for name in sorted(names_of(module)) if not hasattr(found, name)] == []
    text = LISTED.findall((ROOT / "docs" / "plugins.md").read_text())[0]
    row = next(line for line in text.splitlines() if line.startswith(f"| `{module}` |"))
    assert set(re.findall(r"`(\w+)`", row.split("|", 2)[2])) == names_of(module)


def test_lazy_names_of_rules_are_known_to_type_checkers() -> None:
    pattern = r"^    from (\S+) import (\w+) as \2$"
    source = Path(str(optbench.rules.__file__)).read_text()
    typed = re.findall(pattern, source, flags=re.MULTILINE)
    assert {name: home for home, name in typed} == optbench.rules._HOME
    assert set(optbench.rules._HOME) <= set(dir(optbench.rules))
    with pytest.raises(AttributeError, match="no attribute 'list_rul'"):
        getattr(optbench.rules, "list_" + "rul")


def test_a_rule_of_five_lines(tmp_path: Path) -> None:
    """The shortest rule there is: one import, and a class of one method."""
    source = (
        "from optbench.rules import RulePolicy, list_rule\n"
        "class Mine(RulePolicy):\n"
        '    """Longest first."""\n'
        "    def rule(self, instance, rng):\n"
        "        return list_rule(instance, base=-instance.tasks.units, end_weight=1.0)\n"
    )
    path = tmp_path / "mine.py"
    path.write_text(source)
    made = runpy.run_path(str(path))
    result = optbench.solve("jobshop:jobs=2,machines=2", made["Mine"]())
    assert result.verified and result.gap is not None
