"""Check that the files of a release agree with each other, over the very bytes that go into the package.

The ticket has fingerprints of data, weights and rounds; the weights of their calibration, the evaluation of its
episodes, a manifest of its report, the training's report of the checkpoints. Files without a fingerprint are compared
with the run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import yaml

from rc1_lib.calibration.keyed_report import REPORT
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.calibration.weights_file import WEIGHTS
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.evidence import DERIVED
from rc1_lib.gate_report import PLOTS
from rc1_lib.preflight.round_report import PASSED
from rc1_lib.release.ready import Ready, name_of
from rc1_lib.run import EFFECTIVE, Run, without_free_keys
from rc1_lib.training.checkpoint.ledger import check_in_ledger
from rc1_lib.training.checkpoint.manifest import step_of
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.workspace.artifacts import checksum_line

REPORTS_OF = (EVALUATION, HACKING, ABLATION)
"""Derived files that are packed together with all files that share their name."""
_PICTURE = b"\x89PNG\r\n\x1a\n"
_BACK = "restore the file, or run {} again"


def check_consistent(ready: Ready, contents: Mapping[str, bytes]) -> None:
    """Reject files that contradict the run's own reports.

    Args:
        ready: the run to release.
        contents: name in the package -> bytes, as they will be packed.

    Raises:
        RC1Error: names the file, what was found and what was expected.
    """
    for name, wanted, where, command in chain(_named(ready, contents), _recorded(ready, contents)):
        found = hashlib.sha256(contents[name]).hexdigest() if name in contents else None
        if found is None:
            raise _refusal(ready, name, f"is missing, but {where} names it", command)
        if found != wanted:
            raise _refusal(ready, name, f"has SHA-256 {found[:12]}, but {where} has {str(wanted)[:12]}", command)
    _check_records(ready, contents)
    _check_configuration(ready.run, contents[EFFECTIVE])
    _check_course(ready, contents)
    for name, content in contents.items():
        if name.startswith(f"{PLOTS}/") and not content.startswith(_PICTURE):
            raise _refusal(ready, name, "is not a PNG picture", "the step that drew it")


def _refusal(ready: Ready, name: str, fault: str, command: str) -> RC1Error:
    return RC1Error(f"no release: {ready.run.workspace.path(name)}: {fault}; {_BACK.format(command)}")


_Print = tuple[str, str | None, str, str]
"""A file's name, its SHA-256, what names it, and the command that writes both."""


def _named(ready: Ready, contents: Mapping[str, bytes]) -> Iterator[_Print]:
    """Yield the files that the evaluation and the weights name."""
    run, episodes = ready.run, ready.evaluation["episodes"]
    yield episodes["path"], episodes["sha256"], EVALUATION.where(run), f"`{EVALUATION.command}`"
    if not WEIGHTS.applies(run):
        return
    weights = orjson.loads(contents[run.config.weights])
    report = weights.get("report") if isinstance(weights, Mapping) else None
    if isinstance(report, Mapping) and isinstance(report.get("path"), str):
        yield report["path"], report.get("sha256"), run.config.weights, "`rc1 weight-calib`"


def _recorded(ready: Ready, contents: Mapping[str, bytes]) -> Iterator[_Print]:
    """Yield the reports that have a manifest; those that a round read must exist."""
    place, read = ready.run.workspace, _read_by_rounds(contents)
    for one in REPORTS_OF:
        name = one.where(ready.run)
        if name in contents or name in read:
            manifest = name_of(ready.run, place.manifest_path(name))
            yield name, _manifest(ready, manifest, contents).get("sha256"), manifest, f"`{one.command}`"


def _read_by_rounds(contents: Mapping[str, bytes]) -> set[Any]:
    """Return the files that the verdicts of both rounds name; the ticket pins these rounds."""
    gates = chain.from_iterable(orjson.loads(contents[PASSED[number]])["gates"] for number in PASSED)
    return {check["value"] for gate in gates for check in gate["checks"] if check["name"] == REPORT}


def _check_records(ready: Ready, contents: Mapping[str, bytes]) -> None:
    """Check that manifests and checksums match the files that the ticket pins."""
    place, files = ready.run.workspace, ready.ticket["files"]
    for one in (one for one in DERIVED if one.name in files):
        name, wanted = one.where(ready.run), files[one.name]["sha256"]
        manifest, checksum = (name_of(ready.run, at(name)) for at in (place.manifest_path, place.checksum_path))
        body = _manifest(ready, manifest, contents)
        if (body.get("path"), body.get("sha256")) != (name, wanted):
            raise _refusal(ready, manifest, f"does not match {name}, which the ticket pins", "`rc1 preflight`")
        if contents.get(checksum) != checksum_line(wanted, name).encode():
            raise _refusal(ready, checksum, f"is not the SHA-256 of {name}", "`rc1 preflight`")


def _manifest(ready: Ready, name: str, contents: Mapping[str, bytes]) -> Mapping[str, Any]:
    try:
        body = orjson.loads(contents[name])
    except (KeyError, ValueError):
        body = None
    if not isinstance(body, Mapping):
        raise _refusal(ready, name, "is missing or not a manifest", "the step that wrote it")
    return body


def _check_configuration(run: Run, content: bytes) -> None:
    """Check that the effective configuration is this run's, apart from free keys and masked values."""
    try:
        found = parse_yaml(content.decode())
    except (yaml.YAMLError, ValueError):
        found = None
    ours = parse_yaml(run.effective_config())
    if not isinstance(found, Mapping) or without_free_keys(found) != without_free_keys(ours):
        raise RC1Error(
            f"no release: {run.workspace.path(EFFECTIVE)}: is not this run's configuration, which its ticket pins; "
            f"{_BACK.format('`rc1 train`')}"
        )


def _check_course(ready: Ready, contents: Mapping[str, bytes]) -> None:
    """Check that the ledger has the checkpoints, and that the metrics have every step up to them."""
    run = ready.run
    for seed, folder in ready.checkpoints.items():
        check_in_ledger(folder, run.workspace.path(LEDGER))
        name, last = paths_of(run, seed).metrics, step_of(Path(folder)) or 0
        lacking = sorted({*range(1, last + 1)} - _steps(contents[name]))
        if lacking:
            raise RC1Error(
                f"no release: {run.workspace.path(name)}: lacks the metrics of step {lacking[0]} of {last}; restore "
                f"the file. Only a new training writes it again: move {folder.parent} away, then run `rc1 train`"
            )


def _steps(content: bytes) -> set[Any]:
    """Return the steps of the lines; lines of another form are skipped."""
    found = set()
    for line in content.splitlines():
        try:
            found.add(orjson.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
