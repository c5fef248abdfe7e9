"""Asking first and never asking are played, and a price at which one of them wins is found before training."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from rc1_lib.evaluation.policies import player_of
from rc1_lib.forecast.price import COST, GAIN, PLAYED, Price, price_checks, price_of_a_question
from rc1_lib.run import PROJECT_ROOT, Run
from rc1_lib.training.chat_format import ChatFormat, turn_text
from rc1_lib.training.ppo_run import prepare
from rc1_lib.training.rollout.asking import Asking, Ban, opening_of_a_question
from tests.forecast.hopeless import ASKS, SAYS_YES, SURE, base_that_says
from tests.training.tiny import write_base

Tiny = Callable[..., Run]
Rows = list[dict[str, Any]]
FREE = ("overclar.alpha=0", "training.reward.turn=0")


def price_of(run: Run) -> Price:
    prepared = prepare(run)
    verdicts = [row for row in prepared.selection.train if row["answer"] in ("yes", "no")]
    with player_of(prepared, run.config.seeds[0]) as player:
        return price_of_a_question(prepared, player, verdicts)


def failed(price: Price) -> set[str]:
    return {check.name for check in price_checks(price) if not check.passed}


def test_question_is_worth_its_reply_and_costs_its_price(tiny: Tiny, pool: Rows) -> None:
    run = tiny(SURE, "overclar.alpha=0.2", "training.reward.turn=0")
    base_that_says(run, SAYS_YES, pool, can_ask=True)
    price = price_of(run)
    needed, elsewhere = price.baselines["needed"], price.baselines["elsewhere"]
    assert needed["asks first"].asked == elsewhere["asks first"].asked == 1
    assert needed["never asks"].asked == elsewhere["never asks"].asked == 0
    assert needed["asks first"].solved == needed["asks first"].right > 0 == needed["never asks"].solved
    assert price.cost is not None and price.cost.value == pytest.approx(0.2)
    assert price.gain is not None and price.gain.value > 0 and failed(price) == set()
    unknown = replace(price, gain=None, prompts={**price.prompts, "needed": 1})
    assert failed(unknown) == {f"{PLAYED}, needed"}, "one prompt finds no price"
    assert failed(replace(unknown, missing_share=0.0)) == set(), "training has no such prompts"


def test_price_at_which_a_baseline_wins_fails(tiny: Tiny, pool: Rows) -> None:
    run = tiny(SURE, *FREE)
    base_that_says(run, SAYS_YES, pool, can_ask=True)
    assert failed(price_of(run)) == {COST}
    base_that_says(run, "Answer: neither", pool, can_ask=True)
    assert failed(price_of(run)) == {GAIN, COST}, "never right, whatever the user replies"


def test_penalty_between_the_baselines_pays_both_alike(tiny: Tiny, pool: Rows) -> None:
    settings = (SURE, "training.reward.turn=0", "priority_sampling.enable=true", "priority_sampling.missing_share=0.5")
    run = tiny(*settings, "overclar.alpha=0.2")
    base_that_says(run, SAYS_YES, pool, can_ask=True)
    found = price_of(run)
    assert found.even is not None and found.gain is not None
    assert found.even == pytest.approx(found.gain.value), "asked once, and half of the prompts lack something"


def test_questions_above_the_cap_are_not_counted_as_penalised(tiny: Tiny, pool: Rows) -> None:
    run = tiny(*FREE, "overclar.cap=1", "priority_sampling.enable=true", "priority_sampling.missing_share=0.5")
    base_that_says(run, [SAYS_YES, turn_text(ASKS)], pool, can_ask=True)
    found = price_of(run)
    first = found.baselines["elsewhere"]["asks first"]
    assert first.asked > first.penalised == 1 and found.gain is not None and found.cost is not None
    assert found.even == pytest.approx(found.gain.value - found.cost.value), "the cap is one question"


def test_policy_that_wants_to_ask_cannot(tiny: Tiny, pool: Rows) -> None:
    run = tiny(SURE)
    base_that_says(run, turn_text(ASKS), pool)
    prepared = prepare(run)
    rows = prepared.selection.train[:6]
    with player_of(prepared, run.config.seeds[0]) as player:

        def asked(asking: Asking) -> list[int]:
            played = player.play(
                rows, [row["id"] for row in rows], temperature=0.1, seed=1, iteration=0, asking=[asking] * len(rows)
            )
            return [episode.outcome.asked for episode in played]

        assert all(asked(Asking.FREE)) and not any(asked(Asking.NEVER))


@pytest.mark.parametrize("base", ["embedded", "tiny"])
def test_opening_leaves_the_words_of_a_question_to_the_policy(base: str, tmp_path: Path) -> None:
    folder = PROJECT_ROOT / "models" / "embedded" if base == "embedded" else write_base(tmp_path)
    form = ChatFormat(AutoTokenizer.from_pretrained(folder))
    opening = opening_of_a_question(form)
    assert tuple(form.turn_ids(ASKS)[: len(opening)]) == opening
    assert form.decode(opening).rstrip('" ').endswith('"name": "ask_user", "arguments": {"question":')


@pytest.mark.parametrize(
    "written", ["\n", '\n{"name": "', '\n{"name":"', '\n{"arguments": {"question": "x"}, "name": "']
)
def test_ban_holds_for_every_way_to_write_the_name(written: str) -> None:
    form = ChatFormat(AutoTokenizer.from_pretrained(PROJECT_ROOT / "models" / "embedded"))
    turn = [*form.turn_ids(ASKS)[:1], *form.tokenizer(written)["input_ids"]]
    ban = Ban(form)
    banned = set(ban.tokens(turn))
    for token in range(len(form.tokenizer)):
        name = re.search(r'"name": ?"([^"]+)', written + form.decode([token]))
        asks = name is not None and ("ask_user".startswith(name[1]) or name[1].startswith("ask_user"))
        assert asks is (token in banned), form.decode([token])
    assert banned
    assert not ban.tokens([*turn, *form.tokenizer("wiki")["input_ids"]]) or written == "\n"
