"""`build-base`: it builds a base from a recipe, and compares an existing base with its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml

from rc1_lib.workspace.artifacts import read_json

from .conftest import Rc1

BASE = "models/embedded"


@pytest.fixture(autouse=True)
def _threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe that builds within a second."""
    from tests.training.base_builder.test_build import tiny_recipe

    path = tmp_path / "base.yaml"
    path.write_text(yaml.safe_dump(tiny_recipe().model_dump(mode="json")))
    return path


@pytest.mark.long
def test_base_is_built_and_check_finds_a_damaged_file(rc1: Rc1, recipe: Path, tmp_path: Path) -> None:
    call = ("build-base", "--workspace", tmp_path / "place", "--recipe", recipe)
    done = rc1(*call)
    assert done.code == 0, done.err
    assert "accuracy by stage" in done.out and "parameters" in done.out
    record = read_json(tmp_path / "place" / BASE / "base.json")
    assert (tmp_path / "place" / BASE / "model.safetensors").is_file()

    checked = rc1(*call, "--check", "--json")
    assert (checked.code, json.loads(checked.out)["differ"]) == (0, [])
    weights = tmp_path / "place" / BASE / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    damaged = rc1(*call, "--check")
    assert damaged.code == 2
    assert "model.safetensors differs from what was built; the versions are the same" in damaged.out
    assert read_json(tmp_path / "place" / BASE / "base.json") == record, "checking writes nothing"
