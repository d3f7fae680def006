"""Values of the options of `optbench gpu calibrate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from optbench.cli.terminal.sweep_options import (
    clock_list,
    count_list,
    rounds,
    share,
    span,
    word_list,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (word_list, "0, GPU-1,", ("0", "GPU-1")),
        (clock_list, "600,0.5,1410", (600.0, 0.5, 1410.0)),
        (count_list, "4,1,2,2", (1, 2, 4)),
        (rounds, "2..12", (2, 12)),
        (rounds, "3", (3, 3)),
        (span, "0.4..1", (0.4, 1.0)),
        (share, "0.5%", 0.005),
        (share, "0.02", 0.02),
    ],
)
def test_a_value_is_read(parse: Callable[[str], Any], text: str, value: object) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (clock_list, "high", "'high' is not a list of clocks"),
        (clock_list, "600,-1", "is not a list of clocks"),
        (clock_list, "", "is not a list of clocks"),
        (count_list, "1,two", "'1,two' is not a list of counts"),
        (rounds, "5..2", r"'5\.\.2' is not a number of rounds"),
        (rounds, "0", "'0' is not a number of rounds"),
        (span, "0.9..0.2", "is not a span"),
        (span, "0.5", "is not a span"),
        (span, "0..2", "is not a span"),
        (share, "2", "'2' is not a share"),
        (share, "0%", "'0%' is not a share"),
        (share, "many", "'many' is not a share"),
    ],
)
def test_a_value_that_means_nothing_is_refused(
    parse: Callable[[str], Any], text: str, said: str
) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        parse(text)
