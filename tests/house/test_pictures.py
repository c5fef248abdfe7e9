"""The pictures of README and docs are those that `make pictures` made, and the names in them are today's."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from rc1_lib.gates.gate_list import gates_of_round
from rc1_lib.workspace.artifacts import PROJECT_ROOT

FOLDER = PROJECT_ROOT / "docs/images"
RECORD: dict[str, Any] = json.loads((FOLDER / "pictures.json").read_text(encoding="utf-8"))
PAGES = [*PROJECT_ROOT.glob("*.md"), *(PROJECT_ROOT / "docs").rglob("*.md")]
AGAIN = "make the pictures again: make pictures RUN=WORKSPACE"


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts import each other by their plain names."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    yield
    for name in {"browser", "make", "record"} - before:
        sys.modules.pop(name, None)


@pytest.fixture
def record() -> ModuleType:
    return import_module("record")


def test_record_lists_exactly_the_pictures(record: ModuleType) -> None:
    assert sorted(path.name for path in FOLDER.glob("*.png")) == sorted(RECORD) == sorted(record.PICTURES)


def test_pictures_match_their_recorded_hashes() -> None:
    for name, one in RECORD.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == one["sha256"], AGAIN


def test_gates_in_pictures_are_todays() -> None:
    gates = {spec.name for spec in gates_of_round(1)}
    assert set(RECORD["gate_failed.png"]["gates"]) and all(set(one["gates"]) <= gates for one in RECORD.values()), AGAIN


def test_pictures_are_1000_pixels_wide_and_shown_on_a_page() -> None:
    shown = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in RECORD:
        with Image.open(FOLDER / name) as image:
            assert image.width == 1000, name
        assert f"images/{name})" in shown
