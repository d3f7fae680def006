"""Runs the commands in this process, in a temporary workspace, and records what they print."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.command_cases import COMMANDS, CommandCase
from tests.golden.normalising import normalised
from tests.golden.optbench_access import main
from tests.golden.recording import FOLDER, Entry, Recording

LAB = FOLDER / "lab"


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A copy of the lab as the current folder, and nothing of the user's own.

    A process has one workspace only: the plug-in packages look up their folders once.
    """
    with tempfile.TemporaryDirectory(prefix="optbench-golden-") as name:
        folder = Path(name).resolve() / "lab"
        shutil.copytree(LAB, folder, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ["XDG_STATE_HOME"] = str(folder.parent / "state")
        os.environ["OPTBENCH_WORKSPACE"] = str(folder)
        for variable in ("OPTBENCH_DEBUG", "MLFLOW_TRACKING_URI", "FORCE_COLOR"):
            os.environ.pop(variable, None)
        before = Path.cwd()
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def run(words: list[str]) -> tuple[int, str]:
    """Exit code and standard output."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
    return code, out.getvalue()


def document(words: list[str]) -> Any:
    """The JSON document that a command prints; an error where it fails."""
    code, out = run([*words, "--json"])
    if code not in (0, 6):
        raise RuntimeError(f"optbench {' '.join(words)}: exit code {code}\n{out}")
    return json.loads(out)


def record_commands(sample: bool = False) -> Recording:
    """Every command in turn, or those of the sample."""
    entries: list[Entry] = []
    texts: list[Entry] = []
    has_data = (Path(os.environ.get("OPTBENCH_DATA", "none")) / "MANIFEST.csv").is_file()
    with workspace() as folder:
        for each in COMMANDS:
            if (sample and each.slow) or (each.needs_data and not has_data):
                continue
            entry, found = one(each, folder)
            entries.append(entry)
            texts.append({"name": each.name, "texts": found})
            prepare_bad_schedule(folder)
    return Recording(entries, texts)


def one(each: CommandCase, folder: Path) -> tuple[Entry, dict[str, str]]:
    code, out = run(each.words)
    texts: dict[str, str] = {}
    found = normalised(json.loads(out), str(folder), texts, varying=each.varying)
    return {"name": each.name, "code": code, "document": found}, texts


def prepare_bad_schedule(folder: Path) -> None:
    """The schedule of the shop with all tasks at once, for `verify` to refuse."""
    source, target = folder / "shop_schedule.json", folder / "bad_schedule.json"
    if source.is_file() and not target.is_file():
        data = json.loads(source.read_text())
        data["segments"]["start"] = [0, 0, 0, 0]
        target.write_text(json.dumps(data))
