"""The metrics of every step, by engine and strategy: the names that early stopping may use.

They are listed here without importing an engine, so that a wrong name is rejected when the configuration is read, not
hours later by the first evaluation on held-out rows. Tests compare each list with the metrics of a real step.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from rc1_lib.config.engines import own_name

HELD_OUT = "eval/"
"""Prefix of the metrics on held-out rows."""
SAME_ANSWER = "env/same_answer"
"""The share of the most frequent answer."""
ANSWERED = 16
"""Minimum number of answers for measuring the share of the most frequent one."""
KL, ENTROPY = "objective/kl_per_token", "policy/entropy_avg"
"""Over the policy's tokens, in nats: the KL to the initial policy, and the entropy of the distribution."""
CLIP_RATIO, MALFORMED = "response_length/clip_ratio", "env/malformed"
"""Shares of episodes that a limit on tokens cut, and that have a malformed turn."""
SCORES_STD, ZERO_STD = "objective/scores_std", "frac_reward_zero_std"
"""Standard deviation of the episodes' scores, and the share of groups whose rollouts all got the same score."""
SIGNS_OF_COLLAPSE: Mapping[str, str] = {"max_kl": KL, "min_entropy": ENTROPY, "max_same_answer": SAME_ANSWER}
"""Bound on a sign of a collapsed policy -> its metric."""
SIGNS_OF_WASTE: Mapping[str, str] = {
    "max_clip_ratio": CLIP_RATIO, "max_malformed": MALFORMED, "min_scores_std": SCORES_STD,
    "max_frac_zero_std": ZERO_STD,
}  # fmt: skip
"""Bound on a sign of steps that teach nothing -> its metric."""
EPISODE_FIGURES = frozenset(
    {
        "env/success", "env/success_needed", "env/success_clear", "env/right", "env/right_needed", "env/right_clear",
        "env/lucky", "env/declined", "env/asked_needed", "env/asked_clear", MALFORMED, "env/tool_errors", SAME_ANSWER,
        "num_turns/mean", "tool_call_counts/mean", CLIP_RATIO,
    }
)  # fmt: skip
"""Metrics of a step's episodes, or of an evaluation; a step without a case of one leaves it out."""
REWARD_TERMS = frozenset(
    {"reward/success", "reward/judge", "reward/penalty", "reward/format", "reward/turns", "reward/factor"}
)
JUDGED = frozenset({"judge/score", "judge/scored", "judge/unstable"})
"""Metrics if a judge has weight in the reward. Its cost is not among them, since repeated runs differ in it."""
OF_STRATEGIES: Mapping[str, frozenset[str]] = {
    "ppo": EPISODE_FIGURES | REWARD_TERMS,
    "groups": EPISODE_FIGURES | REWARD_TERMS,
    "demonstrations": frozenset({"rows", "label_tokens"}),
    "sft": frozenset({"rows", "label_tokens"}),
    "rows": frozenset({"rows", "answered"}),
}
ANSWERS = frozenset({"objective/scores", "answered"})
"""Metrics of held-out rows of a file that the policy answers."""
READ = frozenset({"loss", "mean_token_accuracy", "entropy"})
"""Metrics of held-out rows of a file, which are not played."""

_EVERY = frozenset({"loss", "lr"})
_OF_UPDATES = frozenset({"grad_norm", "update/steps"})
_OF_EPISODES = _EVERY | _OF_UPDATES | {
    "kl", "ratio", "response_length/mean", "policy/sampling_gap", "policy/sampling_far",
    "objective/kl", "objective/kl_k3", "objective/kl_per_token", "objective/kl_coef", "objective/entropy",
    "objective/scores", SCORES_STD,
}  # fmt: skip
_OF_RATIOS = _OF_EPISODES | {
    "loss/policy_avg", "policy/approxkl_avg", "policy/clipfrac_avg", "policy/entropy_avg", "val/ratio", "val/ratio_var",
    "update/stopped",
}  # fmt: skip
_OF_PAIRS = frozenset(
    {
        "rewards/margins", "rewards/accuracies", "rewards/chosen", "rewards/rejected", "logps/chosen", "logps/rejected",
        "pairs/differ", ZERO_STD,
    }
)  # fmt: skip

OF_ENGINES: Mapping[str, frozenset[str]] = {
    "torch_ppo": _OF_RATIOS
    | {
        "loss/value_avg",
        "critic/vf_explained_var",
        "lr/value",
        "objective/non_score_reward",
        "objective/rlhf_reward",
    },
    "torch_grpo": _OF_RATIOS | {"loss/kl_avg", ZERO_STD},
    "trl_dpo": _OF_EPISODES | _OF_PAIRS,
    "pure_pt_sft": _EVERY | _OF_UPDATES | {"mean_token_accuracy"},
}
"""The metrics that `train_step` returns."""


def measured(
    engine: str, strategy: str, more: frozenset[str] = frozenset(), looked: frozenset[str] = EPISODE_FIGURES
) -> tuple[frozenset[str], ...] | None:
    """Return the metrics of a step, and of an evaluation on held-out rows.

    Args:
        engine: its name in the configuration.
        strategy: its name in the configuration.

    Returns:
        The names for a step and for an evaluation; None if the engine or the strategy is custom: its metrics are
        known only after the first step or evaluation.
    """
    of_engine, of_strategy = OF_ENGINES.get(own_name(engine)), OF_STRATEGIES.get(strategy)
    if of_engine is None or of_strategy is None:
        return None
    return of_engine | of_strategy | more, frozenset(HELD_OUT + name for name in looked)


def unseen(engine: str, strategy: str, episodes: int) -> tuple[str, ...] | None:
    """Return the signs of a collapse that cannot end a run, since no step measures their metric.

    Args:
        engine: its name in the configuration.
        strategy: its name in the configuration.
        episodes: episodes per step.

    Returns:
        Their names; None for a custom engine or strategy, whose metrics are unknown here.
    """
    known = measured(engine, strategy)
    if known is None:
        return None
    of_steps = known[0] if episodes >= ANSWERED else known[0] - {SAME_ANSWER}
    return tuple(sign for sign, metric in SIGNS_OF_COLLAPSE.items() if metric not in of_steps)


def unmeasured(
    metric: str,
    engine: str,
    strategy: str,
    more: frozenset[str] = frozenset(),
    looked: frozenset[str] = EPISODE_FIGURES,
) -> str:
    """Return why a metric cannot end a run, in a sentence; "" if it is measured, or if that is unknown."""
    known = measured(engine, strategy, more, looked)
    if known is None:
        return ""
    of_steps, of_looks = known
    of_look = metric.startswith(HELD_OUT)
    names = sorted(of_looks if of_look else of_steps)
    if metric in names:
        return ""
    near = get_close_matches(metric, names, n=1)
    hint = f"did you mean '{near[0]}'? Expected" if near else "expected"
    where = "no evaluation on held-out rows" if of_look else "no step"
    return f"found '{metric}', which {where} of {engine} measures; {hint} one of {', '.join(names)}"
