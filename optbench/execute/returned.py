"""The answer of a cell: strict JSON, read as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError
from optbench.execute.tasks import ANSWER
from optbench.model.files.strict_json import parse_json
from optbench.sandbox.job_folder import NotReadable, read_left
from optbench.store.records import Reason


def read_answer(folder: Path) -> dict[str, Any] | Reason:
    """The answer, or why it is none."""
    try:
        answer = parse_json(read_left(folder / ANSWER).decode("utf-8"))
    except NotReadable as error:
        return Reason("nonsense", str(error))
    except (FileFormatError, UnicodeDecodeError) as error:
        return Reason("nonsense", f"its answer cannot be read: {error}")
    if not isinstance(answer, dict):
        return Reason("nonsense", f"its answer is a {type(answer).__name__}, not an object")
    return answer
