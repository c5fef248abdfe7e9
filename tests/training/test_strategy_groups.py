"""The strategy `groups`: every row is played several times, and the curriculum hears of rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.run import Run
from rc1_lib.training.registry import make_strategy
from tests.training.test_episode_engines import engine_of, played
from tests.training.tiny_world import ENGINES
from tests.training.toys import Scale

Tiny = Callable[..., Run]


def test_every_row_is_played_as_often_as_its_group_is_large_and_each_time_anew(tiny: Tiny) -> None:
    run = tiny(*ENGINES["torch_grpo"])
    batch = played(engine_of(run), run)
    rows = [row["id"] for row in batch["rows"]]
    assert len(rows) == run.config.prompts == 2
    assert [each.row_id for each in batch["trajectories"]] == [row for row in rows for _ in range(4)]
    assert len({each.ids for each in batch["trajectories"][:4]}) > 1, "takes of a row have random numbers of their own"
    assert len(batch["scores"]) == 8


def test_a_row_is_solved_where_every_take_of_it_is(tiny: Tiny) -> None:
    run = tiny(*ENGINES["torch_grpo"])
    batch = played(engine_of(run), run)
    takes = [each.outcome.solved for each in batch["trajectories"]]
    assert batch["solved"] == [all(takes[:4]), all(takes[4:])]


def test_an_engine_that_plays_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.strategy: .*'groups', .* Scale .*engine\.PolicyEngine"):
        make_strategy("groups", group_size=2).attach_engine(Scale())
