"""docs/cli.md speaks of the command line there is."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

from optbench.cli.main import VERBS, build_parser
from optbench.cli.terminal import exits

DOC = Path(__file__).parents[2] / "docs" / "cli.md"
# Shown for their message.
MISTAKES = ("--sovler",)


def commands() -> list[list[str]]:
    lines = re.findall(r"^\$ (.*)$", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    parts = [part.strip() for line in lines for part in re.split(r"[|;]", line)]
    plain = [re.sub(r"\$\(.*?\)", "FILE", part) for part in parts if part.startswith("optbench ")]
    return [shlex.split(part)[1:] for part in plain]


def test_every_command_shown_can_be_read() -> None:
    assert len(commands()) >= len(VERBS)
    parser, _ = build_parser()
    for words in commands():
        args, extra = parser.parse_known_args(words)
        assert isinstance(args, argparse.Namespace)
        assert extra == [] or extra[0] in MISTAKES, words


def test_every_verb_and_exit_code_is_described() -> None:
    text = DOC.read_text(encoding="utf-8")
    headings = set(re.findall(r"\w+", " ".join(re.findall(r"^## (.*)$", text, re.MULTILINE))))
    assert set(VERBS) <= headings
    codes = {value for name, value in vars(exits).items() if name.isupper()}
    assert codes == {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
