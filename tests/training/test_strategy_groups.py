"""The strategy `groups`: it plays every row several times and reports to the curriculum by row."""

from __future__ import annotations

from collections.abc import Callable

from rc1_lib.run import Run
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import ENGINES

Tiny = Callable[..., Run]


def test_every_row_is_played_once_per_group_member_with_other_samples(tiny: Tiny) -> None:
    run = tiny(*ENGINES["torch_grpo"])
    batch = played(engine_of(run), run)
    rows = [row["id"] for row in batch["rows"]]
    assert len(rows) == run.config.prompts == 2
    assert [each.row_id for each in batch["trajectories"]] == [row for row in rows for _ in range(4)]
    assert len({each.ids for each in batch["trajectories"][:4]}) > 1, "rollouts of a row share their random numbers"
    assert len(batch["scores"]) == 8
