"""The gates on configuration, weights and machine."""

from __future__ import annotations

import pytest

from rc1_lib.config.thresholds import GitGate, ResourcesGate, WeightsGate
from rc1_lib.gates.git import git_gate
from rc1_lib.gates.integrity import integrity_gate
from rc1_lib.gates.overclar_penalty import penalty_gate
from rc1_lib.gates.resources import resources_gate
from rc1_lib.gates.training_config import training_gate
from rc1_lib.provenance.code import PackageState
from rc1_lib.provenance.git import GitState
from rc1_lib.records import GateResult, Status
from rc1_lib.run import open_run, published_config
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState
from tests.gates.verdicts import failed

WEIGHTS = WeightsGate(max_weight=0.5)


def test_the_published_configuration_passes() -> None:
    config = published_config()
    assert training_gate(config).failures == ()
    assert penalty_gate(config).failures == ()


@pytest.mark.parametrize(
    ("override", "failing"),
    [
        ("simulate=true", "simulate"),
        ("live_mode=false", "live_mode"),
        ("steps=49999", "steps"),
        (
            "training.early_stop={metric: kl, patience: 3, higher_is_better: true, not_before: 100}",
            "steps",
        ),
        ("target_kl=0.06", "target_kl"),
        ("target_kl=0.01", "target_kl"),
        ("seeds=[1, 2, 2]", "seeds"),
        ("finetune.method=full", "finetune.method"),
        ("seed_pool=data/rollouts/rc1_seed.jsonl", "seed_pool"),
    ],
)
def test_each_fault_of_the_training_configuration_fails_the_matching_check(override: str, failing: str) -> None:
    assert failed(training_gate(open_run(workspace=PROJECT_ROOT, profile="prod", overrides=[override]).config)) == {
        failing
    }


def test_a_disabled_or_zero_penalty_fails() -> None:
    def failures(*overrides: str) -> set[str]:
        return failed(penalty_gate(open_run(workspace=PROJECT_ROOT, overrides=overrides).config))

    prices = {f"price of {asked} needless questions" for asked in (1, 2, 5)}
    assert failures("use_overclar_penalty=false") == {"use_overclar_penalty", *prices}
    assert failures("overclar.alpha=0") == {"alpha is positive"}


def test_the_penalty_that_training_takes_is_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    config = open_run(workspace=PROJECT_ROOT, overrides=["overclar.alpha=0.2", "overclar.cap=2"]).config
    priced = {check.name: check.value for check in penalty_gate(config).checks if check.name.startswith("price")}
    assert list(priced.values()) == [0.2, 0.4, 0.4, 0.0]

    # A reward that forgets the cap and the need is what this gate is there for.
    def uncapped(c: int, needs: bool, *, alpha: float, cap: int) -> float:
        return alpha * c

    monkeypatch.setattr("rc1_lib.environment.rewards.over_clarification_penalty", uncapped)
    assert failed(penalty_gate(config)) == {"price of 5 needless questions", "price of 5 needed questions"}


def test_free_disk_equal_to_the_threshold_fails() -> None:
    assert resources_gate(50.1, ResourcesGate(min_free_gb=50)).status is Status.PASSED
    assert resources_gate(50.0, ResourcesGate(min_free_gb=50)).status is Status.FAILED


def test_an_unknown_commit_and_changed_files_fail_if_the_gate_requires_them() -> None:
    strict = GitGate(require_commit=True, require_clean=True)
    assert git_gate(GitState("abc", ()), strict).status is Status.PASSED
    assert failed(git_gate(GitState(None, ()), strict)) == {"commit known"}
    assert failed(git_gate(GitState("abc", (" M file",)), strict)) == {"uncommitted files"}


def test_without_a_checkout_the_git_gate_checks_the_installed_package() -> None:
    strict = GitGate(require_commit=True, require_clean=True)
    whole = git_gate(PackageState("0.1.0", "ab" * 32, ()), strict)
    assert whole.status is Status.PASSED
    assert whole.checks[0].name == "no git checkout; the ticket names"
    assert whole.checks[0].value == "rc1 0.1.0, SHA-256 abababababab"
    assert failed(git_gate(PackageState(None, "ab" * 32, ()), strict)) == {"package known, instead of a commit"}
    altered = git_gate(PackageState("0.1.0", "ab" * 32, (" M flows/train.py",)), strict)
    assert failed(altered) == {"files not as installed"}
    assert altered.offenders == ({"path": " M flows/train.py", "reason": "changed"},)


def test_a_git_that_cannot_list_changes_is_an_error() -> None:
    found = git_gate(
        GitState("abc", None, "fatal: index file corrupt"), GitGate(require_commit=True, require_clean=True)
    )
    assert found.status is Status.ERROR and "index file corrupt" in found.error


@pytest.mark.parametrize("state", [GitState(None, ()), PackageState(None, "ab" * 32, ())], ids=["git", "package"])
def test_a_git_gate_without_requirements_is_waived(state: GitState | PackageState) -> None:
    assert git_gate(state, GitGate(require_commit=False, require_clean=False)).status is Status.WAIVED


@pytest.mark.parametrize("state", [state for state in FileState if state is not FileState.FRESH])
def test_any_file_that_is_not_fresh_fails(state: FileState) -> None:
    assert failed(integrity_gate({"a": FileState.FRESH, "b": state}, 0)) == {"b"}


def test_a_gate_without_checks_is_an_error() -> None:
    assert GateResult("empty").status is Status.ERROR
