"""The dialogues of a file to be scored, every line checked before the first is asked about; and what a scoring leaves.

That is its scores, its unstable samples, and a summary that says what they are.

The list of unstable dialogues is kept up by whatever judges rows: of the dialogues that were judged now it holds those
that are unstable now; what an earlier asking of this very judge found of others stays, also of those that were asked
about and are unscored; what another judge said goes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from rc1_lib.checks import defined
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.judge import Judge
from rc1_lib.judge.noise import OVERALL, pooled
from rc1_lib.judge.prompt import judge_identity, misfit
from rc1_lib.judge.providers import model_asked
from rc1_lib.judge.results import Judged
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace, atomic_write, now, write_json
from rc1_lib.workspace.input_files import open_text

SCORES = "reports/rc1/scores.jsonl"
_SHOWN = 10
"""Damaged lines that are reported one by one; the others are counted."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialogue of a file.

    Attributes:
        line: its number, from 1.
        id: that of its row; `line N` where the row has none.
        messages: in chat format.
    """

    line: int
    id: str
    messages: list[Message]


def read_dialogues(path: Path, first: int | None = None) -> list[Dialogue]:
    """Read the dialogues of a file of JSON objects, one a line, each with its `messages`; other keys mean nothing here.

    Args:
        path: rows of the pool or the shadow set, or bare `{"messages": [...]}`. Empty lines are passed over.
        first: how many dialogues are wanted; what follows them is not read. Default: all.

    Raises:
        RowError: when there is no such file, or lines of it hold no dialogue, naming each.
    """
    found: list[Dialogue] = []
    damaged: list[str] = []
    try:
        with open_text(path) as stream:
            for number, text in enumerate(stream, 1):
                if first is not None and len(found) + len(damaged) >= first:
                    break
                if not text.strip():
                    continue
                row, fault = _read(text)
                if fault:
                    damaged.append(f"line {number}: {fault}")
                else:
                    name = row.get("id")
                    found.append(Dialogue(number, f"line {number}" if name is None else str(name), row["messages"]))
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); expected a JSONL file of dialogues") from None
    if damaged:
        more = f"; and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        raise RowError(
            f"{path}: {'; '.join(damaged[:_SHOWN])}{more}. Nothing was asked: correct the file and run again"
        )
    if not found:
        raise RowError(f'{path}: holds no dialogue, expected one JSON object a line with its "messages"')
    return found


def _read(text: bytes) -> tuple[dict[str, Any], str]:
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, f"is not JSON ({error.msg}, column {error.colno})"
    if not isinstance(row, dict):
        return {}, f"is a JSON {type(row).__name__}, expected an object"
    if "messages" not in row:
        return {}, "has no 'messages'"
    return row, misfit(row["messages"])


def summary_path(out: str) -> str:
    """Where the summary of the scores in `out` lies: next to them."""
    return Path(out).with_suffix(".summary.json").as_posix()


def write_scores(run: Run, judge: Judge, dialogues: Sequence[Dialogue], judged: Judged, out: str) -> dict[str, Any]:
    """Write scores, unstable samples and summary, and return the summary.

    Scores that may not be relied on (coverage below `gates.shared.min_coverage`, or a run that ended early) are
    written all the same, each row and the summary with `complete: false`.

    Args:
        run: names the workspace and the thresholds.
        judge: who scored.
        dialogues: what was scored, in the order in which `judged` has it.
        judged: what came of it.
        out: the scores' file, relative to the workspace.
    """
    incomplete = _refusal(judged, run.config.gates.shared.min_coverage)
    rows = _rows(dialogues, judged, tuple(judge.spec.dimensions), not incomplete)
    unstable = keep_unstable(run.workspace, [dialogue.id for dialogue in dialogues], judged, judge_identity(run))
    _write_lines(run.workspace.path(out), rows)
    summary = {
        "time": now(),
        "complete": not incomplete,
        "incomplete": incomplete,
        "test_double": judged.test_double,
        "scores": out,
        "unstable_samples": UNSTABLE if unstable else None,
        "run_id": judged.run_id,
        "provider": judge.config.provider,
        "model_asked": model_asked(judge.config),
        "models": sorted({model for row in rows for model in row["models"]}),
        "spec": judge.spec.spec,
        "spec_sha256": judge.spec.sha256,
        "samples": judge.config.samples,
        "dialogues": len(rows),
        "scored": int(judged.rows["scored"].sum()),
        "coverage": judged.coverage,
        "reasons": [{"reason": reason, "dialogues": count} for reason, count in judged.reasons],
        "unstable": int(judged.rows["unstable"].sum()),
        "straddling": sum(bool(row["straddles"]) for row in rows),
        "calls": judged.calls,
        "replayed": int((judged.replies["outcome"] == AttemptOutcome.HIT).sum()),
        "usd": known_usd(judge.config, judged.usd, judged.calls),
        "confidence": judge.confidence,
        "dimensions": _dimensions(judged, tuple(judge.spec.dimensions), judge.confidence),
    }
    write_json(run.workspace.path(summary_path(out)), summary)
    return summary


def _refusal(judged: Judged, min_coverage: float) -> str:
    try:
        judged.require(min_coverage)
    except RC1Error as error:
        return str(error)
    return ""


def _rows(
    dialogues: Sequence[Dialogue], judged: Judged, dimensions: Sequence[str], complete: bool
) -> list[dict[str, Any]]:
    return [
        {
            "id": dialogue.id,
            "line": dialogue.line,
            "dialogue": row["dialogue"],
            "complete": complete,
            "scored": row["scored"],
            "reason": row["reason"],
            "samples": row["samples"],
            "replayed": row["replayed"],
            "models": row["models"],
            "unstable": row["unstable"],
            "straddles": row["straddles"],
            "medians": {name: row[name] for name in dimensions},
            "variances": {name: row[f"{name}_variance"] for name in dimensions},
        }
        for dialogue, row in zip(dialogues, judged.rows.iter_rows(named=True), strict=True)
    ]


def _dimensions(judged: Judged, dimensions: Sequence[str], confidence: float) -> dict[str, dict[str, Any]]:
    """By dimension, and over all of them: mean of the medians, and the standard deviation between samples."""
    scored = judged.rows.filter("scored")
    own = judged.replies.filter(pl.col("dialogue").is_in(scored["dialogue"].unique().implode()))
    long = own.unpivot(dimensions, index=["dialogue", "sample"], variable_name="dimension", value_name="score")
    noises = {noise.dimension: noise for noise in pooled(long, confidence)}
    means: dict[str, Any] = {name: scored[name].mean() for name in dimensions}
    means[OVERALL] = math.fsum(means.values()) / len(means) if scored.height else None
    return {
        name: {
            "mean_of_medians": mean,
            "scored": scored.height,
            "sd": defined(noises[name].sd) if name in noises else None,
            "sd_low": defined(noises[name].low) if name in noises else None,
            "sd_high": defined(noises[name].high) if name in noises else None,
            "df": noises[name].df if name in noises else 0,
        }
        for name, mean in means.items()
    }


def _write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line; without any, remove an earlier file, which would be taken for today's."""
    lines = [orjson.dumps(record) + b"\n" for record in records]
    if not lines:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as stream:
        stream.writelines(lines)


UNSTABLE = "reports/rc1/unstable_samples.jsonl"


def keep_unstable(
    workspace: Workspace, ids: Sequence[str], judged: Judged, judge: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Bring the list up to date; where it would be empty there is no file.

    Args:
        workspace: where it lies.
        ids: of the dialogues, in the order in which `judged` has them; equal dialogues may have several.
        judged: what came of them.
        judge: who judged (`rc1_lib.judge.prompt.judge_identity`).

    Returns:
        The lines about these dialogues.
    """
    named: dict[str, list[str]] = defaultdict(list)
    for one, dialogue in zip(ids, judged.rows["dialogue"].to_list(), strict=True):
        named[dialogue].append(one)
    ours = [{"ids": named[row["dialogue"]], "judge": dict(judge), **row} for row in judged.unstable()]
    path = workspace.path(UNSTABLE)
    found = set(judged.rows.filter("scored")["dialogue"])
    lines = [*_others(path.read_bytes() if path.is_file() else b"", judge, found), *map(orjson.dumps, ours)]
    if not lines:
        path.unlink(missing_ok=True)
        return ours
    with atomic_write(path) as stream:
        stream.writelines(line + b"\n" for line in lines)
    return ours


def _others(there: bytes, judge: Mapping[str, str], judged: Collection[str]) -> list[bytes]:
    """The lines that stay; one that cannot be read says nothing any more."""
    kept = []
    for line in there.splitlines():
        try:
            found = orjson.loads(line)
        except ValueError:
            continue
        of = found.get("dialogue") if isinstance(found, dict) and found.get("judge") == dict(judge) else None
        if isinstance(of, str) and of not in judged:
            kept.append(line)
    return kept
