"""An energy account in words: the figure, its stated error, and counter and integral compared."""

from __future__ import annotations

from optbench.hardware.gpus.energy_integral import AGREE, EnergyAccount


def energy_words(account: EnergyAccount) -> tuple[str, ...]:
    """Sentences; the first one has the figure."""
    spikes = f"spikes shorter than the period of {milliseconds(account.period_s)}"
    integral = _with_error(account.integral_j, account.integral_error_j)
    if account.source == "none" and account.num_readings < 2:
        return ("no energy: that takes two readings",)
    if account.source == "none":
        return (
            f"no energy: the driver tells neither power nor energy ({account.without_counter})",
        )
    if account.source == "integral":
        return (
            f"{integral} by integration",
            f"no energy counter ({account.without_counter}); {spikes} are met by chance, which is "
            "in the stated error once some were met",
        )
    counter = f"{_with_error(account.counter_j, account.counter_error_j)} by the counter"
    if account.difference is None:
        return (counter,)
    share = f"{abs(100 * account.difference):.2g} %"
    side = "more" if account.difference > 0 else "less"
    if account.agrees:
        return (counter, f"{integral} by integration, {share} {side}: they agree")
    if account.within_error:
        cause = "the difference is within its stated error"
    elif account.power_window_s:
        cause = f"power is a mean over {account.power_window_s:g} s, which blurs the ends"
    else:
        cause = f"{spikes} are not in the integral or weigh too much in it"
    return (
        counter,
        f"{integral} by integration, {share} {side}, which is beyond {100 * AGREE:g} %: the "
        f"counter is the figure; {cause}",
    )


def _with_error(value_j: float | None, error_j: float | None) -> str:
    """``2,503.1 ± 3.4 J``."""
    if value_j is None:
        return "unknown"
    digits = 1 if abs(value_j) >= 100 else 3
    error = f" ± {error_j:,.{digits}f}" if error_j else ""
    return f"{value_j:,.{digits}f}{error} J"


def milliseconds(value_s: float) -> str:
    """``50 ms``, ``1.5 s``."""
    return f"{1e3 * value_s:g} ms" if value_s < 1 else f"{value_s:g} s"
