"""Cache folders for code that numba compiles: one per plug-in and version of its code."""

from __future__ import annotations

from pathlib import Path

from optbench.execute.base import Job
from optbench.plugins.discovery import Kind, names, problem_named_by
from optbench.study.code_version import code_hash
from optbench.workspace import store

COMPILED = "compiled"


class PluginCodeFolders:
    """Gives each plug-in its own cache folder, so that it can damage no other's; in the store
    unless another ``root`` is given.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = store().resolve() / COMPILED if root is None else root
        self.known: dict[tuple[Kind, str], str] = {}

    def folder(self, job: Job) -> str:
        """Return the folder for a job; it is created if missing."""
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
    if job.kind in ("instance", "verify") or "target" in job.payload:
        # All files share one folder. A user's shape is code of his problem, whatever is done.
        return "problem", problem_named_by(str(job.payload["target"])) or "file"
    return "problem", "bounds"
