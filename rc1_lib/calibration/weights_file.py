"""`configs/weights.json`: who may write it, and whether it was changed since.

Only a calibration that passed writes it, with the fingerprint of its report. A rejected candidate is kept next to its
report and never becomes this file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from rc1_lib.calibration.derived import REFUSED, WEIGHTS, all_decisive
from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.errors import RC1Error
from rc1_lib.provenance.derived import NOT_OURS
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, recorded_write, write_json
from rc1_lib.workspace.file_hashes import sha256_file

_AGAIN = "calibrate again: rc1 weight-calib"


class NoWeightsError(RC1Error):
    """No weights have been calibrated yet."""


def note_refusal(run: Run) -> None:
    """Record that a calibration with the current inputs failed: weights of an earlier one no longer count."""
    write_json(run.workspace.path(REFUSED), all_decisive(run))


def adopt(run: Run, weights: Mapping[str, float], report: str) -> None:
    """Write the weights that a passed calibration found, with the fingerprint of its report.

    Args:
        run: names the file.
        report: the calibration's report, relative to the workspace.

    Raises:
        RC1Error: when the report does not contain these weights, or did not pass.
    """
    body = read_json(run.workspace.path(report))
    if body.get("weights") != dict(weights) or body.get("pass") is not True:
        raise RC1Error(
            f"{run.workspace.path(report)}: is not the report of a passed calibration of these weights "
            f"(`pass` and `weights`); {_AGAIN}"
        )
    content = {
        "origin": "calibrated",
        "weights": dict(weights),
        "report": {"path": report, "sha256": sha256_file(run.workspace.path(report))},
    }
    manifest = {"kind": WEIGHTS.name, "inputs": WEIGHTS.inputs(run), "report": content["report"]}
    with recorded_write(run.workspace, run.config.weights, manifest) as stream:
        stream.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    run.workspace.path(REFUSED).unlink(missing_ok=True)


def read_content(run: Run) -> Any:
    """Parse the file.

    Raises:
        NoWeightsError: when it is missing.
        RC1Error: when it is not JSON, or not what the ticket pins.
    """
    path = WEIGHTS.path(run)
    if not path.exists() and run.vouched is None:
        raise NoWeightsError(f"{path}: there are no weights yet; run `rc1 weight-calib` to find them")
    try:
        return orjson.loads(read_vouched(run, WEIGHTS.name, path))
    except ValueError as error:
        raise RC1Error(f"{path}: is not JSON ({error}); {_AGAIN}") from None


def read_weights(run: Run, names: tuple[str, ...]) -> dict[str, float]:
    """Return the weights in force, by dimension.

    Raises:
        NoWeightsError: when the file is missing.
        RC1Error: when RC1 did not write it, or it does not map dimensions to numbers.
    """
    content = read_content(run)
    weights = content.get("weights") if isinstance(content, Mapping) else None
    if not isinstance(weights, Mapping) or not weights:
        raise RC1Error(f'{run.workspace.path(run.config.weights)}: has no "weights"; {_AGAIN}')
    for name, value in weights.items():
        if name not in names or isinstance(value, bool) or not isinstance(value, int | float):
            raise RC1Error(
                f"{run.workspace.path(run.config.weights)}: weighs '{name}' with {value!r}, expected numbers for names "
                f"among {', '.join(names)}; {_AGAIN}"
            )
    if (state := WEIGHTS.state(run)) in NOT_OURS:
        raise RC1Error(
            f"{run.workspace.path(run.config.weights)}: is {state.value}: RC1 did not write these weights; {_AGAIN} "
            f"--rebuild"
        )
    return {str(name): float(value) for name, value in weights.items()}


def weights_in_force(run: Run) -> dict[str, float]:
    """Return the weights of the judged score; empty if training does not pay for it.

    Raises:
        RC1Error: as `read_weights`.
    """
    return read_weights(run, dimensions(run)) if run.config.pays_judged_score else {}


def named_report(run: Run, content: Any) -> tuple[Mapping[str, Any] | None, str | None]:
    """Return the report that the weights name, parsed, and its fingerprint; (None, None) if it cannot be read."""
    named = content.get("report") if isinstance(content, Mapping) else None
    path = named.get("path") if isinstance(named, Mapping) else None
    if not isinstance(path, str) or ".." in path or path.startswith("/"):
        return None, None
    try:
        body = run.workspace.path(path).read_bytes()
        report = orjson.loads(body)
    except (OSError, ValueError):
        return None, None
    return (report, hashlib.sha256(body).hexdigest()) if isinstance(report, Mapping) else (None, None)
