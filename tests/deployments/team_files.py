"""What the files for a team's deployments are held to: each function names what is wrong with one, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import prefect.server.api
import yaml

from rc1_lib.workspace.artifacts import PROJECT_ROOT

DEPLOYMENTS = PROJECT_ROOT / "deployments"
POOLS = {"process": "prefect", "docker": "prefect-docker", "kubernetes": "prefect-kubernetes"}
"""Type of a work pool -> the package whose worker serves it."""

_METADATA = Path(prefect.server.api.__file__).parent / "collections_data/views/aggregate-worker-metadata.json"
_PLACEHOLDER = re.compile(r"\{\{ *(\w+) *\}\}")
_SECRET = re.compile(r"password|auth_string|authstring|secret|token|api_?key", re.IGNORECASE)
_FROM_OUTSIDE = re.compile(r"\$\{\w+:\?[^}]+\}")


def template(kind: str) -> dict[str, Any]:
    """Our base job template for a type of work pool."""
    found: dict[str, Any] = json.loads((DEPLOYMENTS / f"pools/{kind}.json").read_text())
    return found


def prefects_own(kind: str) -> dict[str, Any]:
    """Prefect's own base job template for a type of work pool."""
    found: dict[str, Any] = json.loads(_METADATA.read_text())[POOLS[kind]][kind]["default_base_job_configuration"]
    return found


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a document that holds no others, with the way to it."""
    if isinstance(tree, (dict, list)) and tree:
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def faults_of_template(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Where a template leaves Prefect's own, defaults and additions aside, or has a variable that decides nothing."""
    properties, original = ours["variables"]["properties"], theirs["variables"]["properties"]
    faults = [
        f"{name}: not as Prefect has it"
        for name, made in original.items()
        if {**properties.get(name, {}), "default": 0} != {**made, "default": 0}
    ]
    job = dict(leaves(ours["job_configuration"]))
    faults += [
        f"{path}: not as Prefect has it"
        for path, value in leaves(theirs["job_configuration"])
        if job.get(path) != value
    ]
    used = {name for value in job.values() for name in _PLACEHOLDER.findall(str(value))}
    return [*faults, *(f"{name}: decides nothing, or is no variable" for name in used ^ set(properties))]


def secrets_in(document: Any) -> list[str]:
    """Where a document holds a secret itself, in the place of the name by which it is given from outside."""
    return [
        ".".join(map(str, path))
        for path, value in leaves(document)
        if path and _SECRET.search(str(path[-1])) and isinstance(value, str) and not _given(str(path[-1]), value)
    ]


def _given(key: str, value: str) -> bool:
    return key == "existingSecret" or _FROM_OUTSIDE.fullmatch(value) is not None


def written(name: str) -> Any:
    """A YAML file below deployments/."""
    return yaml.safe_load((DEPLOYMENTS / name).read_text())


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with what follows each, its lines joined."""
    lines = [line for line in dockerfile.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "")
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined.splitlines()]


def faults_of_dockerfile(dockerfile: str) -> list[str]:
    """What an image would hold that no pin decides, and whom it would run as."""
    steps = instructions(dockerfile)
    installs = [part for name, what in steps if name == "RUN" for part in what.split("&&") if "pip install" in part]
    faults = [f"{part.strip()}: from no pins" for part in installs if " -c " not in part and " --no-deps " not in part]
    bases = [what for name, what in steps if name == "FROM"]
    faults += [f"{base}: of no version" for base in bases if not re.search(r":\d+\.\d+", base)]
    users = [what for name, what in steps if name == "USER"]
    return faults if users and users[-1] != "root" else [*faults, "runs as root"]
