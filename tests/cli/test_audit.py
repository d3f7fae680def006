"""``optbench audit`` as its user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.cli import exits
from optbench.testing.records import sacct_text
from tests.cli.conftest import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "march.sacct"
    path.write_text(sacct_text())
    return path


def test_an_audit_for_people_and_the_page(cli: Cli, log: Path, tmp_path: Path) -> None:
    done = cli("audit", log, "--profile", "a100=A100-PCIe", "--html", "audit.html", "--instance", "runs.json")
    assert done.code == exits.DONE
    assert "no scheduler uses less than" in done.out and "excess by" in done.out and "written to audit.html" in done.out
    assert "playing policies" in done.err
    assert "Where the excess comes from" in (tmp_path / "audit.html").read_text()
    assert cli("simulate", "runs.json", "--policy", "greedy", "--json").json["verified"] is True


def test_an_audit_for_machines(cli: Cli, log: Path) -> None:
    done = cli("audit", log, "--profile", "a100=A100-PCIe", "--policy", "greedy,joint_nf", "--keep", "clock", "--json")
    found = done.json
    assert done.code == exits.DONE and done.err == ""
    assert found["verified"] and found["runs"] == 5 and found["keep"] == ["clock"]
    assert {each["policy"] for each in found["policies"]} == {"greedy", "joint_nf"}
    assert found["least"]["energy_j"] <= found["recorded"]["energy_j"]


def test_a_record_that_does_not_verify(cli: Cli, log: Path) -> None:
    done = cli("audit", log, "--profile", "a100=A100-PCIe", "--devices-per-node", "a100=1")
    assert done.code == exits.NOT_VERIFIED
    assert "violates capacity" in done.out and "--devices-per-node TYPE=N" in done.out
    found = cli("audit", log, "--profile", "a100=A100-PCIe", "--devices-per-node", "a100=1", "--json")
    assert found.code == exits.NOT_VERIFIED and found.json["verified"] is False and found.json["violations"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no type of device has a profile"),
        (("--profile", "a100=A1000"), "A1000"),
        (("--profile", "a100=A100-PCIe", "--keep", "clocks"), "did you mean 'clock'"),
        (("--profile", "a100=A100-PCIe", "--clock", "a100=fast"), "'fast' is not allowed"),
        (("--profile", "a100=A100-PCIe", "--clock", "a100=0.55"), "levels of profile A100-PCIe: 0.3"),
        (("--profile", "a100=A100-PCIe", "--policy", "gredy"), "did you mean 'greedy'"),
        (("--profile", "a100=A100-PCIe", "--html", "nowhere/a.html"), "there is no folder 'nowhere'"),
        (("--profile", "a100=A100-PCIe", "--html", "-", "--json"), "would mix"),
        (("--profile", "a100=A100-PCIe", "--nodes", "nodes.csv"), "nodes.csv: no such file"),
        (("--profile", "a100=A100-PCIe", "--nodes", "march.sacct"), "is no node with its GPUs"),
        (("--profile", "a100=A100-PCIe", "--node-type", "gpu[01-=a100"), "no list of nodes"),
        (("--profile", "a100=A100-PCIe", "--node-type", "gpu01"), "write key=value"),
        (("--profile", "a100=A100-PCIe", "--since", "yesterday"), "'yesterday' is no time; write 2026-03-01"),
        (("--profile", "a100=A100-PCIe", "--since", "2024-03-02", "--until", "2024-03-01"), "must be before --until"),
        (("--profile", "a100=A100-PCIe", "--since", "2025-03-02"), "no run lies in the time from 2025-03-02"),
    ],
)
def test_mistakes(cli: Cli, log: Path, words: tuple[str, ...], said: str) -> None:
    done = cli("audit", log, *words)
    assert done.code == exits.USAGE and said in done.err
