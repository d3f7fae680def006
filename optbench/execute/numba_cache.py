"""Where cells may keep what numba compiles of a plug-in: a folder per plug-in and per state of its code."""

from __future__ import annotations

from optbench.execute.base import Job
from optbench.plugins.discovery import Kind, names, problem_named_by
from optbench.study.code_version import code_hash
from optbench.workspace import store

COMPILED = "compiled"


class CompiledCode:
    """What one plug-in writes there no other plug-in reads, so that it can harm itself only."""

    def __init__(self) -> None:
        self.root = store().resolve() / COMPILED
        self.known: dict[tuple[Kind, str], str] = {}

    def folder(self, job: Job) -> str:
        """The folder for a job; it exists."""
        kind, name = _plugin(job)
        if (kind, name) not in self.known:
            code = code_hash(kind, name)[:16] if name in names(kind) else "none"
            self.known[kind, name] = f"{kind}-{name}-{code}"
        folder = self.root / self.known[kind, name]
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)


def _plugin(job: Job) -> tuple[Kind, str]:
    if job.kind == "solve":
        return "solver", str(job.payload["solver"])
    if job.kind == "instance":
        # All files share one folder.
        return "problem", problem_named_by(str(job.payload["target"])) or "file"
    return "problem", "bounds"
