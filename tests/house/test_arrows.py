"""Arrows between the rooms of `rc1_lib` point one way: docs/design.md shows the same picture."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rc1_lib.artifacts import PROJECT_ROOT

LIBRARY = PROJECT_ROOT / "rc1_lib"
ROOMS = {
    "answer_rules": "",
    "task_specs": "answer_rules",
    "rows": "",
    "scoring": "rows",
    "reward": "rows scoring",
    "labels": "reward scoring sources",
    "environment": "answer_rules reward rows",
    "attacks": "environment rows",
    "sources": "rows",
    "difficulty": "rows",
    "pool": "difficulty rows sources",
    "gates": "answer_rules environment pool reward rows scoring",
    "calibration": "attacks difficulty environment gates labels pool reward rows scoring",
    "preflight": "calibration evidence gates labels pool scoring training",
    "scale_up": "difficulty evidence gates pool preflight reward rows scoring",
    "doctor": "preflight scoring training",
    "forecast": "evaluation scoring training",
    "release": "calibration difficulty evaluation evidence preflight reward training",
    "training": "answer_rules calibration difficulty environment pool reward rows scoring sources",
    "evaluation": "environment gates reward scoring training",
    "evidence": "calibration difficulty evaluation labels pool rows scoring training",
    "worlds": "difficulty environment pool reward rows training",
    "testing": "scoring",
    "cli": (
        "answer_rules calibration difficulty doctor evaluation evidence forecast gates labels pool preflight release "
        "reward rows scale_up scoring testing training worlds"
    ),
    "notebook": "answer_rules calibration cli difficulty evidence gates pool preflight rows scoring",
}
"""Room -> the rooms that it may import, and every one of these it does import.

Single modules lie below all rooms but `task_specs`, which the configuration asks and every room may.
"""


def rooms_below(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/__init__.py")}


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports, lazily or not; for types alone, too."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def arrows() -> dict[str, set[str]]:
    rooms = rooms_below(LIBRARY)
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for path in (LIBRARY / room).rglob("*.py"):
            for module in imports(path):
                package, _, rest = module.partition(".")
                other = rest.split(".")[0]
                if package == "rc1_lib" and other in rooms - {room, "task_specs"}:
                    found[room].add(other)
    return found


def test_every_arrow_is_on_the_list_and_every_listed_arrow_is_there() -> None:
    assert arrows() == {room: set(others.split()) for room, others in ROOMS.items()}


def test_no_room_imports_one_that_imports_it() -> None:
    """Whatever the list says: along the arrows no way leads back."""
    found = arrows()
    while found:
        last = {room for room, others in found.items() if not others & set(found)}
        assert last, f"these import each other in a circle: {', '.join(sorted(found))}"
        found = {room: others for room, others in found.items() if room not in last}


def test_single_modules_import_no_room() -> None:
    rooms = rooms_below(LIBRARY) - {"task_specs"}
    reaching = {
        path.stem
        for path in LIBRARY.glob("*.py")
        for module in imports(path)
        if module.startswith("rc1_lib.") and module.split(".")[1] in rooms
    }
    assert reaching == {"__init__"}, "but the package itself, which gives what a notebook calls when asked for it"


def test_task_specs_lie_below_the_configuration() -> None:
    used = {
        module.split(".")[1]
        for path in (LIBRARY / "task_specs").glob("*.py")
        for module in imports(path)
        if module.startswith("rc1_lib.")
    }
    assert used == {"answer_rules", "calculator", "errors", "records", "task_specs"}
