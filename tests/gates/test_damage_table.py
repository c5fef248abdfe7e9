"""Every kind of damage fails exactly the gates that it names, and every gate has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rc1_lib.calibration.stages import STAGES
from rc1_lib.evaluation.control import GATE as CONTROL
from rc1_lib.evaluation.gate import GATE as PPO_EVAL
from rc1_lib.gates.gate_list import PREFLIGHT
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.gates.damage_done import GATES, SIZE, build_small, failing_gates, outcome
from tests.gates.damages import Damage
from tests.gates.damages_by_gate import DAMAGES

OTHERS = {
    "learnability": "forecast/test_takes.py::test_learnable_rollouts_pass_and_each_damage_fails_its_own_check",
    "growth": "scale_up/test_sizes.py::test_missing_row_of_the_smaller_size_fails_only_its_growth_check",
    "anti_simulation": "gates/test_judge_gates.py::test_each_fake_log_fails_exactly_the_matching_checks",
    "judge_probe": "gates/test_judge_gates.py::test_each_failed_probe_fails_exactly_the_matching_checks",
    "answer_rule": "gates/test_answer_rule.py::test_each_planted_fault_of_a_rule_fails_the_matching_checks",
    "judge_stability": "gates/test_judge_gates.py::test_a_noisy_judge_fails_and_the_advice_names_the_dimension",
    "judge_drift": "calibration/test_judge_baseline.py::test_drifted_judge_fails_under_any_version_name",
    "judge_agreement": "gates/test_judge_agreement.py::test_each_damage_to_the_agreement_fails_the_matching_check",
    "shadow_baseline": "gates/test_reward_damage.py::test_a_judge_that_prefers_long_answers_fails_the_length_check",
    "calibration": "gates/test_calibration_gates.py::test_each_check_of_the_calibration_fails_alone",
    "reward_hacking": "gates/test_reward_hacking.py::test_an_adversarial_policy_that_earns_the_reward_fails_by_name",
    "overclar_ablation": "gates/test_ablation_gate.py::test_zero_penalty_fails_in_the_rate_drop",
    "shadow_run": "gates/test_reward_damage.py::test_shuffled_labels_fail_calibration_and_shadow_run",
    "weights": "calibration/test_weights_file.py::test_one_edited_digit_fails",
    "training_config": "gates/test_config_gates.py"
    "::test_each_fault_of_the_training_configuration_fails_the_matching_check",
    "overclar_penalty": "gates/test_config_gates.py::test_a_disabled_or_zero_penalty_fails",
    "resources": "gates/test_config_gates.py::test_free_disk_equal_to_the_threshold_fails",
    "git": "gates/test_config_gates.py::test_an_unknown_commit_and_changed_files_fail_if_the_gate_requires_them",
    "ppo_eval": "gates/test_ppo_eval_gate.py::test_a_policy_that_stopped_asking_fails",
    "control": "training/test_control.py::test_leak_into_the_second_evaluation_fails_the_whole_control",
}
"""Gate that is not among the ten -> a test in which a damage fails it."""
SHARE = (
    "half of a task's rows gone", "a row of a few words", "made-up styles", "36 rows copied under new ids",
    "a row that names a shadow question as its source", "a wrong sum", "a complete row marked as needing",
    "an unknown tool",
    "shadow set: a repeated question", "metrics: a chosen row of 9 turns", "balanced pool: a prompt altered",
    "another bucket's recipe named",
)  # fmt: skip
"""The share for `make test`: one kind per gate, one with invalid rows, and one that no gate detects."""


def name_of(damage: Damage) -> str:
    return damage.name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with the fewest rows that all thresholds allow."""
    return build_small(tmp_path_factory.mktemp("small") / "whole", rows=240, shadow=48)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The workspace of docs/experiments/damage-table.md."""
    return build_small(tmp_path_factory.mktemp("damage") / "whole", *SIZE)


def check(damage: Damage, built: Run, root: Path) -> None:
    found = outcome(damage, built, root)
    assert found.failed.keys() == damage.failing
    assert found.noticed


def test_no_gate_fails_on_the_intact_workspace(small: Run) -> None:
    assert failing_gates(small) == {}


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage.name in SHARE], ids=name_of)
def test_damage_fails_exactly_the_gates_that_it_names(damage: Damage, small: Run, tmp_path: Path) -> None:
    check(damage, small, tmp_path / "damaged")


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=name_of)
def test_every_kind_of_damage_fails_exactly_the_gates_that_it_names(damage: Damage, whole: Run, tmp_path: Path) -> None:
    check(damage, whole, tmp_path / "damaged")


def test_every_gate_has_its_own_damage_in_the_full_and_the_short_list() -> None:
    counted = Counter(damage.name for damage in DAMAGES)
    assert max(counted.values()) == 1
    assert len(counted) >= 60
    of_share = [damage for damage in DAMAGES if damage.name in SHARE]
    assert len(of_share) == len(SHARE)
    for some in (DAMAGES, of_share):
        assert frozenset(GATES) == frozenset().union(*(damage.meant for damage in some if len(damage.meant) == 1))


def test_every_other_gate_has_a_damage_whose_test_exists() -> None:
    gates = (
        {spec.name for spec in PREFLIGHT}
        | {stage.name for stage in STAGES}
        | {PPO_EVAL, CONTROL, "learnability", "growth"}
    )
    assert OTHERS.keys() == gates - set(GATES)
    for named in OTHERS.values():
        file, test = named.split("::")
        assert f"def {test}(" in (PROJECT_ROOT / "tests" / file).read_text(), named
