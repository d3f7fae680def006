"""Read a study in a subprocess if it names a user's plug-ins, so that the judging process never
imports them.

Importing a module can run any code, which could change the verifier in the same process. Where the
kernel has Landlock, the subprocess cannot write files. If it ends without an answer, the plug-ins
are imported one by one to name the faulty one.
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
from optbench.errors import FileFormatError, OptbenchError, naming
from optbench.plugins.discovery import problem_named_by
from optbench.run.taken_shapes import shapes_of
from optbench.sandbox import landlock
from optbench.sandbox.job_folder import UnreadableFileError, read_bounded_file
from optbench.sandbox.trial_import import PATIENCE_S, end_with_parent, try_imports, users_plugins
from optbench.study.declared import Study
from optbench.study.instance_sources import source_digest
from optbench.study.study_file import read, read_file

READ = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from optbench.run.read_in_subprocess import read_in_child
read_in_child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
"""
ANSWER = "study.json"


def load_study_in_subprocess(name: str | Path) -> Study:
    """Load a study by name or file; this process imports none of the user's plug-ins."""
    path, table = read_file(name)
    if not any(users_plugins(table)):
        with naming(path):
            return read(table, path)
    with tempfile.TemporaryDirectory(prefix="optbench-study-") as folder:
        words = [
            sys.executable,
            "-P",
            "-c",
            READ,
            json.dumps(sys.path),
            str(path),
            folder,
            str(os.getpid()),
        ]
        try:
            subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PATIENCE_S,
                check=False,
            )
            told = json.loads(read_bounded_file(Path(folder) / ANSWER))
            if "error" in told:
                raise FileFormatError(str(told["error"]))
            sources = {str(target): str(digest) for target, digest in told["sources"].items()}
            takes = {str(name): tuple(map(str, each)) for name, each in told["takes"].items()}
            return replace(Study.from_dict(told["study"]), sources=sources, takes=takes)
        except subprocess.TimeoutExpired:
            raise FileFormatError(
                f"{path}: importing its plug-ins takes more than {PATIENCE_S:g} s"
            ) from None
        except (UnreadableFileError, ValueError, KeyError, TypeError, AttributeError) as error:
            with naming(path):
                try_imports(table)
            what = f"{path}: the study could not be read with its plug-ins ({error})"
            raise FileFormatError(f"{what}; `optbench list` imports each of them") from None


def read_in_child(name: str, folder: str, parent: int) -> None:
    """Read the study in the subprocess and write the answer."""
    end_with_parent(parent)
    if landlock.landlock_version():
        landlock.write_only_beneath([Path(folder)])
    write_caches_beneath(Path(folder))
    answer: dict[str, Any]
    try:
        path, table = read_file(name)
        with naming(path):
            study = read(table, path)
        generated = [target for target in study.problems if problem_named_by(target) is not None]
        answer = {
            "study": study.to_dict(),
            "sources": {target: source_digest(target) for target in generated},
            "takes": {entry.name: shapes_of(entry.name) for entry in study.solvers},
        }
    except OptbenchError as error:
        answer = {"error": str(error)}
    (Path(folder) / ANSWER).write_text(json.dumps(answer), encoding="utf-8")
