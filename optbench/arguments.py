"""Refuse a keyword argument that a function does not take, with the nearest one that it does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from optbench.errors import ArgumentError, OptbenchError, nearest

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
