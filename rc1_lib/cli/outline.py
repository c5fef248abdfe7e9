"""What a long command will do, outlined before it starts, and what comes next, told when it has ended."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rc1_lib.cli.session import VERIFIED, Session

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
    Stage("calibration", "does the reward know success, can it be cheated", 0.4),
)
_ROUNDS = {
    1: Stage("round 1", "every gate, with advice where it is red", 0.05),
    2: Stage("round 2", "the same gates over the same bytes", 0.05),
}
_BOTH = (1, 2)
_TICKET = Stage("ticket", "opens training")


def preflight_outline(run: Run, rounds: Sequence[int], *, ticket: bool) -> list[str]:
    """What a preflight will do, a line a stage."""
    stages = (*_BEFORE_ROUNDS, *(_ROUNDS[number] for number in rounds), *([_TICKET] if ticket else []))
    title = f"{run.config.pool.n:,} rows, profile {run.config.profile}; nothing fresh is done again"
    return _lines(title, stages, {}, shares=tuple(rounds) == _BOTH)


def after_preflight(session: Session, rounds: Sequence[int], *, passed: bool) -> str:
    """What to do when a preflight, or a round of it, has ended."""
    command = "preflight" if tuple(rounds) == _BOTH else f"round{rounds[0]}"
    if not passed:
        return f"next, once what is red is fixed: {command_line(session, command)}"
    return f"next: {command_line(session, 'round2' if command == 'round1' else 'train')}"


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


def after_training(session: Session, run: Run, seeds: Sequence[int], *, evaluate: bool, passed: bool) -> str:
    """What to do when a training has ended."""
    if not passed:
        return f"next, with what the advice says changed, which is another run: {command_line(session, 'preflight')}"
    if not evaluate:
        named = [word for seed in seeds for word in ("--seed", str(seed))]
        return f"next, to see what was learned: {command_line(session, 'train', *named)}"
    if set(seeds) < set(run.config.seeds):
        return f"next, the other seeds too: {command_line(session, 'train', '--all-seeds')}"
    return f"next: {command_line(session, 'release')}"


def command_line(session: Session, name: str, *flags: str) -> str:
    """Another command on the same run, as it is typed: with this one's workspace, configuration and settings."""
    options = session.options
    named = {"--profile": options.profile, "--config": options.config, "--workspace": options.workspace}
    words = [word for flag, value in named.items() if value is not None for word in (flag, str(value))]
    short: dict[str, tuple[str, str]] = {}
    if options.reward is not None:
        short |= dict.fromkeys(VERIFIED, ("--reward", options.reward))
    if options.sources is not None:
        short |= {one: ("--sources", options.sources) for one in session.overrides if one.startswith("sources.use=")}
    settings = dict.fromkeys(short.get(setting, ("--set", setting)) for setting in session.overrides)
    return shlex.join(["rc1", *name.split(), *flags, *words, *(word for pair in settings for word in pair)])


def _lines(title: str, stages: Sequence[Stage], last: Mapping[str, float], *, shares: bool) -> list[str]:
    """The title, and each stage with the time it took the last time, else with its usual share where that is known."""
    wide, far = (max(len(getattr(stage, part)) for stage in stages) for part in ("name", "what"))
    told = (f"  {one.name:{wide}}  {one.what:{far}}  {_time(one, last, shares)}" for one in stages)
    return [title, *(line.rstrip() for line in told)]


def _time(stage: Stage, last: Mapping[str, float], shares: bool) -> str:
    if stage.name in last:
        return f"last time {last[stage.name]:.0f} s"
    return f"about {stage.share:.0%}" if shares and stage.share is not None else ""
