"""An audit for machines."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from optbench.audit.audit_run import Audit, AuditRecord
from optbench.audit.coverage import Coverage
from optbench.audit.findings import advice_of, headline, rows_of, saving_of
from optbench.audit.policies import PlayedPolicy
from optbench.audit.range_page import said
from optbench.audit.ranges import Ranges
from optbench.audit.window import stamp


def document(done: Audit) -> dict[str, Any]:
    """What ``--json`` prints; energies in joules over all runs, times in seconds."""
    log, advice = done.log, advice_of(done)
    return {
        "log": log.name,
        "runs": log.num_runs,
        "gpus": dict(zip(log.types, log.counts.tolist(), strict=True)),
        "keep": sorted(done.options.keep),
        "verified": True,
        "recorded": asdict(done.record),
        "least": {
            "energy_j": done.least.energy_j,
            "sojourn_s": done.record.sojourn_s,
            "proof": "exact-lp",
            "at_any_sojourn_j": done.floor_j,
            "idle_gpus_awake_j": done.awake_j,
        },
        "headline": headline(done),
        "saving": saving_of(done),
        "coverage": of_coverage(log.coverage),
        "window": {
            "from": stamp(log.window.opens),
            "to": stamp(log.window.closes),
            "complete": log.window.complete,
        },
        "causes_j": done.causes,
        "frontier": [{"sojourn_s": s, "energy_j": j} for s, j in done.frontier],
        "policies": [
            {**of_policy(each.played), "note": each.note, "taken": each.taken}
            for each in rows_of(done)
        ],
        "prices": asdict(done.prices),
        "optimum": [asdict(use) for use in done.uses],
        "advice": advice.words,
        "take": None
        if advice.take is None or done.choice is None
        else {
            **of_policy(advice.take),
            "tried": done.tried,
            "second_half": {
                **of_policy(done.choice.later),
                "saving": done.choice.later_saving,
                "recorded_j": done.choice.later_recorded_j,
                "recorded_s": done.choice.later_recorded_s,
            },
            "clocks": [
                {**asdict(each), "to_w": None if each.to_w == float("inf") else each.to_w}
                for each in done.choice.clocks
            ],
        },
        "assumptions": list(done.assumptions),
        "report": log.report.to_dict(),
        "wall_s": done.wall_s,
    }


def of_coverage(found: Coverage) -> dict[str, Any]:
    return {
        "share": found.share,
        "gpu_hours": found.gpu_hours,
        "enough": found.enough,
        "left_out": [asdict(each) for each in found.left_out],
    }


def of_policy(made: PlayedPolicy) -> dict[str, Any]:
    """A policy that did not run has its reason and nothing else."""
    if made.error is not None:
        return {"policy": made.policy, "params": dict(made.params), "error": made.error}
    return {**asdict(made), "params": dict(made.params)}


def of_ranges(done: Ranges) -> dict[str, Any]:
    """Energies are intervals: low where the record used least, high where it used most."""
    return {
        "log": done.pods.name,
        "runs": done.pods.num_pods,
        "gpus": dict(zip(done.pods.types, done.pods.counts.tolist(), strict=True)),
        "keep": sorted(done.options.keep),
        "verified": None,
        "headline": said(done)[-1],
        "coverage": of_coverage(done.pods.coverage),
        "recorded": {
            "energy_j": [done.recorded_low_j, done.recorded_high_j],
            "sojourn_s": done.sojourn_s,
        },
        "least": {
            "energy_j": done.least_j,
            "proof": "exact-lp",
            "at_recorded_ends_j": [done.at_low_j, done.at_high_j],
        },
        "assumptions": list(done.assumptions),
        "report": done.pods.report.to_dict(),
        "wall_s": done.wall_s,
    }


def refused(record: AuditRecord) -> dict[str, Any]:
    """A record that does not verify."""
    return {
        "verified": False,
        "violations": list(record.violations),
        "recorded": None,
        "least": None,
    }
