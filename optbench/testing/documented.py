"""The check of a plug-in's documentation, for all kinds of plug-ins."""

from __future__ import annotations

from optbench.plugins import discovery, specs


def check_documented(kind: discovery.Kind, name: str, cls: type) -> None:
    """Check the summary line, and that parameters can be written as `optbench list` shows them."""
    summary = discovery.summary_of(cls)
    assert summary, (
        f"{kind} {name!r}: {cls.__name__} needs a docstring; its first line is what `optbench "
        "list` shows"
    )
    assert len(summary) <= 160, (
        f"{kind} {name!r}: the first line of the docstring is {len(summary)} characters long"
    )
    shown = specs.parameters(cls)
    required = [entry.name for entry in shown if entry.default is None]
    assert not required, (
        f"{kind} {name!r}: {required} have no default; a plug-in must run without parameters"
    )
    made = specs.build(cls, f"{kind} {name!r}", {})
    read = specs.build(cls, f"{kind} {name!r}", {entry.name: entry.default for entry in shown})
    assert specs.values_of(read) == specs.values_of(made), (
        f"{kind} {name!r}: a default does not survive being written as text"
    )
