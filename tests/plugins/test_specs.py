"""Specs as people write them, and values by the type of the field they fill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optbench.errors import ParameterError, UnknownNameError
from optbench.plugins import specs


@dataclass
class Sample:
    """All kinds of fields."""

    tasks: int = 20
    rate: float = 0.5
    horizon_s: float = 60.0
    warm: bool = False
    rule: Literal["fcfs", "edf"] = "fcfs"
    seed_file: str | None = None
    sizes: tuple[int, ...] = (1, 2)
    window: tuple[float, float] = (0.0, 1.0)
    names: list[str] = field(default_factory=list)
    limit: int | None = None


@dataclass
class Strict:
    """One field without a default, and a limit of its own."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count is {self.count}; at least 1 is needed")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("heft", ("heft", {})),
        ("gpu_dag:tasks=20,gpus=6", ("gpu_dag", {"tasks": "20", "gpus": "6"})),
        ("gpu_dag[tasks=20, gpus=6]", ("gpu_dag", {"tasks": "20", "gpus": "6"})),
        ("a:k=[8,128],f=[[1,2],[3]]", ("a", {"k": "[8,128]", "f": "[[1,2],[3]]"})),
        ("a[k=[8,128],x=1]", ("a", {"k": "[8,128]", "x": "1"})),
        ("jobshop:file=/tmp/a=b:c.txt", ("jobshop", {"file": "/tmp/a=b:c.txt"})),
        ("a:", ("a", {})),
        ("a[]", ("a", {})),
    ],
)
def test_both_ways_of_writing_a_spec(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert specs.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpu_dag", "gpu_dag"),
        (" gpu_dag :tasks=20", "gpu_dag"),
        ("gpu_dag[tasks=20]", "gpu_dag"),
        ("gpu_dag:tasks=", "gpu_dag"),  # no spec, but its name is known
        ("jobshop/ft06", "jobshop/ft06"),
        ("", ""),
    ],
)
def test_the_name_alone(text: str, name: str) -> None:
    assert specs.name_of(text) == name


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "''"),
        ("a:tasks", "'tasks' is not of the form key=value"),
        ("a:tasks=1,tasks=2", "'tasks' twice"),
        ("a:k=[1,2", "brackets do not match"),
        ("a:k=1],j=[2", "brackets do not match"),
        ("a b", "'a b'"),
        ("a:2x=1", "'2x=1'"),
    ],
)
def test_a_malformed_spec_is_quoted(text: str, culprit: str) -> None:
    with pytest.raises(ParameterError) as caught:
        specs.parse(text)
    assert culprit in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("tasks", "30", 30),
        ("tasks", "1e3", 1000),
        ("rate", "2", 2.0),
        ("horizon_s", "10s", 10.0),
        ("horizon_s", "2h", 7200.0),
        ("horizon_s", "1.5m", 90.0),
        ("horizon_s", "100ms", 0.1),
        ("horizon_s", "7d", 604800.0),
        ("horizon_s", "5", 5.0),
        ("horizon", "2h", 7200.0),
        ("warm", "yes", True),
        ("warm", "0", False),
        ("rule", "edf", "edf"),
        ("seed_file", "none", None),
        ("seed_file", "7", "7"),
        ("sizes", "[4,8]", (4, 8)),
        ("sizes", "4", (4,)),
        ("sizes", "[]", ()),
        ("window", "[1,2.5]", (1.0, 2.5)),
        ("names", "[a,b]", ["a", "b"]),
        ("limit", "none", None),
        ("limit", "3", 3),
        ("tasks", 7.0, 7),
        ("rate", 3, 3.0),
        ("sizes", [4, 8], (4, 8)),
    ],
)
def test_values_take_the_type_of_their_field(key: str, text: Any, value: Any) -> None:
    built = specs.build(Sample, "problem 'sample'", {key: text})
    name = "horizon_s" if key == "horizon" else key
    assert getattr(built, name) == value and type(getattr(built, name)) is type(value)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("tasks", "2.5", "an integer"),
        ("tasks", "many", "an integer"),
        ("tasks", True, "an integer"),
        ("tasks", "10s", "an integer"),
        ("rate", "nan", "a number"),
        ("rate", "fast", "a number"),
        ("horizon_s", "2 weeks", "a number"),
        ("warm", "perhaps", "true or false"),
        ("rule", "fifo", "one of fcfs, edf"),
        ("window", "[1]", "a list"),
        ("sizes", "[1,x]", "a list [a,b,...] of an integer each"),
        ("limit", "x", "none or an integer"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(ParameterError) as caught:
        specs.build(Sample, "problem 'sample'", {key: value})
    message = str(caught.value)
    assert (
        message.startswith(f"problem 'sample': {key} is {value!r}; it must be ")
        and allowed in message
    )


def test_an_unknown_parameter_gets_the_nearest_one() -> None:
    with pytest.raises(
        UnknownNameError,
        match=r"unknown parameter of problem 'sample' 'task'; did you mean 'tasks'\?",
    ):
        specs.build(Sample, "problem 'sample'", {"task": 3})


def test_a_parameter_cannot_come_under_both_its_names() -> None:
    with pytest.raises(ParameterError, match="horizon_s is given twice"):
        specs.build(Sample, "problem 'sample'", {"horizon": "2h", "horizon_s": "1h"})


def test_a_missing_parameter_is_asked_for() -> None:
    with pytest.raises(ParameterError, match="needs count; give it as count=VALUE"):
        specs.build(Strict, "problem 'strict'", {})


def test_a_value_the_plugin_itself_refuses_is_bad_input() -> None:
    with pytest.raises(ParameterError, match="count is -3; at least 1 is needed"):
        specs.build(Strict, "problem 'strict'", {"count": "-3"})


def test_parameters_show_type_and_default() -> None:
    shown = {entry.name: (entry.type, entry.default) for entry in specs.parameters(Sample)}
    assert shown["sizes"] == ("tuple[int, ...]", "[1,2]")
    assert shown["warm"] == ("bool", "false")
    assert shown["names"] == ("list[str]", "[]")
    assert shown["limit"] == ("int | None", "none")
    assert specs.parameters(Strict)[0].default is None


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    @dataclass
    class Odd:
        size: Unknown = 1  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(
        ParameterError,
        match="annotation of Odd cannot be read at run time: name 'Unknown' is not defined",
    ):
        specs.build(Odd, "solver 'odd'", {})


@given(st.text(max_size=40))
def test_any_text_is_a_spec_or_a_parameter_error(text: str) -> None:
    try:
        name, params = specs.parse(text)
    except ParameterError:
        return
    assert name and all(key.isidentifier() for key in params)
    assert specs.name_of(text) == name


@given(st.sampled_from([entry.name for entry in specs.parameters(Sample)]), st.text(max_size=12))
def test_any_value_is_read_or_refused(key: str, text: str) -> None:
    try:
        specs.build(Sample, "problem 'sample'", {key: text})
    except ParameterError:
        return
