"""`calibrate`, `weight-calib`, `overclar-penalty` and `shadow-run` from the command line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.file_hashes import sha256_file

from .conftest import NARROW, Done, Rc1, Served, fits, settings

pytestmark = pytest.mark.usefixtures("drawn")

QUICK = ("gates.shared.resamples=50",)
WEIGHTS = "configs/weights.json"
BALANCED = "data/rollouts/rc1_seed.balanced.jsonl"
Ask = Callable[..., Done]


@pytest.fixture(scope="module")
def reward_workspace(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small pool, calibrated, with every reply of the judge stored. Commands may write reports into it."""
    root = tmp_path_factory.mktemp("reward") / "workspace"
    shutil.copytree(built.workspace.root, root)
    return root


@pytest.fixture
def own(reward_workspace: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    root = tmp_path / "workspace"
    shutil.copytree(reward_workspace, root, ignore=shutil.ignore_patterns("logs", "shadow_run_*"))
    return root


@pytest.fixture
def ask(rc1: Rc1, built: Run, reward_workspace: Path) -> Ask:
    """`ask("weight-calib", "--cv", "5", at=root)`: a command on the small pool, by default in the shared workspace."""

    def run(*arguments: str, at: Path = reward_workspace) -> Done:
        return rc1(*arguments, "--workspace", at, *settings((*built.overrides, *QUICK)))

    return run


@pytest.fixture
def narrow(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The same in a terminal of 80 columns, with colour codes removed."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", str(NARROW))

    def run(*arguments: str, **place: Path) -> Done:
        done = ask(*arguments, **place)
        return Done(done.code, re.sub(r"\x1b\[[0-9;]*m", "", done.out), done.err)

    return run


def files(root: Path) -> dict[str, str]:
    """Every file of the workspace except logs, with its SHA-256."""
    return {
        path.relative_to(root).as_posix(): sha256_file(path)
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] != "logs"
    }


def test_shadow_run_writes_the_report_of_its_tag(ask: Ask, reward_workspace: Path) -> None:
    done = ask("shadow-run", "--n", "120", "--seed", "20250820", "--stratify", "--tag", "T", "--json")
    body: dict[str, Any] = json.loads(done.out)
    assert (done.code, body["pass"], body["tag"]) == (0, True, "T")
    assert body["report"] == "reports/shadow_run_T.json"
    written = read_json(reward_workspace / body["report"])
    assert body["spearman"] == written["spearman"] >= 0.75
    assert (reward_workspace / written["terms"]).is_file()


def test_shadow_run_exits_2_when_it_fails_and_has_tag_manual_by_default(narrow: Ask, reward_workspace: Path) -> None:
    done = narrow("shadow_run", "--set", "gates.shadow_run.min_spearman=0.999")
    assert done.code == 2
    assert fits(done.out, reward_workspace)
    assert re.search(r"shadow_run: spearman is 0\.\d+, wanted >= 0.999", done.out)
    assert f"report: {reward_workspace}/reports/shadow_run_manual.json" in done.out
    assert f"picture, reliability: {reward_workspace}/reports/plots/shadow_manual_reliability.png" in done.out
    assert read_json(reward_workspace / "reports/shadow_run_manual.json")["pass"] is False


def test_shadow_run_that_only_materialises_needs_no_weights(ask: Ask, own: Path) -> None:
    (own / WEIGHTS).unlink()
    flags = ("--materialize", "data/other.jsonl", "--dump_manifest", "data/other.json", "--n", "40", "--json")
    done = ask("shadow-run", *flags, at=own)
    body = json.loads(done.out)
    assert (done.code, body["n"], body["written_now"]) == (0, 40, True)
    assert body["sha256"] == sha256_file(own / "data/other.jsonl")
    assert read_json(own / "data/other.json")["sha256"] == body["sha256"]
    assert not list(own.glob("reports/shadow_run_*"))


def test_weight_calib_shows_and_writes_the_weights(narrow: Ask, own: Path) -> None:
    (own / WEIGHTS).unlink()
    done = narrow("weight_calib", "--cv", "5", "--boot", "200", "--l2", "0.1", "--seed", "42", at=own)
    assert done.code == 0, done.err
    assert fits(done.out, own)
    assert f"weights: {own / WEIGHTS}, written" in done.out
    content = read_json(own / WEIGHTS)
    assert sha256_file(own / content["report"]["path"]) == content["report"]["sha256"]
    assert abs(sum(content["weights"].values()) - 1.0) < 1e-9
    for name, value in content["weights"].items():
        assert re.search(rf"{name} +0\.\d+ +{value:.3f} ", done.out)
    assert done.err.count("judge: 900/900") == 1
    assert "weights: 206/206" in done.err, "five folds, 200 bootstraps and the whole"


def test_overclar_penalty_is_charged_only_for_needless_questions(narrow: Ask, ask: Ask, reward_workspace: Path) -> None:
    done = narrow("overclar-penalty", "--alpha", "0.07", "--cap", "3")
    assert done.code == 0
    assert fits(done.out, reward_workspace)
    assert "penalty 0.07 * min(c, 3)" in done.out
    body = json.loads(ask("overclar_penalty", "--alpha", "0.1", "--cap", "1", "--json").out)
    assert (body["alpha"], body["cap"]) == (0.1, 1)
    assert sum(row["dialogues"] for row in body["rows"]) == 120
    for row in body["rows"]:
        pays = row["clarifications"] > 0 and not row["needs_clarification"]
        assert row["penalty"] == (0.1 if pays else 0.0)


def test_overclar_ablation_fails_with_a_penalty_of_0(ask: Ask, reward_workspace: Path) -> None:
    done = ask("overclar-penalty", "--alpha", "0", "--ablation", "--json")
    body = json.loads(done.out)
    assert (done.code, body["pass"], body["alpha"]) == (2, False, 0.0)
    assert body["figures"]["rate_drop_pct"]["value"] == 0.0
    assert read_json(reward_workspace / body["report"])["pass"] is False


def test_failed_calibrate_writes_a_debug_bundle_and_keeps_the_weights(ask: Ask, own: Path, served: Served) -> None:
    """A passing calibration is tested in `tests/flows/test_calibrate.py`."""
    served(own)
    adopted = sha256_file(own / WEIGHTS)
    (own / BALANCED).unlink()
    done = ask("calibrate", "--build", "never", "--json", at=own)
    body = json.loads(done.out)
    assert (done.code, body["state"], body["written"]) == (2, "GatesFailed", None)
    assert [stage["gate"]["status"] for stage in body["stages"]] == ["passed", "error", *["not judged"] * 3]
    assert "stage 2 of 5 failed: calibration (" in body["message"]
    assert "rc1_seed.balanced.jsonl: file not found" in body["message"]
    assert Path(body["failpack"]).is_file()
    assert sha256_file(own / WEIGHTS) == adopted


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("shadow-run", "--tag", "../x"), "tag '../x': expected up to 64 letters"),
        (("shadow-run", "--materialize", "../x.jsonl"), "outside the workspace"),
        (("shadow-run", "--materialize", "--rebuild"), "materialize: found the option --rebuild"),
        (("weight-calib", "--cv", "1"), "calibration.cv: found '1'"),
        (("weight-calib", "--reward", "verified"), "there are no weights to fit"),
        (("overclar-penalty", "--cap", "-1", "--ablation"), "overclar.cap: found '-1'"),
        (("calibrate", "--sources", "nowhere"), "--sources nowhere: found no such folder"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_invalid_argument_fails_with_a_message_and_writes_nothing(
    arguments: tuple[str, ...], words: str, form: tuple[str, ...], ask: Ask, tmp_path: Path
) -> None:
    done = ask(*arguments, *form, at=tmp_path)
    assert done.code == 2
    assert done.err.startswith("rc1: ") and words in done.err
    assert "Traceback" not in done.err
    if form:
        assert json.loads(done.out) == {
            "exit_code": 2,
            "error": done.err.removeprefix("rc1: ").strip(),
            "failpack": None,
        }
    else:
        assert done.out == ""
    assert files(tmp_path) == {}


def test_calibration_on_too_few_rows_fails_with_their_number(ask: Ask, own: Path) -> None:
    before = files(own)
    done = ask("weight-calib", "--n", "5", at=own)
    assert (done.code, done.out) == (2, "")
    assert "5 usable rows are fewer than the 9 dimensions to weigh" in done.err
    assert {name: before[name] for name in before if "sqlite" not in name}.items() <= files(own).items()
    assert not set(files(own)) - set(before)


def test_shadow_run_before_a_calibration_weighs_like_the_old_score_and_says_so(ask: Ask, own: Path) -> None:
    (own / WEIGHTS).unlink()
    done = ask("shadow-run", "--tag", "T", at=own)
    report = json.loads((own / "reports/shadow_run_T.json").read_text())
    assert done.code == 2, "the old score is no better than itself"
    assert report["weights"] == report["old_weights"]
    assert "weighs like the old score" in done.out and "prior" in (own / "reports/shadow_run_T.json").read_text()
