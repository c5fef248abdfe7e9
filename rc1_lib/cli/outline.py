"""What a long command will do, outlined before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a long command.

    Attributes:
        name: of the stage, as the command's own reports have it.
        what: is done in it.
        share: of the whole command's time, as it was measured at the shipped size; None where it takes hardly any.
    """

    name: str
    what: str
    share: float | None = None


_BEFORE_ROUNDS = (
    Stage("server", "a private Prefect, unless one serves here", 0.1),
    Stage("data", "shadow set, pool, its difficulty, the balanced pool", 0.4),
    Stage("calibration", "does the reward predict success, can it be cheated", 0.4),
)
_ROUNDS = {
    1: Stage("round 1", "every gate, with advice where one fails", 0.05),
    2: Stage("round 2", "the same gates over the same bytes", 0.05),
}
_BOTH = (1, 2)
_TICKET = Stage("ticket", "opens training")


def preflight_outline(run: Run, rounds: Sequence[int], *, ticket: bool) -> list[str]:
    """What a preflight will do, a line a stage."""
    stages = (*_BEFORE_ROUNDS, *(_ROUNDS[number] for number in rounds), *([_TICKET] if ticket else []))
    title = f"{run.config.pool.n:,} rows, profile {run.config.profile}; nothing fresh is done again"
    return _lines(title, stages, {}, shares=tuple(rounds) == _BOTH)


def training_outline(run: Run, seeds: Sequence[int], last: Mapping[str, float], *, evaluate: bool) -> list[str]:
    """What a training will do, a line a stage.

    Args:
        run: workspace and configuration.
        seeds: to be trained.
        last: stage -> seconds of the latest training in this workspace.
        evaluate: whether it is evaluated.
    """
    config, training = run.config, run.config.training
    stages = [
        Stage("ticket", "does it vouch for all that is read"),
        Stage("warm start", f"{training.warm_start.steps} steps on demonstrations", 0.05),
        Stage("training", f"{config.steps} steps of {config.batch_size} episodes a seed", 0.75),
    ]
    if evaluate:
        asked = f"{training.held_out.prompts} held-out prompts, before and after"
        stages.append(Stage("evaluation", asked, 0.2))
    title = f"seed {', '.join(map(str, seeds))}, profile {config.profile}; nothing is trained twice"
    return _lines(title, stages, last, shares=evaluate and len(seeds) == 1)


def _lines(title: str, stages: Sequence[Stage], last: Mapping[str, float], *, shares: bool) -> list[str]:
    """The title, and each stage with the time it took the last time, else with its usual share where that is known."""
    wide, far = (max(len(getattr(stage, part)) for stage in stages) for part in ("name", "what"))
    told = (f"  {one.name:{wide}}  {one.what:{far}}  {_time(one, last, shares)}" for one in stages)
    return [title, *(line.rstrip() for line in told)]


def _time(stage: Stage, last: Mapping[str, float], shares: bool) -> str:
    if stage.name in last:
        return f"last time {last[stage.name]:.0f} s"
    return f"about {stage.share:.0%}" if shares and stage.share is not None else ""
