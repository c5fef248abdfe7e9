"""`judge-agreement` and `label`: how people label dialogues, and how far the judge agrees with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from rc1_lib.cli.endings import Ending, end, flagged, then
from rc1_lib.cli.reward_tables import calibration_table
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.tables import table
from rc1_lib.cli.verdicts import show_step
from rc1_lib.errors import ConfigError, RC1Error

if TYPE_CHECKING:
    from rc1_lib.labels.asking import Unlabelled
    from rc1_lib.labels.label_file import LabelFile
    from rc1_lib.run import Run

_FORMS = "JSONL, CSV or TSV file of dialogues, or of their scores by dimension, each with a person's label"
LabelKey = Annotated[
    str, typer.Option("--label", help="Key or column of a person's verdict or overall score.", metavar="KEY")
]
GroupKey = Annotated[
    str, typer.Option("--group", help="Key or column that is the same for rows that belong together.", metavar="KEY")
]
BucketKey = Annotated[
    str, typer.Option("--bucket", help="Key or column of the part that a row belongs to.", metavar="KEY")
]
Dimensions = Annotated[
    str | None,
    typer.Option(
        help='Keys or columns of scores from 0 to 1, "a,b". Default: the object dimensions, columns dimensions.NAME.'
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option("--scale", help="Worst and best score of the labels, LOW:HIGH (judge.labels.scale). Default: 0:1."),
]


def judge_agreement(
    session: Session,
    labels: Annotated[Path | None, typer.Option(help=f"{_FORMS} (judge.labels.path).")] = None,
    among: Annotated[
        Path | None,
        typer.Option(help="File of dialogues of which to estimate the share of good ones. Default: the labelled file."),
    ] = None,
    label: LabelKey = "label",
    group: GroupKey = "group",
    bucket: BucketKey = "bucket",
    dimensions: Dimensions = None,
    scale: ScaleOption = None,
) -> int:
    """Compare the judge with people's labels: kappa, agreement and rank correlation, with intervals."""
    given, other = session.given(labels), session.given(among)
    run = session.open()
    from rc1_lib.calibration.judge_agreement import judge_agreement as compare

    keys = {"label": label, "group": group, "bucket": bucket}
    file = read(run, given, keys, dimensions, scale)
    target = None if other is None else read(run, other, keys, dimensions, scale, needed=False)
    with stages():
        outcome = compare(run, file, target)
    session.show(*agreement_tables(outcome.body))
    changed = {f"--{name}": key for name, key in keys.items() if key != name}
    files = {"--labels": labels, "--among": among, "--dimensions": dimensions, "--scale": scale}
    return show_step(session, run, outcome, "judge-agreement", *flagged({**files, **changed}))


def calibrate_on_labels(
    session: Session, run: Run, path: str | None, keys: Mapping[str, str], dimensions: str | None, scale: str | None
) -> int:
    """Run `weight-calib --labels`: fit weights to people's labels and report them, without writing them."""
    from rc1_lib.calibration.weight_calib import label_calib

    file = read(run, path, keys, dimensions, scale)
    with stages():
        outcome = label_calib(run, file)
    session.show(*calibration_table(outcome.body))
    session.show(
        f"{outcome.body['labels']['dialogues']} dialogues in {outcome.body['labels']['groups']} groups; the weights "
        f"are in the report, and the current weights are unchanged"
    )
    return show_step(session, run, outcome, following=("judge-agreement",))


def label(
    session: Session,
    rows: Annotated[
        Path | None,
        typer.Option("--in", help="Dialogues to label, JSONL, CSV or TSV. Default: the shadow set."),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Labels wanted in total (gates.judge_agreement.min_labels).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the labels to this file (judge.labels.path).")] = None,
    annotator: Annotated[str, typer.Option(help="Who labels; each annotator sees every dialogue once.")] = "me",
    seed: Annotated[int | None, typer.Option(help="Seed of the order (shadow.seed).")] = None,
    group: GroupKey = "group",
    bucket: BucketKey = "bucket",
) -> int:
    """Label dialogues in the terminal with one key each, without seeing the judge's scores; run again to continue."""
    given, target = session.given(rows), session.inside("--out", out)
    run = session.open({"shadow.seed": seed, "judge.labels.path": target})
    from filelock import FileLock, Timeout

    from rc1_lib.labels.asking import Labels, ask, drawn, keyboard

    path = run.workspace.path(run.config.judge.labels.path)
    if path.suffix != ".jsonl":
        raise ConfigError(f"--out {path}: expected a .jsonl file to write labels to")
    wanted = n or run.config.gates.judge_agreement.min_labels
    dialogues = drawn(_shadow(run) if given is None else _given(run, given, group, bucket), run.config.shadow.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{path}.lock", blocking=False), keyboard(sys.stdin) as keys:
            labels = Labels(path, annotator)
            labels.load()
            done = ask(dialogues, labels, wanted, keys, session.show)
            left = sum(not labels.holds(name) for name in dialogues)
    except Timeout:
        raise RC1Error(f"{path}: another rc1 label is writing it; stop that one, or name another file: --out") from None
    session.show(f"\nlabels: {path}")
    following = _next_step(session, wanted - done, left)
    return end(session, Ending("done", f"{done} labelled by {annotator}", following=following), None)


def _next_step(session: Session, wanted: int, left: int) -> str:
    if wanted <= 0:
        return then(session, "judge-agreement")
    if left <= 0:
        return f"next: label others with --in; all dialogues here are labelled, and {wanted} more labels are needed"
    return f"next, {wanted} to go: run this command again"


def read(
    run: Run,
    path: str | None,
    keys: Mapping[str, str],
    dimensions: str | None,
    scale: str | None,
    *,
    needed: bool = True,
) -> LabelFile:
    """Read the labels file that a command names, or else the run's own."""
    from rc1_lib.labels.label_file import Keys, read_labels
    from rc1_lib.labels.records import read_scale

    source = run.workspace.path(path or run.config.judge.labels.path)
    if path is None and not source.exists():
        raise RC1Error(f"{source}: there are no labels yet; run rc1 label, or name a file with --labels")
    names = tuple(part.strip() for part in (dimensions or "").split(",") if part.strip())
    if len(set(names)) < len(names):
        raise ConfigError(f"--dimensions {dimensions}: has a name twice; name each dimension once")
    return read_labels(
        source, Keys(**keys, dimensions=names), read_scale("--scale", scale) or run.config.judge.labels.scale,
        needed=needed,
    )  # fmt: skip


def agreement_tables(report: Mapping[str, Any]) -> list[Table]:
    """Return two tables: judge and people by score and bucket, and the corrected share of good dialogues."""
    lines = [
        (
            line["score"] if line["bucket"] is None else f"  in {line['bucket']}",
            line["labels"],
            f"{_number(found['people']['value'])} / {_number(found['judge']['value'])}",
            _number(found["agreement"]["value"]),
            *(
                f"{_number(found[name]['value'])} [{_number(found[name]['low'])}, {_number(found[name]['high'])}]"
                for name in ("kappa", "rank correlation")
            ),
        )
        for line in report["agreement"]
        for found in (line["figures"],)
    ]
    heads = ("score", "labels", "people / judge", "same", "kappa", "rank correlation")
    dialogues, by = report["labels"]["dialogues"], report["judged_by"]["score"]
    scores = table(f"the judge and people, {dialogues} dialogues; judged is the {by}", heads, lines, heads[1:])
    scores.caption = "people / judge: share of good dialogues, or the mean score; same: raw agreement"
    cut = report["matched_cut"]
    good = [
        *((name, _number(one["value"]), f"{_number(one['low'])} to {_number(one['high'])}")
          for name, one in report["share_good"].items()),
        ("cut that matches people's share", _number(cut["cut"]), ""),
        ("kappa at that cut, held out", _number(cut["kappa_on_held_out"]), ""),
        ("people among themselves (alpha)", _number(report["people_among_themselves"]), ""),
    ]  # fmt: skip
    numbers = ("value", "interval")
    return [scores, table("the share of good dialogues", ("", *numbers), good, numbers)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _shadow(run: Run) -> list[Unlabelled]:
    from rc1_lib.difficulty.features import measure
    from rc1_lib.labels.asking import Unlabelled
    from rc1_lib.pool.checked_rows import rows_of
    from rc1_lib.pool.derived import SHADOW
    from rc1_lib.reward.chat import dialogue_of

    rows = rows_of(run, SHADOW)
    buckets = measure(rows, run.config.difficulty)["bucket"]
    parts = zip(rows["messages"].to_list(), rows["source_id"], buckets, strict=True)
    return [Unlabelled(dialogue_of([], messages, "a row"), group, bucket) for messages, group, bucket in parts]


def _given(run: Run, path: str, group: str, bucket: str) -> list[Unlabelled]:
    from rc1_lib.labels.asking import Unlabelled

    file = read(run, path, {"group": group, "bucket": bucket}, None, None, needed=False)
    if not file.messages:
        raise RC1Error(f"{path}: has no dialogues; expected rows with 'messages' or 'prompt'")
    return [
        Unlabelled(file.messages[row["dialogue"]], None if row["group"] == row["dialogue"] else row["group"],
                   row["bucket"])
        for row in file.rows.iter_rows(named=True)
    ]  # fmt: skip
