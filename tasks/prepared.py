"""The inputs of a training run, prepared once per process, since tasks exchange only plain data, not models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rc1_lib.judge.prompt import read_spec
from rc1_lib.run import Run
from rc1_lib.runtime.libraries import quieten
from rc1_lib.training.models import fingerprint_of
from rc1_lib.training.ppo_run import Prepared, prepare
from rc1_lib.workspace.artifacts import sha256_json
from rc1_lib.workspace.file_hashes import sha256_file
from tasks.keys import provide_scorer_key


@dataclass(frozen=True, slots=True)
class _Known:
    """The latest prepared run, and the fingerprints of its inputs."""

    prepared: Prepared
    inputs: dict[str, str]


_latest: list[_Known] = []


def prepared_for(run: Run, *, force: bool = False) -> Prepared:
    """Return the rows, reference policy and weights of a run, as currently on disk.

    Args:
        force: check everything again, including the base of the warm start.

    Raises:
        RC1Error: when the pool or the base cannot be used.
    """
    provide_scorer_key(run)  # episodes may be scored by a live judge
    quieten(hub=True)  # a run of a deployment is started by no command
    inputs = _inputs(run)
    if not force and _latest and _latest[0].inputs == inputs and _is_whole(_latest[0].prepared):
        return _latest[0].prepared
    _latest.clear()  # one pool in memory is enough
    prepared = prepare(run)
    _latest.append(_Known(prepared, inputs))
    return prepared


def _inputs(run: Run) -> dict[str, str]:
    config, place = run.config, run.workspace
    weights = place.path(config.weights)
    return {
        "workspace": str(place.root),
        "config": sha256_json(
            run.config.model_dump(mode="json")
        ),  # includes the number of processes, which the preparation depends on
        "pool": sha256_file(place.path(config.seed_pool)),
        "metrics": sha256_file(place.path(config.difficulty.metrics_path)),
        "weights": sha256_file(weights) if weights.is_file() else "",
        "judge": read_spec(run).sha256 if config.pays_judged_score else "",
        "vouched": sha256_json(run.vouched),
    }


def _is_whole(prepared: Prepared) -> bool:
    """Return whether the reference policy's bytes are unchanged; one on the hub has a fixed commit."""
    base, sha256 = prepared.reference.base, prepared.reference.sha256
    return not Path(base).is_dir() or fingerprint_of(prepared.run.config, base) == sha256
