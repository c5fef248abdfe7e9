"""The report page: what is at its top, where its numbers link to, and that no data becomes markup."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import TRAINING_REPORT
from rc1_lib.plots import page as charts
from rc1_lib.preflight.round_report import PASSED
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.release.report import data, policy, reward
from rc1_lib.release.report.page import PAGE, Page, _steps, write_page
from rc1_lib.release.report.sources import Sources, said
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.evaluation.tables import PPO
from tests.once import copied
from tests.trained import evaluated

pytestmark = pytest.mark.usefixtures("drawn")

Reported = tuple[Path, Page]

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7 * 7 }} 你好 \u202e"


class Tags(HTMLParser):
    """Every tag with its attributes, and every id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    @property
    def ids(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.found if "id" in attributes]


def page_of(run: Run) -> str:
    return run.workspace.path(write_page(run).path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reported(releasable: Run, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """The workspace of a passed run and its page, made once. Read only."""
    run = copied(releasable, tmp_path_factory.mktemp("reported") / "workspace")
    return run.workspace.root, write_page(run)


@pytest.fixture(scope="module")
def folder(reported: Reported) -> Path:
    """The folder of a passed run's page."""
    return (reported[0] / PAGE).parent


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    """The page of a passed run."""
    return (folder / Path(PAGE).name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("ends", "shown"),
    [((), "48"), ((48, 48), "48"), ((48, 31), "48 of 48 (seed 1), 31 of 48 (seed 2)")],
)
def test_report_shows_the_trained_steps(tmp_path: Path, ends: tuple[int, ...], shown: str) -> None:
    run = open_run(profile="local", workspace=tmp_path, overrides=["steps=48"])
    if ends:
        runs = [
            {"seed": seed, "checkpoint": f"c/step_{end:05d}", "sha256": ""} for seed, end in enumerate(ends, start=1)
        ]
        write_json(tmp_path / TRAINING_REPORT, {"runs": runs})
    assert _steps(Sources(run)) == shown


def test_report_page_and_pictures_are_reproducible(own: Run, reported: Reported) -> None:
    root, first = reported
    assert write_page(own) == first
    for name in (first.path, *first.slides):
        assert sha256_file(own.workspace.path(name)) == sha256_file(root / name)
    assert first.failed == ()
    assert len(first.slides) > 10


def test_page_has_no_script_and_loads_nothing(page: str) -> None:
    tags = Tags(page)
    assert {tag for tag, _ in tags.found} & {"script", "img", "iframe", "object", "embed", "audio", "video"} == set()
    attributes = [(name, value or "") for _, one in tags.found for name, value in one.items()]
    assert [name for name, _ in attributes if name.startswith("on") or name == "src"] == []
    assert [value for name, value in attributes if name.endswith("href") and "//" in value] == []
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(tags.ids) == len(set(tags.ids)), "two pictures share a name"


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts without content but with their texts, for tests of the text."""

    def empty(name: str, title: str, caption: str, *_: object, legend: Sequence[tuple[str, str]] = ()) -> charts.Chart:
        svg = charts._inline("<svg></svg>", name, f"{title}. {caption}")
        return charts.Chart(name, title, caption, svg, b"", tuple(legend))

    for part in (data, policy, reward):
        monkeypatch.setattr(part, "draw", empty)


@pytest.mark.usefixtures("undrawn")
def test_hostile_dialogue_is_escaped(own: Run) -> None:
    evaluated(own, examples=f"# Dialogues\n\n{HOSTILE}\n")
    text = page_of(own)
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text


def test_every_number_links_to_a_file_with_its_hash(page: str, folder: Path) -> None:
    tags = Tags(page)
    cited = [one["href"] for tag, one in tags.found if tag == "a" and one.get("class") == "n"]
    assert len(cited) > 200
    assert {str(href).removeprefix("#") for href in cited} <= set(tags.ids)
    listed = re.findall(
        r'<tr id="source-[^"]+"><td><a href="([^"]+)">[^<]*</a></td><td>[\d,]+</td><td[^>]*>(\w+)', page
    )
    assert len(listed) > 8
    for href, sha256 in listed:
        assert sha256_file((folder / href).resolve()) == sha256


def test_judge_stability_table_shows_every_check_of_its_gate(reported: Reported, page: str) -> None:
    """Each criterion's, too, which the round's own table of compared values omits."""
    root, _ = reported
    gates = orjson.loads((root / PASSED[1]).read_bytes())["gates"]
    checks = next(gate["checks"] for gate in gates if gate["name"] == "judge_stability")
    shown = page.partition("Reliability and variance of its samples")[2].partition("</table>")[0]
    assert len([check for check in checks if check["op"] == "info"]) > 7
    for check in checks:
        assert f">{said(check['value'])}</a>" in shown.partition(f"<td>{check['name']}</td>")[2][:400]
    assert shown.count("<tr>") == 1 + len(checks)


def test_shown_change_is_after_minus_before(page: str) -> None:
    tiles = page.partition('<div class="tiles">')[2].partition("<section")[0]
    shown = re.findall(r">([−+]?[\d.]+)\u00a0(?:%|pp)", tiles)
    shares = [float(text.replace("−", "-")) for text in shown]
    assert len(shares) == 18
    for before, after, change in zip(shares[::3], shares[1::3], shares[2::3], strict=True):
        assert change == pytest.approx(after - before, abs=0.11)


def test_page_shows_right_answers_next_to_success_and_chance_next_to_right_without_asking(page: str) -> None:
    for title in ("Right where asking is needed", "Right answers by task and difficulty", "right before"):
        assert title in page
    table = page.partition("Right without asking, where asking is needed")[2].partition("</table>")[0]
    assert ">chance</th>" in table and re.findall(r">(\d+\.\d)\u00a0%</a></td></tr>", table) == ["25.0", "10.0"]
    assert "lucky<" not in page


def test_waivers_and_changed_thresholds_are_at_the_top(page: str) -> None:
    top = page.index("gates waived")
    assert page.index('class="badge passed">PASSED') < top < page.index('<div class="tiles">') < page.index("<section")
    assert page.index("judge_agreement") < page.index("<section")
    assert "gates.evaluation.min_prompts" in page[top : page.index("<section")]


@pytest.mark.usefixtures("undrawn")
def test_failed_run_shows_its_reasons_at_the_top(own: Run) -> None:
    evaluated(own, replace(PPO, asks_needed=0.0, asks_clear=0.0))
    revoke_ticket(own, "wrong data")
    text = page_of(own)
    head = text[: text.index("gates waived")]
    assert 'class="badge failed">FAILED' in head
    assert "the gate ppo_eval failed: success where asking is needed up, pp" in head
    assert "the ticket was revoked: wrong data" in head


def test_missing_parts_are_reported_on_the_page(tmp_path: Path) -> None:
    run = open_run(profile="local", workspace=tmp_path)
    page = write_page(run)
    text = run.workspace.path(page.path).read_text(encoding="utf-8")
    for sentence in (
        "Nothing was trained in this workspace", "The policy was not evaluated", "Nothing was calibrated",
        "No attack on the current reward", "nothing is known about its judge", "There is no measured pool",
        "No round was judged",
    ):  # fmt: skip
        assert sentence in text
    assert ("<figure" in text, page.slides) == (False, ())
    assert page.failed == (
        "round 1 was not judged",
        "round 2 was not judged",
        "there is no ticket",
        "the policy was not evaluated",
    )


@pytest.mark.parametrize(
    ("file", "body", "field"),
    [
        ("reports/train.json", [1], "the file as a whole"),
        ("reports/preflight/ticket.json", 5, "the file as a whole"),
        ("reports/preflight/ticket.json", {"version": 1}, "profile"),
        ("reports/train.json", {"runs": 5}, "runs"),
        ("reports/train.json", {"runs": [{"seed": 1, "sha256": ""}]}, "runs.0.checkpoint"),
        ("reports/train.json", {"seconds": [1.5]}, "seconds"),
        ("reports/preflight/round1.json", {"gates": [5]}, "gates.0"),
        ("reports/preflight/round1.json", {"gates": [{"name": "a", "status": "passed"}]}, "gates.0"),
        ("reports/preflight/round2_pass.json", {"waived": ["git"]}, "waived"),
        ("reports/preflight/round1.json", {"thresholds_changed": [{"key": "a"}]}, "thresholds_changed.0.value"),
        ("reports/calibration_report_1.json", {}, "weights"),
        ("reports/calibration_report_1.json", {"weights": {"a": "1"}}, "weights.a"),
        ("reports/shadow_run_pre_run_check.json", {"figures": 3}, "figures"),
        ("reports/shadow_run_pre_run_check.json", {"scoring": {"models": [None]}}, "models.0"),
        ("reports/shadow_run_pre_run_check.rows.jsonl", {"old": 0.5, "reward": 0.5}, "0.solved"),
    ],
)  # fmt: skip
def test_invalid_file_is_named_with_its_field_and_no_page_is_written(
    file: str, body: object, field: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(body) + b"\n")
    run = open_run(profile="local", workspace=tmp_path)
    with pytest.raises(RC1Error, match=rf"{re.escape(str(path))}: .*\b{re.escape(field)}: "):
        write_page(run)
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [path]


def test_release_contains_the_page(own: Run, reported: Reported) -> None:
    from rc1_lib.release.package import write_package
    from rc1_lib.release.ready import check_ready
    from rc1_lib.release.verifier import verify

    root, page = reported
    for name in (page.path, *page.slides):
        own.workspace.path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, own.workspace.path(name))
    package = write_package(check_ready(own), also=(page.path, *page.slides))
    found = verify(own.workspace.path(package.path))
    assert found.problems == []
    assert found.files[page.path] == page.sha256


@pytest.mark.parametrize(("seeds", "filled"), [([[1.0, 2.0]], 0), ([[1.0, 2.0], [2.0, 3.0]], 1)])
def test_band_is_drawn_for_more_than_one_seed(seeds: list[list[float]], filled: int) -> None:
    chart = charts.draw("lines", "t", "c", lambda axes: charts.lines(axes, [1, 2], seeds, [1.0, 2.0]))
    assert chart.svg.count("FillBetween") == filled
    assert "var(--new)" in chart.svg
    assert "#0072b2" not in chart.svg.lower()
