"""The separate token budget for thoughts: where it starts and ends, and what it cuts."""

from __future__ import annotations

import pytest

from rc1_lib.environment.outcome import EpisodeStatus
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


@pytest.mark.parametrize("opens", [True, False])
def test_unclosed_thoughts_are_cut_at_their_budget(opens: bool) -> None:
    one = episode(opens=opens)
    over = say(one, *([] if opens else [OPEN]), "abcde" if opens else "abcd")
    assert over == [False, False, False, False, True]
    assert one.trajectory().outcome.status is EpisodeStatus.MAX_TOKENS


def test_only_thoughts_at_the_start_of_a_turn_have_their_own_budget() -> None:
    one = episode()
    assert say(one, "1", OPEN, "2") == [False, False, True]


def test_thoughts_that_the_prompt_opens_are_no_answer_until_they_close() -> None:
    closed, unclosed = (episode(opens=True, thought_tokens=None, turn_tokens=20) for _ in range(2))
    say(closed, "</think>Answer: 384", "<|im_end|>")
    assert closed.trajectory().outcome.answer == "384"
    say(unclosed, "Answer: 384", "<|im_end|>")
    assert not unclosed.over
    say(unclosed, "Answer: 384", "<|im_end|>")
    assert unclosed.trajectory().outcome.status is EpisodeStatus.MALFORMED
