"""`rc1 review`: page and table of a made-up history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rc1_lib.checks import at_most
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.preflight.nights import NIGHTS
from rc1_lib.records import GateResult
from rc1_lib.release.report.review import PAGE, write_review
from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import Workspace
from rc1_lib.workspace.file_hashes import sha256_file
from tests.cli.conftest import call
from tests.release.histories import night, values, write
from tests.release.test_report import HOSTILE, Tags

pytestmark = pytest.mark.usefixtures("drawn")

EVIL = HOSTILE.encode("ascii", "ignore").decode()
JUDGE = {
    "scores": 100, "calls": 90, "hit_rate": 0.1, "share_429": 0.02, "latency_ms_median": 400.0, "latency_ms_p95": 900.0,
    "usd": 0.31, "cost_unknown": 0, "unstable": 0.03,
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """Seven nights: the value of one gate falls until it fails; another gate and its words are hostile."""
    check = at_most(EVIL, 0.01, 0.02, "", CheckInterval(0.005, 0.015, 0.95, 400, "rows"))
    gates = {EVIL: GateResult(EVIL, (check,)), "waived": GateResult("waived", waiver=EVIL)}
    lines = [
        night(day, {"falls": 1.5 - 0.1 * day, **gates}, judge=None if day == 2 else JUDGE, verdict=f"{day} {EVIL}")
        for day in range(7)
    ]
    write(place := Workspace(tmp_path), lines)
    return place


def page_of(place: Workspace, days: int = 7) -> str:
    return place.path(write_review(open_run(profile="local", workspace=place.root), days).path).read_text()


def test_review_page_is_reproducible(place: Workspace) -> None:
    run = open_run(profile="local", workspace=place.root)
    first = write_review(run, 7)
    assert write_review(run, 7) == first
    assert first.sha256 == sha256_file(place.path(PAGE))


def test_review_draws_every_gate_and_escapes_hostile_names(place: Workspace) -> None:
    text = page_of(place)
    tags = Tags(text)
    assert {tag for tag, _ in tags.found} & {"script", "img", "iframe", "object", "embed"} == set()
    attributes = [(name, value or "") for _, one in tags.found for name, value in one.items()]
    assert [name for name, _ in attributes if name.startswith("on") or name == "src"] == []
    assert [value for name, value in attributes if name.endswith("href") and "//" in value] == []
    assert len(tags.ids) == len(set(tags.ids)), "two pictures share a name"
    assert "{{ 7 * 7 }}" in text
    assert text.count("<figure>") == 1 + 2 + 6
    assert 'class="badge failed">FAILED' in text
    assert sha256_file(place.path(NIGHTS)) in text


def test_failed_night_is_named_at_the_top_of_the_page(place: Workspace) -> None:
    head = page_of(place).partition("<nav>")[0]
    assert "1 of 7 nights did not pass" in head
    assert "<b>2026-11-07, failed</b>: 6 &lt;/pre&gt;" in head


def test_trend_is_not_drawn_from_too_few_nights(place: Workspace) -> None:
    write(place, values(2.0, 1.9, 1.81, 1.7, 1.61, 1.5))
    assert ">trend<" in page_of(place)
    assert ">trend<" not in page_of(place, 2)


def test_review_table_fits_80_columns_and_lists_changes(place: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("review", "--workspace", str(place.root)) == 0
    printed = capsys.readouterr().out
    table = printed.partition("what changed")[2].partition("SHA-256")[0].splitlines()
    assert len(table) > 3 and max(map(len, table)) == 80
    assert "newly failed" in printed and "value 0.9, wanted >= 1" in printed
    assert call("review", "--workspace", str(place.root), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["nights"], document["changes"][0]["what"]) == ({"passed": 6, "failed": 1}, "newly failed")


@pytest.mark.parametrize(("history", "error"), [(None, "no nights"), (b"", "no nights"), (b"[]\n", "line 1: ")])
def test_missing_or_invalid_history_is_rejected(
    history: bytes | None, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if history is not None:
        write(place := Workspace(tmp_path), [])
        place.path(NIGHTS).write_bytes(history)
    assert call("review", "--workspace", str(tmp_path)) == 2
    printed = capsys.readouterr().err
    assert error in printed and "Traceback" not in printed
    assert not (tmp_path / PAGE).exists()
