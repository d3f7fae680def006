"""What an audit finds, in words and rows: the one source of the terminal, the page and the
document.

The headline is a saving of the cluster, where the audit covers the cluster (``coverage``). The rows
are the policies that were played and the configuration that was chosen on the first half of the
runs, and the advice speaks of one of these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from optbench.audit.audit_run import ROOM, Audit
from optbench.audit.policies import PlayedPolicy
from optbench.html.quantities import amount, clock


@dataclass(frozen=True)
class FindingRow:
    """A policy on all runs beside the record. ``taken`` marks the one that the advice says to take;
    ``note`` is what there is to say of a policy in words.
    """

    played: PlayedPolicy
    energy: str
    share: str
    mean: str
    gap: str
    note: str
    taken: bool


@dataclass(frozen=True)
class Advice:
    """``take`` is None where there is none; ``saving`` is that on the runs that it was not chosen
    on.
    """

    take: PlayedPolicy | None
    saving: float | None
    words: str


def saving_of(done: Audit) -> float | None:
    """Share of the recorded energy that can be saved at most; None where too little of the cluster
    is covered.
    """
    return done.saving if done.log.coverage.enough else None


def headline(done: Audit) -> str:
    """The saving of the cluster, or why there is none."""
    coverage = done.log.coverage
    if coverage.enough:
        return f"at most {100 * done.saving:.1f} % can be saved; {coverage.words}"
    return f"no saving of the cluster can be told: {coverage.why_not()}"


def rows_of(done: Audit) -> tuple[FindingRow, ...]:
    """All that was played on all runs, of least energy first; what did not run comes last."""
    shown, chosen = list(done.policies), done.choice
    if chosen is not None:
        shown = [each for each in shown if not same(each, chosen.whole)] + [chosen.whole]
    shown.sort(key=lambda each: (each.error is not None, each.energy_j))
    return tuple(row_of(each, done) for each in shown)


def same(one: PlayedPolicy, other: PlayedPolicy) -> bool:
    """Whether both are one configuration."""
    return one.policy == other.policy and dict(one.params) == dict(other.params)


def row_of(made: PlayedPolicy, done: Audit) -> FindingRow:
    if made.error is not None:
        return FindingRow(made, "-", "-", "-", "-", made.error, False)
    record, chosen = done.record, done.choice
    mine = chosen is not None and same(chosen.whole, made)
    taken = mine and chosen is not None and chosen.holds and done.log.coverage.enough
    notes = ["take"] if taken else ["best on the first half, not advised"] if mine else []
    if made.sojourn_s > record.sojourn_s:
        more = made.sojourn_s / record.sojourn_s - 1
        notes.append(f"{100 * more:.1f} % slower" if more < 1 else f"{1 + more:,.1f} times as slow")
    share = share_of(made, done)
    gap = "" if made.gap is None else f"{100 * made.gap:.1f} %"
    energy, mean = amount(made.energy_j, "J"), to_the_second(made.sojourn_s)
    return FindingRow(made, energy, share, mean, gap, "; ".join(notes), taken)


def to_the_second(seconds: float) -> str:
    """A clock time; fractions of a second say nothing of a mean."""
    return clock(round(seconds))


def share_of(made: PlayedPolicy, done: Audit) -> str:
    """Of the record's energy; in brackets without GPUs that rest after the record's end."""
    share = f"{100 * made.energy_j / done.record.energy_j:.1f} %"
    inside = f"{100 * made.inside_j / done.record.energy_j:.1f} %"
    return share if inside == share else f"{share} ({inside})"


def advice_of(done: Audit) -> Advice:
    """What to take, or why nothing."""
    chosen, coverage = done.choice, done.log.coverage
    if not coverage.enough:
        return Advice(None, None, f"no advice: {coverage.too_little}")
    if chosen is None:
        return Advice(None, None, f"no advice: {no_choice(done)}")
    label = chosen.whole.label
    if not chosen.holds:
        best = f"{label} was best on the first half of the runs"
        return Advice(None, None, f"no advice: {best}, but {fails(done)}")
    less = f"{100 * chosen.later_saving:.1f} % less than the record"
    whole = f"on all runs it needs {share_of(chosen.whole, done)} of the record's energy"
    half = "on the half of the runs that it was not chosen on"
    return Advice(chosen.whole, chosen.later_saving, f"take {label}: {less} {half}; {whole}")


def fails(done: Audit) -> str:
    """Why what was chosen on the first half is no advice."""
    chosen = done.choice
    assert chosen is not None
    if chosen.later_saving <= 0:
        return f"draws {-100 * chosen.later_saving:.1f} % more than the record on the second half"
    for sojourn_s, recorded_s, where in (
        (chosen.later.sojourn_s, chosen.later_recorded_s, "the second half"),
        (chosen.whole.sojourn_s, done.record.sojourn_s, "all runs"),
    ):
        if sojourn_s > recorded_s * (1 + ROOM):
            more = sojourn_s / recorded_s - 1
            return f"needs {100 * more:.1f} % more time than the record on {where}"
    return "draws no less than the record on all runs"


def no_choice(done: Audit) -> str:
    """A policy that did well on all runs was not chosen beforehand, and is no advice for that."""
    record, made = done.record, [p for p in done.policies if p.error is None]
    in_time = [p for p in made if p.sojourn_s <= record.sojourn_s]
    better = [p for p in in_time if p.inside_j < record.energy_j]
    if not better:
        return "no policy drew less than the record in the same mean time"
    best = min(better, key=lambda p: p.inside_j)
    less = f"{100 * (1 - best.inside_j / record.energy_j):.1f} % less"
    why = "nothing was to be chosen on the first half"
    return f"{best.label} drew {less} than the record in its mean time, but {why}"
