"""Labelled dialogues with scores to compare with: the judge's, or those in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.weights_file import WEIGHTS, read_weights
from rc1_lib.errors import RC1Error
from rc1_lib.judge import rubric
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.judge import check_judge, open_judge, open_store
from rc1_lib.judge.prompt import judge_identity, read_spec
from rc1_lib.judge.providers import endpoint, model_asked
from rc1_lib.labels.label_file import SCORED, LabelFile
from rc1_lib.records import Message
from rc1_lib.reward.rank_agreement import without_rounding_noise
from rc1_lib.reward.rules import add_rules, messages_column
from rc1_lib.reward.terms import add_main
from rc1_lib.run import Run

MEAN, OLD, CALIBRATED = "mean of dimensions", "old score", "calibrated score"
"""The overall scores computed from criteria."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The rows of a file of labels, scored.

    Attributes:
        frame: the file's rows, each criterion under its own name (null if it has no score), the overall scores,
            `scored`, `unstable`, `share` (the weight of a row, so that each dialogue counts once), and `this_judge`:
            whether the scores come from the configured judge.
        names: the criteria.
        overall: overall scores by name -> their weights; the last one is checked.
        levels: the label levels.
        judge: which judge.
        models: the model versions that answered.
        test_double: whether some scores come from RC1's test double.
        effort: calls, replays and cost; None where that is unknown.
    """

    frame: pl.DataFrame
    names: tuple[str, ...]
    overall: Mapping[str, Mapping[str, float]]
    levels: tuple[float, ...]
    judge: Mapping[str, str]
    models: tuple[str, ...]
    test_double: bool
    effort: Mapping[str, float | None]

    @property
    def judged_by(self) -> str:
        """The overall score that is checked."""
        return list(self.overall)[-1]

    def labelled(self) -> pl.DataFrame:
        """Return the rows with a label."""
        return self.frame.filter(pl.col("label").is_not_null())

    def summary(self) -> dict[str, Any]:
        """Summarize for a report: which judge, and which rows have no score."""
        unscored = self.frame.filter(~pl.col("scored"))
        return {
            "judge": dict(self.judge),
            "test_double": self.test_double,
            "models": list(self.models),
            "rows": self.frame.height,
            "unscored": unscored.select("line", "dialogue").to_dicts(),
            **self.effort,
        }


def scored_labels(run: Run, file: LabelFile, *, judge_again: bool = False) -> LabelledRows:
    """Return the rows of a file of labels with scores.

    Scores in the file are used; without any, the run's judge is asked.

    Args:
        run: supplies judge, weights and rules.
        file: the labels.
        judge_again: whether to ask the judge about every dialogue in the file, whatever scores the file has.

    Raises:
        RC1Error: when the judge cannot be asked or stopped early; paid scores are kept.
    """
    whole = bool(file.messages) and file.rows["dialogue"].is_in(list(file.messages)).all()
    if file.dimensions and not (judge_again and whole):
        return _as_scored(run, file, strict=judge_again)
    names = dimensions(run)
    order = list(file.messages)
    scored, effort = _ask(run, [file.messages[name] for name in order])
    frame = file.rows.drop(f"{SCORED}{name}" for name in file.dimensions).join(
        scored.with_columns(dialogue=pl.Series(order)), on="dialogue", how="left", maintain_order="left"
    )
    judged = frame.with_columns(this_judge=pl.lit(True))
    overall = _overall(run, names, of_the_judge=True)
    return LabelledRows(_complete(judged, overall), names, overall, file.levels, judge_identity(run), **effort)


def _ask(run: Run, dialogues: Sequence[Sequence[Message]]) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return each dialogue's scores by judge and rules, with calls and cost."""
    check_judge(run)
    with open_store(run) as store:
        judged = open_judge(run, store).score(dialogues)
    if judged.stopped:
        raise RC1Error(f"the judge '{run.config.judge.provider}' stopped: {judged.stopped}. Paid scores are kept")
    graded = list(read_spec(run).dimensions)
    rows = judged.rows.select("scored", "unstable", *graded).with_columns(messages_column(dialogues))
    effort = {
        "models": tuple(judged.rows["models"].explode().drop_nulls().unique().sort()),
        "test_double": judged.test_double,
        "effort": {"calls": float(judged.calls), "usd": known_usd(run.config.judge, judged.usd, judged.calls)},
    }
    return add_rules(rows, run.config.reward.rules).drop("messages"), effort


def _as_scored(run: Run, file: LabelFile, *, strict: bool) -> LabelledRows:
    """Use the scores in the file, which may name their judge; the others count as scored by the file itself."""
    names = file.dimensions
    said = (pl.col("model").is_not_null() | pl.col("spec_sha256").is_not_null()).fill_null(False)
    todays = (pl.col("model") == _version(run)) & (pl.col("spec_sha256") == read_spec(run).sha256)
    frame = file.rows.rename({f"{SCORED}{name}": name for name in names}).with_columns(
        scored=pl.all_horizontal(pl.col(name).is_not_null() for name in names),
        unstable=pl.lit(False),
        this_judge=todays.fill_null(False) | (~said & (not strict)),
    )
    models = tuple(frame["model"].drop_nulls().unique().sort())
    ours = frame["model"].is_not_null().any()
    overall = _overall(run, names, of_the_judge=False)
    judge = judge_identity(run) if ours else {"provider": "the scores in the file"}
    return LabelledRows(_complete(frame, overall), names, overall, file.levels, judge, models, False, {})


def _version(run: Run) -> str:
    """Return the model version that answers today; empty if unknown."""
    path = run.workspace.path(run.config.judge.store.path)
    if run.config.judge.provider != rubric.NAME and not path.is_file():
        return ""
    with open_store(run) as store:
        judge = open_judge(run, store)
        if run.config.judge.provider == rubric.NAME:
            return model_asked(judge.config)
        seen = store.model_of(endpoint(judge.config))
    return "" if seen is None else seen[0]


def _overall(run: Run, names: Sequence[str], *, of_the_judge: bool) -> dict[str, Mapping[str, float]]:
    """Return the overall scores of the criteria: their mean if they are not the judge's, else the reward's sums."""
    old = run.config.reward.old_weights
    if not of_the_judge and not set(old) <= set(names):
        return {MEAN: {name: 1 / len(names) for name in names}}
    found: dict[str, Mapping[str, float]] = {OLD: old}
    if WEIGHTS.path(run).exists():
        weights = read_weights(run, dimensions(run))
        if {name for name, weight in weights.items() if weight} <= set(names):
            found[CALIBRATED] = {name: weight for name, weight in weights.items() if weight}
    return found


def _complete(frame: pl.DataFrame, overall: Mapping[str, Mapping[str, float]]) -> pl.DataFrame:
    """Add the overall scores and each row's weight, and drop unlabelled rows of labelled dialogues."""
    labelled = pl.col("label").is_not_null()
    kept = frame.filter(labelled | ~labelled.any().over("dialogue"))
    full = kept.with_columns(share=1.0 / pl.len().over("dialogue"), scored=pl.col("scored").fill_null(False))
    for name, weights in overall.items():
        sums = without_rounding_noise(add_main(full, weights)["main"].fill_null(float("nan")).to_numpy())
        full = full.with_columns(pl.Series(name, sums).fill_nan(None))
    return full
