"""The command that comes next, as it is typed: on the same run, with the same settings."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.cli.session import VERIFIED, Session

if TYPE_CHECKING:
    from rc1_lib.run import Run

_BOTH = (1, 2)
_FEW = 2
"""Settings that a command line shows one by one."""


def after_preflight(session: Session, rounds: Sequence[int], *, passed: bool) -> str:
    """The command to run when a preflight, or a round of it, has ended."""
    command = "preflight" if tuple(rounds) == _BOTH else f"round{rounds[0]}"
    if not passed:
        return again(session, command)
    return then(session, "round2" if command == "round1" else "train")


def after_training(session: Session, run: Run, seeds: Sequence[int], *, evaluate: bool, passed: bool) -> str:
    """The command to run when a training has ended."""
    if not passed:
        return then(session, "preflight", when="with other settings, which is another run")
    if not evaluate:
        named = [word for seed in seeds for word in ("--seed", str(seed))]
        return then(session, "train", *named, when="to see what was learned")
    if set(seeds) < set(run.config.seeds):
        return then(session, "train", "--all-seeds", when="the other seeds too")
    return then(session, "release")


def then(session: Session, name: str, *flags: str, when: str = "") -> str:
    """The last line of a command: the one to run next.

    Args:
        session: of this command.
        name: of the next one.
        flags: of the next one.
        when: it is to be run, or what for; "" where that is plain.
    """
    return f"next{f', {when}' if when else ''}: {command_line(session, name, *flags)}"


def again(session: Session, name: str, *flags: str, when: str = "once that is fixed") -> str:
    """The last line of a command that failed: the same one, with all of its settings.

    Args:
        session: of this command.
        name: of this command.
        flags: of it that set nothing in the configuration.
        when: it is to be run.
    """
    return f"next, {when}: {command_line(session, name, *flags, gates=True)}"


def flagged(given: Mapping[str, object]) -> list[str]:
    """The words of flags that were given: `{"--task": "gsm8k", "--golds": None}` -> `--task gsm8k`; "" has no flag."""
    return [word for flag, value in given.items() if value is not None for word in (flag, str(value)) if word]


def command_line(session: Session, name: str, *flags: str, gates: bool = False) -> str:
    """Another command on the same run, as it is typed: with this one's workspace, configuration and settings.

    Settings are shown where they are few; more of them stand in the run's effective configuration, if that records
    them.

    Args:
        session: of this command.
        name: of the other one.
        flags: of the other one.
        gates: whether the gates' settings by this command's own flags hold there too.
    """
    options = session.options
    own = session.overrides[len(session.common) :]
    settings = (*session.common, *(one for one in own if gates or not one.startswith("gates.")))
    short: dict[str, tuple[str, str]] = {}
    if options.reward is not None:
        short |= dict.fromkeys(VERIFIED, ("--reward", options.reward))
    if options.sources is not None:
        short |= {one: ("--sources", options.sources) for one in settings if one.startswith("sources.use=")}
    pairs = dict.fromkeys(short.get(setting, ("--set", setting)) for setting in settings)
    named = {"--profile": options.profile, "--config": options.config, "--workspace": options.workspace}
    many = sum(flag == "--set" for flag, _ in pairs) > _FEW and settings == session.overrides
    if many and (recorded := _recorded(session)) is not None:
        named, pairs = {"--config": recorded, "--workspace": options.workspace}, {}
    words = [word for flag, value in named.items() if value is not None for word in (flag, str(value))]
    return shlex.join(["rc1", *name.split(), *flags, *words, *(word for pair in pairs for word in pair)])


def _recorded(session: Session) -> Path | None:
    """The effective configuration, as it is named from here, if it opens this very run again."""
    from rc1_lib.errors import ConfigError
    from rc1_lib.run import EFFECTIVE, open_run

    run = session.run
    if run is None:
        return None
    path = run.workspace.path(EFFECTIVE)
    try:
        there = open_run(config=path, workspace=run.workspace.root)
    except ConfigError:
        return None
    if (there.config_path, there.overrides, there.config) != (run.config_path, run.overrides, run.config):
        return None
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
