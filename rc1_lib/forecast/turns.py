"""How long a policy's turns are next to what training allows, and how many are malformed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rc1_lib.environment.markers import THINK, THINK_END
from rc1_lib.training.rollout.settings import ChatTokens
from rc1_lib.training.rollout.trajectory import Trajectory

LEVEL = 0.95
"""`rollout_len` should leave room for this share of the turns that end by themselves."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of some episodes.

    Attributes:
        tokens: of each turn that the policy ended itself, its end-of-turn token included.
        cut: for each turn that a limit on tokens cut, its tokens.
        thinking: how many of the cut ones never closed `<think>`.
        malformed: of each episode, whether a turn was malformed.
    """

    tokens: tuple[int, ...]
    cut: tuple[int, ...]
    thinking: int
    malformed: tuple[bool, ...]

    @property
    def length(self) -> float:
        """Tokens that `LEVEL` of the turns that ended by themselves do not exceed; NaN if none did."""
        return float(sorted(self.tokens)[math.ceil(LEVEL * len(self.tokens)) - 1]) if self.tokens else math.nan

    @property
    def was_cut(self) -> list[bool]:
        """For every turn, whether it was cut."""
        return [False] * len(self.tokens) + [True] * len(self.cut)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "turns": len(self.was_cut),
            "cut": len(self.cut),
            "cut_while_thinking": self.thinking,
            f"tokens_of_{LEVEL:.0%}_that_end": int(self.length) if self.tokens else None,
            "episodes": len(self.malformed),
            "episodes_malformed": sum(self.malformed),
        }


def turns_of(played: Iterable[Trajectory], chat: ChatTokens) -> Turns:
    """The turns of played episodes; `chat` has the end-of-turn token and decodes."""
    ended: list[int] = []
    cut: list[int] = []
    malformed: list[bool] = []
    thinking = 0
    for one in played:
        malformed.append(one.outcome.malformed > 0)
        for before, end in pairwise((one.prompt_tokens - 1, *one.turn_ends)):
            tokens = sum(one.own[before + 1 : end + 1])
            if one.ids[end] == chat.end_id:
                ended.append(tokens)
            else:
                cut.append(tokens)
                thinking += _is_thinking(chat.decode(one.ids[: end + 1]))
    return Turns(tuple(ended), tuple(cut), thinking, tuple(malformed))


def _is_thinking(dialogue: str) -> bool:
    """Whether the last `<think>` is open; some templates open it at the end of the prompt."""
    return dialogue.rfind(THINK) > dialogue.rfind(THINK_END)


def why_cut(turns: Turns, longer: Turns, allowed: int) -> str:
    """What to do about turns that are cut, in a sentence.

    Args:
        turns: as training would cut them.
        longer: of a few of the prompts, with more room.
        allowed: tokens of a turn in training, `rollout_len`, and those of its thoughts where they have their own.
    """
    causes = []
    if turns.thinking:
        causes.append(
            f"{turns.thinking} of the {len(turns.cut)} cut turns never closed {THINK}: a model that thinks needs room "
            f"for its thoughts (training.rollout.thought_tokens), or a chat template without them"
        )
    if by_others := sum(tokens < allowed for tokens in turns.cut):
        causes.append(f"{by_others} of them were cut by training.limits.tokens or the model's context")
    if len(longer.cut) > len(longer.tokens):
        causes.append(
            f"with room for {max(longer.cut)} tokens {len(longer.cut)} of {len(longer.was_cut)} turns still do not "
            f"end: warm up longer (training.warm_start.steps) or use a base that ends its turns"
        )
    else:
        ended = len(longer.tokens)
        causes.append(f"with more room {ended} of {len(longer.was_cut)} turns end by themselves: raise rollout_len")
    return "; ".join(causes)


def room_to_set(longer: Turns) -> str:
    """The `rollout_len` that leaves room for `LEVEL` of the turns, rounded up to a multiple of 16."""
    return f"set rollout_len to {16 * math.ceil(longer.length / 16)} (and training.limits.tokens to a dialogue of such)"
