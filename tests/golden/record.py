"""Records the golden files again, or says what differs from them.

    python tests/golden/record.py [--only PART] [--check] [--into FOLDER] [--sample]

Without --check every part is recorded twice, in two processes, and overwritten only if both agree
to the last digit. With --check nothing is overwritten: each difference is printed, those of texts
at the end, and the exit code is 1 if a number, a key or a code differs. --only PART --into FOLDER
records once, there. --add SOLVER adds the runs of a new solver to those recorded, or replaces them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.golden.commands import record_commands  # noqa: E402
from tests.golden.fixtures import record_fixtures, write_fixtures  # noqa: E402
from tests.golden.recording import FOLDER, Recording, compare, read, write  # noqa: E402
from tests.golden.solving import record_solvers, with_runs  # noqa: E402
from tests.golden.study_rows import record_reference, record_studies  # noqa: E402

PARTS: dict[str, Callable[[bool], Recording]] = {
    "commands": record_commands,
    "solvers": record_solvers,
    "studies": record_studies,
    "geo_reference": record_reference,
    "fixtures": record_fixtures,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--check", action="store_true", help="compare, and overwrite nothing")
    parser.add_argument("--into", type=Path, help="write there and not beside this file")
    parser.add_argument("--sample", action="store_true", help="only what `make test` compares")
    parser.add_argument(
        "--write-fixtures", action="store_true", help="write the files of fixtures/ anew, and leave"
    )
    parser.add_argument("--add", action="append", metavar="SOLVER", help="only runs of this solver")
    args = parser.parse_args()
    if args.sample and args.into is None and not args.check:
        parser.error("--sample would overwrite the whole; give --into or --check")
    return args


def main() -> int:
    args = arguments()
    if args.write_fixtures:
        write_fixtures()
        return 0
    if args.add:
        write("solvers", with_runs(read("solvers"), args.add))
        return 0
    if args.only and args.into:
        write(args.only, PARTS[args.only](args.sample), args.into)
        return 0
    wrong = 0
    for part in [args.only] if args.only else PARTS:
        with tempfile.TemporaryDirectory(prefix="optbench-golden-") as name:
            once, twice = Path(name) / "once", Path(name) / "twice"
            record_in_a_process(part, once, args.sample)
            if args.check:
                wrong += show(part, read(part), read(part, once), args.sample)
                continue
            record_in_a_process(part, twice, args.sample)
            varying = show(part, read(part, once), read(part, twice), args.sample)
            wrong += varying
            if not varying:
                write(part, read(part, once), args.into or FOLDER)
    return 1 if wrong else 0


def record_in_a_process(part: str, folder: Path, sample: bool) -> None:
    words = [sys.executable, __file__, "--only", part, "--into", str(folder)]
    subprocess.run([*words, *["--sample"] * sample], check=True, cwd=ROOT)


def show(part: str, old: Recording, new: Recording, sample: bool) -> int:
    """Print what differs; how many differences are not of texts."""
    found = compare(old.entries, new.entries, whole=not sample, exact=True)
    texts = compare(old.texts, new.texts, whole=not sample)
    print(f"{part}: {len(new.entries)} entries, {len(found)} differences, {len(texts)} texts")
    print("".join(f"  {line}\n" for line in found + [f"text {line}" for line in texts]), end="")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
