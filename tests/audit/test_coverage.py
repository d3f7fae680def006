"""A headline is about the cluster: what is covered stands in it, and below 95 % of the GPU-hours
there is none.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from optbench.audit.audit_json import document
from optbench.audit.audit_page import render
from optbench.audit.audit_run import Audit, audit
from optbench.audit.coverage import Coverage, LeftOut, percent
from optbench.audit.findings import advice_of, headline, saving_of
from optbench.audit.log import AuditOptions
from tests.audit.logs import HEAD, ORIGIN, line, log_from, options_of, profile_file


def audited(folder: Path, text: str, options: AuditOptions | None = None) -> Audit:
    path = folder / "log.sacct"
    path.write_text(HEAD + text)
    found = audit(path, options or options_of(profile_file(folder)))
    assert isinstance(found, Audit)
    return found


def test_a_mixed_cluster_has_no_headline_about_its_smallest_part(tmp_path: Path) -> None:
    """12 of 100 GPU-hours are on the type that has a profile; one of them waited, so there is
    something to save.
    """
    text = (
        line(1, 0, 3600, 12 * 3600)
        + line(2, 0, 0, 11 * 3600, 8, kind="other", nodes="n2")
        + line(3, 0, 0, 3600, nodes="n1")
    )
    done = audited(tmp_path, text)
    assert done.log.coverage.share == pytest.approx(0.12) and done.saving > 0.03
    assert saving_of(done) is None
    words = headline(done)
    assert (
        "no saving of the cluster" in words
        and "12.0 %" in words
        and "'other', a type without a profile" in words
    )
    assert advice_of(done).take is None and "12.0 %" in advice_of(done).words
    found = json.loads(json.dumps(document(done)))
    assert (
        found["saving"] is None
        and found["headline"] == words
        and found["coverage"]["share"] == pytest.approx(0.12)
    )
    page = render(done)
    assert "No saving of the cluster can be told" in page and "at most to be saved" not in page


def test_all_of_it_is_said_to_be_all(tmp_path: Path) -> None:
    done = audited(tmp_path, line(1, 0, 100, 200))
    assert done.log.coverage.share == 1.0 and saving_of(done) == done.saving
    saving = f"at most {100 * done.saving:.1f} % can be saved"
    assert headline(done) == f"{saving}; all 0 GPU-hours of that time are covered"


def test_runs_without_a_type_are_not_covered_and_make_no_gpus(tmp_path: Path) -> None:
    """Today's code counts the GPUs of rows without a type beside those of their node."""
    bare = line(3, 0, 0, 10, 2, nodes="").replace("gpu:toy", "gpu")
    text = line(1, 0, 0, 100, 2) + line(2, 100, 100, 200, 2).replace("gpu:toy", "gpu") + bare
    log = log_from(text, options_of(profile_file(tmp_path)))
    assert log.types == ("toy",) and log.counts.tolist() == [2] and log.gpus.tolist() == [2, 2]
    (lost,) = log.coverage.left_out
    assert lost.runs == 1 and lost.gpu_hours == pytest.approx(20 / 3600)
    assert log.coverage.share == pytest.approx(400 / 420)


def test_runs_without_an_end_are_covered(tmp_path: Path) -> None:
    """Start and Elapsed say how long the GPU was held."""
    head = "JobID|Eligible|Start|End|Elapsed|AllocTRES|NodeList\n"
    row = f"2|{ORIGIN}|{ORIGIN}|Unknown|00:01:40|gres/gpu:toy=1|n2\n"
    path = tmp_path / "log.sacct"
    path.write_text(f"{head}1|{ORIGIN}|{ORIGIN}|{ORIGIN + 50}|50|gres/gpu:toy=1|n1\n{row}")
    found = audit(path, options_of(profile_file(tmp_path)))
    assert isinstance(found, Audit)
    assert found.log.end.tolist() == [50.0, 100.0] and found.log.coverage.share == 1.0


def test_rows_that_cannot_be_read_count_as_mean_rows(tmp_path: Path) -> None:
    """One of three rows of equal runs ends before it starts, one does not fit the header: half of
    the hours are not known.
    """
    text = line(1, 0, 0, 100) + line(2, 0, 0, 100, nodes="n2") + line(3, 50, 50, 40) + "4|what\n"
    log = log_from(text, options_of(profile_file(tmp_path)))
    assert log.coverage.share == pytest.approx(0.5) and not log.coverage.enough
    assert log.coverage.left_out[0].runs == 2


def test_the_limit_is_not_rounded_up_to() -> None:
    almost = Coverage(1000.0, (LeftOut("runs", 1, 50.2),))
    assert not almost.enough and percent(almost.share) == "94.9 %" and "94.9 %" in almost.why_not()
    assert Coverage(1000.0, (LeftOut("runs", 1, 50.0),)).enough
    assert percent(Coverage(1e6, (LeftOut("runs", 1, 1.0),)).share) == "99.9 %"
