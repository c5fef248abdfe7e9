"""Training as Prefect tasks: the warm start, content-hashed segments of steps, and checkpoints to keep.

A finished segment is recorded in a JSON file of RC1. Prefect's result store is not used, because its files name the
code that reads them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prefect import State, task
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.auditing import check_audit
from rc1_lib.evaluation.policies import finished_checkpoint
from rc1_lib.forecast.learnability import check_learnable
from rc1_lib.forecast.too_few import check_groups_held_out
from rc1_lib.run import Run
from rc1_lib.runtime.libraries import quieten
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import check_in_ledger, was_removed
from rc1_lib.training.checkpoint.manifest import fingerprint, folder_name, read_verified, step_of, steps
from rc1_lib.training.checkpoint.retention import keep_permanently
from rc1_lib.training.checkpoint.save_load import finish_interrupted, load_checkpoint, save_checkpoint
from rc1_lib.training.export.checkpoint_export import FOLDER, ExportMismatchError, write_final_model
from rc1_lib.training.ppo_run import check_own, check_start, known_facts, resumable, usable_base
from rc1_lib.training.retrain import reach
from rc1_lib.training.rows import select_rows
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.training.train_arguments import has_checkpoints
from rc1_lib.workspace.artifacts import read_json, sha256_json, write_json
from tasks.endings import CACHED, REFUSED, refusable, retried
from tasks.keys import provide_scorer_key
from tasks.prepared import prepared_for
from tasks.training_cards import show_segment, show_start, showing_steps

Facts = dict[str, Any]
"""`Prepared.facts` of a seed: everything that determines its run."""

Segment = dict[str, Any]
"""`{first, last, checkpoint, sha256, seconds}`; the path is relative to the workspace."""

_RECORDS = "reports/rc1/segments"


@retried(name="warm start", task_run_name="warm start")
@refusable
def warm_start(run: Run, seeds: Sequence[int], evaluate: bool, start_over: bool = False) -> dict[str, Any]:
    """Select the rows, and make the initial policy if it is missing or out of date.

    Args:
        run: workspace and configuration.
        evaluate: whether they are evaluated at the end, which may need a live judge.
        start_over: remove what another run has left, which is otherwise an error.

    Returns:
        `{facts: {seed: facts}, reference, rows}`.
    """
    provide_scorer_key(run)
    quieten(hub=True)  # a run of a deployment is started by no command
    logger = get_run_logger()
    selection = select_rows(run, usable_base(run)[0])
    if evaluate and (start_over or not has_checkpoints(run, seeds)):
        check_groups_held_out(run, selection.held_out)
    for seed in seeds:  # before the other run's warm start is replaced
        check_own(run, seed, known_facts(run, seed, selection), start_over, logger.info)
    del selection  # one pool in memory is enough
    if evaluate:
        check_audit(run, len(seeds))
    prepared = prepared_for(run, force=True)
    facts = {str(seed): prepared.facts(seed) for seed in seeds}
    for seed in seeds:
        check_own(run, seed, facts[str(seed)], start_over, logger.info)
    show_start(run, prepared)
    if tried := check_learnable(prepared, seeds):
        logger.info(tried)
    return {
        "facts": facts,
        "reference": prepared.reference.sha256,
        "rows": prepared.selection.report,
    }


@task(name="resume", task_run_name="resume {seed} from {name}", persist_result=False)
@refusable
def resume(run: Run, seed: int, name: str) -> Segment:
    """Find the checkpoint that a user names, and copy it to the run's checkpoints if it is elsewhere."""
    path = resumable(prepared_for(run), seed, name)
    folder, sha256 = run.workspace.path(paths_of(run, seed).checkpoints), fingerprint(path)
    if path.parent != folder.resolve():
        path = save_checkpoint(load_checkpoint(path, sha256), folder, run.workspace.path(LEDGER))
        assert fingerprint(path) == sha256, "reading and writing a checkpoint preserves its bytes"
        finish_interrupted(folder, max(steps(folder)))  # `latest` stays the newest
    step = load_checkpoint(path, sha256).step
    get_run_logger().info("seed %d: resumed from %s, step %d", seed, path.name, step)
    return _segment(step, step, run.workspace.name(path), sha256, 0.0)


def segment_key(**decisive: Any) -> str:
    """Return the key of a segment: a hash of everything that determines its result."""
    return f"{decisive['seed']}-{decisive['last']}-{sha256_json(decisive)}"


@retried(name="train", task_run_name="train {seed}: steps {first}-{last}")
def segment(run: Run, seed: int, first: int, last: int, facts: Facts, previous: str, code: str) -> State[Segment]:
    """Train steps `first` to `last` of a seed's run, continuing from what a killed process finished.

    Args:
        run: workspace and configuration.
        last: the last one, which has a checkpoint; `training.early_stop` may end the run earlier.
        facts: the seed's facts, from `warm_start`; part of the key.
        previous: fingerprint of the previous checkpoint; part of the key.
        code: fingerprint of the code; part of the key.

    Returns:
        A state named `CACHED` if the segment existed already.
    """
    logger, began = get_run_logger(), time.monotonic()
    key = segment_key(seed=seed, first=first, last=last, facts=facts, previous=previous, code=code)
    record = run.workspace.path(f"{_RECORDS}/{key}.json")
    folder = run.workspace.path(paths_of(run, seed).checkpoints)
    if record.exists():
        done, fault = _recorded(record, folder / folder_name(last), run.workspace.path(LEDGER))
        if not fault:
            return Completed(name=CACHED, message=f"steps {first}-{last} were trained before", data=done)
        logger.warning("training steps %d-%d again: %s", first, last, fault)
    try:
        prepared = prepared_for(run)
        check_start(prepared, facts["reference"])
        differ = [key for key, value in prepared.facts(seed).items() if facts.get(key) != value]
        if differ:
            raise RC1Error(
                f"{', '.join(differ)}: changed since this training began; run again when nothing else writes into the "
                f"workspace"
            )
        if previous:
            _check_stands(folder / folder_name(first - 1), previous, run.workspace.path(LEDGER))
        with showing_steps(run, seed, first) as arrived:
            path = reach(prepared, seed, last, logger.info)
            ended = step_of(path)
            assert ended is not None, f"{path} is not a checkpoint's name"
            arrived(ended)
    except RC1Error as error:
        return Failed(name=REFUSED, message=str(error))
    show_segment(run, seed, first, ended)
    seconds = round(time.monotonic() - began, 1)
    done = _segment(first, ended, run.workspace.name(path), fingerprint(path), seconds)
    if ended == last:  # only the checkpoint itself proves that a run ended earlier
        write_json(record, done)
    return Completed(message=f"steps {first}-{ended}: {seconds} s", data=done)


def _segment(first: int, last: int, checkpoint: str, sha256: str, seconds: float) -> Segment:
    return {"first": first, "last": last, "checkpoint": checkpoint, "sha256": sha256, "seconds": seconds}


def _recorded(record: Path, checkpoint: Path, ledger: Path) -> tuple[Segment, str]:
    """Return the record of a segment, and why it cannot be used, "" if its checkpoint matches."""
    try:
        done = read_json(record)
    except (OSError, ValueError):
        done = None
    if not isinstance(done, Mapping) or done.keys() != _segment(0, 0, "", "", 0.0).keys():
        return {}, f"{record.name}: is not a record of a segment"
    if done["last"] != step_of(checkpoint):
        return {}, f"{record.name}: records a segment that ends with step {done['last']}"
    try:
        _check_stands(checkpoint, str(done["sha256"]), ledger)
    except CheckpointError as error:
        return {}, str(error)
    return dict(done), ""


def _check_stands(checkpoint: Path, sha256: str, ledger: Path) -> None:
    """Reject a missing or altered checkpoint, unless the retention rule removed it."""
    if not was_removed(checkpoint, sha256, ledger):
        read_verified(checkpoint, sha256)
        check_in_ledger(checkpoint, ledger)


@retried(name="keep for good")
@refusable
def keep_best(run: Run, finished: Mapping[int, str]) -> list[str]:
    """Copy the checkpoints that passed the evaluation to `best/`, and export the first; return the copies' names.

    Args:
        run: workspace and configuration.
        finished: seed -> fingerprint of the evaluated checkpoint; others are not kept.
    """
    kept = []
    for seed, sha256 in finished.items():
        folder = run.workspace.path(paths_of(run, seed).checkpoints)
        path = finished_checkpoint(run, seed, sha256)
        kept.append(run.workspace.name(keep_permanently(path, folder, sha256)))
    try:
        get_run_logger().info("exported to %s", write_final_model(run, run.workspace.path(kept[0])))
    except (RC1Error, ExportMismatchError) as fault:  # the policy is kept and passed all the same
        get_run_logger().warning("%s was not written: %s; `rc1 ckpt export` exports the policy", FOLDER, fault)
    return kept
