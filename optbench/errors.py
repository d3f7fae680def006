"""Every error a user can cause: it says what, where, the value received and the next step."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class OptbenchError(Exception):
    """Base of all errors that are the caller's to mend; the command line turns it into exit
    code 2.
    """


class ModelError(OptbenchError):
    """A declaration that cannot become an instance; names the task, pool or field at fault."""


class FileFormatError(OptbenchError):
    """A file that cannot be read: names the file, the place in it, the value and what is
    allowed.
    """


class UnknownNameError(OptbenchError):
    """A name that nothing answers to."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown {what} {clipped(name)!r}; {nearest(name, known)}")


class ParameterError(OptbenchError):
    """A parameter with a value outside what it allows."""


class ArgumentError(ParameterError):
    """A call with a keyword argument that the function does not take."""


class UnsupportedError(OptbenchError):
    """A solver or view asked for something it cannot express; the message names the remedy."""


class ContradictionError(OptbenchError):
    """A bound above a verified objective of the same instance: one of the two is wrong."""


class DisagreementError(ContradictionError):
    """The model of a shape and its ``verify`` disagree on a decision."""


class PluginError(OptbenchError):
    """A plug-in that cannot be used as it is written; the message names its file and line."""


class ShapeError(PluginError):
    """A mistake in the code of a shape, or an exception there: there is no verdict."""


class AnswerError(PluginError):
    """A plug-in's method returned or reported what it must not."""


class PluginCrashError(OptbenchError):
    """An exception of a plug-in's own code while it ran; the message names its file and line."""


@contextmanager
def naming(place: object, *kinds: type[OptbenchError]) -> Iterator[None]:
    """Put the place in front of errors, of these kinds only where any are given."""
    try:
        yield
    except OptbenchError as error:
        if kinds and not isinstance(error, kinds):
            raise
        raise FileFormatError(f"{place}: {error}") from None


# Names that a message lists at most, and characters that it shows of each.
MAX_LISTED, MAX_SHOWN = 30, 60


def clipped(name: str) -> str:
    """The beginning of a name that is too long for a message."""
    return name if len(name) <= MAX_SHOWN else f"{name[: MAX_SHOWN - 3]}..."


def with_article(noun: str) -> str:
    """``a packing``, ``an assignment``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` where something is close, otherwise what is known; of long lists what
    contains the name.
    """
    names = sorted(set(map(clipped, known)))
    close = get_close_matches(clipped(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) <= MAX_LISTED:
        return f"known: {', '.join(names)}" if names else "there are none"
    within = [each for each in names if name.strip() and name.lower() in each.lower()]
    if 0 < len(within) <= MAX_LISTED:
        return f"did you mean one of {', '.join(within)}?"
    return f"known: {', '.join(names[:MAX_LISTED])}, ... ({len(names):,} in all)"
