"""Pictures of an evaluation, one kind a file: from its report, or from training's metrics, to a PNG."""

from rc1_lib.evaluation.plots.asking import asking
from rc1_lib.evaluation.plots.curves import curves, read_metrics
from rc1_lib.evaluation.plots.proxy import proxy
from rc1_lib.evaluation.plots.success import success

__all__ = ["asking", "curves", "proxy", "read_metrics", "success"]
