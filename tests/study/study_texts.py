"""Study files as texts: reading one, and the message with which one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from optbench.errors import FileFormatError
from optbench.study.declared import Study
from optbench.study.study_file import load_study

PROBLEMS = 'problems = ["jobshop:jobs=3,machines=2"]\n'
SOLVERS = 'solvers = ["cpsat", "fcfs"]\n'
# A whole number that no float holds.
HUGE = "9" * 400
CLAIM = "[[claims]]\ntext = 'x'\nsource = 'y'\npaper = {paper}\nours = '{ours}'\n{rest}"


def load(folder: Path, text: str) -> Study:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_study(path)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(FileFormatError) as error:
        load(folder, text)
    message = str(error.value)
    assert message.startswith(f"{folder / 'mine.toml'}: ")
    return message
