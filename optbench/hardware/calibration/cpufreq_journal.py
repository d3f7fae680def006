"""The journal of cpufreq's ranges, which outlives a killed calibration.

It is a file per folder of processors, beside the journals of GPUs. The ranges are on the disk
before the first clock is set, and the file is removed once they are put back. The next calibration
and ``optbench gpu restore`` put back what a killed one has left. A restart of the host ends all
that was set, so that a journal from before it is removed only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from optbench.hardware.calibration.cpufreq_levels import (
    ClockPolicy,
    CpuClockError,
    find_policies,
    put_back,
)
from optbench.hardware.clock_control.device_lock import (
    GLANCE_S,
    RESTORING,
    DeviceBusyError,
    hold_devices,
)
from optbench.hardware.clock_control.interruptions import undisturbed
from optbench.hardware.clock_control.journal import boot_id
from optbench.hardware.clock_control.restoring import RestoreOutcome
from optbench.hardware.clock_control.state_folder import (
    path_of,
    prepared,
    remove_durably,
    replacing_durably,
)

FORMAT = "optbench-cpu-clocks-1"
RANGES = ".ranges"
PURPOSE = "calibrating processors"
# A policy or two per core, of some hundred bytes.
MOST_READ = 1 << 22

Ranges = Mapping[str, tuple[int, int]]


@contextmanager
def journalled_ranges(
    state: Path, root: Path, policies: tuple[ClockPolicy, ...]
) -> Iterator[tuple[ClockPolicy, ...]]:
    """Hold the clocks of the processors and yield the policies with the ranges to put back, which
    are on the disk; at the end they are put back."""
    with hold_devices(prepared(state), [_name(root)], PURPOSE):
        kept = with_kept_ranges(state, root, policies)
        path = _path(state, root)
        _write(path, root, kept)
        try:
            put_back(kept)
            yield kept
        finally:
            with undisturbed():
                put_back(kept)  # where that fails, the journal stays
                remove_durably(path)


def with_kept_ranges(
    state: Path, root: Path, policies: tuple[ClockPolicy, ...]
) -> tuple[ClockPolicy, ...]:
    """The policies with the ranges from before a calibration that was killed."""
    kept = _read(_path(state, root), root) or {}
    return tuple(
        replace(policy, least_khz=kept[place][0], largest_khz=kept[place][1])
        if (place := _place(policy, root)) in kept
        else policy
        for policy in policies
    )


def restore_cpu_clocks(state: Path, root: Path) -> tuple[RestoreOutcome, ...]:
    """Put back what a killed calibration of the processors has left; nothing without a journal."""
    path, name = _path(state, root), _name(root)
    if not path.exists():
        return ()
    try:
        with hold_devices(state, [name], RESTORING, GLANCE_S):
            return (_restored(state, root),) if path.exists() else ()
    except DeviceBusyError as error:
        return (_outcome(root, "held", str(error)),)
    except (CpuClockError, OSError) as error:
        words = f"{error}; the journal stays: run `sudo optbench gpu restore`"
        return (_outcome(root, "kept", words),)


def _restored(state: Path, root: Path) -> RestoreOutcome:
    path = _path(state, root)
    ranges = _read(path, root)
    policies = with_kept_ranges(state, root, find_policies(root))
    if ranges is None:
        remove_durably(path)
        return _outcome(root, "untouched", "the host was restarted since; the journal is removed")
    if missing := set(ranges) - {_place(policy, root) for policy in policies}:
        words = f"{', '.join(sorted(missing))} is not there; the journal stays"
        return _outcome(root, "kept", words)
    put_back(policies)
    remove_durably(path)
    found = sorted({f"{low:,} to {high:,} kHz" for low, high in ranges.values()})
    return _outcome(root, "restored", f"the range of cpufreq is {', '.join(found)} again")


def _outcome(root: Path, state: str, words: str) -> RestoreOutcome:
    return RestoreOutcome(_name(root), "processors", state, words)


def _name(root: Path) -> str:
    """How locks and outcomes name the processors."""
    return f"cpu:{root.absolute()}"


def _path(state: Path, root: Path) -> Path:
    return path_of(state, _name(root), RANGES)


def _place(policy: ClockPolicy, root: Path) -> str:
    return str(policy.folder.relative_to(root))


def _write(path: Path, root: Path, policies: tuple[ClockPolicy, ...]) -> None:
    """Bring the ranges to the disk, under their final name."""
    ranges = {_place(each, root): [each.least_khz, each.largest_khz] for each in policies}
    document = {"format": FORMAT, "boot_id": boot_id(), "pid": os.getpid(), "ranges": ranges}
    with replacing_durably(path) as fresh, fresh.open("w", encoding="ascii") as file:
        file.write(json.dumps(document))
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path, root: Path) -> Ranges | None:
    """The ranges of a journal of this start of the host; None without one.

    Names are those of policies below the root: what somebody wrote into a journal sets the range of
    a processor at most.
    """
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MOST_READ))
    except FileNotFoundError:
        return None
    except ValueError:
        document = None
    ranges = document.get("ranges") if isinstance(document, dict) else None
    if not isinstance(ranges, dict) or document.get("format") != FORMAT:
        raise CpuClockError(
            f"the journal {path} of the ranges of {root} is damaged; set them with `cpupower "
            "frequency-set --min ... --max ...` and remove it"
        )
    if document.get("boot_id") != boot_id():
        return None
    return {place: _range_of(value, path) for place, value in ranges.items()}


def _range_of(value: object, path: Path) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value):
        return value[0], value[1]
    raise CpuClockError(f"the journal {path} has the range {value!r}; it takes two whole numbers")
