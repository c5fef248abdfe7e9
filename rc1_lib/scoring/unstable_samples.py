"""The list of dialogues on which the judge's samples disagree, with all of their replies.

It is kept up by whatever judges rows: of the dialogues that were judged now it holds those that are unstable now; what
an earlier asking of this very judge found of others stays, also of those that were asked about and are unscored; what
another judge said goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from rc1_lib.scoring.judged import Judged
from rc1_lib.workspace.artifacts import Workspace, atomic_write

UNSTABLE = "reports/rc1/unstable_samples.jsonl"


def keep_unstable(
    workspace: Workspace, ids: Sequence[str], judged: Judged, judge: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Bring the list up to date; where it would be empty there is no file.

    Args:
        workspace: where it lies.
        ids: of the dialogues, in the order in which `judged` has them; equal dialogues may have several.
        judged: what came of them.
        judge: who judged (`rc1_lib.scoring.identity.judge_identity`).

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
