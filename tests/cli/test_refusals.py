"""Errors that need more than one command or check. `bad_input_kinds.py` has the simple kinds of bad input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.folder import holding
from rc1_lib.workspace.state import state_of

from .conftest import SMALL, Rc1


def error_of(rc1: Rc1, *arguments: object) -> str:
    done = rc1(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err
    return done.err


def test_altered_pool_is_overwritten_only_with_rebuild(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    whole = pool.read_bytes()
    pool.write_bytes(whole + b"\n")
    assert "was altered after RC1 wrote it" in error_of(rc1, "build-pool", "--workspace", workspace, *SMALL)
    assert pool.read_bytes() == whole + b"\n"
    assert rc1("build-pool", "--workspace", workspace, *SMALL, "--force").code == 0
    assert pool.read_bytes() == whole


def test_pool_that_differs_from_its_metrics_cannot_be_balanced(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    pool.write_bytes(b"".join(pool.read_bytes().splitlines(keepends=True)[1:]))
    words = error_of(rc1, "difficulty-bucketize", "--workspace", workspace, *SMALL, "--rebuild")
    assert "run `rc1 difficulty-metrics` again" in words


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("difficulty-bucketize --by-task gsm8k", "name all of hotpotqa,strategyqa,gsm8k"),
        ("difficulty-bucketize --target easy:0.5,hard:0.5", "difficulty.target: lacks medium"),
        ("difficulty-bucketize --metrics data", "expected a file"),
        ("shadow-run --materialize data", "--materialize data: is a folder"),
    ],
)
def test_invalid_request_on_a_finished_workspace_fails(rc1: Rc1, workspace: Path, command: str, error: str) -> None:
    assert error in error_of(rc1, *command.split(), "--workspace", workspace, *SMALL)


def test_metrics_never_replace_the_pool(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    whole = pool.read_bytes()
    flags = ("--in", "data/shadow_eval_245.jsonl", "--out", "data/rollouts/rc1_seed.jsonl")
    words = error_of(rc1, "difficulty-metrics", "--workspace", workspace, *SMALL, *flags)
    assert "difficulty.metrics_path and pool.path have the same file name" in words
    moved = (*SMALL, "--set", "pool.path=data/elsewhere.jsonl")
    words = error_of(rc1, "difficulty-metrics", "--workspace", workspace, *moved, *flags)
    assert "was not written by RC1 for this purpose" in words
    assert pool.read_bytes() == whole


def test_gate_that_the_configuration_fails_is_announced_before_the_run(rc1: Rc1, tmp_path: Path) -> None:
    free = ("--set", "gates.resources.min_free_gb=0", "--set", "gates.git.require_commit=false")
    with holding(Workspace(tmp_path), "a preflight"):  # so that this preflight ends at once
        done = rc1("preflight", "--workspace", tmp_path, *free, "--set", "seeds=[1,2]")
        assert "round 1 will fail: training_config: seeds is 2, wanted >= 3 (" in done.out
        assert "will fail" not in rc1("preflight", "--workspace", tmp_path, *free).out


def test_second_run_in_a_workspace_names_the_first(rc1: Rc1, tmp_path: Path) -> None:
    with holding(Workspace(tmp_path), "a preflight"):
        words = error_of(rc1, "calibrate", "--workspace", tmp_path)
    assert f"a preflight (process {os.getpid()}, since 2" in words
    assert not state_of(tmp_path).exists()
