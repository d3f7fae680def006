"""Audits: a generated Slurm log of 200,000 jobs, a part of it as sacct prints it, with rows that
name no type, and the pods of Alibaba's GPU trace of 2023; writes docs/results/audit.md.

    python benchmarks/audit.py [--jobs 200000] [-o docs/results/audit.md]

The time is that of `optbench audit`, from the start of the process to the page and the document.
Exit code 1 when it takes more than LIMIT_S, when the record does not verify on its nodes, when the
bound is above a policy, or when the part that sacct prints says something else than the whole log
of the same time. Data: $OPTBENCH_DATA. A minute.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.audit.slurm import ORIGIN, PARTITIONS, sacct_log  # noqa: E402
from tests.audit.slurm_wear import as_printed, without_types  # noqa: E402

COMMAND = "python benchmarks/audit.py"
LIMIT_S = 60.0
UNTYPED_SHARE = 0.05
PROFILES = ("a100=A100-PCIe", "v100=V100-PCIe", "h100=H100-SXM")
MODELS = (
    "T4=T4",
    "P100=P100",
    "V100M16=V100-PCIe",
    "V100M32=V100-PCIe",
    "A10=A10",
    "G2=A10",
    "G3=A100-SXM",
)


@dataclass(frozen=True)
class Run:
    """What one command printed, its seconds, its processor's and its largest memory so far."""

    found: dict[str, Any]
    wall_s: float
    cpu_s: float
    peak_mb: float


def run(*words: str) -> Run:
    """``optbench audit`` in a process of its own."""
    command = [sys.executable, "-m", "optbench.cli.main", "audit", *words, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return Run(json.loads(done.stdout), wall_s, cpu_s, used.ru_maxrss / 1024)


def of_profiles(pairs: tuple[str, ...]) -> list[str]:
    return [word for pair in pairs for word in ("--profile", pair)]


def per_node() -> list[str]:
    return [
        word
        for each in PARTITIONS
        for word in ("--devices-per-node", f"{each.gpu_type}={each.gpus_per_node}")
    ]


def audit_log(jobs: int, folder: Path) -> Run:
    """The log lists every run from its first day on."""
    log = folder / "generated.sacct"
    log.write_text(sacct_log(jobs, seed=1, steps=True), encoding="utf-8")
    whole = ("--since", stamp(0), "--until", "2036-01-01")
    return run(
        str(log), *of_profiles(PROFILES), *per_node(), *whole, "--html", str(folder / "audit.html")
    )


def stamp(seconds: int) -> str:
    return str(ORIGIN + np.timedelta64(seconds, "s"))


def audit_parts(jobs: int, folder: Path) -> dict[str, Run]:
    """A part of a log: from the whole of it, and from what sacct prints of it, with rows that name
    no type.
    """
    text = sacct_log(jobs, seed=2)
    last = max(np.datetime64(line.split("|")[4]) for line in text.splitlines()[1:])
    span = int((last - ORIGIN).astype("timedelta64[s]").astype(np.int64))
    since, until = span * 3 // 10, span * 6 // 10
    window = ("--since", stamp(since), "--until", stamp(until))
    worn = as_printed(without_types(text, UNTYPED_SHARE, seed=3), since, until, until + 3600)
    out = {}
    for name, log, words in (
        ("the whole log, of that time", text, window),
        ("as printed, -S and -E given", worn, window),
        ("as printed, nothing given", worn, ()),
        ("as printed, no profile for h100", worn, window),
    ):
        path = folder / "part.sacct"
        path.write_text(log, encoding="utf-8")
        profiles = PROFILES[:2] if "no profile" in name else PROFILES
        out[name] = run(str(path), *of_profiles(profiles), *per_node(), "-s", "greedy", *words)
    return out


def audit_pods() -> Run:
    folder = Path(os.environ["OPTBENCH_DATA"]) / "alibaba-gpu-v2023"
    nodes = str(folder / "openb_node_list_gpu_node.csv")
    return run(
        str(folder / "openb_pod_list_default.csv"),
        "--nodes",
        nodes,
        *of_profiles(MODELS),
        "--work",
        "inference",
    )


def wrong_parts(parts: dict[str, Run]) -> list[str]:
    """What the part that sacct prints must say: the same as the whole log, or nothing."""
    whole, given, _, bare = (each.found for each in parts.values())
    out = []
    if whole["recorded"] != given["recorded"] or whole["gpus"] != given["gpus"]:
        out.append(
            "the part that sacct prints has another record than the whole log of the same time"
        )
    if bare["saving"] is not None or bare["take"] is not None:
        out.append("a headline or an advice about a part of the cluster")
    return out


def wrong(made: Run, jobs: int) -> list[str]:
    """What does not hold of what must."""
    found, out = made.found, []
    if found["coverage"]["share"] != 1.0:
        out.append(f"covers {100 * found['coverage']['share']:.1f} % of the GPU-hours")
    if made.wall_s > LIMIT_S:
        out.append(f"{made.wall_s:.1f} s, more than {LIMIT_S:g} s")
    if not found["verified"] or found["recorded"]["nodes_checked"] != jobs:
        out.append(f"verified on nodes: {found['recorded']['nodes_checked']:,} of {jobs:,} runs")
    least, recorded = found["least"], found["recorded"]
    if least["energy_j"] > recorded["energy_j"]:
        out.append("the bound is above the record")
    for each in found["policies"]:
        if each.get("error"):
            out.append(f"{each['policy']}: {each['error']}")
        elif each["least_j"] > each["energy_j"] or least["at_any_sojourn_j"] > each["energy_j"]:
            out.append(f"a bound is above {each['policy']}")
        elif each["sojourn_s"] <= recorded["sojourn_s"] and least["energy_j"] > each["energy_j"]:
            out.append(f"the bound is above {each['policy']}, which keeps the record's time")
    return out


def of_policy(each: dict[str, Any], recorded_j: float) -> str:
    words = ", ".join(f"{key} {value:g}" for key, value in each["params"].items())
    shown = f"{each['policy']}{f' ({words})' if words else ''}"
    share, gap = 100 * each["energy_j"] / recorded_j, 100 * each["gap"]
    cells = (
        f"{each['energy_j'] / 1e9:.2f}",
        f"{share:.1f} %",
        f"{each['sojourn_s']:,.0f}",
        f"{gap:.1f} %",
        f"{each['wall_s']:.2f}",
    )
    return f"| {' | '.join((shown, *cells))} |"


def page(made: Run, parts: dict[str, Run], pods: Run, failures: list[str]) -> str:
    held = (
        f"Everything that must hold does: within {LIMIT_S:g} s, verified node by node, no "
        "bound above a policy."
    )
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "highspy"))
    return f"""# Audits

Written by `{COMMAND}` on {platform.machine()} with {os.cpu_count()} CPUs.
Python {platform.python_version()}, {versions}.
{"; ".join(failures) or held}

## A generated Slurm log

{of_log(made)}
## A part of a log, as sacct prints it

{of_parts(parts)}
## Alibaba GPU 2023: pods without a node and without power

{of_pods(pods)}"""


def advice_of(found: dict[str, Any]) -> str:
    take = found["take"]
    if take is None:
        return str(found["advice"])
    params = ", ".join(f"{k} {v:g}" for k, v in take["params"].items()) or "defaults"
    half = take["second_half"]
    return (
        f"{take['policy']} ({params}), chosen among {take['tried']} on the first half of the runs: "
        f"{100 * half['saving']:.1f} % below the record on the second half, at "
        f"{half['sojourn_s']:,.0f} s (record: {half['recorded_s']:,.0f} s)"
    )


def of_log(made: Run) -> str:
    found = made.found
    recorded, least, prices = found["recorded"], found["least"], found["prices"]
    total = recorded["energy_j"]
    causes = "\n".join(
        f"| {name} | {value / 1e9:.2f} | {100 * value / total:.1f} % |"
        for name, value in found["causes_j"].items()
    )
    rows = "\n".join(
        of_policy(each, total)
        for each in sorted(found["policies"], key=lambda each: float(each["energy_j"]))
    )
    gpus = "; ".join(
        f"one more {name} {-value / 1e6:+,.1f} MJ" for name, value in prices["gpu_j"].items()
    )
    advice = advice_of(found)
    cluster = ", ".join(f"{count} {kind}" for kind, count in found["gpus"].items())
    return f"""{found["runs"]:,} jobs with node lists and a step each on {cluster}: one process,
**{made.wall_s:.1f} s** from its start to the page and the document ({made.cpu_s:.1f} s of
processor time), {made.peak_mb:,.0f} MB. All {recorded["nodes_checked"]:,} runs verify on their
nodes.

| | GJ | of the record |
| --- | --- | --- |
| record | {total / 1e9:.2f} | 100 % |
| certified least at the record's mean time in the system ({recorded["sojourn_s"]:,.0f} s) | \
{least["energy_j"] / 1e9:.2f} | {100 * least["energy_j"] / total:.1f} % |
| the same, idle GPUs awake | {least["idle_gpus_awake_j"] / 1e9:.2f} | \
{100 * least["idle_gpus_awake_j"] / total:.1f} % |
| certified least at any mean time | {least["at_any_sojourn_j"] / 1e9:.2f} | \
{100 * least["at_any_sojourn_j"] / total:.1f} % |

| excess by | GJ | of the record |
| --- | --- | --- |
{causes}

Gaps are to the certified least at the policy's own mean time in the system.

| policy | GJ | of the record | mean time s | gap | s |
| --- | --- | --- | --- | --- | --- |
{rows}

Advice: {advice}.

Least energy with {gpus}; a second more of mean time at most {prices["second_j"] / 1e6:,.2f} MJ
less; a watt less of mean power costs at least {prices["watt_s"] or 0.0:.3g} s of it.
"""


def of_parts(parts: dict[str, Run]) -> str:
    rows = []
    for name, made in parts.items():
        found = made.found
        recorded, coverage = found["recorded"], found["coverage"]
        gpus = ", ".join(f"{count} {kind}" for kind, count in found["gpus"].items())
        saving = "none" if found["saving"] is None else f"{100 * found['saving']:.1f} %"
        cells = (
            name, f"{found['runs']:,}", gpus, f"{100 * coverage['share']:.1f} %",
            f"{recorded['energy_j'] / 1e9:.3f}", f"{recorded['rest_j'] / 1e9:.3f}", saving,
        )  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    table = "\n".join(rows)
    return f"""The time from 30 to 60 % of a generated log: from the whole log, and from what
`sacct -S -E` prints of it an hour after its end, with runs that began before it and runs that
still go on; {100 * UNTYPED_SHARE:.0f} % of the rows name no type of GPU.

| log | runs | GPUs | GPU-hours covered | record GJ | of it idle GJ | headline saving |
| --- | --- | --- | --- | --- | --- | --- |
{table}
"""


def of_pods(pods: Run) -> str:
    interval = pods.found
    low, high = interval["recorded"]["energy_j"]
    at_low, at_high = interval["least"]["at_recorded_ends_j"]
    return f"""{interval["runs"]:,} pods that held GPUs and have ended, on
{sum(interval["gpus"].values()):,} GPUs; {pods.wall_s:.1f} s. The trace says neither where a pod ran
nor what it drew, and does not disclose the types G2 and G3: profiles assumed are
{", ".join(MODELS)}. All ends are proved.

| | GJ |
| --- | --- |
| record, wherever the pods ran | {low / 1e9:,.1f} to {high / 1e9:,.1f} |
| certified least, wherever they ran | {interval["least"]["energy_j"] / 1e9:,.1f} |
| certified least where the record used least, most | {at_low / 1e9:,.1f}, {at_high / 1e9:,.1f} |

Nearly all of the excess is idle GPUs awake: the pods of this trace fill a small part of its GPUs.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results" / "audit.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = audit_log(options.jobs, Path(folder))
        parts = audit_parts(options.jobs // 10, Path(folder))
    failures = wrong(made, options.jobs) + wrong_parts(parts)
    options.output.write_text(page(made, parts, audit_pods(), failures), encoding="utf-8")
    print(f"{made.wall_s:.1f} s", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
