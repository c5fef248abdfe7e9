"""How episodes end, their exact limits, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.reward.rules import add_rules
from rc1_lib.rows.chat import add_counts
from rc1_lib.rows.transcript import read
from tests.environment.worlds import CLEAR, LIMITS, STORY, call

WIKI = call("wiki", title="Wyrrudex")
NO_PAGE = call("wiki", title="Nowhere")
ASK = call("ask_user", question="How many jars did Prahule buy?")
ANSWER = "462-39*2 = 384. Answer: 384"


def play(turns: Sequence[str], limits: Limits = LIMITS, row: dict[str, Any] = STORY) -> Episode:
    episode = Episode(World(row), limits)
    for turn in turns:
        episode.say(turn)
    return episode


def test_solved_episode_matches_hand_count() -> None:
    outcome = play([WIKI, ASK, call("calc", expression="462-39*2"), ANSWER]).outcome()
    assert (outcome.status, outcome.answer, outcome.right) == (EpisodeStatus.ANSWERED, "384", True)
    assert (outcome.solved, outcome.lucky, outcome.obtained) == (True, False, True)
    assert (outcome.asked, outcome.needs) == (1, True)
    assert (outcome.turns, outcome.hops, outcome.tool_errors, outcome.malformed) == (4, 2, 0, 0)


@pytest.mark.parametrize(
    ("message", "answer", "right"),
    [
        ("Answer: 12\nAnswer: 384", "12; 384", False),
        ("<think>Answer: 12</think>Answer: 384", "384", True),
        ("That leaves 462 - 78 = 384 coins.", "384", True),
        ("Answer: 12 or 384", "12 or 384", False),
    ],
)
def test_answer_is_what_the_final_message_marks(message: str, answer: str, *, right: bool) -> None:
    outcome = play([ASK, message]).outcome()
    assert outcome.solved is right
    assert answer in outcome.answer


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Answer: I don't know", EpisodeStatus.DECLINED),
        ("无法确定", EpisodeStatus.DECLINED),
        ("Answer: 12", EpisodeStatus.ANSWERED),
        ("I don't know why, but this is certain: the answer is 384. Answer: 384", EpisodeStatus.ANSWERED),
    ],
)
def test_refusal_is_counted_as_declined_not_as_wrong(message: str, status: EpisodeStatus) -> None:
    assert play([ASK, message]).outcome().status is status


def test_right_answer_without_asking_is_unsupported() -> None:
    outcome = play([WIKI, ANSWER]).outcome()
    assert (outcome.right, outcome.solved, outcome.lucky, outcome.asked) == (True, False, True, 0)


def test_right_answer_after_an_off_target_question_is_unsupported() -> None:
    outcome = play([call("ask_user", question="Tell me the answer."), ANSWER]).outcome()
    assert (outcome.solved, outcome.lucky, outcome.off_target, outcome.asked) == (False, True, 1, 1)


def test_needless_question_is_counted_and_the_episode_stays_solved() -> None:
    outcome = play([ASK, ASK, ANSWER], row=CLEAR).outcome()
    assert (outcome.solved, outcome.asked, outcome.needs) == (True, 2, False)


def test_last_turn_may_answer_but_not_call_a_tool() -> None:
    limits = replace(LIMITS, turns=3)
    assert play([WIKI, ASK, ANSWER], limits).outcome().solved
    episode = play([WIKI, WIKI, ASK], limits)
    assert episode.status is EpisodeStatus.MAX_TURNS
    assert episode.outcome().asked == 1, "the calls of the last turn still run, so that counts and dialogue agree"
    assert episode.messages[-1]["content"] == "It is 39."
    assert not episode.outcome().right


def test_token_limit_counts_turns_and_observations_exactly() -> None:
    episode = Episode(World(STORY), replace(LIMITS, tokens=30), count=len)
    episode.say(ASK, tokens=20)
    assert episode.outcome().tokens == 20 + len("It is 39.")
    assert episode.status is EpisodeStatus.RUNNING
    episode.say(ANSWER, tokens=1)
    assert episode.outcome().solved, "the last token may be used"


def test_answer_beyond_the_token_limit_is_not_counted() -> None:
    episode = Episode(World(STORY), replace(LIMITS, tokens=30), count=len)
    episode.say(ASK, tokens=20)
    episode.say(ANSWER, tokens=2)
    assert episode.status is EpisodeStatus.MAX_TOKENS
    assert not episode.outcome().right


def test_calls_of_a_turn_beyond_the_token_limit_are_not_run() -> None:
    episode = Episode(World(STORY), replace(LIMITS, tokens=10))
    assert episode.say(ASK, tokens=11) == []
    assert episode.status is EpisodeStatus.MAX_TOKENS
    assert episode.world.asked == 0
    assert "tool_calls" not in episode.messages[-1]


def test_truncated_turn_ends_the_episode_whatever_it_says() -> None:
    episode = Episode(World(STORY), LIMITS)
    episode.say(ANSWER, cut=True)
    assert episode.status is EpisodeStatus.MAX_TOKENS
    assert not episode.outcome().right


def test_failed_calls_beyond_the_limit_end_the_episode() -> None:
    limits = replace(LIMITS, tool_errors=2)
    assert play([NO_PAGE, NO_PAGE], limits).status is EpisodeStatus.RUNNING
    episode = play([NO_PAGE, NO_PAGE, NO_PAGE], limits)
    assert episode.status is EpisodeStatus.TOOL_ERRORS
    assert episode.outcome().tool_errors == 3
    assert play([NO_PAGE + NO_PAGE + NO_PAGE], limits).status is EpisodeStatus.TOOL_ERRORS


def test_malformed_turns_get_a_reason_and_end_the_episode_beyond_the_limit() -> None:
    episode = play(["<tool_call>{", ANSWER], row=CLEAR)
    assert [message["role"] for message in episode.messages[2:]] == ["assistant", "tool", "assistant"]
    assert episode.messages[3]["content"] == "A call has no end, or holds another call."
    assert episode.faults == ["unclosed call"]
    assert episode.outcome().solved
    twice = play(["<tool_call>{", ""])
    assert twice.status is EpisodeStatus.MALFORMED
    assert twice.outcome().malformed == 2
    assert twice.messages[-1]["role"] == "assistant"
    assert play([""], replace(LIMITS, malformed=0)).status is EpisodeStatus.MALFORMED


def test_finished_episode_rejects_another_turn() -> None:
    episode = play([ANSWER])
    with pytest.raises(RuntimeError, match=r"\(answered\)"):
        episode.say(ANSWER)
    assert episode.outcome().turns == 1


def test_every_status_can_be_reached() -> None:
    """One short episode per status, so that a status which no episode can reach is found."""
    ends = {
        play([WIKI]).status,
        play([ANSWER]).status,
        play(["I don't know."]).outcome().status,
        play([WIKI], replace(LIMITS, turns=1)).status,
        play([WIKI], replace(LIMITS, tokens=1)).status,
        play([NO_PAGE], replace(LIMITS, tool_errors=0)).status,
        play(["", ""]).status,
    }
    assert ends == set(EpisodeStatus)


def test_counts_rules_and_transcript_agree_with_the_outcome() -> None:
    turns = [WIKI + NO_PAGE, "<tool_call>", ASK, call("calc", expression="462-39*2"), ANSWER]
    episode = play(turns)
    outcome = episode.outcome()
    frame = add_rules(add_counts(pl.DataFrame({"messages": [episode.messages]})), ["obtained", "reply_used"])
    assert frame.select("turns", "tool_hops", "clarifications").row(0) == (5, 3, 1)
    assert (outcome.turns, outcome.hops, outcome.asked) == (5, 3, 1)
    assert frame.select("obtained", "reply_used").row(0) == (1.0, 1.0)
    transcript = read(episode.messages)
    assert transcript.questions == 1
    assert [made.result for made in transcript.calls][1:] == ["There is no page of that title.", "It is 39.", "384"]
    assert transcript.final == ANSWER


def test_zero_limit_is_rejected() -> None:
    with pytest.raises(ValueError, match="turns"):
        replace(LIMITS, turns=0)
