"""Pictures of the reward's evidence, one kind a file: from plain columns or figures to a PNG."""

from rc1_lib.reward.plots.ablation import ablation
from rc1_lib.reward.plots.by_bucket import by_bucket
from rc1_lib.reward.plots.rank_scatter import rank_scatter
from rc1_lib.reward.plots.reliability import reliability
from rc1_lib.reward.plots.undeserved import undeserved
from rc1_lib.reward.plots.weights import weights

__all__ = ["ablation", "by_bucket", "rank_scatter", "reliability", "undeserved", "weights"]
