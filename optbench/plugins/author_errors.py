"""Mistakes in a plug-in's code, answered with the author's file and line and what is expected."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

from optbench.errors import (
    AnswerError,
    ArgumentError,
    ModelError,
    OptbenchError,
    PluginError,
    ShapeError,
    nearest,
)
from optbench.workspace import FOLDERS, checkout

PACKAGE = Path(__file__).resolve().parents[1]
# Folders of plug-ins within the package: where the wheel has the built-in ones.
CARRIED = tuple(PACKAGE / "plugins" / folder for folder in FOLDERS.values())


def label(plugin: Any) -> str:
    """``solver 'mine'`` for a plug-in's object or class; a class of no file has its own name."""
    if inspect.isroutine(plugin):
        return f"policy {plugin.__name__!r}"
    cls = plugin if isinstance(plugin, type) else type(plugin)
    kind = next((kind for kind in FOLDERS if _stands_in(cls, kind)), None)
    return cls.__name__ if kind is None else f"{kind} {plugin_name(cls)!r}"


def plugin_name(cls: type) -> str | None:
    """The name of the file of a plug-in's class; None of a class of no such file."""
    return cls.__module__.split(".")[3] if any(_stands_in(cls, kind) for kind in FOLDERS) else None


def _stands_in(cls: type, kind: str) -> bool:
    return cls.__module__.startswith(f"optbench.plugins.{FOLDERS[kind]}.")


def is_built_in(plugin: Any) -> bool:
    """Whether the plug-in's class belongs to optbench itself: to its package or its checkout."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return file is not None and is_built_in_file(Path(file))


def is_built_in_file(path: Path) -> bool:
    """Whether a file belongs to the package of optbench or to the plug-ins of its checkout."""
    path, root = path.resolve(), checkout()
    folders = [] if root is None else [root / folder for folder in FOLDERS.values()]
    return any(path.is_relative_to(folder) for folder in (PACKAGE, *folders))


def defined_at(thing: Any) -> str:
    """``file:line`` of a class, a method or a function; its name where it has no file."""
    thing = thing.fget if isinstance(thing, property) else thing
    thing = inspect.unwrap(getattr(thing, "__func__", thing))
    code = getattr(thing, "__code__", None)
    if isinstance(code, CodeType):
        return f"{code.co_filename}:{code.co_firstlineno}"
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):  # defined in an interactive session
        return str(getattr(thing, "__qualname__", thing))


def method_at(plugin: Any, name: str) -> str:
    """``file:line`` of a plug-in's method, of its class where it has no such method."""
    if inspect.isroutine(plugin):
        return defined_at(plugin)
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return defined_at(getattr(cls, name, cls))


def raised_at(error: BaseException, plugin: Any) -> str | None:
    """``file:line`` of the innermost frame in the author's code; None if there is none."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = None if file is None else Path(file).parent
    inside = [f for f in frames if own is not None and Path(f.filename).is_relative_to(own)]
    found = inside or [frame for frame in frames if not _is_core(frame.filename)]
    # Without a file of the plug-in, the author's code is what optbench called first.
    return f"{found[-1].filename}:{found[-1].lineno}" if found else None


def calling_line() -> str:
    """``file:line`` of the innermost caller outside of optbench's own code."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_core(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@contextmanager
def author_code(
    plugin: Any, method: str, crash: type[OptbenchError] = PluginError
) -> Iterator[None]:
    """Give every error of a plug-in's method the author's file and line."""
    with author_phases(lambda: (plugin, method), crash), located(plugin):
        yield


@contextmanager
def author_phases(
    phase: Callable[[], tuple[Any, str]], crash: type[OptbenchError] = PluginError
) -> Iterator[None]:
    """The same where methods of several plug-ins take turns: ``phase`` says whose runs."""
    try:
        yield
    except OptbenchError:
        raise
    except Exception as error:
        raise crash(described(error, *phase())) from error


@contextmanager
def located(plugin: Any) -> Iterator[None]:
    """Put the author's file and line before an error in his declarations and calls.

    Errors that a plug-in raises itself, and those of built-in plug-ins, are its user's to mend."""
    try:
        yield
    except (ModelError, ArgumentError) as error:
        place = raised_at(error, plugin)
        if place is not None and not is_built_in(plugin):
            error.args = (f"{place}: {error}",)
        raise


def described(error: BaseException, plugin: Any, method: str) -> str:
    """What a plug-in's method raised: the plug-in, file and line, and the likely remedy."""
    place = raised_at(error, plugin)
    if place is None and isinstance(error, TypeError):
        wrong = wrong_signature(plugin, method)
        if wrong is not None:
            return f"{label(plugin)}: {wrong}"
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = suggestion(error)
    return (
        f"{label(plugin)}: {place or method_at(plugin, method)}: {method}() raised {words}"
        f"{'; ' + hint if hint else ''}"
    )


def crash_words(error: BaseException, plugin: Any) -> str:
    """The exception of a crashed solver, with the author's line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    last = f"{frames[-1].filename}:{frames[-1].lineno}"
    hint = suggestion(error)
    return (
        f"{type(error).__name__}: {error}{'; ' + hint if hint else ''} "
        f"({raised_at(error, plugin) or last})"
    )


def suggestion(error: BaseException) -> str:
    """``did you mean 'x'?`` for an attribute that does not exist."""
    if not isinstance(error, AttributeError) or error.name is None or error.obj is None:
        return ""
    public = [name for name in dir(error.obj) if not name.startswith("_")]
    found = nearest(error.name, public)
    return found if found.startswith("did you mean") else ""


# What each method is called with, after self; the last name is optional for ``instance``.
SIGNATURES = {
    "instance": ("seed",),
    "solve": ("instance", "run"),
    "play": ("instance", "rng", "faults", "until"),
    "rule": ("instance", "rng"),
    "decide": ("moment",),
    "decider": ("instance", "rng"),
    "act": ("observation",),
    "actor": ("rng",),
}


def wrong_signature(plugin: Any, method: str) -> str | None:
    """File, line and remedy of a method that cannot be called with what it is given."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    function, expected = getattr(cls, method, None), SIGNATURES.get(method)
    owner: tuple[str, ...] = ("self",)
    if inspect.isroutine(plugin):
        function, owner = plugin, ()
    if expected is None or not callable(function):
        return None
    try:
        inspect.signature(function).bind(*owner, *expected)
    except TypeError as error:
        given = "seed: int = 0" if method == "instance" else ", ".join(expected)
        return (
            f"{defined_at(function)}: {method}{inspect.signature(function)} cannot be called "
            f"({error}); write def {method}({', '.join((*owner, given))})"
        )
    except ValueError:  # a method without a signature, of compiled code
        return None
    return None


def refuse_incomplete(cls: type) -> None:
    """Raise for a class without the method that its kind needs, or with wrong arguments."""
    wrong = incomplete(cls)
    if wrong is not None:
        raise PluginError(f"{label(cls)}: {wrong}")


def incomplete(cls: type) -> str | None:
    """File, line and remedy where a class lacks the method that its kind needs; else None."""
    house = next((each for each in cls.__mro__ if "to_define" in vars(each)), None)
    if house is None or house is cls:
        return None
    names: tuple[str, ...] = vars(house)["to_define"]
    written = [n for n in names if getattr(cls, n) is not getattr(house, n)]
    if not written:
        own = [n for n, value in vars(cls).items() if inspect.isfunction(value)]
        close = nearest(names[0], [n for n in own if not n.startswith("__")])
        near = close.split("'")[1] if close.startswith("did you mean") else None
        place = defined_at(cls) if near is None else method_at(cls, near)
        arguments = ", ".join(("self", *SIGNATURES[names[0]]))
        rename = "" if near is None else f"rename {near!r} to it, or "
        remedy = f"{rename}define {names[0]}({arguments})"
        return f"{place}: {cls.__name__} has no method {names[0]!r}; {remedy}"
    return next(filter(None, (wrong_signature(cls, name) for name in written)), None)


def lacking_methods(shape: type) -> PluginError:
    """The error for a shape's class without a method that it must define."""
    abstract: frozenset[str] = getattr(shape, "__abstractmethods__", frozenset())
    known = {name for base in shape.__mro__[1:] for name in vars(base)}
    own = [n for n, value in vars(shape).items() if inspect.isfunction(value) and n not in known]
    words, place = [], defined_at(shape)
    for name in sorted(abstract):
        close = nearest(name, own)
        near = close.split("'")[1] if close.startswith("did you mean") else None
        place = place if near is None else method_at(shape, near)
        rename = "" if near is None else f"rename {near!r} to {name}, or "
        arguments = ", ".join(inspect.signature(getattr(shape, name)).parameters)
        words.append(f"has no method {name!r}; {rename}define {name}({arguments})")
    title = getattr(shape, "name", shape.__name__)
    return PluginError(f"shape {title!r}: {place}: {shape.__name__} {'; it '.join(words)}")


def refuse_result(plugin: Any, method: str, value: Any, expected: str) -> AnswerError:
    """The error for a method that returned something else than it must."""
    what = "nothing" if value is None else shown(value)
    return AnswerError(
        f"{label(plugin)}: {method_at(plugin, method)}: {method}() returned {what}; {expected}"
    )


def mistake(shape: Any, words: str, method: str = "") -> ShapeError:
    """The error for what a shape's class declares or its method returns; without a method the place
    is the class.
    """
    name = getattr(shape, "name", type(shape).__name__)
    return ShapeError(f"shape {name!r}: {method_at(shape, method)}: {words}")


def shown(value: Any) -> str:
    """A wrong value in a message: ``[1, 2], a list``; ``a Model`` where its text says nothing."""
    text, kind = repr(value), f"a {type(value).__name__}"
    if text.startswith("<") or len(text) > 200:
        return kind
    return f"{text if len(text) <= 60 else text[:57] + '...'}, {kind}"


def _is_core(filename: str) -> bool:
    path = Path(filename)
    carried = any(path.is_relative_to(folder) for folder in CARRIED)
    return not carried and (
        path.is_relative_to(PACKAGE) or filename.startswith(("<frozen", "<string>"))
    )
