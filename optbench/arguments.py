"""Arguments of a call, checked: keywords that a function takes, limits and whole numbers."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from optbench.errors import ArgumentError, OptbenchError, ParameterError, nearest

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def known_keywords(
    shown: str, error: type[OptbenchError] = ArgumentError
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function, which messages call ``shown``, to refuse keywords that it lacks."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = frozenset(keywords_of(function))

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            refuse_unknown(shown, kwargs, known, error)
            return function(*args, **kwargs)

        return checked

    return decorate


def known_keywords_of_methods(shown: str, error: type[OptbenchError]) -> Callable[[C], C]:
    """Decorate a class: its public methods and its constructor refuse keywords that they lack."""

    def decorate(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            public = name == "__init__" or not name.startswith("_")
            if public and inspect.isfunction(method) and not _takes_any(method):
                call = cls.__name__ if name == "__init__" else f"{shown}.{name}"
                setattr(cls, name, known_keywords(call, error)(method))
        return cls

    return decorate


def refuse_unknown(
    shown: str,
    given: Iterable[str],
    known: Iterable[str],
    error: type[OptbenchError] = ArgumentError,
) -> None:
    """Raise for the first name among ``given`` that is not known."""
    for key in given:
        if key not in known:
            raise error(f"{shown}() has no argument {key!r}; {nearest(key, known)}")


def keywords_of(function: Callable[..., object]) -> list[str]:
    """Names that a function takes as keywords."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.kind in kinds and each.name != "self"]


def _takes_any(function: Callable[..., object]) -> bool:
    found = inspect.signature(function).parameters.values()
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found)


def check_limit(name: str, value: object, expected: str) -> None:
    """Refuse a limit that is neither a positive number nor None."""
    if value is None:
        return
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise ParameterError(f"{name} is {value!r}; it must be {expected}, or None for no limit")
    if not float(value) > 0:
        raise ParameterError(f"{name} is {value!r}; it must be positive, or None for no limit")


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ParameterError(f"{name} is {value!r}; it must be a whole number")
    if value < least:
        words = "must not be negative" if least == 0 else f"must be at least {least}"
        raise ParameterError(f"{name} is {value!r}; it {words}")


def require(ok: bool, family: str, name: str, value: object, allowed: str) -> None:
    """Raise a ParameterError that names the parameter, its value and what is allowed."""
    if not ok:
        raise ParameterError(f"problem {family!r}: {name} is {value!r}; it must be {allowed}")


def require_range(family: str, low: int, high: int) -> None:
    """Check the range from which durations are drawn: 1 <= low <= high."""
    require(low >= 1, family, "low", low, "at least 1")
    require(high >= low, family, "high", high, f"at least low, which is {low}")
