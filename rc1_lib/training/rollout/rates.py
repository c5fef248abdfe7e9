"""How fast a rollout was, as figures for the metrics of an iteration."""

from __future__ import annotations

from collections.abc import Sequence

from rc1_lib.training.rollout.trajectory import Trajectory


def rollout_rates(trajectories: Sequence[Trajectory], seconds: float) -> dict[str, float]:
    """Episodes and tokens a second.

    Args:
        trajectories: what was played.
        seconds: how long that took, above 0.

    Returns:
        `rollout/episodes_per_s`; `rollout/sampled_per_s`, the policy's own tokens; `rollout/tokens_per_s`, all that
        went through the model, prompts and observations included; and `rollout/seconds`.
    """
    assert seconds > 0.0, "a rollout takes time"
    return {
        "rollout/episodes_per_s": len(trajectories) / seconds,
        "rollout/sampled_per_s": sum(each.own_tokens for each in trajectories) / seconds,
        "rollout/tokens_per_s": sum(len(each.ids) for each in trajectories) / seconds,
        "rollout/seconds": seconds,
    }
