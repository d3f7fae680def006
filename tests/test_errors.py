"""What a message offers in place of a name that nothing answers to."""

from __future__ import annotations

from optbench.errors import MAX_LISTED, nearest

FILES = [f"jobshop/la{i:02}" for i in range(50)]


def test_something_close_is_asked_for_and_short_lists_are_shown_whole() -> None:
    assert nearest("jobshp/la01", FILES) == "did you mean 'jobshop/la01'?"
    assert nearest("zz", ["b", "a"]) == "known: a, b"
    assert nearest("zz", []) == "there are none"


def test_of_long_lists_only_what_contains_the_name_or_the_beginning() -> None:
    assert (
        nearest("LA01", [*FILES, "flexible/la01_edata"])
        == "did you mean one of flexible/la01_edata, jobshop/la01?"
    )
    assert nearest("zz", FILES) == f"known: {', '.join(FILES[:MAX_LISTED])}, ... (50 in all)"
    # All fifty contain it: that says nothing.
    assert nearest("la", FILES).endswith("jobshop/la29, ... (50 in all)")
