"""Does any policy read the future? Every policy in the tree, on every stream that it supports.

    python benchmarks/causality.py [-o docs/results/causality.md] [POLICY ...]

Each policy runs on instances of arriving work, and on the same with another future from a moment
on (optbench.testing.futures). Up to that moment it must start the same jobs at the same times in
the same modes. Policies that say ``clairvoyant = True`` must not. Minutes on one core, nearly all
of it lp_guided and random_rules. Exit code 1 where a policy, or its label, is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optbench.api import load_target
from optbench.compiling.kernel_table import prepare
from optbench.plugins import discovery
from optbench.plugins.policy import Policy
from optbench.testing.causality import ChangedFuture, compared, streams_for, supports
from optbench.testing.futures import STREAMS, FutureStream
from optbench.testing.process_suite import SHARES

ROOT = Path(__file__).resolve().parents[1]
MOMENTS = (0.25, 0.5, 0.75)
# The families of the catalogue whose work arrives over time; elsewhere there is no future.
SPECS = (
    "geo_dc:days=0.02,shrink=0.06",
    "geo_dc:days=0.02,shrink=0.06,drain=yes,minimize=cost",
    "geo_dc:days=0.02,shrink=0.06,outage=us-west@0.3h+0.1h",
)
FAMILIES = tuple(
    FutureStream(f"`{spec}`", {}, lambda _, spec=spec: load_target(spec)) for spec in SPECS
)
# Faster parameters of the same code, where the defaults take an hour.
QUICK = {"lp_guided": "lp_guided:resolve_every=1,steps=20", "random_rules": "random_rules:k=30"}


LETTERS = {each.name: chr(ord("A") + k) for k, each in enumerate((*STREAMS, *FAMILIES))}


@dataclass
class Checked:
    """A policy and every comparison that was made."""

    name: str
    policy: Policy
    found: list[ChangedFuture]
    seconds: float

    @property
    def different(self) -> list[ChangedFuture]:
        return [each for each in self.found if each.difference is not None]

    @property
    def is_right(self) -> bool:
        return bool(self.different) == self.policy.clairvoyant

    @property
    def verdict(self) -> str:
        if self.policy.clairvoyant:
            share = f"{len(self.different)} of {len(self.found)} futures change a decision"
            return f"clairvoyant: {share}" if self.different else "WRONG LABEL: causal"
        return "causal" if not self.different else f"READS THE FUTURE: {self.different[0]}"

    def row(self) -> str:
        streams = {LETTERS[each.stream] for each in self.found}
        decisions = sum(each.decisions for each in self.found)
        return (
            f"| {self.name} | {' '.join(sorted(streams))} | {len(self.found)} | {decisions:,} | "
            f"{self.verdict} |"
        )


def policies(names: list[str]) -> Iterator[tuple[str, Policy]]:
    """The policies in the tree, built-in and of the workspace, or those that are named."""
    for name in names or discovery.names("solver"):
        cls = discovery.load_class("solver", name)
        if issubclass(cls, Policy):
            yield name, discovery.load_solver(QUICK.get(name, name))[1]  # type: ignore[misc]


def check(name: str, policy: Policy) -> Checked:
    families = [each for each in FAMILIES if supports(policy, name, each.instance)]
    streams = streams_for(policy, name) + families
    for stream in streams:
        prepare(policy.kernels(stream.instance))
    began = time.perf_counter()
    moments = MOMENTS[1:2] if name in QUICK else MOMENTS
    found = [each for stream in streams for each in compared(policy, stream, moments)]
    return Checked(name, policy, found, time.perf_counter() - began)


def page(rows: list[Checked]) -> str:
    futures = sum(len(each.found) for each in rows)
    decisions = sum(future.decisions for each in rows for future in each.found)
    wrong = [each.name for each in rows if not each.is_right]
    quick = ", ".join(f"`{spec}`" for spec in QUICK.values())
    return "\n".join([
        "# Policies see only what has happened",
        "",
        "`python benchmarks/causality.py`. Every policy in the tree runs on each instance of "
        "arriving work that it",
        "supports, and on the same instance with another future after a quarter, half and three "
        "quarters of the tasks have",
        "arrived. Later jobs are larger, smaller, of other kinds, come at other times (or all of "
        "this), not at all, or twice;",
        "devices fail later, or not at all; a device that was lost comes back later or does not. "
        "Until then it must start the same jobs at the same times",
        "in the same modes. What is known beforehand stays: pools, modes, tariffs, the horizon, "
        "announced outages.",
        "",
        f"{len(rows)} policies, {futures:,} changed futures, {decisions:,} decisions compared; "
        f"wrong: {', '.join(wrong) or 'none'}.",
        f"With faster parameters, and after half of the tasks only: {quick}.",
        "",
        "| policy | instances | futures | decisions compared | result |",
        "| --- | --- | --- | --- | --- |",
        *(each.row() for each in rows),
        "",
        "| | instance | tasks | features |",
        "| --- | --- | --- | --- |",
        *(
            f"| {LETTERS[each.name]} | {each.name} | {each.instance.num_tasks} | {features(each)} |"
            for each in STREAMS + FAMILIES
        ),
        "",
        "Policies of the process of another shape (`tests/sample_files/serving_workspace.py`), "
        "after a quarter, half and",
        "three quarters of the observations, and two made to be caught:",
        "",
        "| policy | futures | that change an action | result |",
        "| --- | --- | --- | --- |",
        *process_rows(),
        "",
        "The suites for plug-in authors (`PolicyConformance`, `ProcessConformance`) hold users' "
        "policies to the same; a policy in",
        "Python, and a rule that is not `job_by_job`, is not given what has not arrived.",
        "",
    ])  # fmt: skip


def features(stream: FutureStream) -> str:
    return ", ".join(sorted(stream.instance.features))


def process_rows() -> Iterator[str]:
    """The policies of the example of a process, and two that read ahead."""
    sys.path.insert(0, str(ROOT))
    from tests.testing.test_process_suite import (
        Oracle,
        Smuggler,
        TestFirstRoom,
        TestTightest,
        tried,
    )

    suites = {"first_room": TestFirstRoom(), "tightest": TestTightest()}
    suites |= {"smuggler": tried(Smuggler()), "oracle (`clairvoyant = True`)": tried(Oracle())}
    for name, suite in suites.items():
        found, futures = suite.differences(suite.load()[1]), suite.seeds * len(SHARES)
        verdict = f"reads the future: {found[0]}" if found else "causal"
        yield f"| {name} | {futures} | {len(found)} | {verdict} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("policies", nargs="*")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    rows = []
    for name, policy in policies(args.policies):
        rows.append(check(name, policy))
        print(f"{name}: {rows[-1].verdict} ({rows[-1].seconds:.1f} s)", flush=True)
    if args.output is not None:
        args.output.write_text(page(rows))
    return 0 if all(each.is_right for each in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
