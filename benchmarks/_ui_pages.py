"""What pictures of `optbench ui` share: a browser, playwright, and the server of a workspace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "optbench.cli.main")


def chromium() -> str:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        raise SystemExit("no Chromium on the path")
    return found


@contextmanager
def workspace_folder() -> Iterator[Path]:
    """An empty workspace, and playwright on the path, from a folder of its own where missing."""
    with (
        tempfile.TemporaryDirectory(prefix="optbench-ui-") as name,
        tempfile.TemporaryDirectory(prefix="playwright-") as own,
    ):
        if find_spec("playwright") is None:
            words = [sys.executable, "-m", "pip", "install", "-q", "--target", own, "playwright"]
            subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
            sys.path.append(own)
        folder = Path(name)
        (folder / "optbench.toml").touch()
        yield folder


def run_commands(folder: Path, *commands: tuple[str, ...]) -> dict[str, str]:
    """Run commands in a workspace; return the environment that leads there."""
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(folder)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    for words in commands:
        subprocess.run([*COMMAND, *words], env=environment, check=True, capture_output=True)
    return environment


@contextmanager
def ui_address(environment: dict[str, str], *flags: str) -> Iterator[str]:
    """The address that `optbench ui` names; its server ends with the context."""
    words = [*COMMAND, "ui", "--no-browser", "--json", *flags]
    server = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield json.loads("".join(server.stdout.readline() for _ in range(3)))["url"]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


@contextmanager
def browser_context(size: dict[str, int]) -> Iterator[Any]:
    """Headless Chromium with an empty profile and a window of this size."""
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found,unused-ignore]

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser.new_context(viewport=size)
        browser.close()


def report_differences(wrong: list[str]) -> int:
    """Print what a page lacks; return the exit code."""
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0
