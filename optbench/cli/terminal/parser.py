"""argparse with suggestions (nearest verb, option, choice) and types for durations and
parameters.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from optbench.errors import OptbenchError, nearest
from optbench.plugins.specs import duration_s

NEGATIVE = re.compile(r"-\.?\d")


class UsageError(OptbenchError):
    """The command line is invalid."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError with a suggestion instead of printing usage and exiting."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", HelpFormatter)
        super().__init__(allow_abbrev=False, add_help=False, **options)
        self._negative_number_matcher = (
            NEGATIVE  # A value such as -3s is refused by its type and not as an unknown option.
        )
        self._group: argparse._ArgumentGroup | None = None
        self.add_argument("-h", "--help", action="help", help="show this help and exit")

    def section(self, title: str) -> None:
        """Begin a section of the help: the options that follow belong to it."""
        self._group = self.add_argument_group(title)

    def option(
        self,
        words: str,
        help: str,
        type: Callable[[str], Any] = str,
        default: Any = None,
        **more: Any,
    ) -> None:
        """Add an option from its words as the help shows them, such as ``-o --output FILE``."""
        *flags, metavar = words.split()
        more |= {"metavar": metavar, "help": help, "type": type, "default": default}
        (self._group or self).add_argument(*flags, **more)

    def repeated(
        self, words: str, help: str, type: Callable[[str], Any] = str, **more: Any
    ) -> None:
        """Add an option that may be given several times; its value is a list."""
        self.option(words, help, type, [], action="append", **more)

    def flag(self, words: str, help: str) -> None:
        """Add an option without a value."""
        (self._group or self).add_argument(*words.split(), action="store_true", help=help)

    def positional(self, words: str, help: str, nargs: str | None = None, **more: Any) -> None:
        """Add an argument by its place, such as ``study`` or ``names SOLVER``."""
        name, _, metavar = words.partition(" ")
        more |= {"metavar": metavar or name.upper(), "help": help, "nargs": nargs}
        (self._group or self).add_argument(name, **more)

    @property
    def options(self) -> list[str]:
        """All flags, including those of sub-commands."""
        below = [
            parser
            for action in self._actions
            if isinstance(action.choices, dict)
            for parser in action.choices.values()
        ]
        own = [flag for action in self._actions for flag in action.option_strings]
        return list(dict.fromkeys([*own, *(flag for parser in below for flag in parser.options)]))

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else "."
        raise UsageError(f"{message}{stop} See `{self.prog} --help`.")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            what = action.metavar if isinstance(action.metavar, str) else action.dest
            raise argparse.ArgumentError(
                None, f"unknown {what.lower()} {value!r}; {nearest(str(value), known)}"
            )

    def refuse_extra(self, extra: Sequence[str]) -> NoReturn:
        """Refuse arguments that are left over: name the first and the nearest option."""
        word = extra[0].split("=")[0]
        if not word.startswith("-"):
            hint = (
                "; parameters are written NAME:key=value,... after a problem, and -p "
                "key=value for a solver"
            )
            self.error(f"unexpected argument {extra[0]!r}{hint if '=' in extra[0] else ''}")
        close = get_close_matches(word, self.options, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(self.options)}"
        self.error(f"unknown option {word!r}; {hint}")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """A formatter with one line per option that shows the metavar of short and long flags once."""

    def __init__(self, prog: str) -> None:
        super().__init__(
            prog, max_help_position=32, width=min(110, shutil.get_terminal_size((100, 24)).columns)
        )

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def seconds(text: str) -> float:
    """``10s``, ``2m``, ``1.5h``, ``500ms``, ``7d``; a bare number is seconds."""
    try:
        value = duration_s(text)
    except OptbenchError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a positive duration; write 10s, 2m, 1.5h or 500ms"
        )
    return value


def setting(text: str) -> tuple[str, str]:
    """Parse ``key=value``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not a parameter; write key=value")
    return key.strip(), value.strip()


def number(kind: type[int] | type[float], least: float) -> Callable[[str], Any]:
    """A type for finite numbers of at least ``least``."""

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < float("inf"):
            name = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"{text!r} is not allowed; it takes {name} of at least {least:g}"
            )
        return value

    return parse


def add_json(parser: argparse.ArgumentParser, default: Any = False) -> None:
    parser.add_argument(
        "--json", action="store_true", default=default, help="print one JSON object"
    )


def add_time_limit(parser: Parser, default: float, meaning: str, unless: str = "") -> None:
    """Add --time-limit. ``unless`` names when there is no default limit; the value is then None."""
    text = f"{meaning}: 500ms, 10s, 2m, 1h (default {default:g}s{unless})"
    parser.option("--time-limit TIME", text, seconds, None if unless else default)


def add_seed(parser: Parser, meaning: str) -> None:
    parser.option("--seed N", meaning, number(int, 0), 0)


def settings_of(pairs: Sequence[tuple[str, str]], flag: str = "-p") -> dict[str, str]:
    """Settings as a mapping; a repeated key is an error."""
    out: dict[str, str] = {}
    for key, value in pairs:
        if key in out:
            raise UsageError(f"{flag} {key} is given twice: {out[key]!r} and {value!r}")
        out[key] = value
    return out
