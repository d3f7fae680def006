"""A user's model by the file and the name of its class: ``my_model.py:Net``.

The file is run: it is a user's own code, as a plug-in is. The class, or a function that makes the
module, may take ``features``, ``hidden`` and ``classes``, under one of their usual names; anything
else needs a default.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optbench.errors import FileFormatError, ModelError, ParameterError, UnknownNameError

# Names under which sizes may be taken.
SIZE_NAMES = {
    "features": ("features", "num_features", "in_features", "in_channels", "in_dim", "input_dim"),
    "hidden": ("hidden", "hidden_channels", "hidden_dim", "hidden_features"),
    "classes": ("classes", "num_classes", "out_channels", "out_features", "out_dim", "output_dim"),
}


def load_model(spec: str, features: int, hidden: int, classes: int) -> Any:
    """Make the module that ``FILE.py:NAME`` names."""
    file, _, name = spec.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ParameterError(
            f"model is {spec!r}; it must be FILE.py:NAME, the class of a torch.nn.Module in a file"
        )
    path = Path(file)
    if not path.is_file():
        raise FileFormatError(f"model {file}: no such file")
    module = _module(path)
    maker = getattr(module, name, None)
    if not callable(maker):
        made_here = [
            key
            for key, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", None) == module.__name__
        ]
        raise UnknownNameError(f"class of {file}", name, made_here)
    sizes = {"features": features, "hidden": hidden, "classes": classes}
    with _running(path, f"{name}()"):
        return maker(**_arguments(maker, sizes, spec))


def _arguments(maker: Callable[..., Any], sizes: dict[str, int], spec: str) -> dict[str, int]:
    """The sizes that a class takes by name."""
    given = {}
    taken = {name: size for size, names in SIZE_NAMES.items() for name in names}
    for parameter in inspect.signature(maker).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in taken and parameter.kind is not parameter.POSITIONAL_ONLY:
            given[parameter.name] = sizes[taken[parameter.name]]
        elif parameter.default is parameter.empty:
            known = ", ".join(names[0] for names in SIZE_NAMES.values())
            raise ParameterError(
                f"model {spec!r} needs {parameter.name!r}, which is not known here; sizes that are "
                f"given are {known}. Give it a default value"
            )
    return given


def _module(path: Path) -> Any:
    """The module of a file, made anew when its content has changed."""
    key = hashlib.sha256(str(path.resolve()).encode() + path.read_bytes()).hexdigest()[:16]
    name = f"optbench_user_model_{key}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        with _running(path, "the file"):
            spec.loader.exec_module(module)
    except ModelError:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(folder)
    return module


@contextmanager
def _running(path: Path, what: str) -> Iterator[None]:
    """Name the line of the user's file at which his code fails."""
    try:
        yield
    except (SyntaxError, *_USER_ERRORS) as error:
        lines = [
            each.lineno
            for each in traceback.extract_tb(error.__traceback__)
            if Path(each.filename).name == path.name
        ]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        place = f"{path}, line {line}" if line else str(path)
        raise ModelError(f"{place}: {what} fails: {type(error).__name__}: {error}") from error


# What running a file can raise short of leaving the process.
_USER_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, RuntimeError, TypeError, ValueError),
)
