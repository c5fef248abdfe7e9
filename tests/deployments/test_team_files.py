"""Pools and image: valid for Prefect, and the same deployments as on one machine."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from docker.utils.build import PatternMatcher
from prefect.cli.deploy._config import _load_deploy_configs_and_actions
from prefect.utilities.templating import apply_values
from rich.console import Console

from deployments.server import settings
from rc1_lib.workspace.artifacts import PROJECT_ROOT

from .team_files import (
    DEPLOYMENTS,
    POOLS,
    faults_of_dockerfile,
    faults_of_template,
    instructions,
    prefects_own,
    template,
)

BUILT = {"build_image": {"image": "team/rc1:abc", "image_name": "team/rc1", "tag": "abc"}, "name": "rc1"}
"""What `prefect deploy` knows after the image is built."""
DOCKERFILE = (DEPLOYMENTS / "containers/Dockerfile").read_text()


def pin(package: str) -> str:
    """The version of a package in constraints.txt."""
    pins = dict(line.split("==") for line in (PROJECT_ROOT / "constraints.txt").read_text().split() if "==" in line)
    return {name.lower(): version for name, version in pins.items()}[package]


def loaded(name: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Deployments and steps of a file, as `prefect deploy` reads it."""
    with Console(record=True) as console:
        deployments, actions = _load_deploy_configs_and_actions(DEPLOYMENTS / name, console=console)
    assert console.export_text() == ""
    return deployments, actions


@pytest.mark.parametrize("kind", POOLS)
def test_pool_template_differs_from_prefects_only_where_allowed(kind: str) -> None:
    assert faults_of_template(template(kind), prefects_own(kind)) == []


def test_container_deployments_equal_those_of_the_process_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RC1_POOL", "rc1-docker")
    plain, _ = loaded("prefect.yaml")
    contained, steps = loaded("containers/prefect.yaml")
    for one in contained:
        assert one["parameters"].pop("workspace") == "/workspace"
        where = apply_values(apply_values(one.pop("work_pool"), {}, remove_notset=False), BUILT)
        assert where == {"name": "rc1-docker", "job_variables": {"image": "team/rc1:abc"}}
    for one in plain:
        assert one.pop("work_pool") == {"name": "rc1-local"}
    assert contained == plain
    (pull,) = apply_values(steps["pull"], BUILT)
    assert pull["prefect.deployments.steps.set_working_directory"]["directory"] == "/opt/prefect/rc1"
    assert ("WORKDIR", "/opt/prefect/rc1") in instructions(DOCKERFILE)


def test_every_deployment_step_exists_and_accepts_its_arguments() -> None:
    if importlib.util.find_spec("prefect_docker") is None:
        pytest.skip("prefect-docker (extra `docker`) is not installed: its steps cannot be looked at")
    _, steps = loaded("containers/prefect.yaml")
    for name, given in ((name, given) for kind in steps.values() for step in kind for name, given in step.items()):
        module, _, function = name.rpartition(".")
        arguments = {key: value for key, value in given.items() if key not in ("id", "requires")}
        inspect.signature(getattr(importlib.import_module(module), function)).bind(**arguments)


def test_image_is_pinned_and_does_not_run_as_root() -> None:
    assert faults_of_dockerfile(DOCKERFILE) == []
    project = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["train"], *extras["docker"]]
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
