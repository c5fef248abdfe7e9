"""The curriculum: bucket shares, the schedule, unsolved rows, and a state that decides all later batches."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from rc1_lib.config.run_config import PrioritySampling
from rc1_lib.errors import ConfigError
from rc1_lib.training.curriculum import Curriculum

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


def test_first_step_has_the_bucket_shares() -> None:
    assert Counter(row["bucket"] for row in curriculum().next()["rows"]) == {"easy": 2, "medium": 4, "hard": 4}


def test_unsolved_rows_are_repeated_up_to_the_cap() -> None:
    source = curriculum()
    first = ids_of(step(source, solved=False))
    second = source.next()
    again = ids_of(second)[:3]
    # 3 of 10 again. The shares of the other 7 are 1.4, 2.8 and 2.8; larger remainders round up.
    assert set(again) <= set(first)
    assert Counter(row["bucket"] for row in second["rows"][3:]) == {"easy": 1, "medium": 3, "hard": 3}


def test_no_row_is_repeated_if_all_were_solved() -> None:
    source = curriculum()
    step(source, solved=True)
    assert Counter(row["bucket"] for row in source.next()["rows"]) == {"easy": 2, "medium": 4, "hard": 4}
    assert source.state_dict()["unsolved"] == []


def test_scheduled_ratio_is_exact_despite_binary_rounding() -> None:
    # 1 - 0.9 of 10 rows is one row.
    source = curriculum(sampling((0, 0.9), cap=1.0))
    first = set(ids_of(step(source, solved=False)))
    passed = ids_of(source.next())
    assert passed[0] in first
    assert sum(source.state_dict()["passed"].values()) == 10 + 9


def test_row_that_is_solved_later_is_not_repeated() -> None:
    source = curriculum()
    step(source, solved=False)
    again = ids_of(step(source, solved=True))[:3]
    left = source.state_dict()["unsolved"]
    assert not set(again) & set(left) and len(left) > 0


def test_row_that_occurs_twice_in_a_step_counts_by_its_last_episode() -> None:
    source = Curriculum([{"id": b, "bucket": b} for b in ("easy", "medium", "hard")], sampling((0, 1.0)), 10, 1)
    batch = source.next()
    last = {row_id: place for place, row_id in enumerate(ids_of(batch))}
    batch["solved"] = [last[row_id] == place for place, row_id in enumerate(ids_of(batch))]
    assert source.state_dict()["unsolved"] == []


@pytest.mark.parametrize(("at", "ratio"), [(0, 0.5), (15, 0.5), (16, 0.35), (31, 0.35), (32, 0.2), (400, 0.2)])
def test_seed_ratio_is_that_of_the_last_schedule_point(at: int, ratio: float) -> None:
    # The points are not sorted in the file.
    assert curriculum(sampling((32, 0.2), (0, 0.5), (16, 0.35))).seed_ratio(at) == ratio


def test_seed_ratio_is_1_before_the_first_schedule_point() -> None:
    assert curriculum(sampling((5, 0.5))).seed_ratio(4) == 1.0


def test_pass_over_a_bucket_gives_every_row_once() -> None:
    source = curriculum(sampling((0, 1.0)))
    hard = [row_id for _ in range(7) for row_id in ids_of(step(source, solved=True)) if row_id.startswith("hard")]
    passes = [hard[first : first + 7] for first in range(0, 28, 7)]
    assert [len(set(each)) for each in passes] == [7] * 4
    assert len({tuple(each) for each in passes}) > 1, "every pass has the same order"


def test_disabled_priority_sampling_uses_pool_shares_and_repeats_no_row() -> None:
    source = curriculum(sampling((0, 0.5), enable=False), size=20)
    for _ in range(3):
        assert Counter(row["bucket"] for row in step(source, solved=False)["rows"]) == {
            "easy": 4, "medium": 9, "hard": 7,
        }  # fmt: skip


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


@pytest.mark.parametrize("before", [0, 1, 5])
def test_state_restored_from_json_gives_the_same_batches(before: int) -> None:
    source = curriculum()
    keys_of(source, before)
    state = json.loads(json.dumps(source.state_dict()))
    other = curriculum()
    other.load_state_dict(state)
    assert keys_of(other, 6) == keys_of(source, 6)


def test_reading_the_state_changes_nothing() -> None:
    watched, alone = curriculum(), curriculum()
    found = []
    for _ in range(5):
        watched.state_dict()
        found += keys_of(watched, 1)
        watched.state_dict()
    assert found == keys_of(alone, 5)


def test_saved_state_does_not_change_with_later_steps() -> None:
    source = curriculum()
    keys_of(source, 2)
    state = source.state_dict()
    kept = json.dumps(state)
    keys_of(source, 3)
    assert json.dumps(state) == kept


def test_seed_decides_the_order() -> None:
    assert keys_of(curriculum(seed=1), 3) == keys_of(curriculum(seed=1), 3)
    assert keys_of(curriculum(seed=1), 3) != keys_of(curriculum(seed=2), 3)


def test_unplayed_batch_marks_no_row_unsolved() -> None:
    source = curriculum()
    source.next()
    source.next()
    assert source.state_dict()["unsolved"] == []


LACKING = [{**row, "needs_clarification": number % 3 == 0} for number, row in enumerate(ROWS)]


def test_missing_share_holds_within_each_bucket() -> None:
    settings = sampling(missing=0.5)
    batch = Curriculum(LACKING, settings, 20, 1).next()
    found = Counter((row["bucket"], row["needs_clarification"]) for row in batch["rows"])
    assert found == {
        (bucket, lacks): each for bucket, each in (("easy", 2), ("medium", 4), ("hard", 4)) for lacks in (True, False)
    }
    without_share = Curriculum(LACKING, sampling(), 20, 1).next()
    assert sum(row["needs_clarification"] for row in without_share["rows"]) < 10


def test_missing_share_falls_back_to_complete_rows() -> None:
    whole = [{**row, "needs_clarification": False} for row in ROWS]
    batch = Curriculum(whole, sampling(missing=0.5), 10, 1).next()
    assert Counter(row["bucket"] for row in batch["rows"]) == {"easy": 2, "medium": 4, "hard": 4}


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


def test_restored_strata_give_the_same_batch() -> None:
    settings = sampling(missing=0.4)
    source, other = Curriculum(LACKING, settings, 10, 1), Curriculum(LACKING, settings, 10, 1)
    step(source, solved=True)
    other.load_state_dict(json.loads(json.dumps(source.state_dict())))
    assert ids_of(source.next()) == ids_of(other.next())
