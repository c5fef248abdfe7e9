"""Checks of the files for a team's deployments: each function lists the faults of one file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import prefect.server.api

from rc1_lib.workspace.artifacts import PROJECT_ROOT

DEPLOYMENTS = PROJECT_ROOT / "deployments"
POOLS = {"docker": "prefect-docker", "kubernetes": "prefect-kubernetes"}
"""Type of a work pool -> the package whose worker serves it."""

_CLOSED = "command"
"""What no run may name, since it would run any code where the worker runs."""

_METADATA = Path(prefect.server.api.__file__).parent / "collections_data/views/aggregate-worker-metadata.json"
_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")


def template(kind: str) -> dict[str, Any]:
    """Our base job template for a type of work pool."""
    found: dict[str, Any] = json.loads((DEPLOYMENTS / f"pools/{kind}.json").read_text())
    return found


def prefects_own(kind: str) -> dict[str, Any]:
    """Prefect's own base job template for a type of work pool."""
    found: dict[str, Any] = json.loads(_METADATA.read_text())[POOLS[kind]][kind]["default_base_job_configuration"]
    return found


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf value of a document with its path."""
    if isinstance(tree, (dict, list)) and tree:
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def faults_of_template(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """A command that a run may name, differences from Prefect's template, and undefined variables.

    Defaults and additions may differ.
    """
    properties, original = ours["variables"]["properties"], theirs["variables"]["properties"]
    faults = [f"{_CLOSED}: a run may name it"] if _CLOSED in properties else []
    faults += [
        f"{name}: differs from Prefect's"
        for name, made in original.items()
        if name != _CLOSED and {**properties.get(name, {}), "default": 0} != {**made, "default": 0}
    ]
    job = dict(leaves(ours["job_configuration"]))
    faults += [
        f"{path}: differs from Prefect's"
        for path, value in leaves(theirs["job_configuration"])
        if _CLOSED not in _PLACEHOLDER.findall(str(value)) and job.get(path) != value
    ]
    used = {name for value in job.values() for name in _PLACEHOLDER.findall(str(value))}
    return [*faults, *(f"{name}: unused or undefined variable" for name in used ^ set(properties))]


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "")
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined.splitlines()]


def faults_of_dockerfile(dockerfile: str) -> list[str]:
    """Unpinned installs and base images of a Dockerfile, and root as its user."""
    steps = instructions(dockerfile)
    installs = [part for name, what in steps if name == "RUN" for part in what.split("&&") if "pip install" in part]
    faults = [f"{part.strip()}: unpinned" for part in installs if " -c " not in part and " --no-deps " not in part]
    bases = [argument for name, argument in steps if name == "FROM"]
    faults += [f"{base}: without a version" for base in bases if not re.search(r":\d+\.\d+", base)]
    users = [argument for name, argument in steps if name == "USER"]
    return faults if users and users[-1] != "root" else [*faults, "runs as root"]
