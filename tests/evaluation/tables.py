"""Made-up episodes with exactly known shares, in the form that an evaluation reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.evaluation.episodes import EpisodeRecord, Mode, episode_frame, record_of

_TASKS, _BUCKETS = ("hotpotqa", "strategyqa", "gsm8k"), ("easy", "medium", "hard")


def row(number: int, **changed: Any) -> dict[str, Any]:
    """A prompt. Every third has missing information; tasks, difficulties and wordings are spread evenly over both."""
    return {
        "id": f"row-{number:04d}",
        "task": _TASKS[number // 3 % 3],
        "bucket": _BUCKETS[number // 9 % 3],
        "source_id": f"source-{number:04d}",
        "needs_clarification": number % 3 == 0,
        "cue": number // 27 % 2 == 0,
        **changed,
    }


def outcome(**changed: Any) -> EpisodeOutcome:
    """A plain right answer after three turns."""
    parts: dict[str, Any] = {
        "status": EpisodeStatus.ANSWERED, "answer": "yes", "right": True, "needs": False, "obtained": False, "asked": 0,
        "off_target": 0, "turns": 3, "hops": 2, "tool_errors": 0, "malformed": 0, "tokens": 80,
    }  # fmt: skip
    return EpisodeOutcome(**{**parts, **changed})


def episode(
    number: int, policy: str = "ppo", mode: Mode = "sampled", seed: int = 1, *, prompt: Any = None, **came: Any
) -> EpisodeRecord:
    """One episode on prompt `number`."""
    about = row(number) if prompt is None else prompt
    return record_of(outcome(needs=about["needs_clarification"], **came), about, policy=policy, mode=mode, seed=seed)


@dataclass(frozen=True)
class Habits:
    """How a policy behaves, as shares.

    Attributes:
        asks_needed, asks_clear: of the prompts with and without missing information, those that it asks about; asking
            always obtains it.
        solves_asked: solved, of the prompts with missing information that it asked about.
        solves_clear: solved, of the prompts without.
        guesses: unsupported but correct, of the prompts with missing information that it did not ask about.
        wastes: one turn more than needed, of all prompts.
    """

    asks_needed: float
    asks_clear: float
    solves_asked: float
    solves_clear: float
    guesses: float = 0.3
    wastes: float = 0.0


SFT = Habits(0.2, 0.15, 0.8, 0.6, wastes=0.5)
PPO = Habits(0.8, 0.05, 0.85, 0.75, wastes=0.1)


def _happens(place: int, share: float, step: float) -> bool:
    """Whether an event of this share happens at a place, spread evenly by multiples of an irrational number."""
    return (place * step + 0.5) % 1.0 < share


def answer(number: int, habits: Habits, policy: str, mode: Mode = "sampled", seed: int = 1) -> EpisodeRecord:
    """What a policy of these habits does on prompt `number`."""
    about, place = row(number), number // 3
    needs = about["needs_clarification"]
    # The two clear prompts of a triple get different places, so that they do not behave alike.
    place = place if needs else 2 * place + number % 3 - 1
    asked = _happens(place, habits.asks_needed if needs else habits.asks_clear, 0.6180339887)
    solves = habits.solves_clear if not needs else habits.solves_asked if asked else habits.guesses
    return episode(
        number, policy, mode, seed,
        asked=int(asked), obtained=needs and asked, right=_happens(place, solves, 0.4142135624),
        turns=3 + asked + _happens(number, habits.wastes, 0.7320508076),
    )  # fmt: skip


def table(sft: Habits = SFT, ppo: Habits = PPO, *, prompts: int = 600, seed: int = 1) -> pl.DataFrame:
    """Episodes of both policies, the same in both modes."""
    modes: tuple[Mode, ...] = ("sampled", "greedy")
    return episode_frame(
        [
            answer(number, habits, policy, mode, seed)
            for number in range(prompts)
            for mode in modes
            for policy, habits in (("sft", sft), ("ppo", ppo))
        ]
    )
