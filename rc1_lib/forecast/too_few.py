"""Whether a pool clearly has too few rows to train or evaluate on, so that `rc1 train` would fail later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import orjson
import polars as pl

from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.errors import ConfigError, RowError
from rc1_lib.evaluation.evaluate import group_sizes
from rc1_lib.evaluation.gate import GROUPS
from rc1_lib.evaluation.proxy import LEAST_JUDGED
from rc1_lib.records import BUCKETS, MeasuredRow, Row
from rc1_lib.rows.playable import is_playable
from rc1_lib.run import Run
from rc1_lib.training.rows import buckets_and_words, is_kept_back


def shortages(run: Run) -> tuple[str, str]:
    """Report buckets without a row that fits the model, and too few held-out prompts.

    No tokenizer is loaded: a row's words are counted, which are never more than its tokens, so rows that seem to fit
    may still be too long.

    Returns:
        What training will reject, and what the evaluation will lack; each "" if there may be enough.
    """
    train, held_out = _fitting(run)
    empty = (
        f"no {' and no '.join(lacking)} rows are left for {name} within training.max_tokens"
        for name, found in (("training", train), ("the evaluation", held_out))
        if (lacking := [bucket for bucket in BUCKETS if not found[bucket]])
    )
    prompts = min(held_out.total(), run.config.training.held_out.prompts)
    needed = run.config.gates.evaluation.min_prompts
    few = f"at most {prompts:,} prompts are held out, the evaluation needs {needed:,}" if prompts < needed else ""
    return next(empty, ""), few


def check_enough_held_out(run: Run) -> None:
    """Reject an evaluation that is sure to have too few prompts for a verdict, before anything is trained.

    Raises:
        ConfigError: says how many there are, and what to do.
    """
    if few := shortages(run)[1]:
        raise ConfigError(
            f"{few} (gates.evaluation.min_prompts), so it could give no verdict; raise pool.n or training.max_tokens "
            f"and run the preflight again, or train without the evaluation (--no-evaluate)"
        )


def check_groups_held_out(run: Run, held_out: Sequence[MeasuredRow]) -> None:
    """Reject held-out prompts of which a group is too small for a verdict, before anything is trained.

    A judged group counts only if training pays the judge's score.

    Raises:
        ConfigError: names the groups, their numbers and what to do.
    """
    wanted = min(LEAST_JUDGED, run.config.gates.evaluation.min_prompts)
    judged = min(run.config.training.held_out.judged, len(held_out))
    if run.config.pays_judged_score and judged < wanted:
        raise ConfigError(
            f"training pays the judge's score, and {judged} held-out prompts are judged: the evaluation needs {wanted} "
            f"to see a score that rises while success falls, so it could give no verdict; raise "
            f"training.held_out.judged ({run.config.training.held_out.judged}), or train without the evaluation "
            f"(--no-evaluate)"
        )
    asked = [(row["id"], row["task"], row["bucket"], row["needs_clarification"]) for row in held_out]
    frame = pl.DataFrame(asked, schema=["row_id", "task", "bucket", "needs"], orient="row")
    found, needed = frame.select(group_sizes()).row(0, named=True), run.config.gates.evaluation.min_group
    if few := [f"{found[group]} {words}" for group, words in GROUPS.items() if found[group] < needed]:
        raise ConfigError(
            f"{' and '.join(few)} are held out, the evaluation needs {needed} of each (gates.evaluation.min_group), so "
            f"it could give no verdict; raise training.held_out.prompts ({run.config.training.held_out.prompts}) or "
            f"pool.n and run the preflight again; if the data have no more of them, train without the evaluation "
            f"(--no-evaluate)"
        )


def _fitting(run: Run) -> tuple[Counter[str], Counter[str]]:
    """Count by bucket, at most, the rows for training and the held-out rows."""
    training = run.config.training
    every, words = buckets_and_words(run)
    buckets = {name: bucket for name, bucket in every.items() if words[name] <= training.max_tokens}
    train, held_out = Counter[str](), Counter[str]()
    with BALANCED.path(run).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row: Row = orjson.loads(line)
                if row["id"] in buckets and is_playable(row) and row["lang"] in training.languages:
                    (held_out if is_kept_back(row, run.config) else train)[buckets[row["id"]]] += 1
            except (ValueError, KeyError, TypeError) as error:
                raise RowError(
                    f"{BALANCED.path(run)}, line {number}: is no row ({error}); write it again: {BALANCED.command}"
                ) from None
    return train, held_out
