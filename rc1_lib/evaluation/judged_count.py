"""How many episodes of an evaluation a judge scores; the sum needs no policy and no torch."""

from __future__ import annotations

from rc1_lib.run import Run


def judged_episodes(run: Run, seeds: int) -> int:
    """How many episodes an evaluation of this many runs has judged, including checkpoints in between."""
    held_out = run.config.training.held_out
    on_the_way = held_out.between.checkpoints * min(held_out.between.prompts, held_out.judged)
    return min(held_out.judged, held_out.prompts) * (1 + seeds) + on_the_way * seeds
