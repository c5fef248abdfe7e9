"""For a team: deployments that Prefect reads, and an image that is pinned, complete, and not run by root."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from docker.utils.build import PatternMatcher
from prefect.cli.deploy._config import _load_deploy_configs_and_actions
from rich.console import Console

from deployments.register import LISTED
from deployments.server import settings
from rc1_lib.workspace.artifacts import PROJECT_ROOT

DOCKERFILE = (PROJECT_ROOT / "deployments/Dockerfile").read_text()


def pin(package: str) -> str:
    """The version of a package in constraints.txt."""
    pins = dict(line.split("==") for line in (PROJECT_ROOT / "constraints.txt").read_text().split() if "==" in line)
    return {name.lower(): version for name, version in pins.items()}[package]


def instructions(dockerfile: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", "")
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in joined.splitlines()]


def faults_of(dockerfile: str) -> list[str]:
    """Unpinned installs and base images of a Dockerfile, and root as its user."""
    steps = instructions(dockerfile)
    installs = [part for name, what in steps if name == "RUN" for part in what.split("&&") if "pip install" in part]
    faults = [f"{part.strip()}: unpinned" for part in installs if " -c " not in part and " --no-deps " not in part]
    bases = [argument for name, argument in steps if name == "FROM"]
    faults += [f"{base}: without a version" for base in bases if not re.search(r":\d+\.\d+", base)]
    users = [argument for name, argument in steps if name == "USER"]
    return faults if users and users[-1] != "root" else [*faults, "runs as root"]


def test_image_is_pinned_and_does_not_run_as_root() -> None:
    assert faults_of(DOCKERFILE) == []
    project = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["train"]]
    assert all(pin(re.split(r"[\[=<]", one)[0]) for one in needed)
    given = "".join(what for name, what in instructions(DOCKERFILE) if name == "RUN" and "tomllib" in what)
    code = (
        given.partition('"')[2]
        .partition('"')[0]
        .replace("/opt/pins/pyproject.toml", str(PROJECT_ROOT / "pyproject.toml"))
    )
    shown: list[Any] = []
    exec(code.strip(), {"print": lambda *each, sep: shown.extend(each)})
    assert shown == needed


def test_image_has_the_settings_of_the_local_server(tmp_path: Path) -> None:
    (text,) = (what for name, what in instructions(DOCKERFILE) if name == "ENV")
    chosen, here = dict(one.split("=") for one in text.split()), settings(tmp_path, "http://127.0.0.1:4200")
    both = set(chosen) & set(here) - {"PREFECT_HOME"}
    assert both >= {"DO_NOT_TRACK", "PREFECT_LOGGING_EXTRA_LOGGERS"}
    assert {name: chosen[name] for name in both} == {name: here[name] for name in both}


def test_image_has_every_tracked_file_and_no_private_one() -> None:
    rules = [line for line in (PROJECT_ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    kept = PatternMatcher(rules)
    assert len(tracked.stdout.split()) > 500
    assert [path for path in tracked.stdout.split() if kept.matches(path)] == []
    ignored = (PROJECT_ROOT / ".gitignore").read_text().split()
    ignored += [f"docs/{rule}" for rule in ignored if not rule.startswith("/")]  # of any depth
    private = [rule.removeprefix("/").replace("*", "1") + "file" * rule.endswith("/") for rule in ignored]
    assert [path for path in private if not kept.matches(path)] == []


def test_prefects_deploy_reads_the_deployments() -> None:
    with Console(record=True) as console:
        found, _ = _load_deploy_configs_and_actions(LISTED, console=console)
    assert console.export_text() == "" and len(found) == 5
    assert {one["work_pool"]["name"] for one in found} == {"rc1-local"}
