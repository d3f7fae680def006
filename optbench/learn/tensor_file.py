"""Reading checkpoints in safetensors: tensors by name, and a JSON header that names the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from optbench.errors import FileFormatError


def read_tensor_file(
    path: Path, file_format: str, make: str, kind: str, framework: Literal["numpy", "pt"] = "numpy"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the tensors of a checkpoint; an error names what is wrong with it.

    ``make`` is the command that makes such a file, and ``kind`` continues "but not one": of what,
    or by whom.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework=framework) as file:
            about = json.loads((file.metadata() or {}).get("optbench", "null"))
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such checkpoint; `{make}` makes one") from None
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        raise FileFormatError(f"{path}: not a readable safetensors file ({error})") from None
    if not isinstance(about, dict) or about.get("format") != file_format:
        raise FileFormatError(f"{path}: a safetensors file, but not one {kind} ({file_format})")
    return about, tensors
