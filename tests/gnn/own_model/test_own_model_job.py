"""A training of a user's module is another one when any of its code has changed."""

from __future__ import annotations

from pathlib import Path

from optbench.gnn.own_model.own_model_job import imported_files, own_model_fingerprint
from tests.gnn.own_model.users_models import CODE, write_training


def test_files_that_a_model_imports_belong_to_it(tmp_path: Path) -> None:
    place = tmp_path / "code"
    (place / "parts" / "deep").mkdir(parents=True)
    code = place / "net.py"
    code.write_text("import json\nfrom parts.sizes import WIDE\n" + CODE)
    # ``parts`` is no package with a file of its own; ``deep`` is one, found through ``sizes``.
    (place / "parts" / "sizes.py").write_text("from .deep import more\nWIDE = 4\n")
    (place / "parts" / "deep" / "__init__.py").write_text("")
    (place / "parts" / "deep" / "more.py").write_text("import net, helper\n")
    (place / "helper.py").write_text("broken(\n")
    (place / "stranger.py").write_text("")
    names = ["helper.py", "parts/deep/__init__.py", "parts/deep/more.py", "parts/sizes.py"]
    assert imported_files(code) == [place.resolve() / name for name in names]
    folder = tmp_path / "job"
    write_training(folder, code, "Gcn", 1, "float32")
    first = own_model_fingerprint(folder)
    (place / "stranger.py").write_text("1\n")
    assert own_model_fingerprint(folder) == first
    (place / "parts" / "deep" / "more.py").write_text("import net\n")
    assert own_model_fingerprint(folder) != first
