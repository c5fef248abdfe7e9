"""How far an episode may go."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rc1_lib.config.episodes import EpisodeLimits

TOOL_ERRORS = 2
"""Failed tool calls allowed: a typing error or two are no reason to give up a dialogue."""
MALFORMED = 1
"""Malformed turns allowed: one is answered with the reason, so that the policy can learn from it; two are a habit."""
CALLS = 5
"""Tool calls in one turn: the longest demonstrated turn has fewer, and more would be a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one episode.

    Attributes:
        turns: messages of the model, including the final answer.
        tokens: tokens of the model's messages and all observations together, without the prompt.
        tool_errors: failed tool calls allowed; one more ends the episode.
        malformed: malformed turns allowed; one more ends the episode.
        calls: tool calls in one turn.
        turn_chars: characters of one turn; longer turns are not parsed.
        argument_chars: characters of one argument.
    """

    turns: int
    tokens: int
    tool_errors: int = TOOL_ERRORS
    malformed: int = MALFORMED
    calls: int = CALLS
    turn_chars: int
    argument_chars: int

    @classmethod
    def of(cls, section: EpisodeLimits) -> Limits:
        """The bounds of a configuration's section `training.limits`, and the fixed ones."""
        return cls(**section.model_dump())

    def __post_init__(self) -> None:
        """Reject bounds that allow no turn."""
        for field in fields(self):
            least = 0 if field.name in {"tool_errors", "malformed"} else 1
            if getattr(self, field.name) < least:
                raise ValueError(f"limit '{field.name}' is {getattr(self, field.name)}, expected at least {least}")
