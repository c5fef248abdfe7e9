"""The playground: rewards and sampling follow the configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, PreTrainedModel

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.training.base_model import load_tokenizer
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.models import model_section
from rc1_lib.training.rollout.roll_out import Playground
from rc1_lib.training.rollout.trajectory import Trajectory

Tiny = Callable[..., Run]


def playground_and_model(run: Run) -> tuple[Playground, PreTrainedModel]:
    base = str(run.workspace.path("base"))
    form = ChatFormat(load_tokenizer(model_section(run.config, base)))
    return Playground(run.config, form), AutoModelForCausalLM.from_pretrained(base).eval()


def shortest_rows(pool: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(pool, key=lambda row: len(row["messages"][1]["content"]))[:6]


def trajectory(**changed: Any) -> Trajectory:
    facts = {
        "status": EpisodeStatus.ANSWERED, "answer": "7", "right": True, "needs": False, "obtained": False, "asked": 2,
        "off_target": 0, "turns": 3, "hops": 0, "tool_errors": 0, "malformed": 1, "tokens": 9,
    } | changed  # fmt: skip
    return Trajectory("row", (1, 2), 1, (False, True), (0.0, -1.0), (1,), EpisodeOutcome(**facts), ())


def test_judged_score_is_weighted_by_the_configuration_and_the_difficulty(tiny: Tiny) -> None:
    playground, _ = playground_and_model(
        tiny(
            "training.reward.judge=0.5",
            "training.reward.success=0",
            "training.reward.unverified=a test pays for the judged score alone",
            "training.reward.turn=0",
            "difficulty_beta=0.1",
        )
    )
    needing = trajectory(needs=True, malformed=0)
    assert playground.terms(needing, {"bucket": "medium"}, 0.75).total == 0.375
    assert playground.terms(needing, {"bucket": "hard"}, 0.75).total == pytest.approx(0.375 * 1.1)
    with pytest.raises(RC1Error, match=r"training\.reward\.judge .*0\.5, .*score"):
        playground.terms(needing, {"bucket": "hard"})


def test_reward_is_the_configured_sum_of_terms(tiny: Tiny) -> None:
    playground, _ = playground_and_model(
        tiny(
            "training.reward.success=8",
            "training.reward.malformed=0.25",
            "training.reward.turn=0.5",
            "overclar.alpha=0.125",
            "overclar.cap=1",
            "difficulty_beta=0",
        )
    )
    # 8 for the answer, 0.125 for two needless questions (capped at one), 0.25 for the malformed turn, 3 * 0.5.
    assert playground.terms(trajectory(), {"bucket": "hard"}).total == 8 - 0.125 - 0.25 - 1.5
    assert playground.terms(trajectory(needs=True, obtained=True), {"bucket": "hard"}).penalty == 0


def test_disabled_penalty_makes_needless_questions_free(tiny: Tiny) -> None:
    playground, _ = playground_and_model(tiny("use_overclar_penalty=false"))
    assert playground.terms(trajectory(), {"bucket": "easy"}).penalty == 0


def test_episodes_are_returned_in_the_order_of_their_rows(tiny: Tiny, pool: list[dict[str, Any]]) -> None:
    playground, model = playground_and_model(tiny())
    rows = shortest_rows(pool)
    played = playground.play(model, rows, [row["id"] for row in rows], temperature=1.0, seed=1, iteration=0)
    assert [each.row_id for each in played] == [row["id"] for row in rows]
    for each, row in zip(played, rows, strict=True):
        assert list(each.ids[: each.prompt_tokens]) == playground.form.prompt_ids(each.messages[:2])
        assert each.messages[1]["content"] == row["messages"][1]["content"]
        assert each.outcome.needs is row["needs_clarification"]
        assert each.outcome.status is not EpisodeStatus.RUNNING


def test_sampled_tokens_depend_only_on_seed_iteration_and_key(tiny: Tiny, pool: list[dict[str, Any]]) -> None:
    playground, model = playground_and_model(tiny())
    rows = shortest_rows(pool)

    def tokens(order: list[int], seed: int = 1, iteration: int = 0) -> dict[str, tuple[int, ...]]:
        chosen = [rows[place] for place in order]
        keys = [row["id"] for row in chosen]
        played = playground.play(model, chosen, keys, temperature=1.0, seed=seed, iteration=iteration)
        return {each.row_id: each.ids for each in played}

    first = tokens([0, 1, 2, 3])
    assert tokens([3, 1, 0, 2]) == first
    assert tokens([2])[rows[2]["id"]] == first[rows[2]["id"]]
    assert tokens([0, 1, 2, 3], seed=2) != first
    assert tokens([0, 1, 2, 3], iteration=1) != first


def test_turn_is_cut_at_the_configured_length(tiny: Tiny, pool: list[dict[str, Any]]) -> None:
    playground, model = playground_and_model(tiny("rollout_len=2"))
    rows = shortest_rows(pool)
    for each in playground.play(model, rows, [row["id"] for row in rows], temperature=1.0, seed=1, iteration=0):
        first_turn = each.turn_ends[0] + 1 - each.prompt_tokens
        assert first_turn <= 2
        assert each.action_count <= 2 * len(each.turn_ends)
