"""``optbench report``: what is written where, for people and for machines, and what it says when
there is nothing.
"""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli

STUDY = """\
question = "Which rule is closer?"
problems = ["jobshop:jobs=3,machines=2"]
solvers = ["fcfs", "heft"]
seeds = 2
bound_limit = "1s"

[gates]
heft = "study_gap < 1"
"""


def test_a_study_and_the_list_of_studies(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "optbench.toml").touch()
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "rules.toml").write_text(STUDY)
    assert cli("report").code == 2
    never = cli("report", "rules")
    assert never.code == 2 and "optbench run rules" in never.err
    assert "did you mean 'rules'?" in cli("report", "ruls").err
    assert cli("run", "rules", "--no-track", "-q").code == 0

    shown = cli("report", "rules")
    page = tmp_path / ".optbench" / "studies" / "rules" / "report.html"
    assert shown.code == 0 and str(page) in shown.out and "Which rule is closer?" in shown.out
    assert "Which rule is closer?" in page.read_text() and "gap &lt; 1" in page.read_text()

    told = cli("report", "rules", "--json", "-o", "here.html").json
    assert (told["study"], told["cells"], told["done"], told["failed"], told["report"]) == (
        "rules",
        6,
        6,
        0,
        "here.html",
    )
    assert {each["solver"] for each in told["ranking"]} == {"fcfs", "heft"}
    assert told["gates"][0]["verdict"] == "holds" and told["verdict"]
    assert [each["words"] for each in told["caveats"]] == [
        (
            "2 instances are too few for 95 % intervals: theirs are too narrow, and tell no "
            "solvers "
            "apart"
        )
    ]
    assert (
        '"../../cells/' in page.read_text()
        and '".optbench/cells/' in (tmp_path / "here.html").read_text()
    )

    listed = cli("report", "--json").json
    assert [each["study"] for each in listed["studies"]] == ["rules"]
    assert 'href="rules/report.html"' in Path(listed["report"]).read_text()


def test_the_page_goes_to_a_file(cli: Cli) -> None:
    assert "give the path of a file" in cli("report", "quickstart", "-o", "-").err
    assert (
        "there is no folder 'no/such'" in cli("report", "quickstart", "-o", "no/such/page.html").err
    )
