"""The preconditions of a release: a valid ticket, a finished training, and an evaluation of it that passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.preflight.carried_ticket import why_outdated
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.provenance.derived import NOT_OURS
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import read_verified
from rc1_lib.workspace.artifacts import PROJECT_ROOT, FileState, in_form, read_json
from rc1_lib.workspace.file_hashes import sha256_file

_AGAIN = "train again: rc1 train"


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that may be released.

    Attributes:
        evaluation: the report of its evaluation, which passed.
        checkpoints: seed -> folder of the evaluated policy, verified against its manifest.
    """

    run: Run
    ticket: Mapping[str, Any]
    training: Mapping[str, Any]
    evaluation: Mapping[str, Any]
    checkpoints: Mapping[int, Path]

    @property
    def key(self) -> str:
        """The name of the release: the evaluation's key, 12 hex digits."""
        return str(self.evaluation["key"])


def check_ready(run: Run) -> Ready:
    """Check that a run may be released.

    Raises:
        TicketError: when there is no valid ticket.
        RC1Error: when the training or its evaluation is missing, failed or altered, is about other checkpoints, or
            carried a ticket that pins something else.
    """
    ticket = verify_ticket(run)
    training = _training(run)
    if why := why_outdated(training, ticket):
        raise RC1Error(f"no release: {run.workspace.path(TRAINING_REPORT)}: {why}")
    evaluation = _evaluation(run, training)
    _check_same(run, training, evaluation)
    checkpoints = {int(one["seed"]): run.workspace.path(one["checkpoint"]) for one in training["runs"]}
    for one in training["runs"]:
        read_verified(run.workspace.path(one["checkpoint"]), one["sha256"])
    return Ready(run, ticket, training, evaluation, checkpoints)


def name_of(run: Run, path: Path) -> str:
    """Return a file's name in a package: its path relative to workspace or project, without following links."""
    for base in (run.workspace.root, PROJECT_ROOT):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return run.workspace.name(path)


def _read(path: Path, missing: str) -> Any:
    """Read a report; errors suggest restoring it first, since training again takes hours."""
    try:
        return read_json(path)
    except FileNotFoundError:
        raise RC1Error(f"no release: {path}: file not found, {missing}") from None
    except OSError as error:
        raise RC1Error(
            f"no release: {path}: cannot be read ({error.strerror}), expected a file; restore it, or {_AGAIN}"
        ) from None
    except ValueError as error:
        raise RC1Error(f"no release: {path}: is not JSON ({error}); restore it, or {_AGAIN}") from None


def _training(run: Run) -> dict[str, Any]:
    path = run.workspace.path(TRAINING_REPORT)
    body = _read(path, "so nothing was trained; run `rc1 train`")
    with in_form(path):
        seeds = [(int(one["seed"]), str(one["checkpoint"]), str(one["sha256"])) for one in body["runs"] or ()]
    if body.get("config_sha256") != run.config_sha256:
        raise RC1Error(
            f"no release: {path}: belongs to another configuration; give the training's own flags, or {_AGAIN} "
            f"--start-over"
        )
    if body.get("pass") is not True and body.get("evaluation") is None:
        raise RC1Error(f"no release: {path}: the training ended without a policy: {body.get('message')}")
    if not seeds or body.get("evaluation") is None:
        raise RC1Error(f"no release: {path}: the training was not evaluated; run `rc1 train` without --no-evaluate")
    check_seeds(run, len({seed for seed, _, _ in seeds}))
    return dict(body)


def check_seeds(run: Run, trained: int) -> None:
    """Require in profile `prod` that as many seeds were trained as are wanted, not only the one that passed.

    Raises:
        RC1Error: when fewer were.
    """
    wanted = run.config.gates.training.min_seeds
    if run.config.profile == "prod" and trained < wanted:
        raise RC1Error(
            f"no release: {run.workspace.path(TRAINING_REPORT)}: {trained} of the {len(run.config.seeds)} seeds were "
            f"trained, gates.training.min_seeds wants {wanted}; run `rc1 train --all-seeds`"
        )


def _evaluation(run: Run, training: Mapping[str, Any]) -> dict[str, Any]:
    state, path = EVALUATION.state(run), EVALUATION.path(run)
    if state is not FileState.FRESH:
        why = NOT_OURS.get(state, f"it is {state.value}")
        raise RC1Error(f"no release: {_name(run)}: {why}; {_AGAIN}")
    body = _read(path, _AGAIN)
    with in_form(path):
        _ = [body[name] for name in ("key", "before", "after")]
        for name in ("episodes", "plots", "checkpoints"):
            if not isinstance(body[name], dict):
                raise TypeError(f"{name}: found {type(body[name]).__name__}, expected an object")
        if not all(isinstance(one, str) for one in (body["episodes"]["path"], *body["plots"].values())):
            raise TypeError("episodes, plots: a path is not text")
        episodes, wanted = run.workspace.path(body["episodes"]["path"]), body["episodes"]["sha256"]
        gate = GateResult.from_report(body["gate"])
    if body.get("pass") is not True or training.get("pass") is not True:
        failed = [check.name for check in gate.failures]
        raise RC1Error(
            f"no release: the gate {gate.name} failed ({', '.join(failed) or gate.error or 'the training failed'}); "
            f"`rc1 report` shows it"
        )
    if not episodes.is_file() or sha256_file(episodes) != wanted:
        raise RC1Error(f"no release: {episodes}: does not match {_name(run)}; {_AGAIN}")
    return dict(body)


def _check_same(run: Run, training: Mapping[str, Any], evaluation: Mapping[str, Any]) -> None:
    """Check that exactly the trained checkpoints were evaluated: every seed, and nothing else."""
    evaluated = {name: sha for name, sha in evaluation["checkpoints"].items() if name != evaluation["before"]}
    for one in training["runs"]:
        if one["sha256"] != evaluated.pop(f"{evaluation['after']} seed {one['seed']}", None):
            raise RC1Error(f"no release: {one['checkpoint']} is not the one that {_name(run)} evaluated; {_AGAIN}")
    if evaluated:
        raise RC1Error(
            f"no release: {run.workspace.path(TRAINING_REPORT)}: has no checkpoint of {', '.join(evaluated)}, which "
            f"{_name(run)} evaluated; {_AGAIN}"
        )


def _name(run: Run) -> str:
    return run.workspace.name(EVALUATION.path(run))
