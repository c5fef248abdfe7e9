"""Configuration keys of the previous version, and the error for each.

A key is removed when nobody has a reason to change it; its value is then a constant next to the code that uses it. The
errors are kept for one version, so that users of a file of the previous version learn what to change.
"""

from __future__ import annotations

from collections.abc import Mapping

MOVED: Mapping[str, str] = {
    **{f"training.{engine}": "training.update" for engine in ("dpo", "sft")},
    **{
        f"training.{engine}.{key}": f"training.update.{key}"
        for engine in ("ppo", "grpo", "trl_grpo", "dpo", "sft")
        for key in (
            "epochs", "minibatches", "micro_tokens", "max_grad_norm", "entropy_coef", "kl_stop", "adaptive_kl",
            "kl_gain", "group_size",
        )
    },
    **{
        f"training.trl_dpo.{key}": f"training.update.{key}"
        for key in ("epochs", "minibatches", "micro_tokens", "max_grad_norm", "entropy_coef", "group_size")
    },
    "training.trl_grpo": "training.grpo",
    **{f"training.trl_grpo.{key}": f"training.grpo.{key}" for key in ("scale_rewards", "loss_type", "clip_high")},
    **{
        f"gates.{gate}.{key}": f"gates.shared.{key}"
        for gate in (
            "stability", "judge_agreement", "shadow_run", "calibration", "ablation", "reward_hacking", "evaluation",
            "control", "answer_rule",
        )
        for key in (
            "confidence", "resamples", "min_coverage", "min_outcomes", "enough_auc", "max_loss_pct", "corr_floor",
        )
    },
    "gates.control.min_prompts": "gates.evaluation.min_prompts",
    "gates.evaluation.min_gap_up_pp": "gates.evaluation.min_asking_up_pp",
    "gates.evaluation.min_judged": "gates.shared.min_coverage",
    "gates.evaluation.min_precision_up_pp": "gates.evaluation.min_asking_up_pp",
    "gates.evaluation.min_recall_up_pp": "gates.evaluation.min_asking_up_pp",
}  # fmt: skip
"""Key, or section -> where it is now. Not every section had all of these keys."""
FIXED: Mapping[str, str] = {
    "ablation.takes_path": "data/shadow_takes.jsonl",
    **{
        f"pool.recipes.{bucket}.{key}": value
        for bucket, distractors, evidence in (
            ("easy", "[0, 0]", "complete"),
            ("medium", "[0, 2]", "partial"),
            ("hard", "[2, 5]", "partial"),
        )
        for key, value in (("distractors", distractors), ("evidence", evidence))
    },
    "pool.teacher.cue_rate": "0.35",
    "pool.teacher.repeat_tool_rate": "0.08",
    "scale_up.approval_hours": "72",
    "training.adapter.dropout": "0",
    "training.learnability.takes": "8",
    "training.limits.calls": "5",
    "training.limits.malformed": "1",
    "training.limits.tool_errors": "2",
    "training.rollout.decoder": "growing, as long as the longest row",
    "training.ppo.gamma": "1, no discount per token",
    "training.ppo.value_clip": "1e9, without effect",
    "training.ppo.value_coef": "0.5",
    "training.trl_grpo.importance_sampling_level": "token",
    "training.trl_grpo.use_bias_correction_kl": "false",
    **{f"training.{section}.kl_bound": "0.2" for section in ("update", "ppo", "grpo", "trl_grpo", "dpo", "sft")},
    "training.vllm.attempts": "3",
    "gates.answer_rule.golds": "200",
    "gates.answer_rule.seed": "7",
    "gates.calibration.max_kkt_residual": "1e-9",
    "gates.diversity.kl_alpha": "0.5",
    "gates.diversity.kl_rows": "4000",
    "gates.diversity.window_bigrams": "1000",
    "gates.drift.deals": "20000",
    "gates.learnability.power": "0.8",
}
"""Key, or section -> its value, which is now constant."""


def why_removed(key: str) -> str | None:
    """Return why a dotted key was removed, and what to do; None if the previous version did not have it."""
    if key in MOVED:
        return f"the key '{key}' has moved to {MOVED[key]}; set it there"
    if key in FIXED:
        return f"the key '{key}' was removed, since its value is always {FIXED[key]}; delete the line"
    return None
