"""What goes into a reproduction package, and of which artifacts it contains only fingerprints.

Data sets are large and can be rebuilt, byte for byte, from the package, so it contains only their fingerprints. The
base model comes from the project or the hub.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.evaluation.derived import EVALUATION, TRAINING_REPORT
from rc1_lib.evaluation.tables import Rows
from rc1_lib.evidence import DERIVED
from rc1_lib.gate_report import PLOTS
from rc1_lib.plots.training import read_metrics
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import TICKET
from rc1_lib.provenance.derived import Artifact
from rc1_lib.release.ready import Ready, name_of
from rc1_lib.run import EFFECTIVE, Run
from rc1_lib.training.checkpoint.ledger import read_ledger
from rc1_lib.training.checkpoint.manifest import NAME, fingerprint, step_of
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.vouched import DATA, bound
from rc1_lib.workspace.artifacts import PROJECT_ROOT, has_checksum
from rc1_lib.workspace.file_hashes import sha256_file

_GIVEN = ("judge_spec", "templates", "reference_templates")
_OTHER_REPORTS = (
    "reports/diversity_report.json", "reports/rc1/sample_manifest.json", "reports/rc1/difficulty_report.json",
    "reports/rc1/git_commit.txt",
)  # fmt: skip
_PROJECT = ("LICENSE", "constraints.txt", "pyproject.toml")
_ADAPTER = "adapter*"
LOCK = "environment/installed.txt"


def packed(ready: Ready) -> dict[str, Path]:
    """Return name in the package -> file in the workspace or the project."""
    run = ready.run
    found = {name_of(run, path): path for path in (*_configured(run), *_reported(ready), *_learned(ready))}
    found |= {f"environment/{name}": PROJECT_ROOT / name for name in _PROJECT}
    return dict(sorted(found.items()))


def _configured(run: Run) -> Iterator[Path]:
    given = bound(run)
    for path in (given[name].path(run) for name in _GIVEN if name in given):
        yield from (sorted(path.rglob("*.json")) if path.is_dir() else (path,))
    yield from run.config_files
    if WEIGHTS.applies(run):
        yield WEIGHTS.path(run)
    yield run.workspace.path(EFFECTIVE)


def _reported(ready: Ready) -> Iterator[Path]:
    """Yield ticket, rounds, training, and the record of how each derived file was made."""
    run, place = ready.run, ready.run.workspace
    yield from (place.path(name) for name in (TICKET, *PASSED.values(), TRAINING_REPORT, LEDGER))
    yield from filter(Path.is_file, map(place.path, _OTHER_REPORTS))
    for one in DERIVED:
        if not one.applies(run):
            continue
        name = one.where(run)
        yield from filter(Path.is_file, (place.manifest_path(name), place.checksum_path(name)))
    for one in (EVALUATION, HACKING, ABLATION):
        yield from _with_companions(run, one)
    named = [*ready.evaluation["plots"].values(), ready.evaluation.get("examples")]
    yield from (place.path(name) for name in named if name is not None)
    yield from sorted(place.path("reports").glob("shadow_run_*.json"))
    yield from sorted(place.path("reports").glob("calibration_report_*.json"))


def _with_companions(run: Run, one: Artifact) -> Iterator[Path]:
    """Yield a report, and the rows, dialogues and pictures that share its name."""
    report = one.path(run)
    yield from sorted(report.parent.glob(f"{report.stem}*"))
    yield from sorted(run.workspace.path(PLOTS).glob(f"{report.stem}*.png"))


def _learned(ready: Ready) -> Iterator[Path]:
    """Yield what was learned, for each seed: the adapter with its checkpoint's manifest, and the metrics."""
    for seed, folder in ready.checkpoints.items():
        yield from (folder / NAME, *sorted(folder.glob(_ADAPTER)))
        yield ready.run.workspace.path(paths_of(ready.run, seed).metrics)


def key_artifacts(ready: Ready) -> dict[str, dict[str, str | None]]:
    """Return path and SHA-256 of every key artifact, whether or not the package contains it."""
    place = ready.run.workspace
    found = {**ready.ticket["files"], **ready.ticket["reports"]}
    for name, path in (
        ("ticket", TICKET),
        ("training", TRAINING_REPORT),
        (EVALUATION.name, EVALUATION.where(ready.run)),
    ):
        found[name] = {"path": path, "sha256": sha256_file(place.path(path))}
    for seed, folder in ready.checkpoints.items():
        found[f"checkpoint seed {seed}"] = {"path": place.name(folder), "sha256": fingerprint(folder)}
    return found


def installed() -> str:
    """Return the versions of Python and of every installed library, one per line."""
    named = [(one.metadata["Name"], one.version) for one in distributions()]  # a broken install has neither
    lines = {f"{name.lower().replace('_', '-')}=={version}" for name, version in named if name}
    return "\n".join([f"# Python {platform.python_version()}", *sorted(lines)]) + "\n"


def completeness(run: Run, training: Mapping[str, Any]) -> Rows:
    """Return a table of what there is, of what is expected.

    Args:
        run: the workspace and its configuration.
        training: the training's report.
    """
    counts = {"checkpoints": _checkpoints(run), "steps in the metrics": (0, 0), "checksums": _checksums(run, training)}
    for one in training["runs"]:
        metrics = run.workspace.path(paths_of(run, int(one["seed"])).metrics)
        steps = step_of(run.workspace.path(str(one["checkpoint"]))) or 0
        logged = read_metrics(metrics)["step"].n_unique() if metrics.is_file() else 0
        there, wanted = counts["steps in the metrics"]
        counts["steps in the metrics"] = there + min(logged, steps), wanted + steps
    return Rows(
        "Completeness",
        ("what", "there", "expected", "share"),
        [(name, str(there), str(all_), f"{there / max(all_, 1):.0%}") for name, (there, all_) in counts.items()],
    )


def _checkpoints(run: Run) -> tuple[int, int]:
    """Return how many checkpoints of the ledger exist, and how many were not removed by rule.

    One whose save was killed just before it appeared counts as missing.
    """
    kept = dict[str, bool]()
    for entry in read_ledger(run.workspace.path(LEDGER)):
        kept[str(entry.get("path"))] = "removed" not in entry
    expected = [run.workspace.path(name) for name, stays in kept.items() if stays]
    return sum(path.is_dir() for path in expected), len(expected)


def _checksums(run: Run, training: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many key files have the checksum of their bytes in `reports/rc1`, and how many key files exist."""
    data = [one.where(run) for one in (*DATA, WEIGHTS) if one.applies(run)]
    evaluated = filter(None, [training.get("evaluation")])  # none with --no-evaluate
    names = [*data, EFFECTIVE, *PASSED.values(), TICKET, TRAINING_REPORT, *map(str, evaluated)]
    there = {name for name in names if run.workspace.path(name).is_file()}
    return sum(has_checksum(run.workspace, name) for name in there), len(there)
