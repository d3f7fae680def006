"""What ``simulate`` plays: an instance that unfolds while a policy acts.

    process = shape.process_of(instance, seed)
    while not process.done:
        process.act(policy.act(process.observe()))
    decision = process.decision()

The policy gets observations and nothing else; the decision is verified like that of any solver.
"""

from __future__ import annotations

from typing import Any, Protocol

from optbench.errors import OptbenchError


class ActionError(OptbenchError):
    """Raised by ``act`` where the policy's action is impossible; the policy's author is named."""


class Process(Protocol):
    """One run of an instance. ``done`` is an attribute or a property, True at the end."""

    @property
    def done(self) -> bool: ...

    def observe(self) -> Any:
        """Return what has happened so far, as far as a policy may know it."""

    def act(self, action: Any) -> None:
        """Carry an action out, and go on to the next observation; an ActionError refuses it."""

    def decision(self) -> Any:
        """Return the decision that all actions amount to; called once, when it is done."""
