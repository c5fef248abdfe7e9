"""How long a policy's turns are compared with what training allows, and how many are malformed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rc1_lib.environment.markers import THINK, THINK_END
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rollout.trajectory import Trajectory

LEVEL = 0.95
"""`rollout_len` should leave room for this share of the turns that end by themselves."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of some episodes.

    Attributes:
        tokens: length of each turn that the policy ended itself, including its end-of-turn token. If thoughts have a
            separate budget, only what comes after them counts.
        answers_cut: the same for each turn that a token limit cut after its thoughts, or that had none.
        thoughts_cut: length of each turn that was cut before it closed `<think>`.
        malformed: for each episode, whether it had a malformed turn.
    """

    tokens: tuple[int, ...]
    answers_cut: tuple[int, ...]
    thoughts_cut: tuple[int, ...]
    malformed: tuple[bool, ...]

    @property
    def length(self) -> float:
        """Number of tokens that `LEVEL` of the turns that ended by themselves do not exceed; NaN if none did."""
        return float(sorted(self.tokens)[math.ceil(LEVEL * len(self.tokens)) - 1]) if self.tokens else math.nan

    @property
    def cut(self) -> int:
        """Number of turns that a token limit cut."""
        return len(self.answers_cut) + len(self.thoughts_cut)

    @property
    def was_cut(self) -> list[bool]:
        """For every turn, whether it was cut."""
        return [False] * len(self.tokens) + [True] * self.cut

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "turns": len(self.was_cut),
            "cut": self.cut,
            "cut_while_thinking": len(self.thoughts_cut),
            f"tokens_of_{LEVEL:.0%}_that_end": int(self.length) if self.tokens else None,
            "episodes": len(self.malformed),
            "episodes_malformed": sum(self.malformed),
        }


def turns_of(played: Iterable[Trajectory], chat: ChatFormat, *, thoughts_apart: bool = False) -> Turns:
    """Measure the turns of episodes; `thoughts_apart` says that thoughts have a separate budget (`thought_tokens`)."""
    ended: list[int] = []
    answers_cut: list[int] = []
    thoughts_cut: list[int] = []
    malformed: list[bool] = []
    closing = chat.thoughts[1] if thoughts_apart and chat.thoughts is not None else None
    for episode in played:
        malformed.append(episode.outcome.malformed > 0)
        for before, end in pairwise((episode.prompt_tokens - 1, *episode.turn_ends)):
            said = [episode.ids[at] for at in range(before + 1, end + 1) if episode.action_mask[at]]
            tokens = len(said) - (said.index(closing) + 1 if closing in said else 0)
            if episode.ids[end] == chat.end_id:
                ended.append(tokens)
            elif _is_thinking(chat.decode(episode.ids[: end + 1])):
                thoughts_cut.append(tokens)
            else:
                answers_cut.append(tokens)
    return Turns(tuple(ended), tuple(answers_cut), tuple(thoughts_cut), tuple(malformed))


def _is_thinking(dialogue: str) -> bool:
    """Return whether the last `<think>` is open; some templates open it at the end of the prompt."""
    return dialogue.rfind(THINK) > dialogue.rfind(THINK_END)


def why_cut(turns: Turns, longer: Turns, allowed: int, thoughts: int | None) -> str:
    """Explain why turns are cut and what to do about it.

    Args:
        turns: the turns as training would cut them.
        longer: the turns of a few of the prompts, with more room.
        allowed: most tokens of a turn in training, `rollout_len`.
        thoughts: most tokens of its thoughts, if these have a separate budget.
    """
    causes = []
    if turns.thoughts_cut:
        causes.append(
            f"{len(turns.thoughts_cut)} of the {turns.cut} cut turns never closed {THINK}: a model that thinks needs "
            f"room for its thoughts (training.rollout.thought_tokens), or a chat template without them"
        )
    of_thoughts = allowed if thoughts is None else thoughts
    by_others = sum(tokens < allowed for tokens in turns.answers_cut)
    by_others += sum(tokens < of_thoughts for tokens in turns.thoughts_cut)
    if by_others:
        causes.append(f"{by_others} of them were cut by training.limits.tokens or the model's context")
    if longer.cut > len(longer.tokens):
        causes.append(
            f"with room for {max((*longer.answers_cut, *longer.thoughts_cut))} tokens, {longer.cut} of "
            f"{len(longer.was_cut)} turns still do not end: warm up longer (training.warm_start.steps) or use a base "
            f"that ends its turns"
        )
    else:
        ended = len(longer.tokens)
        causes.append(f"with more room, {ended} of {len(longer.was_cut)} turns end by themselves: raise rollout_len")
    return "; ".join(causes)


def room_to_set(longer: Turns) -> str:
    """Advise a `rollout_len` with room for `LEVEL` of the turns, rounded up to a multiple of 16."""
    return (
        f"set rollout_len to {16 * math.ceil(longer.length / 16)} (and training.limits.tokens to a dialogue of such "
        f"turns)"
    )
