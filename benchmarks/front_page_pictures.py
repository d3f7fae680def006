"""The pictures of the README: gaps by solver of a study, a schedule with its power; docs/images/.

    python benchmarks/front_page_pictures.py [-o docs/images]

Runs the study `quickstart` and solves one of its instances in a temporary workspace, then takes
pictures of sections of both pages with headless Chromium. Exit code 1 when a command fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAGES = {
    "report.html": ("report", "quickstart", "-o", "report.html"),
    "schedule.html": ("solve", "night_batch", "-s", "cpsat", "--html", "schedule.html"),
}


@dataclass(frozen=True)
class Picture:
    """A part of a page: the style sheet hides the rest of it."""

    name: str
    page: str
    style: str
    size: tuple[int, int]


NO_MARGINS = "main{padding:6px}section{margin:0!important;box-shadow:none!important}"
PICTURES = (
    Picture(
        "front_gaps.png",
        "report.html",
        NO_MARGINS + "header,footer,section:not(#charts),#charts>:not(:first-child){display:none}",
        (1000, 337),
    ),
    Picture(
        "front_schedule.png",
        "schedule.html",
        NO_MARGINS + "header,footer,section:not(.schedules){display:none}",
        (1000, 676),
    ),
    Picture("report.png", "report.html", "", (1160, 2215)),
)


def chromium() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("Chromium is not on the path; install it")
    return found


def make_pages(folder: Path) -> None:
    """Run the study and write both pages into a new workspace."""
    (folder / "optbench.toml").touch()
    environment = {**os.environ, "OPTBENCH_WORKSPACE": str(folder), "PYTHONPATH": str(ROOT)}
    for words in (("run", "quickstart", "-n", "2", "--no-track", "-q"), *PAGES.values()):
        command = [sys.executable, "-m", "optbench.cli.main", *words]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def take(picture: Picture, folder: Path, output: Path) -> None:
    text = (folder / picture.page).read_text()
    page = folder / f"{picture.name}.html"
    page.write_text(text.replace("</head>", f"<style>{picture.style}</style></head>", 1))
    width, height = picture.size
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    where = [f"--user-data-dir={folder / 'browser'}", f"--window-size={width},{height}"]
    result = f"--screenshot={output / picture.name}"
    words = [chromium(), *options, *where, result, page.as_uri()]
    subprocess.run(words, check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "images")
    output = parser.parse_args().output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="optbench-pictures-") as name:
        make_pages(Path(name))
        for picture in PICTURES:
            take(picture, Path(name), output)


if __name__ == "__main__":
    main()
