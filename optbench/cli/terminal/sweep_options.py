"""Types of the options of `optbench gpu calibrate`: lists of clocks, spans, rounds, shares."""

from __future__ import annotations

import argparse
import math


def word_list(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def clock_list(text: str) -> tuple[float, ...]:
    """``600,900,1200`` or ``0.5,0.75,1``."""
    try:
        found = tuple(float(word) for word in word_list(text))
    except ValueError:
        found = ()
    if not found or not all(0 < each < math.inf for each in found):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of clocks; write 600,900,1200 (MHz) or 0.5,0.75,1"
        )
    return found


def count_list(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(word) for word in word_list(text)}))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of counts; write 1,2") from None


def span(text: str) -> tuple[float, float]:
    low, dots, high = text.partition("..")
    try:
        found = float(low), float(high)
    except ValueError:
        found = (1.0, 0.0)
    if not dots or not 0 <= found[0] < found[1] <= 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a span; write two fractions of the top clock, such as 0.4..1"
        )
    return found


def rounds(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    try:
        found = int(low), int(high if dots else low)
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds; write 3 or 2..12")
    return found


def share(text: str) -> float:
    """``0.5%`` or ``0.005``."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; write 0.5% or 0.005")
    return value
