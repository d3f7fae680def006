"""Slurm logs written row by row, and what the report of an import says of them."""

from __future__ import annotations

from optbench.formats.imported import ImportOptions, ImportReport

A100 = ImportOptions(profiles={"a100": "A100-PCIe"})
HEADER = "JobID|Submit|Start|End|AllocTRES|NodeList\n"


def log(*rows: str) -> str:
    """Rows of ``job submit start end gpus nodes``, times as seconds of one day."""

    def clock(seconds: str) -> str:
        s = int(seconds)
        return f"2024-03-01T{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" if s >= 0 else "Unknown"

    out = []
    for row in rows:
        job, submit, start, end, gpus, nodes = row.split()
        out.append(
            "|".join(
                (job, clock(submit), clock(start), clock(end), f"cpu=1,gres/gpu={gpus}", nodes)
            )
            + "\n"
        )
    return HEADER + "".join(out)


def found(report: ImportReport, section: str, what: str) -> tuple[int, tuple[str, ...]]:
    """Count and examples of the one finding whose text contains ``what``."""
    rows = [finding for finding in getattr(report, section) if what in finding.what]
    assert len(rows) == 1, (what, getattr(report, section))
    return rows[0].count, rows[0].examples
