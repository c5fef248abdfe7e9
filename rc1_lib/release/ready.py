"""What a release rests on: a ticket that holds now, a training that ended, and an evaluation of it that is green."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rc1_lib.artifacts import FileState, read_json
from rc1_lib.build_policy import NOT_OURS
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.preflight.ticket import verify_ticket, vouched_by
from rc1_lib.release.report.shapes import TRAINING, check_shape
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import read_verified

_AGAIN = "train again: rc1 train"


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that may be released.

    Attributes:
        run: with what its ticket vouches for.
        ticket: verified.
        training: its report.
        evaluation: its report, green.
        checkpoints: seed -> folder of the policy that was evaluated, every byte as its manifest says.
    """

    run: Run
    ticket: Mapping[str, Any]
    training: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    checkpoints: Mapping[int, Path]

    @property
    def key(self) -> str:
        """Names the release: 12 hex digits, the evaluation's own."""
        return str(self.evaluation["key"])


def check_ready(run: Run) -> Ready:
    """Refuse to release what has not earned it.

    Raises:
        TicketError: when there is no ticket that holds now.
        RC1Error: when the training or its evaluation is missing, red or altered, or is about other checkpoints.
    """
    ticket = verify_ticket(run)
    training = _training(run)
    evaluation = _evaluation(run)
    checkpoints = {int(one["seed"]): run.workspace.path(one["checkpoint"]) for one in training["runs"]}
    evaluated = set(evaluation["checkpoints"].values())
    for one in training["runs"]:
        read_verified(run.workspace.path(one["checkpoint"]), one["sha256"])
        if one["sha256"] not in evaluated:
            raise RC1Error(f"no release: {one['checkpoint']} is not what {_name(run)} has evaluated; {_AGAIN}")
    return Ready(replace(run, vouched=vouched_by(dict(ticket))), ticket, training, evaluation, checkpoints)


def _training(run: Run) -> dict[str, Any]:
    path = run.workspace.path(TRAINING_REPORT)
    try:
        body = read_json(path)
    except FileNotFoundError:
        raise RC1Error(f"no release: {path}: there is no such file, so nothing was trained; run `rc1 train`") from None
    except (OSError, ValueError):
        raise RC1Error(f"no release: {path}: is no report of a training; {_AGAIN}") from None
    check_shape(TRAINING, body, path)
    if body.get("config_sha256") != run.config_sha256:
        raise RC1Error(f"no release: {path}: is of another configuration; give the training's own flags, or {_AGAIN}")
    if not body.get("runs") or body.get("evaluation") is None:
        raise RC1Error(f"no release: {path}: the training was not evaluated; run `rc1 train` without --no-evaluate")
    return dict(body)


def _evaluation(run: Run) -> dict[str, Any]:
    state = EVALUATION.state(run)
    if state is not FileState.FRESH:
        why = NOT_OURS.get(state, f"it is {state.value}")
        raise RC1Error(f"no release: {_name(run)}: {why}; {_AGAIN}")
    body = read_json(EVALUATION.path(run))
    gate = body["gate"]
    if not body["pass"] or not _training(run).get("pass"):
        red = [check["name"] for check in gate["checks"] if not check["passed"]]
        raise RC1Error(
            f"no release: the gate {gate['name']} is red ({', '.join(red) or gate['error'] or 'the training failed'}); "
            f"`rc1 report` shows it"
        )
    return dict(body)


def _name(run: Run) -> str:
    return run.workspace.name(EVALUATION.path(run))
