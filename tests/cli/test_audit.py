"""``optbench audit`` as its user meets it."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from optbench.cli.terminal import exits
from optbench.html.quantities import amount
from tests.audit.slurm import Partition, sacct_log
from tests.cli.conftest import Cli
from tests.sample_files.sample_records import sacct_text


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "march.sacct"
    path.write_text(sacct_text())
    return path


def test_an_audit_for_people_and_the_page(cli: Cli, log: Path, tmp_path: Path) -> None:
    done = cli(
        "audit",
        log,
        "--profile",
        "a100=A100-PCIe",
        "--html",
        "audit.html",
        "--instance",
        "runs.json",
    )
    assert done.code == exits.DONE
    assert (
        "no scheduler uses less than" in done.out
        and "excess by" in done.out
        and "written to audit.html" in done.out
    )
    assert "playing policies" in done.err
    assert "Where the excess comes from" in (tmp_path / "audit.html").read_text()
    assert cli("simulate", "runs.json", "--policy", "greedy", "--json").json["verified"] is True


def test_an_audit_for_machines(cli: Cli, log: Path) -> None:
    done = cli(
        "audit",
        log,
        "--profile",
        "a100=A100-PCIe",
        "--policy",
        "greedy,joint_nf",
        "--keep",
        "clock",
        "--json",
    )
    found = done.json
    assert done.code == exits.DONE and done.err == ""
    assert found["verified"] and found["runs"] == 5 and found["keep"] == ["clock"]
    assert {each["policy"] for each in found["policies"]} == {"greedy", "joint_nf"}
    assert found["least"]["energy_j"] <= found["recorded"]["energy_j"]


def generated(folder: Path) -> Path:
    """A queue of a day on two types: the time in which the log is complete is most of it."""
    path = folder / "day.sacct"
    path.write_text(
        sacct_log(1500, (Partition("a100", 2, 8, 0.6), Partition("v100", 2, 4, 0.4)), load=0.3)
    )
    return path


def test_one_advice_everywhere(cli: Cli, tmp_path: Path) -> None:
    """Terminal, page and document have the same rows, one of them is the configuration that the
    advice speaks of.
    """
    log = generated(tmp_path)
    words = ("--profile", "a100=A100-PCIe", "--profile", "v100=V100-PCIe")
    found = cli("audit", log, *words, "--html", "audit.html", "--json").json
    shown = cli("audit", log, *words).out.replace("\n", " ")
    page = unescape((tmp_path / "audit.html").read_text())
    assert found["take"]["params"], "a configuration that is not one of the plain policies"
    labels = [(each["policy"], sorted(each["params"].items())) for each in found["policies"]]
    assert (found["take"]["policy"], sorted(found["take"]["params"].items())) in labels
    (taken,) = [each for each in found["policies"] if each["taken"]]
    assert taken["policy"] == found["take"]["policy"] and taken["params"] == found["take"]["params"]
    assert taken["energy_j"] < found["recorded"]["energy_j"] and "slow" not in taken["note"]
    for each in found["policies"]:
        share = f"{100 * each['energy_j'] / found['recorded']['energy_j']:.1f} %"
        assert share in shown and share in page and amount(each["energy_j"], "J") in shown
        assert all(f"{key} = {value:.6g}" in page for key, value in each["params"].items())
    assert page.count('<tr class="take">') == 1
    assert found["advice"] in " ".join(shown.split()) and found["advice"][1:] in page
    assert (
        found["headline"] in " ".join(shown.split())
        and "100" not in found["headline"].split("saved")[0]
    )


def test_a_mixed_log_says_what_it_covers(cli: Cli, tmp_path: Path) -> None:
    """Without a profile of the larger type there is no headline saving and no advice; the reason
    stands where it would.
    """
    log = generated(tmp_path)
    found = cli("audit", log, "--profile", "v100=V100-PCIe", "--html", "audit.html", "--json").json
    assert (
        found["saving"] is None
        and found["take"] is None
        and not any(each["taken"] for each in found["policies"])
    )
    assert (
        found["coverage"]["share"] < 0.5 and "'a100', a type without a profile" in found["headline"]
    )
    shown = " ".join(cli("audit", log, "--profile", "v100=V100-PCIe").out.split())
    assert found["headline"] in shown and found["advice"] in shown and "can be saved" not in shown
    assert (
        "a type without a profile"
        in (tmp_path / "audit.html").read_text().partition('class="cards"')[0]
    )


def test_rows_without_a_type_make_no_gpus(cli: Cli, tmp_path: Path) -> None:
    """Every eighth row names no type, as where users ask for --gpus=2: the GPUs are those of the
    nodes' other rows.
    """
    log = generated(tmp_path)
    head, *rows = log.read_text().splitlines(keepends=True)
    bare = [
        re.sub(r"gres/gpu:[a-z0-9]+=\d+,", "", row) if k % 8 == 0 else row
        for k, row in enumerate(rows)
    ]
    (tmp_path / "bare.sacct").write_text(head + "".join(bare))
    profiles = [word for kind in ("a100", "gpu") for word in ("--profile", f"{kind}=A100-PCIe")]
    words = (*profiles, "--profile", "v100=V100-PCIe", "-s", "greedy", "--json")
    whole, found = (cli("audit", name, *words).json for name in ("day.sacct", "bare.sacct"))
    assert found["gpus"] == whole["gpus"] == {"a100": 16, "v100": 8}
    assert found["recorded"] == whole["recorded"]


def test_idle_time_before_the_log_begins_is_not_charged(cli: Cli, tmp_path: Path) -> None:
    """A run of 30 days that ends in the log: without it, or with it, the other 23 GPUs have idled
    no longer.
    """
    log = generated(tmp_path)
    long = (
        "7|x|2026-01-30T00:00:00|2026-01-30T00:00:00|2026-03-01T02:00:00||COMPLETED|"
        "gres/gpu:v100=1,gres/gpu=1|old1\n"
    )
    (tmp_path / "long.sacct").write_text(log.read_text() + long)
    words = ("--profile", "a100=A100-PCIe", "--profile", "v100=V100-PCIe", "-s", "greedy", "--json")
    whole, found = (
        cli("audit", name, *words).json["recorded"] for name in ("day.sacct", "long.sacct")
    )
    assert whole["rest_j"] < found["rest_j"] < 1.2 * whole["rest_j"]


def test_types_from_a_node_map(cli: Cli, tmp_path: Path) -> None:
    """A log that names no type at all: sinfo's list of nodes, or patterns, say which they are."""
    text = re.sub(r"gres/gpu:[a-z0-9]+=\d+,", "", generated(tmp_path).read_text())
    (tmp_path / "bare.sacct").write_text(text)
    (tmp_path / "nodes.txt").write_text(
        "NODELIST GRES\na100n[000-001] gpu:a100:8(S:0-1)\nv100n[000-001] gpu:v100:4\n"
    )
    words = ("--profile", "a100=A100-PCIe", "--profile", "v100=V100-PCIe", "-s", "greedy", "--json")
    listed = cli("audit", "bare.sacct", "--nodes", "nodes.txt", *words).json
    mapped = cli(
        "audit", "bare.sacct", "--node-type", "a100n*=a100", "--node-type", "*=v100", *words
    ).json
    assert listed["gpus"] == mapped["gpus"] == {"a100": 16, "v100": 8}
    assert listed["coverage"]["share"] == mapped["coverage"]["share"] == 1.0
    assert listed["recorded"] == mapped["recorded"]


def test_a_record_that_does_not_verify(cli: Cli, log: Path) -> None:
    done = cli("audit", log, "--profile", "a100=A100-PCIe", "--devices-per-node", "a100=1")
    assert done.code == exits.NOT_VERIFIED
    assert "violates capacity" in done.out and "--devices-per-node TYPE=N" in done.out
    found = cli(
        "audit", log, "--profile", "a100=A100-PCIe", "--devices-per-node", "a100=1", "--json"
    )
    assert (
        found.code == exits.NOT_VERIFIED
        and found.json["verified"] is False
        and found.json["violations"]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no type of device has a profile"),
        (("--profile", "a100=A1000"), "A1000"),
        (("--profile", "a100=A100-PCIe", "--keep", "clocks"), "did you mean 'clock'"),
        (("--profile", "a100=A100-PCIe", "--clock", "a100=fast"), "'fast' is not allowed"),
        (
            ("--profile", "a100=A100-PCIe", "--clock", "a100=0.55"),
            "levels of profile A100-PCIe: 0.3",
        ),
        (("--profile", "a100=A100-PCIe", "--policy", "gredy"), "did you mean 'greedy'"),
        (
            ("--profile", "a100=A100-PCIe", "--html", "nowhere/a.html"),
            "there is no folder 'nowhere'",
        ),
        (("--profile", "a100=A100-PCIe", "--html", "-", "--json"), "would mix"),
        (("--profile", "a100=A100-PCIe", "--nodes", "nodes.csv"), "nodes.csv: no such file"),
        (("--profile", "a100=A100-PCIe", "--nodes", "march.sacct"), "is no node with its GPUs"),
        (("--profile", "a100=A100-PCIe", "--node-type", "gpu[01-=a100"), "not a list of nodes"),
        (("--profile", "a100=A100-PCIe", "--node-type", "gpu01"), "write NODES=TYPE"),
        (
            ("--profile", "a100=A100-PCIe", "--since", "yesterday"),
            "'yesterday' is not a time; write 2026-03-01",
        ),
        (
            ("--profile", "a100=A100-PCIe", "--since", "2024-03-02", "--until", "2024-03-01"),
            "must be before --until",
        ),
        (
            ("--profile", "a100=A100-PCIe", "--since", "2025-03-02"),
            "no run lies in the time from 2025-03-02",
        ),
    ],
)
def test_mistakes(cli: Cli, log: Path, words: tuple[str, ...], said: str) -> None:
    done = cli("audit", log, *words)
    assert done.code == exits.USAGE and said in done.err
