"""`action.yml` for GitHub: its steps run here as they stand, with the inputs filled in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
import yaml

from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.pages import HOW_TO, example
from tests.pages import run as run_example

FreshCopy = Callable[..., Run]
ACTION = yaml.safe_load((PROJECT_ROOT / "action.yml").read_text("utf-8"))
_INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")


def acted(summary: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the steps whose condition holds, one after the other, as GitHub does until one fails."""
    inputs = {name: one["default"] for name, one in ACTION["inputs"].items()} | {"install": "false", **given}
    done = None
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash" and "${{" not in step["run"], "an input in a script would be run"
        if "if" in step:
            name, wanted = re.fullmatch(r"inputs\.(\w+) == '(.*)'", step["if"]).groups()  # type: ignore[union-attr]
            if inputs[name] != wanted:
                continue
        own = {key: _INPUT.sub(lambda found: inputs[found[1]], value) for key, value in step["env"].items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **own, "GITHUB_STEP_SUMMARY": str(summary), "PATH": path}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            command, cwd=summary.parent, env={**environment, "PYTHONPATH": str(PROJECT_ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            break
    assert done is not None
    return done


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith("::error ")]


def test_pull_request_with_a_good_pool_passes_with_its_tables(fresh_copy: FreshCopy, tmp_path: Path) -> None:
    run, summary = fresh_copy(), tmp_path / "summary.md"
    done = acted(summary, workspace=str(run.workspace.root), settings="\n".join(run.overrides))
    assert (done.returncode, errors(done)) == (0, []), done.stdout
    text = summary.read_text("utf-8")
    assert re.findall("^### rc1 (.*)$", text, re.MULTILINE) == ["validate-pool", "check-answers"]
    assert re.search("│ duplicates +│ passed", text) and "all kinds" in text


def test_workflow_of_the_page_passes_on_questions_of_its_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (HOW_TO / "other-tools.md").read_text("utf-8")
    (workflow,) = (block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "OWNER/rc1" in block)
    given = yaml.safe_load(workflow)["jobs"]["data"]["steps"][-1]["with"]
    monkeypatch.chdir(tmp_path)
    run_example(example("own-source.md", '"""Write own questions').replace("mine/", f"{given['sources']}/"))
    small = "pool.n=100\nshadow.n=40\npool.workers=1\n"
    done = acted(tmp_path / "summary.md", **{**given, "settings": given["settings"] + small})
    assert (done.returncode, errors(done)) == (0, []), done.stdout


def test_pull_request_with_copied_rows_fails_with_the_name_of_the_gate(fresh_copy: FreshCopy, tmp_path: Path) -> None:
    run, summary = fresh_copy(), tmp_path / "summary.md"
    pool = run.workspace.path(run.config.pool.path)
    rows = [orjson.loads(line) for line in pool.read_bytes().splitlines()]
    copies = [{**row, "id": f"{row['id']}-copy"} for row in rows[: len(rows) // 10]]
    pool.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in [*rows, *copies]))
    done = acted(summary, workspace=str(run.workspace.root), settings="\n".join(run.overrides))
    assert done.returncode == 2
    (error,) = errors(done)
    assert error.startswith("::error title=rc1 validate-pool::fail: ") and "%0A  duplicates: " in error
    assert re.search("│ duplicates +│ FAILED", summary.read_text("utf-8"))
    assert "### rc1 check-answers" in summary.read_text("utf-8"), "one run shows all that is wrong"


def test_pull_request_with_a_damaged_source_is_refused_before_the_gates(tmp_path: Path) -> None:
    (tmp_path / "mine/gsm8k").mkdir(parents=True)
    (tmp_path / "mine/gsm8k/stock.jsonl").write_text('{"question": "How many?"}\n')
    summary = tmp_path / "summary.md"
    done = acted(summary, workspace="work", sources="mine", settings="datasets={gsm8k: 1.0}\npool.n=20\n")
    assert done.returncode == 2
    (error,) = errors(done)
    assert error.startswith("::error title=rc1 build-pool::rc1: ") and "stock.jsonl, line 1" in error
    assert "validate-pool" not in summary.read_text("utf-8")
