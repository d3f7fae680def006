"""Certificates as text: the method of the core that re-proves a bound, and what it needs besides
the instance.

    combinatorial   the source of the bound, and the makespan below which a
                    destructive bound refuted everything
    fluid_lp        the fluid LP with or without its edges, and rational duals
    stream_lp       the LP over arriving work in one slot or in slots of so many
                    seconds, and rational duals
    refutation      nothing: windows, loads and floors against deadlines and limits
                    are computed again (infeasible)
    fluid_farkas    the fluid LP, and rational duals that prove its rows to
                    contradict each other (infeasible)

``rows`` identifies the LP that the duals were made for. A certificate states no value: what it
proves is computed from the instance. Whoever made it need not be trusted, and what is read here is
checked like any foreign data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from optbench.bounds.lp.exact_check import Certificate
from optbench.bounds.lp.linear_program import LinearProgram
from optbench.errors import OptbenchError

COMBINATORIAL, FLUID, STREAM = "combinatorial", "fluid_lp", "stream_lp"
REFUTATION, FARKAS = "refutation", "fluid_farkas"
# A dual has about 60 bits, and a few more after it was raised; no certificate of optbench has more
# digits than this.
MOST_DIGITS, MOST_SHIFT = 60, 2000


class CertificateError(OptbenchError):
    """A certificate proves nothing for this instance; the message is the reason."""


def certificate_text(method: str, **needs: Any) -> str:
    """Return the canonical text of a certificate."""
    return json.dumps({"method": method, **needs}, sort_keys=True, separators=(",", ":"))


def parse_certificate(text: str) -> Mapping[str, Any]:
    """Return the fields of a certificate; its method is text, everything else is checked where it
    is used.
    """
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise CertificateError(f"the certificate is not JSON ({error})") from None
    if not isinstance(data, dict) or not isinstance(data.get("method"), str):
        raise CertificateError("the certificate names no method")
    return data


def dual_fields(lp: LinearProgram, duals: Certificate) -> dict[str, Any]:
    """Return rational duals and the identity of their LP, as fields of a certificate."""
    text = ",".join(map(str, duals.numerator)).encode()
    return {
        "shift": duals.shift,
        "duals": base64.b64encode(zlib.compress(text, 6)).decode(),
        "rows": lp_identity(lp),
    }


def read_duals(data: Mapping[str, Any], lp: LinearProgram) -> Certificate:
    """Return the duals of a certificate for the rows of this LP, which must be those for which they
    were made.
    """
    if data.get("rows") != lp_identity(lp):
        raise CertificateError(
            "the duals belong to other rows than those that this optbench builds for this instance"
        )
    shift = data.get("shift")
    if type(shift) is not int or not 0 <= shift <= MOST_SHIFT:
        raise CertificateError(
            f"shift is {shift!r}; it must be a whole number from 0 to {MOST_SHIFT}"
        )
    most = lp.num_rows * (MOST_DIGITS + 1)
    try:
        packed = base64.b64decode(data["duals"], validate=True)
        unpack = zlib.decompressobj()
        text = unpack.decompress(packed, most + 1)
        words = text.split(b",") if text else []
        if (
            len(text) > most
            or len(words) != lp.num_rows
            or any(len(word) > MOST_DIGITS for word in words)
        ):
            raise CertificateError(
                f"the certificate has {len(words)} duals; the LP has {lp.num_rows} rows"
            )
        return Certificate(tuple(int(word) for word in words), shift)
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise CertificateError(f"the duals cannot be read ({error})") from None


def lp_identity(lp: LinearProgram) -> str:
    """Return the hash of the numbers of an LP."""
    digest = hashlib.sha256()
    for part in (lp.cost, lp.lower, lp.upper, lp.row_ptr, lp.column, lp.value, lp.right, lp.equal):
        digest.update(f"{part.shape}{part.dtype.kind}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:32]
