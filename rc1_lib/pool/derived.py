"""Inputs and artifacts of this room: both template packs, the shadow set, rollouts of its prompts, the seed pool."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from rc1_lib.config.judge import TAKES_PATH
from rc1_lib.provenance.derived import Artifact, Given, Input
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json, read_manifest, sha256_tree
from rc1_lib.workspace.file_hashes import sha256_known

Part = Literal["shadow", "takes", "pool"]
SAMPLE_MANIFEST = "reports/rc1/sample_manifest.json"


def _settings(part: Part, run: Run) -> dict[str, Any]:
    """Return the settings that decide the bytes of a part: not the workers, and `ablation.takes` for the takes only."""
    config = run.config
    decisive = {
        "datasets": dict(config.datasets),
        "sources": config.sources.model_dump(mode="json"),
        "pool": config.pool.model_dump(mode="json", exclude={"workers"}),
        "shadow": config.shadow.model_dump(mode="json"),
        "leakage": config.gates.leakage.model_dump(mode="json"),
        "length": config.gates.length.model_dump(mode="json"),
    }
    return {**decisive, "takes": config.ablation.takes} if part == "takes" else decisive


def _sample_is_stale(run: Run) -> bool:
    """Return whether the sample manifest is missing or describes another shadow set than the last one written."""
    try:
        sample = read_json(run.workspace.path(SAMPLE_MANIFEST))
    except (OSError, ValueError):
        return True
    written = read_manifest(run.workspace, run.config.shadow.path) or {}
    return not isinstance(sample, dict) or any(sample.get(key) != written.get(key) for key in ("path", "sha256"))


def _sources_sha256(run: Run) -> str:
    from rc1_lib.sources import sources_sha256  # with the libraries that read them, which no ticket needs

    return sources_sha256(run.config, run.workspace)


def _held_out_sha256(run: Run) -> str:
    hold_out = run.config.pool.hold_out
    return "" if hold_out is None else sha256_known(run.workspace.find(hold_out))


TEMPLATES = Given("templates", lambda run: run.config.pool.templates_dir, sha256_tree)
REFERENCE_TEMPLATES = Given("reference_templates", lambda run: run.config.pool.reference_templates_dir, sha256_tree)
_BUILDER, _COMMAND = "rc1_lib.pool.seed.build_seed", "rc1 build-pool"
_MADE_FROM = (
    Input("questions", _sources_sha256),
    Input("templates", lambda run: sha256_tree(TEMPLATES.path(run))),
)
SHADOW = Artifact(
    "shadow", lambda run: run.config.shadow.path, partial(_settings, "shadow"), _BUILDER, _COMMAND, _MADE_FROM,
    outdated=_sample_is_stale, vouched=True,
)  # fmt: skip
TAKES = Artifact(
    "takes", lambda _: TAKES_PATH, partial(_settings, "takes"), _BUILDER, _COMMAND, _MADE_FROM,
    vouched=True,
)  # fmt: skip
POOL = Artifact(
    "pool", lambda run: run.config.pool.path, partial(_settings, "pool"), _BUILDER, _COMMAND,
    (*_MADE_FROM, Input("hold_out", _held_out_sha256)), vouched=True,
)  # fmt: skip
PARTS: dict[Part, Artifact] = {"shadow": SHADOW, "takes": TAKES, "pool": POOL}
"""All parts are planned together, so that the pool shares no question with the others."""
