"""The start's answers on record: seeds and repeats begin with the same policy, which answers the same prompts alike.

A record is kept under all that decides an answer, and names its episodes by their bytes: what damage or another version
leaves is not read. Whoever can write into the workspace can write both files, though, and an easy start would make any
policy an improvement. So prompts that nobody can foresee are asked again each time; one other answer, and the record is
void. It finds k made-up answers among n with a chance of at least 1 - (1 - k/n)^m for m prompts: hardly ever a few.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from rc1_lib.artifacts import Workspace, atomic_write, read_json, sha256_json, write_json
from rc1_lib.evaluation.answers import STAGE, Answers, Played, answers_in, answers_of
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.evaluation.episodes import MODES, Mode
from rc1_lib.evaluation.prompts import prompts_sha256
from rc1_lib.progress import tell
from rc1_lib.regular_files import read_regular
from rc1_lib.training.device import get_device
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.process import process_values

FOLDER = "reports/rc1/starts"
ASKED_AGAIN = 48
"""Prompts of a recorded start that are asked again, in each mode."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start's answers, and the SHA-256 of their lines on record."""

    answers: Answers
    sha256: str


def start_of(prepared: Prepared, player: Player, plays: int) -> Start:
    """The start's answers to the held-out prompts: those on record where they can be believed, else its own.

    Args:
        prepared: what the run stands on.
        player: with no adapter loaded yet.
        plays: of the whole evaluation, for whoever watches.
    """
    key = sha256_json(_decisive(prepared))
    answers, fault = _believed(prepared, player, key)
    if answers is not None:
        tell(STAGE, len(MODES), plays, "the start's answers are on record")
    else:
        tell(STAGE, 0, plays, f"the start is asked: {fault}")
        answers = answers_of(prepared, player, 0, plays)
    return Start(answers, _record(prepared.run.workspace, key, answers))


def _decisive(prepared: Prepared) -> dict[str, Any]:
    """All that decides what the start answers; some of the configuration does not, and costs a play at most."""
    config, facts = prepared.run.config, prepared.facts(0)
    return {
        "reference": facts["reference"],
        "config": facts["config"],
        "held_out": config.training.held_out.model_dump(mode="json"),
        "prompts": prompts_sha256(prepared.selection.held_out),
        "process": process_values() | {"threads": config.training.threads, "device": get_device().type},
        "code": EVALUATION.code,
    }


def _believed(prepared: Prepared, player: Player, key: str) -> tuple[Answers | None, str]:
    """The answers on record, or why there are none."""
    rows = prepared.selection.held_out
    found = _recorded(prepared.run.workspace, key, [str(row["id"]) for row in rows])
    if found is None:
        return None, "nothing whole is on record"
    some = secrets.SystemRandom().sample(rows, min(ASKED_AGAIN, len(rows)))
    for mode in MODES:
        on_record = {one.row_id: one for one in found[mode]}
        for again in answers_in(prepared, player, mode, some):
            if _line(mode, again) != _line(mode, on_record[again.row_id]):
                return None, f"it answers '{again.row_id}' otherwise than recorded, so that record is void"
    return found, ""


def _record(workspace: Workspace, key: str, answers: Answers) -> str:
    """Put the answers on record; a kill leaves episodes without a record, which are not read."""
    lines = [_line(mode, one) for mode in MODES for one in answers[mode]]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    with atomic_write(workspace.path(f"{FOLDER}/{key}.jsonl")) as stream:
        stream.writelines(lines)
    write_json(workspace.path(f"{FOLDER}/{key}.json"), {"sha256": digest})
    return digest


def _recorded(workspace: Workspace, key: str, prompts: Sequence[str]) -> Answers | None:
    """The answers whose bytes are those recorded, one a mode and prompt; None where anything else is there."""
    try:
        record = read_json(workspace.path(f"{FOLDER}/{key}.json"))
        content = read_regular(workspace.path(f"{FOLDER}/{key}.jsonl"))
    except (OSError, ValueError):
        return None
    if record != {"sha256": hashlib.sha256(content).hexdigest()}:
        return None
    try:
        found = [_LINE.validate_json(line, strict=True) for line in content.splitlines()]
    except ValidationError:
        return None
    if [(one.mode, one.played.row_id) for one in found] != [(mode, prompt) for mode in MODES for prompt in prompts]:
        return None
    return {mode: [one.played for one in found if one.mode == mode] for mode in MODES}


@dataclass(frozen=True, slots=True)
class _Line:
    mode: Mode
    played: Played


_LINE = TypeAdapter(_Line)


def _line(mode: Mode, played: Played) -> bytes:
    return orjson.dumps(asdict(_Line(mode, played)), option=orjson.OPT_SORT_KEYS) + b"\n"
