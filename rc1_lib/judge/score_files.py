"""Read a file of dialogues to score, checking every line first, and write scores, unstable samples and a summary.

Everything that judges rows updates the list of unstable dialogues. Of the dialogues scored now, the list holds those
that are unstable now. Entries of the same judge about other dialogues stay, including dialogues that were asked about
but not scored. Entries of other judges are removed.
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
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.judge import Judge
from rc1_lib.judge.noise import OVERALL, pooled
from rc1_lib.judge.prompt import judge_identity, misfit
from rc1_lib.judge.providers import model_asked
from rc1_lib.judge.results import Judged
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import Workspace, atomic_write, now, write_json
from rc1_lib.workspace.input_files import open_text

SCORES = "reports/rc1/scores.jsonl"
_SHOWN = 10
"""Damaged lines shown in an error; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One dialogue of a file.

    Attributes:
        line: line number, from 1.
        id: the row's id; `line N` if it has none.
        messages: in chat format.
    """

    line: int
    id: str
    messages: list[Message]


def read_dialogues(path: Path, first: int | None = None) -> list[Dialogue]:
    """Read dialogues from a file with one JSON object per line, each with `messages`; other keys are ignored.

    Args:
        path: rows of the pool or the shadow set, or bare `{"messages": [...]}`. Empty lines are skipped.
        first: read only this many dialogues; default: all.

    Raises:
        RowError: if the file cannot be read, or lines of it hold no dialogue; it names them.
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
        raise RowError(f"{path}: cannot read it ({error.strerror}); expected a JSONL file of dialogues") from None
    if damaged:
        more = f"; and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
        raise RowError(
            f"{path}: {'; '.join(damaged[:_SHOWN])}{more}. Nothing was asked: correct the file and run again"
        )
    if not found:
        raise RowError(f'{path}: has no dialogues; expected one JSON object with "messages" per line')
    return found


def _read(text: bytes) -> tuple[dict[str, Any], str]:
    try:
        row = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, f"not valid JSON ({error.msg}, column {error.colno})"
    if not isinstance(row, dict):
        return {}, f"is a JSON {type(row).__name__}, expected an object"
    if "messages" not in row:
        return {}, "has no 'messages'"
    return row, misfit(row["messages"])


def probe_dialogues() -> list[list[Message]]:
    """Read the shipped small dialogues: English and Chinese, in chat format, all different."""
    file = Path(__file__).with_name("probe_dialogues.yaml")
    found: list[list[Message]] = parse_yaml(file.read_text(encoding="utf-8"))
    return found


def summary_path(out: str) -> str:
    """Return the path of the summary, next to the scores in `out`."""
    return Path(out).with_suffix(".summary.json").as_posix()


def write_scores(run: Run, judge: Judge, dialogues: Sequence[Dialogue], judged: Judged, out: str) -> dict[str, Any]:
    """Write scores, unstable samples and summary, and return the summary.

    Unreliable scores (coverage below `MIN_COVERAGE`, or a run that ended early) are written too, but each
    row and the summary say `complete: false`.

    Args:
        run: gives workspace and thresholds.
        dialogues: the scored dialogues, in the order of `judged`.
        out: path of the scores, relative to the workspace.
    """
    incomplete = _refusal(judged)
    rows = _rows(dialogues, judged, tuple(judge.spec.dimensions), not incomplete)
    unstable = keep_unstable(run.workspace, [dialogue.id for dialogue in dialogues], judged, judge_identity(run))
    _write_lines(run.workspace.path(out), rows)
    summary = {
        "time": now(),
        "complete": not incomplete,
        "incomplete": incomplete,
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
        "confidence": CONFIDENCE,
        "dimensions": _dimensions(judged, tuple(judge.spec.dimensions)),
    }
    write_json(run.workspace.path(summary_path(out)), summary)
    return summary


def _refusal(judged: Judged) -> str:
    try:
        judged.require()
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


def _dimensions(judged: Judged, dimensions: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Compute, per dimension and overall, the mean of the medians and the standard deviation between samples."""
    scored = judged.rows.filter("scored")
    own = judged.replies.filter(pl.col("dialogue").is_in(scored["dialogue"].unique().implode()))
    long = own.unpivot(dimensions, index=["dialogue", "sample"], variable_name="dimension", value_name="score")
    noises = {noise.dimension: noise for noise in pooled(long, CONFIDENCE)}
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
    """Write one JSON object per line; without records, remove the old file, which would pass for the new one."""
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
    """Update the list of unstable dialogues; remove the file if the list is empty.

    Args:
        ids: ids of the dialogues, in the order of `judged`; equal dialogues may have several.
        judge: the judge's identity (`rc1_lib.judge.prompt.judge_identity`).

    Returns:
        The entries about these dialogues.
    """
    ids_of: dict[str, list[str]] = defaultdict(list)
    for row_id, dialogue in zip(ids, judged.rows["dialogue"].to_list(), strict=True):
        ids_of[dialogue].append(row_id)
    ours = [{"ids": ids_of[row["dialogue"]], "judge": dict(judge), **row} for row in judged.unstable()]
    path = workspace.path(UNSTABLE)
    found = set(judged.rows.filter("scored")["dialogue"])
    lines = [*_kept_entries(path.read_bytes() if path.is_file() else b"", judge, found), *map(orjson.dumps, ours)]
    if not lines:
        path.unlink(missing_ok=True)
        return ours
    with atomic_write(path) as stream:
        stream.writelines(line + b"\n" for line in lines)
    return ours


def _kept_entries(content: bytes, judge: Mapping[str, str], judged: Collection[str]) -> list[bytes]:
    """Return the old entries to keep; unreadable ones are dropped."""
    kept = []
    for line in content.splitlines():
        try:
            entry = orjson.loads(line)
        except ValueError:
            continue
        dialogue = entry.get("dialogue") if isinstance(entry, dict) and entry.get("judge") == dict(judge) else None
        if isinstance(dialogue, str) and dialogue not in judged:
            kept.append(line)
    return kept
