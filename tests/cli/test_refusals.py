"""Bad input: exit code 2, one sentence that says what to do, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import SMALL, Rc1


def refusal(rc1: Rc1, *arguments: object) -> str:
    done = rc1(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--mix", "hotpotqa=0.5"), "expected NAME:SHARE"),
        (("--mix", "hotpotqa:0.5,gsm8k:0.4"), "the shares sum to 0.9, expected 1"),
        (("--mix", "hotpotqa:0.5,gsm:0.5"), "did you mean 'gsm8k'?"),
        (("--mix", "gsm8k:half,hotpotqa:0.5"), "the share of gsm8k is 'half'"),
        (("--mix", "gsm8k:0.5,gsm8k:0.5"), "'gsm8k' stands twice"),
        (("--mix", "gsm8k:1.5,hotpotqa:-0.5"), "expected a number from 0 to 1"),
        (("--tools", "wiki,web"), "'web' is none of wiki, calc"),
        (("--set", "pool.nn=3"), "did you mean 'n'?"),
        (("--set", "pool"), "expected KEY=VALUE"),
        (("--n", "0"), "pool.n: found '0'"),
        (("--clarify-rate", "1.5"), "pool.clarify_rate"),
        (("--sources", "nowhere"), "there is no such folder"),
        (("--sources", "pyproject.toml"), "there is no such folder or .jsonl file"),
        (("--seed", "-1"), "pool.seed: found '-1'"),
        (("--out", "logs"), "is a folder, expected a file to write"),
        (("--set", "pool.path=logs"), "was not written by RC1"),
        (("--set", "pool.path=../x.jsonl"), "a relative path without '..'"),
        (("--out", "../outside.jsonl"), "lies outside the workspace"),
        (("--templates-dir", "docs/images"), "no template files"),
        (("--config", "nope.yaml"), "there is no such configuration file"),
        (("--profile", "prod", "--config", "configs/local.yaml"), "is of profile 'local'"),
    ],
)
def test_build_refuses(rc1: Rc1, tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(rc1, "build-pool", "--workspace", tmp_path, *SMALL, *flags)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]


def test_pool_that_was_altered_is_only_overwritten_with_rebuild(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    whole = pool.read_bytes()
    pool.write_bytes(whole + b"\n")
    assert "was altered after RC1 wrote it" in refusal(rc1, "build-pool", "--workspace", workspace, *SMALL)
    assert pool.read_bytes() == whole + b"\n"
    assert rc1("build-pool", "--workspace", workspace, *SMALL, "--force").code == 0
    assert pool.read_bytes() == whole


def test_pool_that_was_brought_along_is_not_overwritten(rc1: Rc1, tmp_path: Path) -> None:
    pool = tmp_path / "data/rollouts/rc1_seed.jsonl"
    pool.parent.mkdir(parents=True)
    pool.write_text("{}\n")
    assert "was not written by RC1" in refusal(rc1, "build-pool", "--workspace", tmp_path, *SMALL)
    assert pool.read_text() == "{}\n"


def test_missing_pool_is_named(rc1: Rc1, tmp_path: Path) -> None:
    words = refusal(rc1, "validate-pool", "--workspace", tmp_path, "data/nowhere.jsonl")
    assert "data/nowhere.jsonl: there is no such file" in words


def test_damaged_line_is_named(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    lines = pool.read_bytes().splitlines(keepends=True)
    lines[6] = lines[6][:100] + b"\n"
    pool.write_bytes(b"".join(lines))
    assert "rc1_seed.jsonl, line 7: not valid JSON" in refusal(rc1, "validate-pool", "--workspace", workspace, *SMALL)


def test_refusal_in_json_is_a_document_too(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("validate-pool", "--workspace", tmp_path, "--json")
    body = json.loads(done.out)
    assert body["exit_code"] == done.code == 2
    assert body["error"] in done.err


def test_pool_of_another_measurement_cannot_be_balanced(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    pool.write_bytes(b"".join(pool.read_bytes().splitlines(keepends=True)[1:]))
    words = refusal(rc1, "difficulty-bucketize", "--workspace", workspace, *SMALL, "--rebuild")
    assert "run `rc1 difficulty-metrics` again" in words


def test_by_task_of_the_balance_names_every_task(rc1: Rc1, workspace: Path) -> None:
    words = refusal(rc1, "difficulty-bucketize", "--workspace", workspace, *SMALL, "--by-task", "gsm8k")
    assert "name all of hotpotqa,strategyqa,gsm8k" in words


def test_workspace_that_is_a_file_is_refused(rc1: Rc1, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file, expected a folder" in refusal(rc1, "config", "show", "--workspace", tmp_path / "file")


@pytest.mark.parametrize("flag", ["--no-such-flag", "--max_turnz=3"])
def test_unknown_flag_is_refused(rc1: Rc1, flag: str) -> None:
    assert "No such option" in refusal(rc1, "build-pool", flag)


def test_underscores_in_values_are_left_alone(rc1: Rc1, tmp_path: Path) -> None:
    words = refusal(rc1, "validate-pool", "--workspace", tmp_path, "data/my_own_pool.jsonl")
    assert "data/my_own_pool.jsonl" in words


def test_metrics_never_replace_the_pool(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    whole = pool.read_bytes()
    flags = ("--in", "data/shadow_eval_245.jsonl", "--out", "data/rollouts/rc1_seed.jsonl")
    words = refusal(rc1, "difficulty-metrics", "--workspace", workspace, *SMALL, *flags)
    assert "difficulty.metrics_path and pool.path have the same file name" in words
    moved = (*SMALL, "--set", "pool.path=data/elsewhere.jsonl")
    words = refusal(rc1, "difficulty-metrics", "--workspace", workspace, *moved, *flags)
    assert "was not written by RC1 for this purpose" in words
    assert pool.read_bytes() == whole


def test_folder_given_as_a_file_is_refused(rc1: Rc1, workspace: Path) -> None:
    assert "expected a file" in refusal(rc1, "validate-pool", "--workspace", workspace, *SMALL, "data")
    words = refusal(rc1, "shadow-run", "--workspace", workspace, *SMALL, "--materialize", "data")
    assert "--materialize data: is a folder" in words
    words = refusal(rc1, "difficulty-bucketize", "--workspace", workspace, *SMALL, "--metrics", "data")
    assert "expected a file" in words


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "dangling link"])
def test_template_file_that_is_no_file_is_refused(rc1: Rc1, tmp_path: Path, folder: bool) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "x.json").mkdir() if folder else (pack / "x.json").symlink_to("nowhere")
    words = refusal(rc1, "build-pool", "--workspace", tmp_path, *SMALL, "--templates-dir", "pack")
    assert "x.json: cannot be read" in words
    assert "x.json: cannot be read" in refusal(
        rc1, "diversity-report", "--workspace", tmp_path, "--templates-dir", "pack"
    )


def test_target_without_a_bucket_is_refused(rc1: Rc1, workspace: Path) -> None:
    words = refusal(rc1, "difficulty-bucketize", "--workspace", workspace, *SMALL, "--target", "easy:0.5,hard:0.5")
    assert "difficulty.target: lacks medium" in words
