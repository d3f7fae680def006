"""Logs small enough to audit by hand, and profiles whose law is easy to compute."""

from __future__ import annotations

import json
from pathlib import Path

from optbench.audit.log import AuditOptions, Log, log_of
from optbench.audit.logged_cluster import LoggedCluster, cluster_of
from optbench.formats.imported import ImportOptions

HEAD = "JobID|Eligible|Start|End|AllocTRES|NodeList\n"
# The first of March 2026, in seconds since 1970.
ORIGIN = 1_772_323_200


def profile_file(
    folder: Path, name: str = "toy", scale: float = 1.0, idle_w: float = 1.0, speed: float = 1.0
) -> str:
    """T(n, f) = 1 / (n f speed), P(f) = scale (8 f³ + 2): at clock 1 a second and 10 W per unit, at
    0.5 two seconds and 3 W.
    """
    law = {
        "alpha_t": 0.0,
        "beta_t": 1.0 / speed,
        "gamma_t": 0.0,
        "alpha_p": 8.0 * scale,
        "beta_p": 0.0,
        "gamma_p": 2.0 * scale,
    }
    fields = {
        "idle_w": idle_w * scale,
        "sleep_w": 0.0,
        "tdp_w": 20.0 * scale,
        "memory_gb": 16.0,
        "clocks": [0.5, 1.0],
    }
    whole = {
        "name": name,
        **fields,
        "laws": {"training": law},
        "sources": dict.fromkeys((*fields, "laws"), "made up"),
    }
    path = folder / f"{name}-{scale:g}.json"
    path.write_text(json.dumps(whole))
    return str(path)


def line(
    job: int,
    release: int,
    start: int,
    end: int,
    gpus: int = 1,
    kind: str = "toy",
    nodes: str = "n1",
) -> str:
    times = "|".join(str(ORIGIN + t) for t in (release, start, end))
    return f"{job}|{times}|gres/gpu:{kind}={gpus}|{nodes}\n"


def options_of(
    path: str, kind: str = "toy", *, keep: tuple[str, ...] = (), **counts: int
) -> AuditOptions:
    """The log lists every run from ORIGIN on."""
    records = ImportOptions({kind: path}, counts=counts)
    return AuditOptions(
        records, keep=frozenset(keep), since_s=float(ORIGIN), until_s=float(ORIGIN + 10**8)
    )


def log_from(text: str, options: AuditOptions) -> Log:
    return log_of(HEAD + text, "log", options)


def cluster_from(text: str, options: AuditOptions) -> LoggedCluster:
    return cluster_of(log_from(text, options), options.keep)
