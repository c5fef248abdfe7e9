"""`configs/weights.json`: who may write it, and what became of it since.

Only a calibration that passed writes it, with the fingerprint of its report. A candidate that was refused is kept
beside its report and never becomes the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from rc1_lib.artifacts import FileState, file_state, read_json, recorded_write, sha256_file, sha256_json, write_json
from rc1_lib.build_policy import NOT_OURS
from rc1_lib.code import code_sha256
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.scoring.identity import scoring_settings

_KIND = "weights"
_REFUSED = "reports/rc1/weights.refused.json"
CODE = (
    "rc1_lib/reward", "rc1_lib/scoring", "rc1_lib/difficulty", "rc1_lib/gates/calibration.py",
    "rc1_lib/gates/overclar_ablation.py", "rc1_lib/calibration/judged_rows.py", "rc1_lib/calibration/weight_calib.py",
    "rc1_lib/calibration/overclar_ablation.py",
)  # fmt: skip
"""The code that decides the weights and what their ablation finds."""
_AGAIN = "calibrate again: rc1 weight-calib"


def weights_inputs(run: Run) -> dict[str, str]:
    """Fingerprints of all that the weights are made from."""
    config = run.config
    decisive = {
        "reward": config.reward.model_dump(mode="json"),
        "calibration": config.calibration.model_dump(mode="json"),
        "overclar": config.overclar.model_dump(mode="json"),
        "gates": config.gates.model_dump(mode="json", include={"calibration", "weights"}),
    }  # fmt: skip
    balanced = run.workspace.path(config.difficulty.balanced_path)
    return {
        "config": sha256_json(decisive),
        "balanced": sha256_file(balanced) if balanced.exists() else "",
        "judge": sha256_json(scoring_settings(run)),
        "code": code_sha256(*CODE),
    }


def weights_state(run: Run) -> FileState:
    """What became of the weights since they were written; STALE, too, when a later calibration of the same was red."""
    inputs = weights_inputs(run)
    state = file_state(run.workspace, run.config.weights, inputs, _KIND)
    return FileState.STALE if state is FileState.FRESH and _refused(run) == _all_decisive(run, inputs) else state


def note_refusal(run: Run) -> None:
    """Remember that a calibration with what is there now was red: weights of an earlier one no longer count."""
    write_json(run.workspace.path(_REFUSED), _all_decisive(run, weights_inputs(run)))


def _all_decisive(run: Run, inputs: Mapping[str, str]) -> dict[str, str]:
    """The inputs, and the thresholds of the stages behind the calibration's own."""
    behind = run.config.gates.model_dump(mode="json", include={"ablation", "shadow_run"})
    return {**inputs, "behind": sha256_json(behind)}


def _refused(run: Run) -> Any:
    try:
        return read_json(run.workspace.path(_REFUSED))
    except (OSError, ValueError):
        return None


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
    run.workspace.path(_REFUSED).unlink(missing_ok=True)


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
    """The weights in force, by dimension.

    Raises:
        RC1Error: when the file is missing, was written by somebody else, or holds no number for some name that can be
            weighed.
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
    if (state := weights_state(run)) in NOT_OURS:
        raise RC1Error(
            f"{run.workspace.path(run.config.weights)}: is {state.value}: somebody else wrote these weights; {_AGAIN} "
            f"--rebuild"
        )
    return {str(name): float(value) for name, value in weights.items()}


def named_report(run: Run, content: Any) -> tuple[Mapping[str, Any] | None, str | None]:
    """The report that the weights name, parsed, and its fingerprint; (None, None) when there is none to be read."""
    named = content.get("report") if isinstance(content, Mapping) else None
    path = named.get("path") if isinstance(named, Mapping) else None
    if not isinstance(path, str) or ".." in path or path.startswith("/"):
        return None, None
    place = run.workspace.path(path)
    try:
        report = read_json(place)
        return (report, sha256_file(place)) if isinstance(report, Mapping) else (None, None)
    except (OSError, ValueError, RC1Error):
        return None, None
