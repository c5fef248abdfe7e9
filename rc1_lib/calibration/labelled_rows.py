"""Labelled dialogues with everything that they are compared by: the judge's scores, or those that the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.weights_file import WEIGHTS, read_weights
from rc1_lib.errors import RC1Error
from rc1_lib.labels.label_file import SCORED, LabelFile
from rc1_lib.records import Message
from rc1_lib.reward.rank_agreement import without_rounding_noise
from rc1_lib.reward.rated import messages_column
from rc1_lib.reward.rules import add_rules
from rc1_lib.reward.terms import add_main
from rc1_lib.run import Run
from rc1_lib.scoring import rubric
from rc1_lib.scoring.identity import judge_identity, read_spec
from rc1_lib.scoring.judge import check_judge, open_judge, open_store

MEAN, OLD, CALIBRATED = "mean of dimensions", "old score", "calibrated score"
"""The overall scores that dimensions come to."""


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The rows of a file of labels, scored.

    Attributes:
        frame: the file's rows, each dimension under its own name (null where unscored), the overall scores, `scored`,
            `unstable`, `share` (what a row counts, so that each dialogue counts once), and `this_judge`: whether the
            scores are those of the judge that is configured.
        names: the dimensions.
        overall: overall scores by name -> the weights that they are made with; the last one is judged.
        levels: that labels are put on.
        judge: who judged.
        models: the model versions that answered.
        test_double: whether RC1's own test double had a part in it.
        effort: calls, replays and cost.
    """

    frame: pl.DataFrame
    names: tuple[str, ...]
    overall: Mapping[str, Mapping[str, float]]
    levels: tuple[float, ...]
    judge: Mapping[str, str]
    models: tuple[str, ...]
    test_double: bool
    effort: Mapping[str, float]

    @property
    def judged_by(self) -> str:
        """The overall score that the verdict is about."""
        return list(self.overall)[-1]

    def labelled(self) -> pl.DataFrame:
        """The rows that hold a label."""
        return self.frame.filter(pl.col("label").is_not_null())

    def summary(self) -> dict[str, Any]:
        """For a report: who judged, and what is unscored."""
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
    """The rows of a file of labels with scores.

    Scores that the file holds are taken as they are; without any, the judge of the run is asked.

    Args:
        run: whose judge, weights and rules.
        file: the labels.
        judge_again: whether the judge is asked wherever a dialogue is there, whatever scores the file claims.

    Raises:
        RC1Error: when the judge cannot be asked or stopped early; what was paid for is kept.
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
    """Each dialogue's scores by judge and rules, and what asking for them took."""
    check_judge(run)
    with open_store(run) as store:
        judged = open_judge(run, store).score(dialogues)
    if judged.stopped:
        raise RC1Error(f"the judge '{run.config.judge.provider}' stopped: {judged.stopped}. What was paid for is kept")
    graded = list(read_spec(run).dimensions)
    rows = judged.rows.select("scored", "unstable", *graded).with_columns(messages_column(dialogues))
    effort = {
        "models": tuple(judged.rows["models"].explode().drop_nulls().unique().sort()),
        "test_double": judged.test_double,
        "effort": {"calls": float(judged.calls), "usd": judged.usd},
    }
    return add_rules(rows, run.config.reward.rules).drop("messages"), effort


def _as_scored(run: Run, file: LabelFile, *, strict: bool) -> LabelledRows:
    """The scores that the file holds. Whose they are it may say; a row that names nobody speaks of the file's own."""
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
    """The model version that answers today, as far as it is known; empty where it is not."""
    path = run.workspace.path(run.config.judge.store.path)
    if run.config.judge.provider != rubric.NAME and not path.is_file():
        return ""
    with open_store(run) as store:
        judge = open_judge(run, store)
        if run.config.judge.provider == rubric.NAME:
            return judge.model_asked
        seen = store.model_of(judge.endpoint)
    return "" if seen is None else seen[0]


def _overall(run: Run, names: Sequence[str], *, of_the_judge: bool) -> dict[str, Mapping[str, float]]:
    """What the dimensions can be put together to: their mean where they are not the judge's, else the reward's sums."""
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
    """With the overall scores, what each row counts, and no unlabelled row of a dialogue that has a label."""
    labelled = pl.col("label").is_not_null()
    kept = frame.filter(labelled | ~labelled.any().over("dialogue"))
    full = kept.with_columns(share=1.0 / pl.len().over("dialogue"), scored=pl.col("scored").fill_null(False))
    for name, weights in overall.items():
        sums = without_rounding_noise(add_main(full, weights)["main"].fill_null(float("nan")).to_numpy())
        full = full.with_columns(pl.Series(name, sums).fill_nan(None))
    return full
