"""What the caller's environment sets neither switches a check off nor brings another project's modules in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pandera.config import config_context

from rc1_lib.cli import main
from rc1_lib.errors import RowError
from rc1_lib.rows.schema import check_metrics
from rc1_lib.workspace.artifacts import CODE_ROOT

OWN = """
import subprocess, sys
from rc1_lib.runtime.libraries import own_environment
own_environment()
own = "import deployments, flows, tasks; print({module.__file__ for module in (deployments, flows, tasks)})"
exec(own)
print(subprocess.run([sys.executable, "-P", "-c", own], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize(
    "settings", [{"validation_enabled": False}, {"validation_depth": "SCHEMA_ONLY"}, {"validation_depth": "DATA_ONLY"}]
)
def test_no_setting_of_pandera_lets_a_fault_pass(settings: dict[str, bool | str]) -> None:
    twice = pl.DataFrame({"id": ["a", "a"]})
    with pytest.raises(RowError) as all_faults:
        check_metrics(twice, Path("metrics.jsonl"))
    with config_context(**settings), pytest.raises(RowError) as found:  # type: ignore[arg-type]
        check_metrics(twice, Path("metrics.jsonl"))
    assert str(found.value) == str(all_faults.value)


@pytest.mark.parametrize(("form", "entry"), [("module", ""), ("package", "."), ("module", "{folder}")])
def test_modules_of_another_project_are_not_taken_for_ours(tmp_path: Path, form: str, entry: str) -> None:
    for name in ("deployments", "flows", "tasks"):
        foreign = tmp_path / f"{name}.py" if form == "module" else tmp_path / name / "__init__.py"
        foreign.parent.mkdir(exist_ok=True)
        foreign.write_text("raise SystemExit('foreign')")
    path = os.pathsep.join([entry.format(folder=tmp_path), str(CODE_ROOT)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", OWN],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    here, in_a_child = (eval(line) for line in done.stdout.splitlines() if line)
    assert here == in_a_child == {str(CODE_ROOT / name / "__init__.py") for name in ("deployments", "flows", "tasks")}


def test_a_command_removes_the_variables_of_pandera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDERA_VALIDATION_DEPTH", "nonsense")
    with pytest.raises(SystemExit):
        main(["--version"])
    assert "PANDERA_VALIDATION_DEPTH" not in os.environ
