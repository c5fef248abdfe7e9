"""A policy's answers on record: what answered the same prompts before answers them alike, whichever run asks.

Seeds and repeats begin with the same start, and a training that is started again ends with the same policies. Their
answers are kept under all that decides them, the policy's own bytes included, in a folder of the user's own
(`rc1_lib.provenance.own_folder`): an easy start, or a policy that is better than it is, would make anything an
improvement, and whoever can merely write the workspace puts neither there. What decides an answer beside that, say the
processor, is found out by prompts that nobody can foresee, which are asked again each time; one other answer, and the
record is void.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from rc1_lib.evaluation.answers import Answers, Played, Watch, answers_in, answers_of, unwatched
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.evaluation.episodes import MODES, Mode
from rc1_lib.evaluation.prompts import prompts_sha256
from rc1_lib.provenance.own_folder import keep, kept
from rc1_lib.records import MeasuredRow
from rc1_lib.task_specs import added
from rc1_lib.training.device import get_device
from rc1_lib.training.player import Player
from rc1_lib.training.ppo_run import Prepared
from rc1_lib.training.process import process_values
from rc1_lib.workspace.artifacts import sha256_json

START = "start"
"""In place of a checkpoint's fingerprint: the policy that is started from."""
ONE_IN = 20
"""Of so many prompts on record one is asked again, in each mode."""
_SUFFIX = ".answers"
_MOST = 64
"""Records of a workspace that are kept: a start and its seeds, with their checkpoints on the way, a few times over."""


@dataclass(frozen=True, slots=True)
class OnRecord:
    """A policy's answers, and the SHA-256 of their lines on record."""

    answers: Answers
    sha256: str


def recorded_answers(
    prepared: Prepared,
    player: Player,
    policy: str,
    rows: Sequence[MeasuredRow],
    modes: Sequence[Mode] = MODES,
    watch: Watch = unwatched,
) -> OnRecord:
    """The answers of the policy that the player has loaded: those on record where they can be believed, else its own.

    Args:
        prepared: what the run stands on.
        player: plays the policy that `policy` names.
        policy: `START`, or the fingerprint of the checkpoint whose adapter is loaded.
        rows: held-out rows; on record in another order they are asked anew.
        modes: of the answers.
        watch: is told how many modes have been answered, and what is done meanwhile.

    Raises:
        RC1Error: as the player does.
    """
    key = sha256_json(_decisive(prepared, policy, rows, modes))
    found, fault = _believed(prepared, player, key, rows, modes)
    if found is not None:
        watch(len(modes), "the answers are on record")
    elif fault:
        watch(0, f"every prompt is asked: {fault}")
    answers = answers_of(prepared, player, rows, modes, watch) if found is None else found
    lines = [_line(mode, one) for mode in modes for one in answers[mode]]
    if found is None and not added():
        keep(prepared.run.workspace, key + _SUFFIX, zlib.compress(b"".join(lines)), _MOST)
    return OnRecord(answers, hashlib.sha256(b"".join(lines)).hexdigest())


def _decisive(prepared: Prepared, policy: str, rows: Sequence[MeasuredRow], modes: Sequence[Mode]) -> dict[str, Any]:
    """All that decides an answer; some of the configuration does not, and costs a play at most."""
    config, facts = prepared.run.config, prepared.facts(0)
    return {
        "policy": policy,
        "reference": facts["reference"],
        "config": facts["config"],
        "held_out": config.training.held_out.model_dump(mode="json"),
        "prompts": prompts_sha256(rows),
        "modes": list(modes),
        "process": process_values() | {"threads": config.training.threads, "device": get_device().type},
        "code": EVALUATION.code,
    }


def _believed(
    prepared: Prepared, player: Player, key: str, rows: Sequence[MeasuredRow], modes: Sequence[Mode]
) -> tuple[Answers | None, str]:
    """The answers on record, or what befell those that were; nothing where none are."""
    if added():
        return None, "no fingerprint covers the source of a task that was registered"
    content = kept(prepared.run.workspace, key + _SUFFIX)
    if content is None:
        return None, ""
    found = _read(content, [str(row["id"]) for row in rows], modes)
    if found is None:
        return None, "what is on record is damaged, or of other prompts"
    some = secrets.SystemRandom().sample(rows, -(-len(rows) // ONE_IN))
    for mode in modes:
        on_record = {one.row_id: one for one in found[mode]}
        for again in answers_in(prepared, player, mode, some):
            if _line(mode, again) != _line(mode, on_record[again.row_id]):
                return None, f"'{again.row_id}' is answered otherwise than recorded, so that record is void"
    return found, ""


def _read(content: bytes, prompts: Sequence[str], modes: Sequence[Mode]) -> Answers | None:
    """The answers of a record, one a mode and prompt; None where it is anything else."""
    try:
        found = [_LINE.validate_json(line, strict=True) for line in zlib.decompress(content).splitlines()]
    except (zlib.error, ValidationError):
        return None
    if [(one.mode, one.played.row_id) for one in found] != [(mode, prompt) for mode in modes for prompt in prompts]:
        return None
    return {mode: [one.played for one in found if one.mode == mode] for mode in modes}


@dataclass(frozen=True, slots=True)
class _Line:
    mode: Mode
    played: Played


_LINE = TypeAdapter(_Line)


def _line(mode: Mode, played: Played) -> bytes:
    return orjson.dumps(asdict(_Line(mode, played)), option=orjson.OPT_SORT_KEYS) + b"\n"
