"""`train`, and `evaluate`, which plays the held-out prompts again with a trained policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from rc1_lib.cli import tables
from rc1_lib.cli.checkpoints import found_checkpoint
from rc1_lib.cli.endings import Ending, command_line, end, judged, then
from rc1_lib.cli.flows import end_flow, run_flow_of, stamps, training_outline, written_since
from rc1_lib.cli.options import Verbose
from rc1_lib.cli.plan import training_cost_agreed
from rc1_lib.cli.session import Session, quieten_models, root_of, stages
from rc1_lib.cli.setup import train_config_file
from rc1_lib.cli.streams import typed
from rc1_lib.config.engines import ControlKind
from rc1_lib.errors import ConfigError
from rc1_lib.runtime.libraries import quieten
from rc1_lib.workspace.folder import holding

if TYPE_CHECKING:
    from rc1_lib.run import Run

_REPORT = "reports/train.json"
_EVALUATIONS = "reports/ppo_eval_*.json"


def train(
    session: Session,
    resume_from: Annotated[
        str | None,
        typer.Option(
            "--resume-from",
            "--resume",
            metavar="CHECKPOINT",
            help="Start from this checkpoint: latest, a step, or a path such as checkpoints/rc1/latest. Default: an "
            "interrupted run continues from its newest intact one; a small local configuration starts again.",
        ),
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Train this seed of `seeds`; repeatable. Default: the first.")
    ] = None,
    all_seeds: Annotated[bool, typer.Option("--all-seeds", help="Train all of `seeds`.")] = False,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Evaluate the policy on the held-out prompts.")
    ] = True,
    control: Annotated[
        ControlKind | None,
        typer.Option(
            help="Instead, train a few steps (training.control.steps) on an uninformative reward: random, or the same "
            "for all. It does not touch a real run. It fails if success rises, since then the evaluation leaks.",
        ),
    ] = None,
    start_over: Annotated[
        bool,
        typer.Option(
            "--start-over",
            help="Remove checkpoints and metrics that a run with other settings, files, seed or code left; without "
            "this flag they are an error. This run's own checkpoints stay, and it continues from them.",
        ),
    ] = False,
    profile_step: Annotated[
        bool,
        typer.Option(
            "--profile-step",
            help="Run two steps, discard them, and show where the second one spent its time, as a table and as a trace "
            "(Perfetto, chrome://tracing). A live judge is asked about their episodes.",
        ),
    ] = False,
    pool_seed: Annotated[int | None, typer.Option(help="The preflight's --seed (pool.seed).")] = None,
    verbose: Verbose = False,
) -> int:
    """Train a policy and compare it with the initial one; needs the ticket of a preflight.

    The settings are those that the workspace has recorded, with this command's flags on top. A small local
    configuration (--config configs/train_local.yaml) needs no ticket: it tries out the training code on its own rows,
    and what it writes is not a checkpoint of RC1.
    """
    if seed and all_seeds:
        raise ConfigError("--seed and --all-seeds: give one of them")
    quieten(hub=True)  # before what reads the configuration imports these libraries
    small = train_config_file(session)
    if small is not None:
        if seed or all_seeds or not evaluate or control or profile_step or pool_seed is not None:
            raise ConfigError(
                f"{small.name}: is a small local configuration, which takes only --resume-from, --start-over, --set "
                f"and --workspace"
            )
        return _train_small(session, small, resume_from, start_over)
    run = session.open({"pool.seed": pool_seed}, remembered=True)
    from rc1_lib.forecast.too_few import check_enough_held_out
    from rc1_lib.preflight.ticket import verify_ticket, vouched_by
    from rc1_lib.scale_up.conditions import check_grown
    from rc1_lib.training.train_arguments import check_control, chosen_seeds, has_checkpoints, named_checkpoint
    from tasks.endings import REFUSED

    ticket = verify_ticket(run)  # the flow checks this and the following too; here answers come before a server starts
    chosen = chosen_seeds(run, "all" if all_seeds else seed, resume_from, start_over=start_over)
    if profile_step:
        if control or resume_from or start_over or all_seeds or not evaluate or len(seed or ()) > 1:
            raise ConfigError("--profile-step: allows at most one --seed and no other flags of `rc1 train`")
        return _profile_step(session, replace(run, vouched=vouched_by(ticket)), chosen[0])
    if control is not None:
        check_control(run, control, resume_from, evaluate=evaluate, start_over=start_over)
        check_enough_held_out(run)
        return _control(session, run, control, chosen, verbose)
    if resume_from is not None:
        named_checkpoint(run, chosen[0], resume_from)
    check_grown(run)
    if evaluate and (start_over or not has_checkpoints(run, chosen)):
        check_enough_held_out(run)
    agreed = training_cost_agreed(session, run, len(chosen), evaluate=evaluate)
    before = stamps(run, _REPORT, _EVALUATIONS)
    session.show(*training_outline(run, chosen, _last_seconds(run), evaluate=evaluate))
    quieten_models(run)
    outcome = run_flow_of(
        session, run, "train", verbose=verbose, seeds=chosen, resume_from=resume_from, evaluate=evaluate,
        start_over=start_over, judge_cost_agreed=agreed,
    )  # fmt: skip
    fresh = written_since(run, before, _REPORT, _EVALUATIONS)
    report, passed = fresh.pop(_REPORT, None), outcome.exit_code == 0
    file, compared = next(iter(fresh.items()), ("", None))
    if compared is not None:
        _show_evaluation(session, run, file, compared)
    if report:
        session.show(*_training_tables(report))
        session.show(*(f"kept permanently: {run.workspace.path(path)}" for path in report["best"]))
        session.show(f"training: {run.workspace.path(_REPORT)}")
    session.show(outcome.message)
    what = f"training of seed {', '.join(map(str, chosen))}"
    written = file or (_REPORT if report else "")
    place = run.workspace.path(written) if written else None
    if compared is not None:
        ending = judged(f"{what}, {compared['gate']['name']}", [compared["gate"]], place)
    else:
        ending = Ending("done", f"{what}, not evaluated", report=place)
    if (ending.verdict == "fail") == passed:  # stopped before anything was judged
        ending = Ending("pass" if passed else "fail", outcome.message, report=place)
    if outcome.state_name == REFUSED:
        first = command_line(session, "preflight")
        ending = replace(ending, following=f"next, once that is fixed: {typed()}; with other settings first {first}")
    elif not passed:
        ending = replace(ending, following=then(session, "preflight", when="with other settings, as a new run"))
    return end_flow(session, outcome, {"training": report, "evaluation": compared}, ending)


def _last_seconds(run: Run) -> dict[str, float]:
    """Return stage -> seconds of the workspace's latest training; empty without a report."""
    from rc1_lib.workspace.artifacts import read_json

    try:
        return {str(stage): float(took) for stage, took in read_json(run.workspace.path(_REPORT))["seconds"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _profile_step(session: Session, run: Run, seed: int) -> int:
    from rc1_lib.training.ppo_run import prepare
    from rc1_lib.training.step_profile import REPORT, TRACE, profile_step

    quieten_models(run)
    with holding(run.workspace, "a profiled step of training"), stages():
        found = profile_step(prepare(run), seed)
    session.show(_parts_table(found))
    session.show(f"trace: {run.workspace.path(TRACE)}")
    words, report = "timed two steps; no checkpoint was kept", run.workspace.path(REPORT)
    return end(session, Ending("done", words, report=report), {"exit_code": 0, "profile": found})


def _parts_table(found: dict[str, Any]) -> Table:
    count = len(found["processes"])
    within = f"{found['seconds']:.2f} s in {count} process{'es' if count > 1 else ''}"
    title = f"a step of {found['episodes']} episodes: {within}"
    numbers = (*(f"s, process {rank + 1}" for rank in range(count)), "share")
    rows = []
    for part in found["parts"]:
        took = [process["seconds"][part] for process in found["processes"]]
        rows.append((part, *(f"{one:.2f}" for one in took), f"{took[0] / found['seconds']:.0%}"))
    return tables.table(title, ("part", *numbers), rows, numbers)


def _control(session: Session, run: Run, kind: ControlKind, seeds: list[int], verbose: bool) -> int:
    pattern = f"reports/control_{kind}.json"
    before = stamps(run, pattern)
    quieten_models(run)
    outcome = run_flow_of(session, run, "train", verbose=verbose, seeds=seeds, control=kind)
    report = written_since(run, before, pattern).get(pattern)
    if report:
        session.show(*tables.verdict("control", report["gate"]), *tables.notes(report, pattern))
    session.show(outcome.message)
    what = f"control with an uninformative reward ({kind})"
    if report:
        ending = judged(what, [report["gate"]], run.workspace.path(pattern))
    else:
        ending = Ending("fail" if outcome.exit_code else "pass", f"{what}: {outcome.message}")
    return end_flow(session, outcome, {"control": report}, ending)


def _show_evaluation(session: Session, run: Run, path: str, report: dict[str, Any]) -> None:
    from rc1_lib.evaluation.tables import figures_rows, groups_rows, needed_rows, proxy_rows

    if report["proxy"] is not None:
        session.show(tables.of_rows(proxy_rows(report)))
    shown = (figures_rows, needed_rows, groups_rows)
    session.show(*(tables.of_rows(rows_of(report, "sampled")) for rows_of in shown))
    session.show(*tables.verdict("evaluation", report["gate"]), *tables.notes(report, path))
    session.show(*(f"picture, {title}: {run.workspace.path(file)}" for title, file in report["plots"].items()))
    if "examples" in report:
        session.show(f"dialogues to read: {run.workspace.path(report['examples'])}")
    if "dialogues" in report:
        session.show(f"all dialogues: {run.workspace.path(report['dialogues'])}")
    session.show(f"evaluation: {run.workspace.path(path)}")


def _training_tables(report: dict[str, Any]) -> list[Table]:
    """Return a table of the checkpoints, and one of each stage's seconds."""
    heads = ("seed", "checkpoint", "SHA-256 of its manifest", "segments", "cached")
    runs = [
        (one["seed"], one["checkpoint"], one["sha256"][:16], len(one["segments"]), one["cached"])
        for one in report["runs"]
    ]
    seconds = [(stage, f"{took:.1f}") for stage, took in report["seconds"].items()]
    whole = ("all", f"{sum(report['seconds'].values()):.1f}")
    return [
        tables.table("checkpoints", heads, runs, heads[-2:]),
        tables.table("time", ("stage", "seconds"), [*seconds, None, whole], ("seconds",)),
    ]


def _train_small(session: Session, path: Path, resume_from: str | None, start_over: bool) -> int:
    from rc1_lib.training.train_arguments import check_kept
    from rc1_lib.training.train_local import train_small
    from rc1_lib.workspace.artifacts import Workspace

    check_kept(resume_from, start_over)
    with stages():
        done = train_small(
            path, session.workspace, resume_from, session.options.settings, session.show, start_over=start_over
        )
    root = root_of(session.options)
    stopped = f", stopped: {done.stop_reason}" if done.stop_reason else ""
    session.show(
        f"checkpoint: {done.checkpoint}" if done.checkpoint else "no checkpoint, because no callback writes one"
    )
    checkpoint = Workspace(root).name(done.checkpoint) if done.checkpoint else None
    words = f"step {done.step}{stopped}; a trial of the training code, not a checkpoint of RC1"
    document = {"exit_code": 0, "step": done.step, "stopped": done.stop_reason, "checkpoint": checkpoint}
    return end(session, Ending("done", words), document)


def evaluate(
    session: Session,
    what: Annotated[
        str, typer.Argument(help="torch: a checkpoint (latest, a step, a path). gguf: a .gguf file.")
    ] = "latest",
    engine: Annotated[
        Literal["torch", "gguf"],
        typer.Option(help="What runs it: torch, the run's own engine, or gguf, llama.cpp (extra `gguf`)."),
    ] = "torch",
    prompts: Annotated[
        int | None, typer.Option(min=1, help="Play N held-out prompts, of all tasks. Default: all.")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Play baselines instead, which need no RL (never asking, always, by a rule on words, a base that is "
            "shown two dialogues), and compare the trained policy with each.",
        ),
    ] = False,
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen",
            help="Play other held-out prompts instead, which no evaluation has asked, with the initial and the trained "
            "policies: is the gain also there where no setting was chosen by looking?",
        ),
    ] = False,
) -> int:
    """Play the held-out prompts again with a trained policy, and compare with its recorded evaluation.

    No gate reads the report (reports/offline_ENGINE_KEY.json, baselines_KEY.json, unseen_KEY.json).
    """
    if baselines and unseen:
        raise ConfigError("found --baselines with --unseen, expected one of them")
    if (baselines or unseen) and engine == "gguf":
        flag = "--baselines" if baselines else "--unseen"
        raise ConfigError(f"found {flag} with --engine gguf, expected torch: the training's own sampler plays there")
    if engine == "gguf" and not what.endswith(".gguf"):
        raise ConfigError(f"found '{what}', expected the path of a .gguf file; rc1 ckpt export --gguf writes one")
    if unseen and what != "latest":
        raise ConfigError(
            f"found '{what}' with --unseen, expected none: it plays the policies of the recorded evaluation"
        )
    run = session.open(remembered=True)
    if unseen:
        quieten_models(run)
        return _unseen(session, run, prompts)
    named = run.workspace.path(what) if engine == "gguf" else found_checkpoint(session, what)
    quieten_models(run)
    from rc1_lib.evaluation.offline import by_llama_cpp, by_torch, evaluate_offline
    from rc1_lib.preflight.carried_ticket import check_still_vouched

    if baselines:
        return _baselines(session, run, named, prompts)
    with stages():
        contestant = by_llama_cpp(run, named) if engine == "gguf" else by_torch(run, named)
        check_still_vouched(run, named, contestant.checkpoint)
        path, body = evaluate_offline(run, contestant, prompts)
    from rc1_lib.evaluation.tables import success_rows

    session.show(*(tables.of_rows(success_rows(body, mode)) for mode in body["modes"]))
    session.show(f"recorded: {run.workspace.path(body['recorded']['path'])}")
    ending = Ending("done", f"{what} evaluated again, by {engine}", report=run.workspace.path(path))
    return end(session, ending, {**body, "report": path})


def _baselines(session: Session, run: Run, checkpoint: Path, prompts: int | None) -> int:
    from rc1_lib.evaluation.baselines import evaluate_baselines
    from rc1_lib.evaluation.tables import baseline_rows
    from rc1_lib.preflight.carried_ticket import check_still_vouched
    from rc1_lib.training.checkpoint.manifest import fingerprint

    with stages():
        check_still_vouched(run, checkpoint, fingerprint(checkpoint))
        path, body = evaluate_baselines(run, checkpoint, prompts)
    session.show(tables.of_rows(baseline_rows(body)))
    session.show(*(f"not played: {name}: {why}" for name, why in body["not_played"].items()))
    session.show(f"all dialogues: {run.workspace.path(body['dialogues'])}")
    ending = Ending("done", f"{len(body['baselines'])} baselines evaluated", report=run.workspace.path(path))
    return end(session, ending, {**body, "report": path})


def _unseen(session: Session, run: Run, prompts: int | None) -> int:
    from rc1_lib.evaluation.tables import figures_rows, needed_rows
    from rc1_lib.evaluation.unseen import evaluate_unseen, recorded_policies
    from rc1_lib.preflight.carried_ticket import check_still_vouched

    with stages():
        policies = recorded_policies(run)
        for checkpoint, sha256 in policies.values():
            check_still_vouched(run, checkpoint, sha256)
        path, body = evaluate_unseen(run, policies, prompts)
    session.show(tables.of_rows(figures_rows(body, "sampled")), tables.of_rows(needed_rows(body, "sampled")))
    session.show(f"all dialogues: {run.workspace.path(body['dialogues'])}")
    if looks := body["earlier_looks"]:
        session.show(
            f"{looks} other policies were looked at on such prompts; settings changed since were chosen on them"
        )
    words = f"{next(iter(body['prompts'].values()))['all']:,} prompts that no evaluation of this workspace has asked"
    return end(session, Ending("done", words, report=run.workspace.path(path)), {**body, "report": path})
