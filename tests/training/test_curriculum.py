"""The curriculum: bucket shares, the schedule, unsolved rows, and a state that decides all later batches."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rc1_lib.config.run_config import PrioritySampling
from rc1_lib.errors import ConfigError
from rc1_lib.training.curriculum import Curriculum, missing_share

ROWS = [
    {"id": f"{bucket}-{number}", "bucket": bucket}
    for bucket, count in (("easy", 4), ("medium", 9), ("hard", 7))
    for number in range(count)
]


def sampling(
    *ratios: tuple[int, float], cap: float = 0.3, enable: bool = True, missing: float | None = None
) -> PrioritySampling:
    return PrioritySampling.model_validate(
        {
            "enable": enable,
            "by_difficulty": {"easy": 0.2, "medium": 0.4, "hard": 0.4},
            "missing_share": missing,
            "low_perf_cap": cap,
            "seed_ratio_schedule": [{"step": step, "ratio": ratio} for step, ratio in ratios],
        }
    )


def curriculum(settings: PrioritySampling | None = None, size: int = 10, seed: int = 1) -> Curriculum:
    return Curriculum(ROWS, settings or sampling((0, 0.5)), size, seed)


def ids_of(batch: dict[str, Any]) -> list[str]:
    return [row["id"] for row in batch["rows"]]


def step(source: Curriculum, solved: bool) -> dict[str, Any]:
    """The next batch, after play: all rows solved, or none."""
    batch = source.next()
    batch["solved"] = [solved] * len(batch["rows"])
    return batch


def test_unsolved_rows_are_repeated_up_to_the_cap() -> None:
    source = curriculum()
    first = ids_of(step(source, solved=False))
    second = source.next()
    again = ids_of(second)[:3]
    # 3 of 10 again. The shares of the other 7 are 1.4, 2.8 and 2.8; larger remainders round up.
    assert set(again) <= set(first)
    assert Counter(row["bucket"] for row in second["rows"][3:]) == {"easy": 1, "medium": 3, "hard": 3}


@pytest.mark.parametrize(("at", "ratio"), [(15, 0.5), (16, 0.35), (400, 0.2)])
def test_seed_ratio_is_that_of_the_last_schedule_point(at: int, ratio: float) -> None:
    # The points are not sorted in the file.
    assert curriculum(sampling((32, 0.2), (0, 0.5), (16, 0.35))).seed_ratio(at) == ratio


def test_pass_over_a_bucket_gives_every_row_once() -> None:
    source = curriculum(sampling((0, 1.0)))
    hard = [row_id for _ in range(7) for row_id in ids_of(step(source, solved=True)) if row_id.startswith("hard")]
    passes = [hard[first : first + 7] for first in range(0, 28, 7)]
    assert [len(set(each)) for each in passes] == [7] * 4
    assert len({tuple(each) for each in passes}) > 1, "every pass has the same order"


def test_episode_keys_of_a_step_are_unique() -> None:
    source = Curriculum([{"id": b, "bucket": b} for b in ("easy", "medium", "hard")], sampling((0, 0.5)), 10, 1)
    for number in range(4):
        batch = step(source, solved=False)
        assert batch["step"] == number
        assert len(batch["keys"]) == len(set(batch["keys"])) == 10
        assert all(key.startswith(f"{row_id}/") for key, row_id in zip(batch["keys"], ids_of(batch), strict=True))


def keys_of(source: Curriculum, steps: int) -> list[list[str]]:
    """The episode keys of steps in which every third row is solved."""
    found = []
    for _ in range(steps):
        batch = source.next()
        batch["solved"] = [place % 3 == 0 for place in range(len(batch["rows"]))]
        found.append(batch["keys"])
    return found


@pytest.mark.parametrize("before", [0, 5])
def test_state_restored_from_json_gives_the_same_batches(before: int) -> None:
    source = curriculum()
    keys_of(source, before)
    state = json.loads(json.dumps(source.state_dict()))
    other = curriculum()
    other.load_state_dict(state)
    assert keys_of(other, 6) == keys_of(source, 6)


LACKING = [{**row, "needs_clarification": number % 3 == 0} for number, row in enumerate(ROWS)]


def test_missing_share_holds_within_each_bucket() -> None:
    settings = sampling(missing=0.5)
    batch = Curriculum(LACKING, settings, 20, 1).next()
    found = Counter((row["bucket"], row["needs_clarification"]) for row in batch["rows"])
    assert found == {
        (bucket, lacks): each for bucket, each in (("easy", 2), ("medium", 4), ("hard", 4)) for lacks in (True, False)
    }
    assert missing_share(LACKING, settings) == pytest.approx(0.5)
    without_share = Curriculum(LACKING, sampling(), 20, 1).next()
    assert sum(row["needs_clarification"] for row in without_share["rows"]) < 10
    by_hand = 0.0
    for bucket, share in sampling().by_difficulty.items():
        of_it = [row["needs_clarification"] for row in LACKING if row["bucket"] == bucket]
        by_hand += share * sum(of_it) / len(of_it)
    assert missing_share(LACKING, sampling()) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("rows", "missing", "shares", "there"),
    [
        ([{**row, "needs_clarification": False} for row in ROWS], 1.0, None, "4 easy, whole; 9 medium, whole; 7 hard"),
        (ROWS[4:], None, {"easy": 1.0, "medium": 0.0, "hard": 0.0}, "9 medium; 7 hard: "),
    ],
)
def test_shares_without_matching_rows_are_rejected(
    rows: list[dict[str, Any]], missing: float | None, shares: dict[str, float] | None, there: str
) -> None:
    settings = sampling(missing=missing)
    settings = settings.model_copy(update={"by_difficulty": shares or settings.by_difficulty})
    with pytest.raises(ConfigError, match=f"priority_sampling: .* {there}"):
        Curriculum(rows, settings, 10, 1)
