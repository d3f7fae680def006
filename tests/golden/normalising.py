"""JSON documents made comparable: what varies from run to run is masked, texts are kept apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VARIES, TEXT, FILE = "<varies>", "<text>", "<file>"
# Times, memory, versions and hashes of code. The key stays, its value is masked.
VARYING_KEYS = _words(
    "at began_at bounding_s build_s calibration_s code code_version compile_s cores cpu_s "
    "decision_ms inside_s key lp_s machine median_wall_s optbench parent_run_id peak_memory_mb "
    "run_energy t_s threads_available time_s time_to_first_s total_s training_s wall_defaults_s "
    "wall_s wall_tuned_s worker"
)
# An object with this key is what a run or a training drew: measured, or by its processor time.
OF_RUN_ENERGY = "cpu_j"
# Sentences for people. Any string with a blank in it counts as such a sentence too.
TEXT_KEYS = _words(
    "advice argument cause description detail error formulation_reason headline message note "
    "question remark remedy summary text title why words"
)
# Never such a sentence, blanks or not: verdicts, formulas, weighted objectives, dates of a log.
CODE_KEYS = _words("expression from objective objective_name ours rank ranked_by to verdict")
# Places of files, which may move.
FILE_KEYS = _words(
    "bank checkpoint curves file folder html page params_file path paths report schedule_file "
    "shadows"
)
RELATIVE, ABSOLUTE = 1e-12, 1e-14


def normalised(
    value: Any,
    folder: str,
    texts: dict[str, str],
    where: str = "",
    varying: frozenset[str] = frozenset(),
) -> Any:
    """The document with masks; ``texts`` receives every text by its place."""
    if isinstance(value, Mapping) and OF_RUN_ENERGY in value:
        return VARIES
    if isinstance(value, Mapping):
        out: dict[str, Any] = {}
        for key, item in value.items():
            place = f"{where}.{key}" if where else str(key)
            if key in VARYING_KEYS or key in varying:
                out[key] = VARIES
            elif key in FILE_KEYS and isinstance(item, str):
                out[key] = FILE
            elif key in FILE_KEYS and isinstance(item, list):
                out[key] = [FILE for _ in item]
            elif key in CODE_KEYS and isinstance(item, str):
                out[key] = item
            elif key in TEXT_KEYS and isinstance(item, str):
                texts[place] = item.replace(folder, "WORKSPACE")
                out[key] = TEXT
            else:
                out[key] = normalised(item, folder, texts, place, varying)
        return out
    if isinstance(value, list):
        return [
            normalised(item, folder, texts, f"{where}[{k}]", varying)
            for k, item in enumerate(value)
        ]
    if isinstance(value, str):
        if any(mark.isspace() for mark in value):
            texts[where] = value.replace(folder, "WORKSPACE")
            return TEXT
        return value.replace(folder, "WORKSPACE")
    return value


def differences(recorded: Any, found: Any, where: str = "", exact: bool = False) -> Iterator[str]:
    """One line for each difference; floats agree within 1e-12 of each other unless ``exact``."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in recorded.keys() - found.keys():
            yield f"{where}.{key}: missing, recorded is {recorded[key]!r}"
        for key in found.keys() - recorded.keys():
            yield f"{where}.{key}: new, found is {found[key]!r}"
        if exact and list(recorded) != list(found) and recorded.keys() == found.keys():
            yield f"{where}: the order of keys is {list(found)}, recorded is {list(recorded)}"
        for key in recorded.keys() & found.keys():
            yield from differences(recorded[key], found[key], f"{where}.{key}", exact)
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            yield f"{where}: {len(found)} entries, recorded are {len(recorded)}"
        for k, (old, new) in enumerate(zip(recorded, found, strict=False)):
            yield from differences(old, new, f"{where}[{k}]", exact)
    elif not _same(recorded, found, exact):
        yield f"{where}: {found!r}, recorded is {recorded!r}"


def _same(recorded: Any, found: Any, exact: bool) -> bool:
    if type(recorded) is not type(found):
        return False
    if isinstance(recorded, float) and not exact:
        # The absolute part is for gaps, which are quotients: zero comes out as some 1e-16 of one.
        return math.isclose(recorded, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return bool(recorded == found)
