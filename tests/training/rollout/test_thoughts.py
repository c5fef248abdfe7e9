"""The separate token budget for thoughts: where it starts and ends, and what it cuts."""

from __future__ import annotations

import re

import pytest

from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.forecast.turns import turns_of, why_cut
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode
from tests.training.rollout.standin import StandInChat, starts

OPEN, CLOSE = "Coins left?", "A box of 9."
"""Pieces of one token each, used as the special tokens of thoughts."""


def episode(*, opens: bool = False, thought_tokens: int | None = 5, turn_tokens: int = 3) -> RunningEpisode:
    chat = StandInChat()
    (opening,), (closing,) = chat.encode(OPEN), chat.encode(CLOSE)
    chat.thoughts, chat.opens_thoughts = (opening, closing), opens
    return RunningEpisode(starts(chat, [0])[0], chat, RolloutSampling(0.0, turn_tokens, 1, 0, thought_tokens), 400)


def say(one: RunningEpisode, *pieces: str) -> list[bool]:
    """Feed the pieces' tokens and return after each whether the episode is over."""
    found = []
    for token in StandInChat().encode("".join(pieces)):
        one.take(token, 0.0)
        found.append(one.over)
    return found


def test_thoughts_and_answer_have_separate_budgets() -> None:
    one = episode()
    assert one.room == 3
    say(one, OPEN)
    assert one.room == 4, "the opening token counts as one of five"
    say(one, "abc", CLOSE)
    assert one.room == 3, "the answer has the turn's budget"
    assert say(one, "12", "<|im_end|>") == [False, False, True]
    assert one.trajectory().outcome.status is EpisodeStatus.ANSWERED


def test_prompt_that_opens_thoughts_starts_their_budget() -> None:
    one = episode(opens=True)
    assert one.room == 5
    say(one, "abcd", CLOSE)
    assert one.room == 3


@pytest.mark.parametrize("opens", [True, False])
def test_unclosed_thoughts_are_cut_at_their_budget(opens: bool) -> None:
    one = episode(opens=opens)
    over = say(one, *([] if opens else [OPEN]), "abcde" if opens else "abcd")
    assert over == [False, False, False, False, True]
    assert one.trajectory().outcome.status is EpisodeStatus.MAX_TOKENS


def test_answer_after_thoughts_is_cut_at_the_turn_budget() -> None:
    one = episode(opens=True)
    assert say(one, CLOSE, "123") == [False, False, False, True]
    assert one.trajectory().outcome.status is EpisodeStatus.MAX_TOKENS


def test_only_thoughts_at_the_start_of_a_turn_have_their_own_budget() -> None:
    one = episode()
    assert say(one, "1", OPEN, "2") == [False, False, True]


def test_thoughts_without_a_budget_count_in_the_turn() -> None:
    one = episode(opens=True, thought_tokens=None)
    assert say(one, "a", CLOSE, "2") == [False, False, True]


@pytest.mark.parametrize("reply", [("abcde", CLOSE, "12"), (CLOSE, "12345", "<|im_end|>")])
def test_token_after_a_cut_is_an_error(reply: tuple[str, ...]) -> None:
    """A server may return more tokens than the budgets allow."""
    one = episode(opens=True)
    with pytest.raises(AssertionError, match="over"):
        say(one, *reply)


def test_turn_statistics_separate_thoughts_and_answers() -> None:
    chat = StandInChat()
    (opening,), (closing,) = chat.encode(OPEN), chat.encode(CLOSE)
    chat.thoughts = (opening, closing)
    whole, cut = episode(opens=True), episode(opens=True)
    say(whole, "ab", CLOSE, "1", "<|im_end|>")
    say(cut, CLOSE, "123")
    turns = turns_of([whole.trajectory(), cut.trajectory()], chat, thoughts_apart=True)
    assert (turns.tokens, turns.answers_cut, turns.thoughts_cut) == ((2,), (3,), ())
    assert "training.limits.tokens" not in why_cut(turns, turns, 3, 5)
    assert re.search(r"\b1 .*training\.limits\.tokens", why_cut(turns, turns, 4, 5))
