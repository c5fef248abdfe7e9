"""Bad input of every kind: exit code 2, one message that says what is wrong, and no file written."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from tests.gates.damages import Damage
from tests.gates.damages_by_gate import NO_ROWS
from tests.shares import share

from .bad_input_kinds import BAD_ROWS, EVERY
from .bad_inputs import KEY, BadInput
from .conftest import SMALL, Done, Rc1

FILES = ("data/rollouts/rc1_seed.jsonl", "data/shadow_eval_245.jsonl")
UNKNOWN_ROLE = next(damage for damage in NO_ROWS if damage.name == "an unknown role")
"""The kind that `make test` gives to the command; `tests/rows/test_schema.py` has most others without it."""
_LOG = re.compile(r"logs/(ops_.*|train)\.log")


def error_message(done: Done) -> str:
    """The error on one line: the program's own, or the box of its flag parser."""
    assert done.code == 2, done.err
    assert "Traceback" not in done.err and "FATAL" not in done.err
    own = [line for line in done.err.splitlines() if line.startswith("rc1: ")]
    assert len(own) == 1 or (not own and done.err.startswith("Usage: "))
    return " ".join(done.err.replace("│", " ").split())


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Every file except logs, with size and modification time."""
    found = {path.relative_to(root).as_posix(): path.lstat() for path in root.rglob("*") if not path.is_dir()}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items() if not _LOG.fullmatch(name)}


@pytest.mark.parametrize(
    "given", [pytest.param(one, id=f"{of}: {one.kind}") for of, kinds in EVERY.items() for one in kinds]
)
def test_bad_input_fails_with_one_message_and_writes_nothing(
    rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: BadInput
) -> None:
    for name, value in given.environment.items():
        monkeypatch.setenv(name, value)
    given.make(tmp_path)
    before = files(tmp_path)
    done = rc1(*given.words(tmp_path))
    assert given.error in error_message(done)
    assert files(tmp_path) == before
    assert KEY not in done.out + done.err + "".join(path.read_text() for path in tmp_path.glob("logs/*"))


@pytest.mark.parametrize("damage", share(NO_ROWS, UNKNOWN_ROLE), ids=lambda damage: damage.name)
def test_malformed_row_is_reported_with_its_line(rc1: Rc1, finished: Path, tmp_path: Path, damage: Damage) -> None:
    rows, shadow = ([orjson.loads(line) for line in (finished / name).read_bytes().splitlines()] for name in FILES)
    damage.do(rows, shadow)
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    before = files(tmp_path)
    error = error_message(rc1("validate-pool", "--workspace", tmp_path, *SMALL, tmp_path / "rows.jsonl"))
    assert BAD_ROWS[damage.name] in error
    assert files(tmp_path) == before
