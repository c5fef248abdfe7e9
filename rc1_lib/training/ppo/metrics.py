"""What PPO reports besides what every update does."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rc1_lib.training.ppo.targets import Targets
from rc1_lib.training.updates.batch import EpisodeBatch
from rc1_lib.training.updates.tally import Tally, episode_metrics


def update_metrics(tally: Tally) -> dict[str, float]:
    """Those of the tally, and of the value head."""
    value = {"loss/value_avg": tally.each("value_loss"), "val/clipfrac_avg": tally.mean("value_clipped")}
    return tally.metrics() | value


def objective_metrics(batch: EpisodeBatch, targets: Targets, kl_coef: float) -> dict[str, float]:
    """Those of the episodes, and `critic/vf_explained_var`, which is NaN where all returns are equal."""
    values, returns = targets.values[batch.own], targets.returns[batch.own]
    explained = {"critic/vf_explained_var": explained_variance(values, returns)}
    return episode_metrics(batch, targets.ref_logprobs, kl_coef) | explained


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """1 - Var(returns - values) / Var(returns); NaN where the returns are all equal."""
    wide_values, wide_returns = values.cpu().double(), returns.cpu().double()
    spread = float(torch.var(wide_returns, correction=0))
    if spread == 0:
        return math.nan
    return 1 - float(torch.var(wide_returns - wide_values, correction=0)) / spread
