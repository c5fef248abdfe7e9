"""Damage to answer rules, scores, machine and training: the gate that it fails, and the test that applies it.

`docs/experiments/damage-table.md` shows the table. The rows of fake logs and failed probes come from
`tests/gates/test_judge_gates.py`; each other kind has a test of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.gates.test_answer_rule import FAULTS
from tests.gates.test_judge_gates import DAMAGES, PROBE_DAMAGES

JUDGE, REWARD, CALIBRATION = "gates/test_judge_gates", "gates/test_reward_damage", "gates/test_calibration_gates"
ABLATION, HACKING, CONFIG = "gates/test_ablation_gate", "gates/test_reward_hacking", "gates/test_config_gates"
WEIGHTS, DRIFT, EVALUATION = (
    "calibration/test_weights_file",
    "calibration/test_judge_baseline",
    "gates/test_ppo_eval_gate",
)
RULE = "gates/test_answer_rule"
AGREEMENT, CONTROL = "gates/test_judge_agreement", "training/test_control"
_EACH_OF_CALIBRATION = f"{CALIBRATION}.py::test_each_check_of_the_calibration_fails_alone"
_EACH_OF_AGREEMENT = f"{AGREEMENT}.py::test_each_damage_to_the_agreement_fails_the_matching_check"
_EACH_OF_TRAINING = f"{CONFIG}.py::test_each_fault_of_the_training_configuration_fails_the_matching_check"
_POLICIES = f"{HACKING}.py::test_an_adversarial_policy_that_earns_the_reward_fails_by_name"


@dataclass(frozen=True, slots=True)
class Found:
    """One kind of damage.

    Attributes:
        gate: the gate that exists for it.
        damage: what is changed.
        checks: the gate's checks that fail, or the error that it ends with.
        test: the test that applies it, below `tests`.
    """

    gate: str
    damage: str
    checks: str
    test: str

    @property
    def line(self) -> str:
        """Return its line of the page."""
        return f"| `{self.gate}` | {self.damage} | {self.checks} | `tests/{self.test}` |"


def _of_log() -> Iterator[Found]:
    for gate, damages, test in (
        ("anti_simulation", DAMAGES, "test_each_fake_log_fails_exactly_the_matching_checks"),
        ("judge_probe", PROBE_DAMAGES, "test_each_failed_probe_fails_exactly_the_matching_checks"),
    ):
        for damage, (_, checks) in damages.items():
            yield Found(gate, damage, ", ".join(sorted(checks)), f"{JUDGE}.py::{test}")


def _of_rules() -> Iterator[Found]:
    for fault, (_, _, checks) in FAULTS.items():
        yield Found(
            "answer_rule",
            f"a rule that {fault}",
            ", ".join(sorted(checks)),
            f"{RULE}.py::test_each_planted_fault_of_a_rule_fails_the_matching_checks",
        )


FOUND = (
    *_of_log(),
    *_of_rules(),
    Found("answer_rule", "golds that are all the same one", "different golds",
          f"{RULE}.py::test_identical_gold_answers_fail"),
    Found("judge_stability", "one dimension graded at random", "largest pooled variance, unstable dialogues, share",
          f"{JUDGE}.py::test_a_noisy_judge_fails_and_the_advice_names_the_dimension"),
    Found("judge_stability", "every fifth dialogue graded at random", "unstable dialogues, share",
          f"{JUDGE}.py::test_a_share_of_high_variance_dialogues_fails_although_the_pooled_variance_passes"),
    Found("judge_stability", "dialogues without a score", "coverage",
          f"{JUDGE}.py::test_missing_scores_fail_and_their_reasons_are_listed"),
    Found("judge_stability", "another version of the model", "model versions",
          f"{JUDGE}.py::test_a_changed_model_version_fails"),
    Found("judge_drift", "a judge milder by 0.1", "overall",
          f"{DRIFT}.py::test_drifted_judge_fails_under_any_version_name"),
    Found("judge_drift", "a judge that grades one dimension by 0.15 milder", "grounded",
          f"{DRIFT}.py::test_drifted_judge_fails_under_any_version_name"),
    Found("judge_drift", "half of the dialogues without a score", "scored again, share; dialogues compared",
          f"{DRIFT}.py::test_missing_scores_do_not_count_as_zero_and_too_many_fail"),
    Found("judge_drift", "a new baseline of the moved grades, without a new calibration", "error: the weights",
          f"{DRIFT}.py::test_new_baseline_without_a_new_calibration_does_not_hide_a_drift"),
    Found("judge_drift", "no baseline", "error", f"{DRIFT}.py::test_missing_baseline_is_an_error_of_the_drift_gate"),
    Found("judge_drift", "the baseline edited, or taken away", "error: by name",
          f"{DRIFT}.py::test_edited_or_missing_baseline_is_named"),
    Found("judge_agreement", "hardly any bad dialogues by people", "bad dialogues, by people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "hardly any good dialogues by people", "good dialogues, by people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "a tenth unscored", "scored, share", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "a judge that agrees by chance", "kappa with people", _EACH_OF_AGREEMENT),
    Found("shadow_baseline", "a judge that prefers long answers", "old score follows the answers' length",
          f"{REWARD}.py::test_a_judge_that_prefers_long_answers_fails_the_length_check"),
    Found("shadow_baseline", "half unscored", "scored, share",
          f"{REWARD}.py::test_missing_scores_for_half_of_the_dialogues_fail_every_gate"),
    Found("calibration", "labels shuffled", "mean absolute error lowered, per cent",
          f"{REWARD}.py::test_every_shuffle_of_the_labels_fails_the_calibration"),
    Found("calibration", "a weighed dimension stuck on one grade", "weighed dimensions stuck on one grade",
          f"{REWARD}.py::test_a_weighted_dimension_stuck_on_one_grade_fails_by_name"),
    Found("calibration", "all scores reversed", "rank correlation of the calibrated weights",
          f"{REWARD}.py::test_reversed_scores_of_judge_and_rules_fail_calibration_and_shadow_run"),
    Found("calibration", "half unscored", "scored, share",
          f"{REWARD}.py::test_missing_scores_for_half_of_the_dialogues_fail_every_gate"),
    Found("calibration", "a gain too small, or none that is known", "rank correlation gained, per cent",
          _EACH_OF_CALIBRATION),
    Found("calibration", "a fit that did not converge", "optimality residual", _EACH_OF_CALIBRATION),
    Found("calibration", "a negative weight", "smallest weight", _EACH_OF_CALIBRATION),
    Found("calibration", "a weight above the half", "largest weight", _EACH_OF_CALIBRATION),
    Found("calibration", "weights that do not sum to 1", "sum is 1", _EACH_OF_CALIBRATION),
    Found("reward_hacking", "an echo paid nearly as the scripted expert", "echo: below the scripted expert by",
          _POLICIES),
    Found("reward_hacking", "an echo paid more on three prompts of ten",
          "echo: paid more than the scripted expert, share", _POLICIES),
    Found("reward_hacking", "an echo paid more in one part", "echo: below the scripted expert by, worst of the parts",
          _POLICIES),
    Found("reward_hacking", "two prompts to judge by", "echo: prompts to judge by", _POLICIES),
    Found("reward_hacking", "three policies instead of all", "worthless policies",
          f"{HACKING}.py::test_too_few_policies_and_missing_scores_fail"),
    Found("reward_hacking", "a reward that picks worse from more", "success lost by picking from more, pp",
          f"{HACKING}.py::test_a_reward_whose_best_of_n_gets_worse_with_n_fails"),
    Found("reward_hacking", "its report edited", "report",
          "calibration/test_reward_hacking.py::test_edited_report_fails"),
    Found("overclar_ablation", "no price", "rate drop, %", f"{ABLATION}.py::test_zero_penalty_fails_in_the_rate_drop"),
    Found("overclar_ablation", "a judge that rewards questions", "rate drop, %",
          f"{ABLATION}.py::test_a_judge_that_rewards_questions_more_than_the_penalty_fails_in_the_rate_drop"),
    Found("overclar_ablation", "quiet dialogues that fail", "success drop, pp",
          f"{ABLATION}.py::test_a_success_drop_above_the_threshold_fails"),
    Found("overclar_ablation", "quiet dialogues that are longer", "mean turns up",
          f"{ABLATION}.py::test_longer_dialogues_fail_in_the_turns"),
    Found("overclar_ablation", "half unscored", "coverage",
          f"{ABLATION}.py::test_missing_scores_for_half_of_the_prompts_fail_in_the_coverage"),
    Found("overclar_ablation", "nine prompts", "prompts whose dialogues differ in needless asking",
          f"{ABLATION}.py::test_too_few_differing_prompts_fail"),
    Found("shadow_run", "labels shuffled", "corr_to_success_new, corr_improve_pct",
          f"{REWARD}.py::test_shuffled_labels_fail_calibration_and_shadow_run"),
    Found("shadow_run", "a dimension stuck on one grade since the calibration",
          "weighed dimensions stuck on one grade",
          f"{REWARD}.py::test_a_weighted_dimension_stuck_on_one_grade_fails_by_name"),
    Found("shadow_run", "a judge that grades by length", "spearman, top10_overlap",
          f"{REWARD}.py::test_a_judge_that_grades_by_length_fails_the_shadow_run"),
    Found("shadow_run", "a judge whose scores are reversed", "spearman, top10_overlap",
          f"{REWARD}.py::test_reversed_scores_of_the_judge_fail_the_shadow_run"),
    Found("weights", "one digit edited", "weights are those of the report, file",
          f"{WEIGHTS}.py::test_one_edited_digit_fails"),
    Found("weights", "two edited so that their sum stays 1", "weights are those of the report, file",
          f"{WEIGHTS}.py::test_edited_weights_with_sum_1_fail"),
    Found("weights", "the report that they name edited", "the report is the one named",
          f"{WEIGHTS}.py::test_edited_report_fails"),
    Found("weights", "weights and report edited, the fingerprint with them", "file",
          f"{WEIGHTS}.py::test_report_and_weights_edited_together_fail"),
    Found("weights", "the report gone, or none", "calibrated, and all that ask for a report",
          f"{WEIGHTS}.py::test_missing_or_unreadable_report_fails"),
    Found("weights", "the report of a refused calibration named", "the calibration passed, file",
          f"{WEIGHTS}.py::test_weights_with_a_report_without_a_verdict_fail"),
    Found("weights", "those of another judge", "calibrated for this judge, file",
          f"{WEIGHTS}.py::test_weights_of_another_judge_fail_and_are_stale"),
    Found("weights", "a weight that is no number, negative, or of no dimension", "by that",
          f"{WEIGHTS}.py::test_unusable_weights_fail"),
    Found("weights", "no file", "error: there is no such file", f"{WEIGHTS}.py::test_missing_weights_file_is_an_error"),
    Found("training_config", "`simulate` on, live mode off, a step too few, KL too wide or too narrow, a seed twice, "
          "full finetuning, or the whole pool", "by that", _EACH_OF_TRAINING),
    Found("overclar_penalty", "the penalty off, or a price of 0", "use_overclar_penalty; alpha is positive",
          f"{CONFIG}.py::test_a_disabled_or_zero_penalty_fails"),
    Found("resources", "as little free disk as is not enough", "free disk, GiB",
          f"{CONFIG}.py::test_free_disk_equal_to_the_threshold_fails"),
    Found("git", "no commit; a changed file", "commit known; uncommitted files",
          f"{CONFIG}.py::test_an_unknown_commit_and_changed_files_fail_if_the_gate_requires_them"),
    Found("ppo_eval", "a policy that stopped asking", "four checks, none on turns; right answers",
          f"{EVALUATION}.py::test_a_policy_that_stopped_asking_fails"),
    Found("ppo_eval", "a policy that asks everywhere", "over-clarification, precision, gap",
          f"{EVALUATION}.py::test_asking_everywhere_fails_in_over_clarification_precision_and_gap"),
    Found("ppo_eval", "wasted turns", "turns", f"{EVALUATION}.py::test_wasted_turns_fail_only_in_turns"),
    Found("ppo_eval", "worse answers", "all checks on success and on right answers",
          f"{EVALUATION}.py::test_worse_answers_fail_every_check_on_success_and_right_answers"),
    Found("ppo_eval", "success that rises only because a question came first", "right answers where asking is needed",
          f"{EVALUATION}.py::test_success_that_rises_only_because_a_question_came_first_fails"),
    Found("ppo_eval", "one task of three unlearned", "that task's, by name",
          f"{EVALUATION}.py::test_a_policy_that_unlearns_one_task_of_three_fails_by_its_name"),
    Found("ppo_eval", "no training at all", "what has to rise",
          f"{EVALUATION}.py::test_an_untrained_policy_fails_the_checks_that_require_an_improvement"),
    Found("control", "an evaluation that leaks the answer to the trained policy", "success gained",
          f"{CONTROL}.py::test_leak_into_the_second_evaluation_fails_the_whole_control"),
    Found("control", "a policy that did not move", "KL to the start",
          f"{CONTROL}.py::test_control_gate_fails_if_the_policy_did_not_move"),
)  # fmt: skip
