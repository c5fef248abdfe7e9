"""How far an episode may go."""

from __future__ import annotations

from dataclasses import dataclass, fields

from rc1_lib.config.episodes import EpisodeLimits


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one episode; the numbers are the configuration's.

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
    tool_errors: int
    malformed: int
    calls: int
    turn_chars: int
    argument_chars: int

    @classmethod
    def of(cls, section: EpisodeLimits) -> Limits:
        """The bounds of a configuration's section `training.limits`."""
        return cls(**section.model_dump())

    def __post_init__(self) -> None:
        """Reject bounds that allow no turn."""
        for field in fields(self):
            least = 0 if field.name in {"tool_errors", "malformed"} else 1
            if getattr(self, field.name) < least:
                raise ValueError(f"limit '{field.name}' is {getattr(self, field.name)}, expected at least {least}")
