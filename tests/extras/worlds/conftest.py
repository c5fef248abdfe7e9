"""A small exported world, for the tests of what serves and plays it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.extras.worlds.package import export_world
from rc1_lib.extras.worlds.spec import Part
from tests.extras.worlds.small import pool_of, small_run


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("world")
    run = small_run(root / "workspace")
    export_world(run, pool_of(run), root / "world", Part.ALL)
    return root / "world"
