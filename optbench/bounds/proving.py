"""Prove certificates from the instance; of schedules, only this module gives the labels
``exact-lp`` and ``combinatorial``.

What a certificate proves does not depend on its origin. A proof that this process has already made
is not repeated: its outcome is stored under a hash of instance, objective and certificate.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optbench.bounds.combinatorial.combinatorial_bound import recomputed
from optbench.bounds.fluid.fluid_bound import recheck_fluid
from optbench.bounds.infeasible import recheck_farkas, refutation
from optbench.bounds.lp.certificates import (
    COMBINATORIAL,
    FARKAS,
    FLUID,
    REFUTATION,
    STREAM,
    CertificateError,
    parse_certificate,
)
from optbench.errors import OptbenchError
from optbench.model.instance import Instance
from optbench.model.result import Bound, Infeasibility

# Seconds within which a destructive bound is refuted again.
RECHECK_S = 60.0
MOST_REMEMBERED = 2048
# Number of (task, mode) pairs whose fluid LP is built and checked within about two seconds.
MOST_PAIRS = 100_000


@dataclass
class Proofs:
    """Outcomes of the latest proofs; thread-safe."""

    known: OrderedDict[str, Bound | Infeasibility] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: str) -> Bound | Infeasibility | None:
        with self.lock:
            return self.known.get(key)

    def put(self, key: str, outcome: Bound | Infeasibility) -> None:
        with self.lock:
            self.known[key] = outcome
            while len(self.known) > MOST_REMEMBERED:
                self.known.popitem(last=False)


_PROOFS = Proofs()


def prove(
    instance: Instance, certificate: str, *, costly: bool = True, again: bool = False
) -> Bound:
    """Return the bound that a certificate proves on the first level of the objective; otherwise
    raise CertificateError with the reason.

    Without ``costly``, a proof that may take more than a few seconds is refused, because
    certificates may come from untrusted sources. With ``again`` the proof is repeated even if this
    process has made it before.
    """
    found = _outcome(instance, certificate, costly, again)
    if not isinstance(found, Bound):
        raise CertificateError("the certificate is of infeasibility; it proves no bound")
    return found


def prove_infeasible(instance: Instance, certificate: str) -> Infeasibility:
    """Repeat the proof that no schedule exists; raise CertificateError with the reason if the
    certificate proves nothing.
    """
    found = _outcome(instance, certificate, costly=False)
    if not isinstance(found, Infeasibility):
        raise CertificateError("the certificate is of a bound; it does not prove infeasibility")
    return found


def remember(instance: Instance, bounds: Iterable[Bound]) -> None:
    """Store what the core has just proved for this instance."""
    for bound in bounds:
        if bound.certificate is not None:
            _PROOFS.put(_key(instance, bound.certificate), replace(bound, level=0))


def labelled(instance: Instance, bound: Bound, *, costly: bool = True) -> Bound:
    """Return a bound with the label that it deserves: what its certificate proves for this
    instance, or ``solver``.
    """
    plain = replace(bound, proof="solver", certificate=None)
    if bound.proof == "solver" or bound.certificate is None:
        return plain
    try:
        proven = prove(instance, bound.certificate, costly=costly)
    except CertificateError:
        return plain
    value = max(proven.value, 0.0)  # as in a run: no objective is negative
    return replace(proven, value=value, level=bound.level) if value >= bound.value else plain


def _outcome(
    instance: Instance, certificate: str, costly: bool, again: bool = False
) -> Bound | Infeasibility:
    data = parse_certificate(certificate)
    if not costly:
        _refuse_costly(instance, data)  # known proofs too: a label must not depend on earlier calls
    key = _key(instance, certificate)
    known = None if again else _PROOFS.get(key)
    if known is not None:
        return known
    try:
        found = _proved(instance, data)
    except CertificateError:
        raise
    except (
        OptbenchError,
        ArithmeticError,
        ValueError,
    ) as error:
        # Untrusted numbers that no relaxation accepts
        raise CertificateError(f"the certificate does not fit this instance ({error})") from error
    if found is None:
        raise CertificateError("the certificate proves nothing for this instance")
    _PROOFS.put(key, found)
    return found


def _refuse_costly(instance: Instance, data: Mapping[str, Any]) -> None:
    """Refuse a proof that may take more than a few seconds."""
    method = data["method"]
    if method in (FLUID, FARKAS) and num_pairs(instance) > MOST_PAIRS:
        raise CertificateError(
            f"{num_pairs(instance):,} (task, mode) pairs: too many to repeat the proof at once"
        )
    if method == COMBINATORIAL and data.get("makespan") is not None:
        raise CertificateError("a destructive bound takes long to prove again")
    slot_s = data.get("slot_s")
    if method == STREAM and slot_s is not None and slot_s != _usual_slot_s(instance):
        raise CertificateError("the slots are not those that the core uses")


def _usual_slot_s(instance: Instance) -> float | None:
    """Return the length of the slots that the core uses; None for an instance without a stream."""
    if instance.stream is None:
        return None
    from optbench.bounds.streams.stream_slots import usual_slot_s

    return usual_slot_s(instance)


def _proved(instance: Instance, data: Mapping[str, Any]) -> Bound | Infeasibility | None:
    """Repeat a proof."""
    method = data["method"]
    if method == COMBINATORIAL:
        makespan = data.get("makespan")
        if makespan is not None and (type(makespan) is not int or not 0 < makespan < 2**53):
            raise CertificateError(
                f"makespan is {makespan!r}; it must be a positive whole number of ticks"
            )
        return recomputed(instance, str(data.get("source")), makespan, RECHECK_S)
    if method == FLUID:
        return recheck_fluid(instance, data)
    if method == STREAM:
        from optbench.bounds.streams.stream_bound import recheck_stream

        return recheck_stream(instance, data)
    if method == REFUTATION:
        return refutation(instance)
    if method == FARKAS:
        return recheck_farkas(instance, data)
    raise CertificateError(f"no method of the core is called {method[:40]!r}")


def num_pairs(instance: Instance) -> int:
    """Return an upper estimate of the number of (task, mode) pairs, without building any."""
    return int(np.diff(instance.modes.kind_ptr)[instance.tasks.kind].sum())


def _key(instance: Instance, certificate: str) -> str:
    digest = hashlib.sha256(f"{instance.physics_hash} {instance.objective.level(0).hash} ".encode())
    digest.update(certificate.encode("utf-8", "replace"))
    return digest.hexdigest()
