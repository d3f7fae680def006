"""Reading a study in a process of its own where it names a user's plug-ins, so that the one that judges never imports them.

A module may do anything while it is imported: to the verifier that is loaded beside it, too. Where the kernel has Landlock,
the process that reads may not write anywhere either. Where it ends without an answer, plug-ins are tried to name the one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from optbench.compiling.compiled import write_caches_beneath
from optbench.errors import FileFormatError, OptbenchError
from optbench.plugins.discovery import problem_named_by
from optbench.sandbox import landlock
from optbench.sandbox.job_folder import NotReadable, read_left
from optbench.sandbox.trial_import import PATIENCE_S, end_with, try_imports, users_plugins
from optbench.study.declared import Study
from optbench.study.instance_sources import source_digest
from optbench.study.study_file import naming, read, read_file

READ = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); \
from optbench.run.read_in_subprocess import read_for; read_for(sys.argv[2], sys.argv[3], int(sys.argv[4]))"
ANSWER, MOST_MB = "study.json", 256


def load_study_apart(name: str | Path) -> Study:
    """A study by its name, or by its file; this process imports none of the user's plug-ins for it."""
    path, table = read_file(name)
    if not any(users_plugins(table)):
        with naming(path):
            return read(table, path)
    with tempfile.TemporaryDirectory(prefix="optbench-study-") as folder:
        words = [sys.executable, "-P", "-c", READ, json.dumps(sys.path), str(path), folder, str(os.getpid())]
        try:
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
            told = json.loads(read_left(Path(folder) / ANSWER, MOST_MB))
            if "error" in told:
                raise FileFormatError(str(told["error"]))
            sources = {str(target): str(digest) for target, digest in told["sources"].items()}
            return replace(Study.from_dict(told["study"]), sources=sources)
        except subprocess.TimeoutExpired:
            raise FileFormatError(f"{path}: its plug-ins take more than {PATIENCE_S:g} s to be read") from None
        except (NotReadable, ValueError, KeyError, TypeError, AttributeError) as error:
            with naming(path):
                try_imports(table)
            raise FileFormatError(f"{path}: reading its plug-ins leaves no study ({error}); `optbench list` tries each") from None


def read_for(name: str, folder: str, parent: int) -> None:
    """What the process of its own does."""
    end_with(parent)
    if landlock.version():
        landlock.write_only_beneath([Path(folder)])
    write_caches_beneath(Path(folder))
    answer: dict[str, Any]
    try:
        path, table = read_file(name)
        with naming(path):
            study = read(table, path)
        generated = [target for target in study.problems if problem_named_by(target) is not None]
        answer = {"study": study.to_dict(), "sources": {target: source_digest(target) for target in generated}}
    except OptbenchError as error:
        answer = {"error": str(error)}
    (Path(folder) / ANSWER).write_text(json.dumps(answer), encoding="utf-8")
