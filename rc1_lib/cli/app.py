"""The program `rc1`: its commands, in the order in which a run uses them."""

from __future__ import annotations

from typing import Annotated

import typer

from rc1_lib import __version__
from rc1_lib.cli import (
    answers,
    attack,
    build_base,
    ckpt,
    config,
    dev,
    difficulty,
    doctor,
    evaluate,
    failures,
    judge,
    labels,
    learnability,
    plan,
    pool,
    preflight,
    release,
    reward,
    scale_up,
    score,
    scorecache,
    serve,
    shadow,
    ticket,
    train,
    world,
)
from rc1_lib.cli.command import command
from rc1_lib.cli.reference.write import reference

# Dashes and underscores are the same in the names of options and commands (the original scripts use both); the parser
# applies this to names only, never to values.
app = typer.Typer(
    name="rc1",
    help="RC1: a gated pipeline for post-training language models. No ticket, no training.",
    epilog="Exit codes: 0 passed; 1 a fault; 2 a gate, a configuration or an input was refused; 130 interrupted.",
    no_args_is_help=True,
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


@app.callback()
def rc1(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """RC1: a gated pipeline for post-training language models. No ticket, no training."""


for _name, _function in (
    ("preflight", preflight.preflight),
    ("round1", preflight.round1),
    ("round2", preflight.round2),
    ("plan", plan.plan),
    ("learnability", learnability.learnability),
    ("train", train.train),
    ("evaluate", evaluate.evaluate),
    ("scale-up", scale_up.scale_up),
    ("report", release.report),
    ("review", release.review),
    ("release", release.release),
    ("shadow-run", shadow.shadow_run),
    ("calibrate", reward.calibrate),
    ("weight-calib", reward.weight_calib),
    ("overclar-penalty", reward.overclar_penalty),
    ("attack-reward", attack.attack_reward),
    ("build-pool", pool.build_pool),
    ("validate-pool", pool.validate_pool),
    ("diversity-report", pool.report_diversity),
    ("check-answers", answers.check_answers),
    ("difficulty-metrics", difficulty.difficulty_metrics),
    ("difficulty-bucketize", difficulty.difficulty_bucketize),
    ("validate-difficulty", difficulty.validate_difficulty),
    ("probe-scorer", judge.probe_scorer),
    ("assert-not-simulated", judge.assert_not_simulated),
    ("judge-baseline", judge.judge_baseline),
    ("judge-drift", judge.judge_drift),
    ("score", score.score),
    ("judge-agreement", labels.judge_agreement),
    ("failpack", failures.failpack),
):
    command(app, _name, _function)
command(app, "doctor", doctor.doctor, writes=False)
command(app, "label", labels.label, without=("as_json",))
command(app, "verify", release.verify, without=("config", "profile", "overrides"))
command(app, "serve", serve.serve, without=("config", "profile", "overrides", "as_json"))

command(app, "build-base", build_base.build_base, without=("config", "profile", "overrides"))

_ticket = typer.Typer(no_args_is_help=True, help="The ticket that opens training: verify it, show it, revoke it.")
command(_ticket, "verify", ticket.verify)
command(_ticket, "show", ticket.show)
command(_ticket, "revoke", ticket.revoke)
app.add_typer(_ticket, name="ticket")

_ckpt = typer.Typer(no_args_is_help=True, help="Checkpoints: list them, compare two, hand one over.")
command(_ckpt, "list", ckpt.show, without=("config", "profile", "overrides"))
command(_ckpt, "diff", ckpt.diff, without=("config", "profile", "overrides"))
command(_ckpt, "export", ckpt.export)
command(_ckpt, "gguf", ckpt.gguf)
command(_ckpt, "dequantize", ckpt.dequantize)
app.add_typer(_ckpt, name="ckpt")

_world = typer.Typer(no_args_is_help=True, help="The dialogue world for other tools: write it, check what was written.")
command(_world, "export", world.export)
command(_world, "verify", world.verify, writes=False)
app.add_typer(_world, name="world")

_config = typer.Typer(no_args_is_help=True, help="The configuration: verify it or show the effective one.")
command(_config, "verify", config.verify)
command(_config, "show", config.show)
app.add_typer(_config, name="config")

_scorecache = typer.Typer(no_args_is_help=True, help="The store of the judge's replies: show it, repair it.")
command(_scorecache, "stat", scorecache.stat)
command(_scorecache, "invalidate", scorecache.invalidate)
command(_scorecache, "replay-bad", scorecache.replay_bad)
app.add_typer(_scorecache, name="scorecache")

_dev = typer.Typer(no_args_is_help=True, help="For development: a TEST DOUBLE of a judge; the pages of docs/reference.")
command(_dev, "judge-server", dev.judge_server, without=("config", "overrides", "as_json"))
command(_dev, "reference", reference, without=("config", "profile", "overrides", "as_json"))
app.add_typer(_dev, name="dev")
