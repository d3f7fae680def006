"""Read the answer file of a cell as strict JSON data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError
from optbench.execute.tasks import ANSWER
from optbench.model.files.strict_json import parse_json
from optbench.sandbox.job_folder import UnreadableFileError, read_bounded_file
from optbench.store.records import Reason


def read_answer(folder: Path) -> dict[str, Any] | Reason:
    """Return the answer, or the reason why it is not valid."""
    try:
        answer = parse_json(read_bounded_file(folder / ANSWER).decode("utf-8"))
    except UnreadableFileError as error:
        return Reason("nonsense", str(error))
    except (FileFormatError, UnicodeDecodeError) as error:
        return Reason("nonsense", f"its answer cannot be read: {error}")
    if not isinstance(answer, dict):
        return Reason("nonsense", f"its answer is a {type(answer).__name__}, not an object")
    return answer
