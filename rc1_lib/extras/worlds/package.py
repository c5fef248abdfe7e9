"""Export the environment as a folder for OpenEnv: rows, manifest, server. The same inputs give the same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import orjson
import yaml

from rc1_lib import __version__
from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.extras.worlds.rows import check_fresh, rows_bytes, world_rows
from rc1_lib.extras.worlds.spec import MANIFEST, NAME, OWN, ROWS, Part, WorldSpec
from rc1_lib.pool.derived import TEMPLATES
from rc1_lib.provenance.code import code_sha256
from rc1_lib.records import MeasuredRow, Message
from rc1_lib.rows.chat import ARGUMENT_OF
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.atomic_folder import absent_folder, check_absent
from rc1_lib.workspace.file_hashes import sha256_file

PLAN = "validation/runtime.json"
Files = dict[str, bytes]
"""Path in the folder -> bytes."""
_RESOURCES = {"cpu": 1.0, "memory_mb": 2048, "disk_mb": 1024, "episode_timeout_s": 60.0}
_VERSION = b"0.0.0+rc1"
"""Placeholder for the version in files."""


def export_world(run: Run, pool: Path, target: Path, part: Part) -> dict[str, Any]:
    """Write the folder `target`, completely or not at all.

    Args:
        run: supplies limits and reward settings.
        target: must not exist yet.

    Returns:
        The manifest.

    Raises:
        RC1Error: if `target` exists, the rows are unavailable, or the balanced pool is out of date.
    """
    check_absent(target)
    if pool == BALANCED.path(run):
        check_fresh(run, BALANCED)
    document, contents = world_package(run, pool, part)
    write_folder(target, contents)
    return document


def write_folder(target: Path, contents: Files) -> None:
    """Write a new folder, completely or not at all.

    Raises:
        RC1Error: if `target` exists, or cannot be written.
    """
    with absent_folder(target) as folder:
        for name, content in contents.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def world_package(run: Run, pool: Path, part: Part) -> tuple[dict[str, Any], Files]:
    """Return the manifest, and every file of the folder, including the manifest."""
    rows = world_rows(run, pool, part)
    content = rows_bytes(rows)
    document = _manifest(run, pool, part, rows, WorldSpec.of(run, hashlib.sha256(content).hexdigest()))
    shown = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    return document, {
        MANIFEST: shown.encode(),
        ROWS: content,
        PLAN: orjson.dumps(_plan(rows), option=orjson.OPT_INDENT_2) + b"\n",
        **shipped(files(__package__) / "files"),
    }


def shipped(folder: Traversable) -> Files:
    """Return the files below `folder`, which are the same in every export of one version."""
    return {name: text.replace(_VERSION, __version__.encode()) for name, text in _below(folder)}


def _below(folder: Traversable, below: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_file():
            yield f"{below}{entry.name}", entry.read_bytes()
        elif entry.name != "__pycache__":
            yield from _below(entry, f"{below}{entry.name}/")


def _manifest(run: Run, pool: Path, part: Part, rows: list[MeasuredRow], spec: WorldSpec) -> dict[str, Any]:
    return {
        "spec_version": 1, "name": NAME, "version": __version__,
        "type": "space", "runtime": "fastapi", "app": "server.app:app", "port": 8000,
        "validation": {
            "reward": {"range": list(spec.reward_range()), "oracle_tolerance": 0.0, "floor_margin": 0.1},
            "resources": _RESOURCES,
            "network": {"mode": "no-network"},
            "task_distribution": {"dataset_version": spec.rows_sha256},
            "capabilities": {
                "verifier": {"kind": "reward_channel"},
                "declared_tools": list(ARGUMENT_OF),
                "declared_task_count": {part.value: len(rows)},
            },
            "types": {"tags": ["dialogue"]},
            "execution": {"kind": "openenv_ws", "probe_path": PLAN, "dockerfile": "Dockerfile", "context": "."},
        },
        OWN: {
            "version": __version__,
            "code": code_sha256("data"),
            "pool": {"path": run.workspace.name(pool), "sha256": sha256_file(pool)},
            "templates": {"path": run.workspace.name(TEMPLATES.path(run)), "sha256": TEMPLATES.sha256(run)},
            "rows": {"path": ROWS, "part": part.value, "count": len(rows), "sha256": spec.rows_sha256},
            **spec.body(),
        },
    }  # fmt: skip


def _plan(rows: list[MeasuredRow]) -> Mapping[str, Any]:
    """Return the episode with which OpenEnv tests the server: the turns of a demonstration that asks and succeeds."""
    row = next((row for row in rows if row["needs_clarification"] and row["solved"]), rows[0])
    return {
        "plan_schema_version": "1",
        "reset": {"episode_id": "validation", "seed": 0, "options": {"row": row["id"]}},
        "actions": [_action(message) for message in row["messages"] if message["role"] == "assistant"],
    }


def _action(message: Message) -> dict[str, Any]:
    return {"content": message["content"] or "", "tool_calls": message.get("tool_calls") or []}


# The rows of an exported environment: the playable rows of a pool, with their measured difficulty.
