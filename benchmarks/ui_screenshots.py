"""MLflow's pages on a small study, in headless Chromium: runs listed, two compared, a Gantt chart
opened; writes docs/images/.

    python benchmarks/ui_screenshots.py [--study STUDY] [-o docs/images]

Runs the study in a workspace of its own, starts `optbench ui` there and looks at it as a reader
would. Exit code 1 when a page does not show what it has to. Needs Chromium; playwright is installed
into a folder of its own where it is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from optbench.track.tracking import Tracking  # noqa: E402

SIZE = {"width": 1500, "height": 1000}
PATIENCE_MS, SETTLE_MS = 60_000, 2_500
HIDDEN, SHOWN = ("Dataset", "Source", "Models"), ("objective", "bound", "gap", "wall_s")
# Set before the first page: neither the side panel of the assistant nor its hints.
QUIET = """
localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");
localStorage.setItem("mlflow.workflowType_v1", JSON.stringify("machine_learning"));
"""
DECLARED = """\
question = "What do rules lose against CP-SAT on small GPU task graphs?"
problems = ["gpu_dag:tasks=[12,16],gpus=4"]
solvers = ["cpsat", "random_rules", "heft", "fcfs"]
seeds = 2
time_limit = "3s"
bound_limit = "3s"
"""


def chromium() -> str:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        raise SystemExit("no Chromium on the path")
    return found


def make_study(folder: Path) -> dict[str, str]:
    """A workspace whose study has been run; the environment that leads there."""
    (folder / "studies").mkdir()
    (folder / "optbench.toml").touch()
    (folder / "studies" / "rules.toml").write_text(DECLARED)
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(folder)}
    environment.pop("MLFLOW_TRACKING_URI", None)
    for words in (("run", "rules", "-n", "2", "--json"), ("sync", "--json")):
        subprocess.run(
            [sys.executable, "-m", "optbench.cli.main", *words],
            env=environment,
            check=True,
            capture_output=True,
        )
    return environment


def shoot(url: str, folder: Path, output: Path) -> list[str]:
    """Three pages; what they lack."""
    from playwright.sync_api import sync_playwright  # type: ignore[import-not-found,unused-ignore]

    client = Tracking(f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}", workspace=folder).client
    experiment = client.get_experiment_by_name("optbench/rules")
    assert experiment is not None
    number = experiment.experiment_id
    runs = {str(run.info.run_name): run.info.run_id for run in client.search_runs([number])}
    first, second = (
        next(runs[name] for name in runs if name.startswith(f"{each} | gpu_dag-12"))
        for each in ("cpsat", "heft")
    )
    compared = (
        f"runs={quote(json.dumps([first, second]))}&experiments={quote(json.dumps([number]))}"
    )
    wrong = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport=SIZE)
        context.add_init_script(QUIET)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{url}/#/experiments/{number}/runs")
        list_runs(page)
        wrong += keep(page, output / "mlflow_runs.png", ["heft |", "cpsat |", "objective"])
        page.goto(f"{url}/#/compare-runs?{compared}")
        compare(page)
        wrong += keep(page, output / "mlflow_compare.png", ["objective", "energy_j"])
        page.goto(f"{url}/#/experiments/{number}/runs/{first}/artifacts/gantt.html")
        if not appears(page.frame_locator("iframe").first, "makespan"):
            wrong.append("mlflow_gantt.png: no chart")
        wrong += keep(page, output / "mlflow_gantt.png", ["gantt.html"])
        browser.close()
    return wrong


def list_runs(page: Any) -> None:
    """Open the parent, and choose the columns."""
    page.locator("[role=gridcell] button").first.click()
    page.get_by_text("heft |").first.wait_for()
    page.get_by_role("button", name="Columns").click()
    for name in (*HIDDEN, *SHOWN):
        page.get_by_placeholder("Search columns").fill(name)
        page.wait_for_timeout(SETTLE_MS / 4)
        page.locator("[class*=tree-title]").get_by_text(name, exact=True).first.click()
    page.keyboard.press("Escape")


def compare(page: Any) -> None:
    """Fold what takes room; what is left are the runs and their metrics."""
    for name in ("Visualizations", "Parameters"):
        page.get_by_text(name, exact=True).first.click()
        page.wait_for_timeout(SETTLE_MS / 4)


def keep(page: Any, path: Path, words: list[str]) -> list[str]:
    """Take the picture; which words are not on it."""
    missing = [f"{path.name}: no {word!r}" for word in words if not appears(page, word)]
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=str(path))
    return missing


def appears(place: Any, words: str) -> bool:
    """Whether a text becomes visible."""
    from playwright.sync_api import Error  # type: ignore[import-not-found,unused-ignore]

    try:
        place.get_by_text(words).first.wait_for(timeout=PATIENCE_MS / 3)
    except Error:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="optbench-ui-") as name,
        tempfile.TemporaryDirectory(prefix="playwright-") as own,
    ):
        if find_spec("playwright") is None:
            words = [sys.executable, "-m", "pip", "install", "-q", "--target", own, "playwright"]
            subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
            sys.path.append(own)
        folder = Path(name)
        environment = make_study(folder)
        words = [sys.executable, "-m", "optbench.cli.main", "ui", "--no-browser", "--json"]
        server = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = json.loads("".join(server.stdout.readline() for _ in range(3)))["url"].partition(
                "/#"
            )[0]
            wrong = shoot(url, folder, args.output)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
