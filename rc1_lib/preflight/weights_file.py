"""`configs/weights.json`: who may write it, and what became of it since.

Only a calibration that passed writes it, with the fingerprint of its report. A candidate that was refused is kept
beside its report and never becomes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from rc1_lib.artifacts import FileState, file_state, read_json, recorded_write, sha256_file, sha256_json
from rc1_lib.code import code_sha256
from rc1_lib.errors import RC1Error
from rc1_lib.preflight.judging import judge_identity
from rc1_lib.run import Run

_KIND = "weights"
_CODE = ("rc1_lib/reward", "rc1_lib/scoring/rubric.py", "rc1_lib/preflight/weight_calib.py")
_AGAIN = "calibrate again: rc1 weight-calib"


def weights_inputs(run: Run) -> dict[str, str]:
    """Fingerprints of all that the weights are made from."""
    config = run.config
    decisive = {
        "reward": config.reward.model_dump(mode="json"),
        "calibration": config.calibration.model_dump(mode="json"),
        "overclar": config.overclar.model_dump(mode="json"),
        "gates": [
            gate.model_dump(mode="json") for gate in (config.gates.calibration, config.gates.weights)
        ],
        "samples": config.judge.samples,
    }  # fmt: skip
    balanced = run.workspace.path(config.difficulty.balanced_path)
    return {
        "config": sha256_json(decisive),
        "balanced": sha256_file(balanced) if balanced.exists() else "",
        "judge": sha256_json(judge_identity(run)),
        "code": code_sha256(*_CODE),
    }


def weights_state(run: Run) -> FileState:
    """What became of the weights since they were written."""
    return file_state(run.workspace, run.config.weights, weights_inputs(run), _KIND)


def adopt(run: Run, weights: Mapping[str, float], report: str) -> None:
    """Write the weights that a passed calibration found, with the fingerprint of its report.

    Args:
        run: names the file.
        weights: by dimension.
        report: the calibration's report, relative to the workspace.

    Raises:
        RC1Error: when the report does not hold these weights, or did not pass.
    """
    body = read_json(run.workspace.path(report))
    if body.get("weights") != dict(weights) or body.get("pass") is not True:
        raise RC1Error(f"{run.workspace.path(report)}: is not the report of a passed calibration of these weights")
    content = {
        "origin": "calibrated",
        "weights": dict(weights),
        "report": {"path": report, "sha256": sha256_file(run.workspace.path(report))},
    }
    manifest = {"kind": _KIND, "inputs": weights_inputs(run), "report": content["report"]}
    with recorded_write(run.workspace, run.config.weights, manifest) as stream:
        stream.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")


def read_content(run: Run) -> Any:
    """The parsed file.

    Raises:
        RC1Error: when it is missing or no JSON.
    """
    path = run.workspace.path(run.config.weights)
    try:
        return read_json(path)
    except FileNotFoundError:
        raise RC1Error(f"{path}: there are no weights yet; rc1 weight-calib finds them") from None
    except ValueError as error:
        raise RC1Error(f"{path}: is not JSON ({error}); {_AGAIN}") from None
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}); expected a JSON file") from None


def read_weights(run: Run, names: tuple[str, ...]) -> dict[str, float]:
    """The weights in force, by dimension; whether they are sound is for the gate to say.

    Raises:
        RC1Error: when the file is missing, or holds no number for some name that can be weighed.
    """
    content = read_content(run)
    weights = content.get("weights") if isinstance(content, Mapping) else None
    if not isinstance(weights, Mapping) or not weights:
        raise RC1Error(f'{run.workspace.path(run.config.weights)}: holds no "weights"; {_AGAIN}')
    for name, value in weights.items():
        if name not in names or isinstance(value, bool) or not isinstance(value, int | float):
            raise RC1Error(
                f"{run.workspace.path(run.config.weights)}: weighs '{name}' with {value!r}, expected a number for some "
                f"of {', '.join(names)}; {_AGAIN}"
            )
    return {str(name): float(value) for name, value in weights.items()}


def named_report(run: Run, content: Any) -> tuple[Mapping[str, Any] | None, str | None]:
    """The report that the weights name, parsed, and its fingerprint; (None, None) when there is none to be read."""
    named = content.get("report") if isinstance(content, Mapping) else None
    path = named.get("path") if isinstance(named, Mapping) else None
    if not isinstance(path, str) or ".." in path or path.startswith("/"):
        return None, None
    place = run.workspace.path(path)
    if not place.is_file():
        return None, None
    try:
        report = read_json(place)
    except (OSError, ValueError):
        return None, None
    return (report, sha256_file(place)) if isinstance(report, Mapping) else (None, None)
