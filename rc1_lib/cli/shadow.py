"""`shadow-run`: the shadow set, and the comparison of the old score with the new reward on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rc1_lib.cli import tables
from rc1_lib.cli.following import again, then
from rc1_lib.cli.options import Rebuild, overrides
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages
from rc1_lib.errors import ConfigError, RowError

if TYPE_CHECKING:
    from rc1_lib.run import Run


def shadow_run(
    session: Session,
    n: Annotated[int | None, typer.Option(help="Rows of the shadow set (shadow.n).")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draw (shadow.seed).")] = None,
    stratify: Annotated[
        bool | None, typer.Option("--stratify/--no-stratify", help="Draw in the shares of the mix (shadow.stratify).")
    ] = None,
    materialize: Annotated[
        Path | None,
        typer.Option(help="Write the shadow set to this file below the workspace; compare only if --tag is given too."),
    ] = None,
    dump_manifest: Annotated[
        Path | None, typer.Option(help="Write which question stands in which row to this file.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Name of the comparison: reports/shadow_run_TAG.json. Default: manual.")
    ] = None,
    rebuild: Rebuild = False,
) -> int:
    """Compare the baseline reward with the calibrated one on held-out dialogues, the shadow set."""
    copy = session.report("--dump-manifest", dump_manifest, ("stratified", "strata", "rows"))
    run = session.open(
        overrides(
            {
                "shadow.path": session.inside("--materialize", materialize),
                "shadow.n": n,
                "shadow.seed": seed,
                "shadow.stratify": stratify,
            }
        )
    )
    compares = tag is not None or materialize is None
    label = "manual" if tag is None else tag
    document: dict[str, Any] = {}
    if compares:
        from rc1_lib.calibration.judged_rows import dimensions
        from rc1_lib.calibration.shadow_run import OF_THE_FLOW, report_path
        from rc1_lib.calibration.weights_file import read_weights

        report_path(label)
        if label in OF_THE_FLOW:
            raise ConfigError(f"--tag {label}: rc1 calibrate gives this tag to a report of its own; take another")
        read_weights(run, dimensions(run))  # before anything is written or paid for
    document |= _materialise(session, run, copy, rebuild, in_place=materialize is None)
    if not compares:
        session.document(document)
        return 0
    return _compare(session, run, label, document)


def _materialise(session: Session, run: Run, copy: str | None, rebuild: bool, in_place: bool) -> dict[str, Any]:
    from rc1_lib.pool.derived import SAMPLE_MANIFEST, SHADOW
    from rc1_lib.pool.seed import build_seed
    from rc1_lib.workspace.artifacts import read_json, write_json

    path = run.config.shadow.path
    with session.progress("writing the shadow set"):
        if in_place and not rebuild and SHADOW.state(run).value == "stale":
            raise RowError(
                f"{run.workspace.path(path)}: was made with other settings or code, and the gates read it; give "
                f"--materialize PATH to write another shadow set next to it, or --rebuild to write this one again"
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


def _compare(session: Session, run: Run, tag: str, document: dict[str, Any]) -> int:
    from rc1_lib.calibration.shadow_run import shadow_run as compare
    from rc1_lib.cli.reward_tables import shadow_table, split_table
    from rc1_lib.cli.verdicts import show_step

    with stages():
        outcome = compare(run, tag)
    session.show(shadow_table(outcome.body), split_table(outcome.body))
    return show_step(
        session, run, outcome, document,
        after_pass=then(session, "preflight"), after_fail=again(session, "shadow-run", "--tag", tag),
    )  # fmt: skip
