"""What every step measures, by engine and strategy: the names by which a run may be ended.

They are told here without importing an engine, so that a mistaken name is refused when the configuration is read and
not at the first look at held-out rows, hours later. Tests hold each list against what a step of its engine measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from rc1_lib.config.engines import STRATEGIES, LearnsFrom, own_name

HELD_OUT = "eval/"
"""Before the name of what a look at held-out rows measures."""
SAME_ANSWER = "env/same_answer"
"""The share of the most frequent answer."""
ANSWERED = 16
"""Answers among which one that is frequent says something; of fewer it is not measured."""
KL, ENTROPY = "objective/kl_per_token", "policy/entropy_avg"
"""Of the policy's tokens, in nats: the KL to the start, and the entropy of what they are drawn from."""
SIGNS_OF_COLLAPSE: Mapping[str, str] = {"max_kl": KL, "min_entropy": ENTROPY, "max_same_answer": SAME_ANSWER}
"""What each bound of `training.collapse` is laid on."""
EPISODE_FIGURES = frozenset(
    {
        "env/success", "env/success_needed", "env/success_clear", "env/lucky", "env/asked_needed", "env/asked_clear",
        "env/malformed", "env/tool_errors", SAME_ANSWER, "num_turns/mean", "tool_call_counts/mean",
        "response_length/clip_ratio",
    }
)  # fmt: skip
"""Of the episodes of a step, or of a look; one of which there is no case is left out of that step."""
REWARD_TERMS = frozenset(
    {"reward/success", "reward/judge", "reward/penalty", "reward/format", "reward/turns", "reward/factor"}
)
JUDGED = frozenset({"judge/score", "judge/scored", "judge/unstable"})
"""Where a judge has weight in the reward. What it costs is measured too, and no step decides it."""
OF_STRATEGIES: Mapping[str, frozenset[str]] = {
    "ppo": EPISODE_FIGURES | REWARD_TERMS,
    "groups": EPISODE_FIGURES | REWARD_TERMS,
    "demonstrations": frozenset({"rows", "label_tokens"}),
    "sft": frozenset({"rows", "label_tokens"}),
}
CLIPPED = frozenset({"grad_norm"})
"""What the callback `grad_clip` adds for an engine that learns from rows."""

_EVERY = frozenset({"loss", "lr"})
_OF_UPDATES = frozenset({"grad_norm", "update/steps"})
_OF_EPISODES = _EVERY | _OF_UPDATES | {
    "kl", "ratio", "response_length/mean", "policy/sampling_gap", "policy/sampling_far",
    "objective/kl", "objective/kl_k3", "objective/kl_per_token", "objective/kl_coef", "objective/entropy",
    "objective/scores", "objective/scores_std", "objective/non_score_reward", "objective/rlhf_reward",
}  # fmt: skip
_OF_RATIOS = _OF_EPISODES | {
    "loss/policy_avg", "policy/approxkl_avg", "policy/clipfrac_avg", "policy/entropy_avg", "val/ratio", "val/ratio_var",
    "update/stopped",
}  # fmt: skip
_OF_PAIRS = frozenset({"rewards/margins", "rewards/accuracies", "pairs/differ"})
_OF_GROUPS = frozenset({"loss/kl_avg", "frac_reward_zero_std"})

OF_ENGINES: Mapping[str, frozenset[str]] = {
    "torch_ppo": _OF_RATIOS | {"loss/value_avg", "val/clipfrac_avg", "critic/vf_explained_var", "lr/value"},
    "torch_grpo": _OF_RATIOS | _OF_GROUPS,
    "trl_grpo": _OF_RATIOS | _OF_GROUPS,
    "torch_dpo": _OF_RATIOS | _OF_PAIRS,
    "trl_dpo": _OF_EPISODES | _OF_PAIRS | {"rewards/chosen", "rewards/rejected", "logps/chosen", "logps/rejected"},
    "pure_pt_sft": _EVERY | {"mean_token_accuracy"},
    "trl_sft": _EVERY | {"mean_token_accuracy", "entropy"},
}
"""What `train_step` returns, in a run `_OF_UPDATES` too. One that learns from rows with labels returns the same of
held-out rows, but for the rate."""


def measured(engine: str, strategy: str, more: frozenset[str] = frozenset()) -> tuple[frozenset[str], ...] | None:
    """What a step measures, and what a look at held-out rows does.

    Args:
        engine: as the configuration names it.
        strategy: as the configuration names it.
        more: what is measured beside them.

    Returns:
        Names as a step has them, and as a look has them; None where the engine or the strategy is a user's own, of
        which nothing is said here: its first step, or first look, tells.
    """
    of_engine, of_strategy = OF_ENGINES.get(own_name(engine)), OF_STRATEGIES.get(strategy)
    if of_engine is None or of_strategy is None:
        return None
    kind = STRATEGIES[strategy].learns_from
    looked = of_engine - {"lr"} if kind is LearnsFrom.ROWS else EPISODE_FIGURES
    if kind is LearnsFrom.DEMONSTRATIONS:
        of_engine |= _OF_UPDATES
    return of_engine | of_strategy | more, frozenset(HELD_OUT + name for name in looked)


def unseen(bounds: Iterable[str], engine: str, strategy: str, episodes: int) -> tuple[str, ...] | None:
    """Those of some bounds of `training.collapse` that end no run, since no step has what they are laid on.

    Args:
        bounds: their keys.
        engine: as the configuration names it.
        strategy: as the configuration names it.
        episodes: of a step.

    Returns:
        Their keys; None for an engine or a strategy of a user's own, of which nothing is said here.
    """
    known = measured(engine, strategy)
    if known is None:
        return None
    of_steps = known[0] if episodes >= ANSWERED else known[0] - {SAME_ANSWER}
    return tuple(bound for bound in bounds if SIGNS_OF_COLLAPSE[bound] not in of_steps)


def unmeasured(metric: str, engine: str, strategy: str, more: frozenset[str] = frozenset()) -> str:
    """Why a run cannot be ended by a metric, in a sentence; "" where it is measured, or nobody can tell before."""
    known = measured(engine, strategy, more)
    if known is None:
        return ""
    of_steps, of_looks = known
    looked = metric.startswith(HELD_OUT)
    names = sorted(of_looks if looked else of_steps)
    if metric in names:
        return ""
    near = get_close_matches(metric, names, n=1)
    hint = f"did you mean '{near[0]}'? Expected" if near else "expected"
    where = "no look at held-out rows" if looked else "no step"
    return f"found '{metric}', which {where} of {engine} measures; {hint} one of {', '.join(names)}"
