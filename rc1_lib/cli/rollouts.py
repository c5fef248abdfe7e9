"""`audit-rollouts` and `rescore`: what stored rollouts, of any trainer, say before more are paid for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.check_words import figure
from rc1_lib.cli.endings import Ending, again, end, flagged
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import conclude
from rc1_lib.errors import ConfigError, RowError

if TYPE_CHECKING:
    import polars as pl

    from rc1_lib.run import Run

_REPORT = "reports/rc1/audit_rollouts.json"
_FILE = "Rollouts of TRL, verl, verifiers or tau-bench, or OpenAI messages: JSONL, JSON, Parquet."
_REWARD = "Key of the reward. Default: reward, or score; of TRL, the sum of its functions."


def audit_rollouts(
    session: Session,
    file: Annotated[Path, typer.Argument(help=_FILE)],
    held_out: Annotated[
        Path | None, typer.Option(help="Questions that no prompt may repeat: such a file, or JSONL with `question`.")
    ] = None,
    reward_key: Annotated[str | None, typer.Option(help=_REWARD)] = None,
    truth_key: Annotated[str | None, typer.Option(help="Key of what the reward stands for, such as accuracy.")] = None,
) -> int:
    """Check stored rollouts: rewards, cut turns, groups, hedges, proxy and truth, duplicates, leaks, the judge."""
    run = session.open()
    from rc1_lib.extras.rollouts.audit import audit
    from rc1_lib.extras.rollouts.read import read_questions, read_rollouts
    from rc1_lib.workspace.file_hashes import sha256_file

    path = run.workspace.path(session.given(file))
    with session.progress("checking"):
        form, frame = read_rollouts(path, reward=reward_key, truth=truth_key)
        held = None if held_out is None else read_questions(run.workspace.path(session.given(held_out)))
        results = audit(frame, run.config.gates, held)
    if all(one.not_applicable for one in results):
        raise RowError(
            f"{path}: nothing to judge; " + "; ".join(f"{one.name}: {one.not_applicable}" for one in results)
        )
    flags = flagged({"--held-out": held_out, "--reward-key": reward_key, "--truth-key": truth_key})
    return conclude(
        session, run, f"{frame.height:,} rollouts, form: {form}", results, _REPORT,
        {"rollouts": {"path": str(file), "sha256": sha256_file(path), "form": form, "rows": frame.height}},
        after_fail=again(session, "audit-rollouts", str(file), *flags),
    )  # fmt: skip


def rescore(
    session: Session,
    file: Annotated[Path, typer.Argument(help=f"{_FILE} Or evaluated episodes: reports/ppo_eval_KEY.episodes.jsonl.")],
    task: Annotated[str | None, typer.Option(help="Pay 1 for what this task's answer rule accepts, else 0.")] = None,
    formula: Annotated[
        str | None, typer.Option(help='Pay an expression of the records\' own numbers: "accuracy + 0.2 * style".')
    ] = None,
    judge: Annotated[bool, typer.Option("--judge", help="Pay the judged score, with the weights in force.")] = False,
    failed_only: Annotated[
        bool, typer.Option("--failed-only", help="As --judge, but only where a rollout has no reward.")
    ] = False,
    reward_key: Annotated[str | None, typer.Option(help=_REWARD)] = None,
) -> int:
    """Score stored rollouts again and compare with their old scores; nothing is sampled.

    Evaluated episodes are paid by other settings of the reward: --set training.reward.turn=0.05, overclar.alpha=0.3.
    """
    run = session.open(remembered=True)
    from rc1_lib.extras.rollouts import rescore as scoring
    from rc1_lib.extras.rollouts.read import read_rollouts
    from rc1_lib.judge.prompt import judge_identity
    from rc1_lib.workspace.file_hashes import sha256_file

    ways = {"--task": task, "--formula": formula, "--judge": judge, "--failed-only": failed_only}
    by: dict[str, Any] = {name: value for name, value in ways.items() if value not in (None, False)}
    if len(by) > 1:
        raise ConfigError(f"found {' and '.join(by)}, expected one of them")
    path = run.workspace.path(session.given(file))
    if by:
        _, frame = read_rollouts(path, reward=reward_key)
        if frame["reward"].null_count() == frame.height:
            raise RowError(f"{path}: no rollout has a reward to compare with; name its key with --reward-key")
        if judge or failed_only:
            by["judge"] = judge_identity(run)
        frame = frame.with_columns(old="reward", characters=frame["written"].str.len_chars().cast(float))
        with stages():
            if task is not None:
                new = scoring.by_rule(frame, task)
            elif formula is not None:
                new = scoring.by_formula(frame, formula)
            else:
                new = scoring.by_judge(run, frame, failed_only=failed_only)
        frame, traits = frame.with_columns(new), scoring.traits_of(frame)
    else:
        frame, traits, by = _by_settings(session, run, file), scoring.OUTCOME, {"--set": session.overrides}
    about = {"rollouts": {"path": str(file), "sha256": sha256_file(path)}, "by": by}
    place, body = scoring.write_rescored(run, about, frame, traits)
    session.show(*_tables(body))
    rows, other = body["rows"], body["changed"]["rows"]
    words = f"{rows['compared']:,} of {rows['rollouts']:,} rollouts compared; {other:,} have another score"
    return end(session, Ending("done", words, report=run.workspace.path(place)), {**body, "report": place})


def _by_settings(session: Session, run: Run, file: Path) -> pl.DataFrame:
    """Return evaluated episodes, paid by the settings that the workspace has recorded and by those of this command."""
    from rc1_lib.environment.rewards import RewardSettings
    from rc1_lib.evaluation.episodes import read_episodes
    from rc1_lib.extras.rollouts.rescore import of_episodes
    from rc1_lib.run import open_run, recorded_config

    recorded = recorded_config(session.options.workspace)
    if recorded is None:
        raise ConfigError(f"{run.workspace.root}: has not recorded by which settings {file} was paid; see --workspace")
    before = open_run(config=recorded, workspace=run.workspace.root)
    old, new = RewardSettings.of(before.config), RewardSettings.of(run.config)
    if old == new:
        raise ConfigError(
            f"{file}: change the reward, as by --set overclar.alpha=0.3, or name --task, --formula, --judge"
        )
    return of_episodes(read_episodes(run.workspace.path(session.given(file))), old, new)


def _tables(body: Mapping[str, Any]) -> list[Table]:
    """Return scores and what the best paid rollouts are like, old and new, and the preferences within prompts."""
    heads, rows = ("old", "new", "change", "interval"), list[tuple[str, ...] | None]()
    for name, found in {**{f"score: {name}": one for name, one in body["score"].items()}, **body["preferred"]}.items():
        cells = [figure(found[side]["value"]) for side in heads[:3]]
        rows.append((name, *cells, _interval(found["change"])))
    rows.insert(len(body["score"]), None)
    pairs = [(name, figure(one["value"]), _interval(one)) for name, one in body["pairs"].items() if name != "compared"]
    told = f"{body['pairs']['compared']:,} pairs of one prompt, by which of the two is preferred"
    return [
        table("mean score; and, within prompts, what the best paid rollout is like", ("", *heads), rows, heads),
        table(told, ("preference", "share", "interval"), pairs, ("share", "interval")),
    ]


def _interval(found: Mapping[str, Any]) -> str:
    return "" if found["low"] is None else f"{found['low']:.3g} to {found['high']:.3g}"
