"""Check of readers on a damaged file: they read a valid instance or refuse it with one clear
message.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from optbench.errors import FileFormatError
from optbench.formats.format_registry import load
from optbench.model.files.instance_json import instance_from_dict, instance_to_json
from optbench.model.files.schedule_json import read_schedule
from optbench.model.files.strict_json import parse_json
from optbench.model.instance import Instance
from optbench.model.validate import validate
from optbench.model.verify import verify

MAX_MESSAGE = 3000


@dataclass(frozen=True)
class SurvivalOutcome:
    """``message`` is None where the file was read."""

    message: str | None
    wall_s: float


@contextmanager
def limit_s(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after a number of seconds."""

    def expired(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"still reading after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    # The timer repeats, since an exception raised inside a destructor is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(path: Path, owner: Instance | None, seconds: float = 10.0) -> SurvivalOutcome:
    """Read an instance, or a schedule of ``owner``; an exception is a fault of the reader."""
    began = time.perf_counter()
    try:
        with limit_s(seconds):
            if owner is None:
                check_instance(load(path))
            else:
                verify(owner, read_schedule(path, owner))
    except FileFormatError as error:
        message = str(error)
        check_message(message, path)
        return SurvivalOutcome(message, time.perf_counter() - began)
    return SurvivalOutcome(None, time.perf_counter() - began)


def check_instance(instance: Instance) -> None:
    """Check that it is valid and equal after a round trip through the native format."""
    again = validate(instance_from_dict(parse_json(instance_to_json(instance))))
    assert again.hash == instance.hash, "the native format does not keep the instance"
    assert (instance.pairs.duration >= 0).all(), "a negative duration"


def check_message(message: str, path: Path) -> None:
    """Check that the message names the file, can be printed, and is of readable length."""
    assert message.startswith(str(path)), f"the message does not begin with the file: {message!r}"
    assert len(message) <= MAX_MESSAGE, f"a message of {len(message)} characters"
    message.encode()
