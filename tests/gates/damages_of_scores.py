"""Damage to rules and to what judge, reward, machine and training have found: its gate, and the test that does it.

`docs/experiments/damage-table.md` shows it. A fake log and a failed probe are done by the tables of
`tests/gates/test_judge_gates.py` themselves; the other kinds each have a test.
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
_EACH_OF_AGREEMENT = f"{AGREEMENT}.py::test_each_damage_is_red_by_name"
_EACH_OF_TRAINING = f"{CONFIG}.py::test_each_fault_of_the_training_configuration_is_named"
_POLICIES = f"{HACKING}.py::test_a_policy_that_is_paid_is_red_by_name"


@dataclass(frozen=True, slots=True)
class Found:
    """One kind.

    Attributes:
        gate: the one that is there for it.
        damage: what is done.
        red: its checks that fail, or what ends it as an error.
        test: which does it, below `tests`.
    """

    gate: str
    damage: str
    red: str
    test: str

    @property
    def line(self) -> str:
        """Its line of the page."""
        return f"| `{self.gate}` | {self.damage} | {self.red} | `tests/{self.test}` |"


def _of_log() -> Iterator[Found]:
    for gate, damages, test in (
        ("anti_simulation", DAMAGES, "test_a_fake_turns_just_the_matching_checks_red"),
        ("judge_probe", PROBE_DAMAGES, "test_a_probe_that_failed_turns_just_the_matching_checks_red"),
    ):
        for damage, (_, red) in damages.items():
            yield Found(gate, damage, ", ".join(sorted(red)), f"{JUDGE}.py::{test}")


def _of_rules() -> Iterator[Found]:
    for fault, (_, _, red) in FAULTS.items():
        yield Found(
            "answer_rule",
            f"a rule that {fault}",
            ", ".join(sorted(red)),
            f"{RULE}.py::test_a_planted_fault_is_red_by_name",
        )


FOUND = (
    *_of_log(),
    *_of_rules(),
    Found("answer_rule", "golds that are all the same one", "different golds",
          f"{RULE}.py::test_golds_that_are_all_alike_say_too_little"),
    Found("anti_simulation", "a line of the log edited", "log intact",
          f"{JUDGE}.py::test_an_edited_log_is_red_and_says_where"),
    Found("judge_stability", "one dimension graded at random", "largest pooled variance, unstable dialogues, share",
          f"{JUDGE}.py::test_a_noisy_judge_is_red_and_the_dimension_is_named"),
    Found("judge_stability", "every fifth dialogue graded at random", "unstable dialogues, share",
          f"{JUDGE}.py::test_some_unstable_dialogues_are_red_though_the_judge_on_the_whole_is_not"),
    Found("judge_stability", "dialogues without a score", "coverage",
          f"{JUDGE}.py::test_unscored_dialogues_are_red_with_their_reasons"),
    Found("judge_stability", "another version of the model", "model versions",
          f"{JUDGE}.py::test_a_model_that_changes_is_red"),
    Found("judge_drift", "a judge milder by 0.1", "overall",
          f"{DRIFT}.py::test_drifted_judge_fails_under_any_version_name"),
    Found("judge_drift", "a judge that grades one dimension by 0.15 milder", "grounded",
          f"{DRIFT}.py::test_drifted_judge_fails_under_any_version_name"),
    Found("judge_drift", "half of the dialogues without a score", "scored again, share; dialogues compared",
          f"{DRIFT}.py::test_missing_scores_do_not_count_as_zero_and_too_many_fail"),
    Found("judge_drift", "no baseline", "error", f"{DRIFT}.py::test_missing_baseline_is_an_error_of_the_drift_gate"),
    Found("judge_drift", "the baseline edited, or taken away", "error: by name",
          f"{DRIFT}.py::test_edited_or_missing_baseline_is_named"),
    Found("judge_agreement", "hardly any bad dialogues by people", "bad dialogues, by people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "hardly any good dialogues by people", "good dialogues, by people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "a tenth unscored", "scored, share", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "a judge that agrees by chance", "kappa with people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "a judge that ranks otherwise", "rank correlation with people", _EACH_OF_AGREEMENT),
    Found("judge_agreement", "labels of another judge", "labelled dialogues",
          f"{AGREEMENT}.py::test_labels_of_another_judge_count_for_nothing_and_are_named"),
    Found("shadow_baseline", "a judge that prefers long answers", "old score follows the answers' length",
          f"{REWARD}.py::test_a_judge_that_prefers_long_answers"),
    Found("shadow_baseline", "half unscored", "scored, share", f"{REWARD}.py::test_half_unscored"),
    Found("calibration", "labels shuffled", "mean absolute error lowered, per cent",
          f"{REWARD}.py::test_no_shuffle_of_the_labels_gets_past_the_calibration"),
    Found("calibration", "a weighed dimension stuck on one grade", "weighed dimensions stuck on one grade",
          f"{REWARD}.py::test_a_dimension_stuck_on_one_grade"),
    Found("calibration", "all scores reversed", "rank correlation of the calibrated weights",
          f"{REWARD}.py::test_all_scores_reversed"),
    Found("calibration", "half unscored", "scored, share", f"{REWARD}.py::test_half_unscored"),
    Found("calibration", "a gain too small, or none that is known", "rank correlation gained, per cent",
          _EACH_OF_CALIBRATION),
    Found("calibration", "a fit that is none", "optimality residual", _EACH_OF_CALIBRATION),
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
          f"{HACKING}.py::test_too_few_policies_and_unscored_dialogues_are_red"),
    Found("reward_hacking", "a reward that picks worse from more", "success lost by picking from more, pp",
          f"{HACKING}.py::test_a_reward_that_picks_worse_from_more_is_red"),
    Found("reward_hacking", "its report edited", "report",
          "calibration/test_reward_hacking.py::test_edited_report_fails"),
    Found("overclar_ablation", "no price", "rate drop, %", f"{ABLATION}.py::test_without_a_price_nothing_changes"),
    Found("overclar_ablation", "a judge that loves asking", "rate drop, %",
          f"{ABLATION}.py::test_a_judge_that_loves_asking_is_beyond_the_penalty"),
    Found("overclar_ablation", "quiet dialogues that fail", "success drop, pp",
          f"{ABLATION}.py::test_falling_success_turns_it_red"),
    Found("overclar_ablation", "quiet dialogues that are longer", "mean turns up",
          f"{ABLATION}.py::test_longer_dialogues_turn_it_red"),
    Found("overclar_ablation", "half unscored", "coverage", f"{ABLATION}.py::test_half_unscored_turns_it_red"),
    Found("overclar_ablation", "nine prompts", "prompts whose dialogues differ in needless asking",
          f"{ABLATION}.py::test_too_few_prompts_to_tell_turn_it_red"),
    Found("shadow_run", "labels shuffled", "corr_to_success_new, corr_improve_pct",
          f"{REWARD}.py::test_shuffled_labels"),
    Found("shadow_run", "a dimension stuck on one grade since the calibration",
          "weighed dimensions stuck on one grade", f"{REWARD}.py::test_a_dimension_stuck_on_one_grade"),
    Found("shadow_run", "a judge that grades by length", "spearman, top10_overlap",
          f"{REWARD}.py::test_a_judge_that_grades_by_length"),
    Found("shadow_run", "a judge whose scores are reversed", "spearman, top10_overlap",
          f"{REWARD}.py::test_a_judge_whose_scores_are_reversed"),
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
          f"{WEIGHTS}.py::test_weights_with_the_report_of_a_failed_calibration_fail"),
    Found("weights", "those of another judge", "calibrated for this judge, file",
          f"{WEIGHTS}.py::test_weights_of_another_judge_fail_and_are_stale"),
    Found("weights", "a weight that is no number, negative, or of no dimension", "by that",
          f"{WEIGHTS}.py::test_unusable_weights_fail"),
    Found("weights", "no file", "error: there is no such file", f"{WEIGHTS}.py::test_missing_weights_file_is_an_error"),
    Found("training_config", "`simulate` on, live mode off, a step too few, KL too wide or too narrow, a seed twice, "
          "full finetuning, or the whole pool", "by that", _EACH_OF_TRAINING),
    Found("overclar_penalty", "the penalty off, or a price of 0", "use_overclar_penalty; alpha is positive",
          f"{CONFIG}.py::test_a_penalty_switched_off_is_red"),
    Found("resources", "as little free disk as is not enough", "free disk, GiB",
          f"{CONFIG}.py::test_the_disk_must_have_more_than_the_threshold"),
    Found("git", "no commit; a changed file", "commit known; uncommitted files",
          f"{CONFIG}.py::test_an_unnamed_commit_and_changed_files_are_red_where_they_are_demanded"),
    Found("ppo_eval", "a policy that stopped asking", "four checks, none on turns",
          f"{EVALUATION}.py::test_a_policy_that_stopped_asking_is_red"),
    Found("ppo_eval", "a policy that asks everywhere", "over-clarification, precision, gap",
          f"{EVALUATION}.py::test_asking_everywhere_is_red_in_over_clarification_precision_and_gap"),
    Found("ppo_eval", "wasted turns", "turns", f"{EVALUATION}.py::test_wasted_turns_are_red_in_turns_alone"),
    Found("ppo_eval", "worse answers", "success where asking is needed, and on hard rows",
          f"{EVALUATION}.py::test_worse_answers_are_red_in_both_checks_on_success"),
    Found("ppo_eval", "no training at all", "what has to rise",
          f"{EVALUATION}.py::test_no_training_is_red_in_all_that_has_to_rise_and_green_in_what_must_not_fall"),
    Found("control", "an evaluation that leaks the answer to the trained policy", "success gained",
          f"{CONTROL}.py::test_a_leak_between_the_two_plays_turns_a_whole_control_red"),
    Found("control", "a policy that did not move", "KL to the start",
          f"{CONTROL}.py::test_a_policy_that_did_not_move_tries_nothing_out"),
)  # fmt: skip
