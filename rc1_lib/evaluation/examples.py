"""A few dialogues from before and after training, for people to read what got better and what got worse.

They are not hand-picked: of each kind the first ones by row id are shown, alternating between tasks, with the number of
such prompts. All of them are written to a file too, in random order, so that its first thirty are a sample.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.evaluation.episodes import EvaluationError, checked
from rc1_lib.evaluation.paired import paired
from rc1_lib.records import Message

Dialogue = Sequence[Message]
_MOST = 1200
"""Characters of a message that are shown."""

_NEEDS = pl.col("needs")
_KINDS: Mapping[str, pl.Expr] = {
    "Something was missing: unsolved before, solved now": _NEEDS & ~pl.col("solved") & pl.col("solved.after"),
    "Something was missing: still not asked for": _NEEDS & (pl.col("asked.after") == 0),
    "Nothing was missing: asked before, not now": ~_NEEDS & (pl.col("asked") > 0) & (pl.col("asked.after") == 0),
    "Nothing was missing: asks now": ~_NEEDS & (pl.col("asked.after") > 0),
    "Solved before, not now": pl.col("solved") & ~pl.col("solved.after"),
}


def examples_markdown(
    frame: pl.DataFrame,
    dialogues: Mapping[tuple[str, str], Dialogue],
    *,
    before: str,
    after: str,
    per_kind: int,
) -> str:
    """Return the examples as Markdown.

    Args:
        frame: checked episodes; the sampled ones of the first training seed are shown.
        dialogues: (policy, row id) -> the messages of its sampled episode with that seed.
        before: name of the initial policy.
        after: name of the policy under evaluation.
        per_kind: number of prompts of each kind.

    Raises:
        EvaluationError: when a dialogue to show is missing.
    """
    pair = paired(_of_first_seed(checked(frame)), before, after)
    wide = pair[0].join(pair[1].select("row_id", "solved", "right", "asked", "status"), on="row_id", suffix=".after")
    lines = [
        f"# Dialogues before ({before}) and after ({after})",
        "",
        "Sampled; the first of every kind by row id, alternating between tasks.",
        "",
    ]
    for kind, condition in _KINDS.items():
        found = wide.filter(condition).sort("row_id").sort(pl.int_range(pl.len()).over("task"), "task")
        lines += [f"## {kind}: {found.height:,} of {wide.height:,} prompts", ""]
        for row in found.head(per_kind).iter_rows(named=True):
            lines += _example(row, dialogues, before, after)
    return "\n".join(lines).rstrip() + "\n"


def dialogue_lines(frame: pl.DataFrame, dialogues: Mapping[tuple[str, str], Dialogue]) -> bytes:
    """Return dialogues as JSON lines, each with the fields of its episode and `messages`, in a random order.

    The order is the same for the same episodes.

    Args:
        frame: checked episodes; the sampled ones of the first training seed are taken, if their dialogue is given.
        dialogues: see `examples_markdown`.
    """
    episodes = _of_first_seed(frame).sort("policy", "row_id").to_dicts()
    found = [(one, dialogues[key]) for one in episodes if (key := (one["policy"], one["row_id"])) in dialogues]
    random.Random(HELD_OUT_SEED).shuffle(found)
    return b"".join(orjson.dumps({**one, "messages": messages}) + b"\n" for one, messages in found)


def _of_first_seed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter((pl.col("mode") == "sampled") & (pl.col("seed") == pl.col("seed").min()))


def _example(
    row: Mapping[str, Any], dialogues: Mapping[tuple[str, str], Dialogue], before: str, after: str
) -> list[str]:
    lines = [f"### `{row['row_id']}` ({row['task']}, {row['bucket']})", ""]
    for policy, suffix in ((before, ""), (after, ".after")):
        messages = dialogues.get((policy, row["row_id"]))
        if messages is None:
            raise EvaluationError(f"the dialogue of policy '{policy}' on row '{row['row_id']}' is missing")
        without = "right, but without what was missing" if row[f"right{suffix}"] else "not solved"
        outcome = "solved" if row[f"solved{suffix}"] else without
        asked = row[f"asked{suffix}"]
        lines += [f"**{policy}**: {outcome}, questions to the user: {asked}, ended: {row[f'status{suffix}']}", ""]
        lines += _fenced("\n".join(_shown(message) for message in messages if message["role"] != "system"))
    return lines


def _shown(message: Message) -> str:
    content = message.get("content") or ""
    if len(content) > _MOST:
        content = f"{content[:_MOST]} ... ({len(content) - _MOST:,} characters more)"
    name = f" {message['name']}" if message["role"] == "tool" else ""
    calls = [
        f"    -> {call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls") or ()
    ]
    return "\n".join([f"[{message['role']}{name}] {content}".rstrip(), *calls])


def _fenced(text: str) -> list[str]:
    """Return a code block that the text cannot end, whatever the model wrote."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", text, fence, ""]
