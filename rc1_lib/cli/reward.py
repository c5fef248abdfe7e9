"""`calibrate`, `weight-calib`, `overclar-penalty`, `shadow-run` and `attack-reward`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rc1_lib.check_words import figure
from rc1_lib.cli import tables
from rc1_lib.cli.endings import Ending, again, judged
from rc1_lib.cli.flows import end_flow, run_flow_of, stamps, written_since
from rc1_lib.cli.options import Rebuild, Verbose
from rc1_lib.cli.plan import preflight_cost_agreed
from rc1_lib.cli.preflight import Build, revocation
from rc1_lib.cli.reward_tables import ablation_table, attack_table, calibration_table, shadow_table, split_table
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.verdicts import REPORTS, show_stages, show_step, stages_of
from rc1_lib.errors import ConfigError, RC1Error, RowError

if TYPE_CHECKING:
    import polars as pl

    from rc1_lib.run import Run


def weight_calib(
    session: Session,
    cv: Annotated[int | None, typer.Option(help="Folds, by source question (calibration.cv).")] = None,
    boot: Annotated[int | None, typer.Option(help="Bootstrap samples (calibration.boot).")] = None,
    l2: Annotated[
        float | None, typer.Option(help="Strength of the pull towards the old weights (calibration.l2).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of rows, folds and bootstrap (calibration.seed).")] = None,
    n: Annotated[int | None, typer.Option(help="Rows of the balanced pool to judge (calibration.n).")] = None,
    rebuild: Rebuild = False,
) -> int:
    """Fit the weights of the calibrated reward, and write them if their gate passes."""
    keys = {"cv": cv, "boot": boot, "l2": l2, "seed": seed, "n": n}
    run = session.open({f"calibration.{name}": value for name, value in keys.items()})
    from rc1_lib.calibration.stages import BY_NAME, check_overwriting, evaluate_here, run_stages

    if why := run.config.why_not_judged:
        raise ConfigError(f"there are no weights to fit: {why}; leave out the setting that says so")
    check_overwriting(run, rebuild=rebuild)
    with stages():
        (outcome,) = run_stages(run, evaluate_here, stages=(BY_NAME["calibration"],))
    session.show(*calibration_table(outcome.body))
    rows = outcome.body["rows"]
    if rows["taken"] < rows["asked_for"]:
        session.show(f"{rows['asked_for']} rows were asked for, but the balanced pool has {rows['taken']}")
    place = run.workspace.path(run.config.weights)
    if outcome.passed:
        session.show(f"weights: {place}, written", *_ticket_note(run))
    else:
        session.show(f"weights: {place} was not written; the candidate is in the report")
    further = {"written": run.config.weights if outcome.passed else None}
    return show_step(session, run, outcome, "weight-calib", further=further)


def overclar_penalty(
    session: Session,
    alpha: Annotated[float | None, typer.Option(help="Penalty for one needless question (overclar.alpha).")] = None,
    cap: Annotated[int | None, typer.Option(help="Maximum number of questions penalised (overclar.cap).")] = None,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Compare what the reward selects with and without the penalty.")
    ] = False,
) -> int:
    """Show what needless questions cost dialogues; with --ablation, check that the penalty works."""
    run = session.open({"overclar.alpha": alpha, "overclar.cap": cap})
    if not ablation:
        from rc1_lib.evidence import Evidence
        from rc1_lib.rows.chat import add_counts

        rows = add_counts(Evidence(run).rows("shadow"))
        price, on = run.config.overclar, run.config.use_overclar_penalty
        drawn = _penalties(rows, price.alpha, price.cap)
        cells = [
            (figure(row["needs_clarification"]), row["clarifications"], row["dialogues"], f"{row['penalty']:.2f}")
            for row in drawn
        ]
        numbers = ("questions", "dialogues", "penalty each")
        title = f"penalty {price.alpha:g} * min(c, {price.cap}) where nothing had to be asked"
        session.show(tables.table(title, ("something was missing", *numbers), cells, numbers))
        session.show(*["use_overclar_penalty is false: this penalty is not applied"] * (not on))
        session.document({"alpha": price.alpha, "cap": price.cap, "on": on, "rows": drawn})
        return 0
    from rc1_lib.calibration.overclar_ablation import overclar_ablation

    with stages():
        outcome = overclar_ablation(run)
    session.show(*ablation_table(outcome.body))
    return show_step(session, run, outcome, "overclar-penalty", "--ablation")


def calibrate(session: Session, build: Build = "auto", rebuild: Rebuild = False, verbose: Verbose = False) -> int:
    """Fit the reward's weights in stages, as a flow, and write them if every stage passes.

    The stages are: shadow run, weights, adversarial policies, ablation of the penalty, shadow run again.
    """
    run = session.open()
    from rc1_lib.calibration.stages import REPORT
    from rc1_lib.preflight.preconditions import check_can_calibrate

    check_can_calibrate(run)  # the flow checks this too; here the answer comes before a server has started
    agreed = preflight_cost_agreed(session, run, ())
    before = stamps(run, REPORTS)
    outcome = run_flow_of(
        session, run, "calibrate", verbose=verbose, build="always" if rebuild else build, judge_cost_agreed=agreed
    )
    stages_done = stages_of(written_since(run, before, REPORTS))
    show_stages(session, run, stages_done)
    session.show(outcome.message, *([] if outcome.exit_code else _ticket_note(run)))
    written = None if outcome.exit_code or not run.config.pays_judged_score else run.config.weights
    revoked = revocation(run) if outcome.exit_code else []
    following = again(session, "calibrate") if outcome.exit_code else ""
    ending = judged("calibration", [one["gate"] for one in stages_done], run.workspace.path(REPORT))
    if not stages_done or (ending.verdict == "fail") != bool(outcome.exit_code):
        ending = Ending("fail" if outcome.exit_code else "pass", outcome.message)
    ending = replace(ending, following=following)
    return end_flow(session, outcome, {"stages": stages_done, "written": written}, ending, *revoked)


def _ticket_note(run: Run) -> list[str]:
    """Return a note on what new weights mean for a ticket that has been valid."""
    from rc1_lib.preflight.ticket import read_ticket

    try:
        revoked = read_ticket(run)["revoked"]
    except RC1Error:
        return []
    return [] if revoked else ["the ticket pins the previous weights: rc1 preflight issues another"]


def _penalties(rows: pl.DataFrame, alpha: float, cap: int) -> list[dict[str, Any]]:
    """Count the dialogues by how often they asked, with the penalty of each."""
    import polars as pl

    from rc1_lib.reward.terms import over_clarification_penalty

    counts = rows.group_by("needs_clarification", "clarifications").agg(dialogues=pl.len())
    drawn = list(counts.sort("needs_clarification", "clarifications").iter_rows(named=True))
    for row in drawn:
        asked, needed = row["clarifications"], row["needs_clarification"]
        row["penalty"] = over_clarification_penalty(asked, needed, alpha=alpha, cap=cap)
    return drawn


def shadow_run(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Rows of the shadow set (shadow.n).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw (shadow.seed).")] = None,
    stratify: Annotated[
        bool | None,
        typer.Option("--stratify/--no-stratify", help="Draw tasks in the shares of the mix (shadow.stratify)."),
    ] = None,
    materialize: Annotated[
        Path | None,
        typer.Option(help="Write the shadow set to this file in the workspace; without --tag, compare nothing."),
    ] = None,
    dump_manifest: Annotated[
        Path | None, typer.Option(help="Write to this file which question is in which row.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Name of the comparison: reports/shadow_run_TAG.json. Default: manual.")
    ] = None,
    rebuild: Rebuild = False,
) -> int:
    """Compare the baseline reward with the calibrated one on the held-out dialogues of the shadow set.

    Before a calibration, the new reward weighs like the old score, and the report says so.
    """
    copy = session.report("--dump-manifest", dump_manifest, ("stratified", "strata", "rows"))
    run = session.open(
        {
            "shadow.path": session.inside("--materialize", materialize),
            "shadow.n": n,
            "shadow.seed": seed,
            "shadow.stratify": stratify,
        }
    )
    compares = tag is not None or materialize is None
    label = "manual" if tag is None else tag
    from rc1_lib.calibration.shadow_run import OF_THE_FLOW, report_path
    from rc1_lib.calibration.shadow_run import shadow_run as compare

    if compares:
        from rc1_lib.calibration.judged_rows import dimensions
        from rc1_lib.calibration.weights_file import NoWeightsError, read_weights

        report_path(label)
        if label in OF_THE_FLOW:
            raise ConfigError(f"--tag {label}: rc1 calibrate uses this tag for its own reports; choose another one")
        try:
            weights = read_weights(run, dimensions(run))  # before anything is written or paid for
        except NoWeightsError:
            weights = dict(run.config.reward.old_weights)
            session.show("there are no weights yet: the new reward weighs like the old score (rc1 weight-calib)")
    document = _materialise(session, run, copy, rebuild, in_place=materialize is None)
    if not compares:
        session.document(document)
        return 0
    with stages():
        outcome = compare(run, label, weights)
    session.show(shadow_table(outcome.body), split_table(outcome.body))
    return show_step(session, run, outcome, "shadow-run", "--tag", label, further=document)


def _materialise(session: Session, run: Run, copy: str | None, rebuild: bool, in_place: bool) -> dict[str, Any]:
    from rc1_lib.pool.derived import SAMPLE_MANIFEST, SHADOW
    from rc1_lib.pool.seed import build_seed
    from rc1_lib.workspace.artifacts import read_json, write_json

    path = run.config.shadow.path
    with session.progress("writing the shadow set"):
        if in_place and not rebuild and SHADOW.state(run).value == "stale":
            raise RowError(
                f"{run.workspace.path(path)}: was made with other settings or code, and the gates read it; give "
                f"--materialize PATH to write another shadow set, or --rebuild to overwrite this one"
            )
        due = SHADOW.to_write(run, rebuild)
        if due:
            build_seed(run, ("shadow",))
    sample = read_json(run.workspace.path(SAMPLE_MANIFEST))
    if copy and copy != SAMPLE_MANIFEST:
        write_json(run.workspace.path(copy), sample)
    done = "written" if due else "unchanged"
    session.show(f"{sample['n']} rows, {tables.counts(sample['strata'])}, {run.workspace.path(path)}, {done}")
    session.show(f"    sha256 {sample['sha256']}", f"manifest: {run.workspace.path(copy or SAMPLE_MANIFEST)}")
    return {**sample, "written_now": due}


def attack_reward(
    session: Session,
    prompts: Annotated[
        int | None, typer.Option(help="Prompts that each policy plays (gates.reward_hacking.prompts).")
    ] = None,
) -> int:
    """Play adversarial policies, and check that the reward pays each of them less than an honest one."""
    run = session.open({"gates.reward_hacking.prompts": prompts})
    from rc1_lib.calibration.reward_hacking import attack_reward as attack

    with stages():
        outcome = attack(run)
    paid = outcome.body["dialogues"]
    words = f"{paid['count']} dialogues were paid more than the scripted expert's: {run.workspace.path(paid['path'])}"
    session.show(attack_table(outcome.body), words)
    return show_step(session, run, outcome, "attack-reward")
