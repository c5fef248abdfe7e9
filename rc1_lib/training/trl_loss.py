"""What TRL's trainers need around them where they are no more than a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import nn


@contextmanager
def weights_kept(model: nn.Module) -> Iterator[None]:
    """While a trainer of TRL is made over the model: what is trained keeps its weights and their precision.

    Beside a quantised base TRL rounds an adapter to bf16, which small steps would not move any more.
    """
    kept = {name: value.data for name, value in model.named_parameters() if value.requires_grad}
    yield
    for name, value in model.named_parameters():
        if name in kept:
            value.data = kept[name]


def figures_of(metrics: Mapping[str, dict[str, list[float]]]) -> dict[str, float]:
    """What a trainer measured of its last loss, then forgotten.

    Args:
        metrics: mode -> name -> values. TRL keeps them by the model's mode; it stands still in either, and is in that
            of training where states are computed again.
    """
    (measured,) = (of_mode for of_mode in metrics.values() if of_mode)
    found = {name: float(values[-1]) for name, values in measured.items()}
    measured.clear()
    return found
