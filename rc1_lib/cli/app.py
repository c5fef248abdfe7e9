"""The `rc1` program: its commands, in the order in which a run uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from rc1_lib import __version__
from rc1_lib.cli import (
    answers,
    checkpoints,
    judge,
    labels,
    plan,
    pool,
    preflight,
    release,
    reward,
    rollouts,
    scorecache,
    setup,
    train,
)
from rc1_lib.cli.command import command

_WHAT = "RC1 decides whether an RL run of a language model is worth its compute, and if so runs it."
_CODES = "Exit codes: 0 pass, 1 a fault, 2 refused or failed, 130 interrupted."
_BEGIN = f"""{_WHAT}

Five commands to begin with:
  rc1 preflight      check data, judge and reward; if all gates pass, issue the ticket
  rc1 ticket verify  check that the ticket still holds
  rc1 doctor         check the machine before training
  rc1 train          train a policy and compare it with the initial one
  rc1 report         write one page about the run, passed or failed

To try them on a small pool: rc1 preflight --workspace try --set pool.n=3000
All commands: rc1 --help. One command: rc1 preflight --help."""
"""Printed by `rc1` without a command."""

# Names of options and commands may use dashes or underscores (the original scripts use both). The parser applies this
# to names only, never to values.
app = typer.Typer(
    name="rc1",
    help=_WHAT,
    epilog=_CODES,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={
        "token_normalize_func": lambda name: name.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
    },
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rc1 {__version__}")
        raise typer.Exit


@app.callback(help=_WHAT)
def rc1(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Print where to begin if no command was given."""
    if context.invoked_subcommand is None:
        typer.echo(_BEGIN)


_NO_CONFIG = ("config", "profile", "overrides")
_NEEDS_TRAINING = {"trains": True}
_HOW: dict[str, dict[str, Any]] = {
    "plan": _NEEDS_TRAINING, "train": {**_NEEDS_TRAINING, "also": "logs/train.log"}, "evaluate": _NEEDS_TRAINING,
}  # fmt: skip
"""Command -> keyword arguments of `run_command`, where they are not the usual ones."""
_OF_PANEL: dict[str, tuple[tuple[str, Callable[..., int], str], ...]] = {
    "The run": (
        ("preflight", preflight.preflight, "rc1 preflight --workspace try --set pool.n=3000"),
        ("round1", preflight.round1, "rc1 round1 --build never"),
        ("round2", preflight.round2, "rc1 round2"),
        ("plan", plan.plan, "rc1 plan --all-seeds"),
        ("train", train.train, "rc1 train --all-seeds"),
        ("evaluate", train.evaluate, "rc1 evaluate latest --prompts 60"),
        ("scale-up", preflight.scale_up, "rc1 scale-up --set 'scale_up.sizes=[5000, 10000, 30000]'"),
        ("report", release.report, "rc1 report"),
    ),
    "The reward": (
        ("calibrate", reward.calibrate, "rc1 calibrate"),
        ("shadow-run", reward.shadow_run, "rc1 shadow-run --tag today"),
        ("weight-calib", reward.weight_calib, "rc1 weight-calib --boot 2000"),
        ("overclar-penalty", reward.overclar_penalty, "rc1 overclar-penalty --ablation"),
        ("attack-reward", reward.attack_reward, "rc1 attack-reward --prompts 60"),
        ("check-answers", answers.check_answers, "rc1 check-answers --task gsm8k"),
    ),
    "The data": (
        ("build-pool", pool.build_pool, "rc1 build-pool --n 1200 --sources my_questions"),
        ("validate-pool", pool.validate_pool, "rc1 validate-pool --max-dup-pct 1"),
        ("diversity-report", pool.report_diversity, "rc1 diversity-report"),
        ("difficulty-metrics", pool.difficulty_metrics, "rc1 difficulty-metrics"),
        ("difficulty-bucketize", pool.difficulty_bucketize,
         "rc1 difficulty-bucketize --target easy:0.25,medium:0.45,hard:0.30"),
        ("validate-difficulty", pool.validate_difficulty, "rc1 validate-difficulty --min-hard-pct 0.25"),
    ),
    "The judge": (
        ("probe-scorer", judge.probe_scorer, "rc1 probe-scorer --live --model NAME"),
        ("assert-not-simulated", judge.assert_not_simulated, "rc1 assert-not-simulated --cache-hit-lt 0.9"),
        ("score", judge.score, "rc1 score --in dialogues.jsonl --n 50"),
        ("label", labels.label, "rc1 label --n 100"),
    ),
    "Setup and help": (("failpack", setup.failpack, "rc1 failpack"),),
}  # fmt: skip
for _panel, _commands in _OF_PANEL.items():
    for _name, _function, _example in _commands:
        command(app, _name, _function, _example, panel=_panel, **_HOW.get(_name, {}))
command(
    app, "audit-rollouts", rollouts.audit_rollouts, "rc1 audit-rollouts rollouts.jsonl --truth-key accuracy",
    panel="The reward",
)  # fmt: skip
command(
    app, "rescore", rollouts.rescore, "rc1 rescore rollouts.jsonl --formula 'accuracy + 0.2 * style'",
    panel="The reward",
)  # fmt: skip
command(
    app, "init", setup.init, "rc1 init my_run", ("workspace", *_NO_CONFIG), panel="Setup and help", writes=False,
    anywhere=True,
)  # fmt: skip
command(
    app, "doctor", setup.doctor, "rc1 doctor", panel="Setup and help", writes=False, trains=True
)  # fmt: skip
command(
    app, "release", release.release, "rc1 release --sign key.pem", panel="The run", anywhere_with="verify"
)  # fmt: skip
command(app, "export", release.export, "rc1 export --to trl outputs/trl", panel="The run")
command(
    app, "serve", setup.serve, "rc1 serve --port 4200", (*_NO_CONFIG, "as_json"), panel="Setup and help",
    codes="Exit codes: 0 ended, 1 a fault, 2 refused, 130 interrupted.",
)  # fmt: skip

_ticket = typer.Typer(no_args_is_help=True, help="The ticket that training needs: verify it, revoke it.")
command(
    _ticket, "verify", preflight.verify_ticket, "rc1 ticket verify --workspace try --set pool.n=3000", writes=False
)  # fmt: skip
command(_ticket, "revoke", preflight.revoke_ticket, "rc1 ticket revoke --reason 'the pool has a fault'", _NO_CONFIG)
app.add_typer(_ticket, name="ticket", rich_help_panel="The run")

_NOT_THE_SAME = "Exit codes: 0 pass, 1 a fault, or the export differs from the policy, 2 refused, 130 interrupted."
_ckpt = typer.Typer(no_args_is_help=True, help="Checkpoints: list, export for other programs.")
command(_ckpt, "list", checkpoints.list_checkpoints, "rc1 ckpt list", _NO_CONFIG)
command(_ckpt, "export", checkpoints.export, "rc1 ckpt export latest --gguf q8_0", codes=_NOT_THE_SAME)
app.add_typer(_ckpt, name="ckpt", rich_help_panel="The run")

_config = typer.Typer(no_args_is_help=True, help="The configuration.")
command(_config, "verify", setup.verify_config, "rc1 config verify --profile prod")
app.add_typer(_config, name="config", rich_help_panel="Setup and help")

_scorecache = typer.Typer(no_args_is_help=True, help="The store of the judge's replies: show it, repair it.")
command(_scorecache, "stat", scorecache.stat, "rc1 scorecache stat")
command(_scorecache, "invalidate", scorecache.invalidate, "rc1 scorecache invalidate --spec v1")
command(_scorecache, "replay-bad", scorecache.replay_bad, "rc1 scorecache replay-bad")
app.add_typer(_scorecache, name="scorecache", rich_help_panel="The judge")
