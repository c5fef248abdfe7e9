"""The report page: what is at its top, what it shows of each report, and that no data becomes markup."""

from __future__ import annotations

import base64
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import orjson
import pytest
from markupsafe import escape

from rc1_lib.errors import RC1Error
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.release.contents import completeness
from rc1_lib.release.junit import write_junit
from rc1_lib.release.package import write_package
from rc1_lib.release.ready import check_ready
from rc1_lib.release.report import PAGE, write_page
from rc1_lib.release.verifier import verify
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.evaluation.tables import PPO
from tests.trained import evaluated

pytestmark = pytest.mark.usefixtures("drawn")

HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)> {{ 7 * 7 }} 你好 \u202e"
SECRET = "sk-hidden-0123456789"


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page_of(run: Run) -> str:
    return run.workspace.path(write_page(run).path).read_text(encoding="utf-8")


def pictures(text: str) -> list[bytes]:
    sources = [one["src"] or "" for tag, one in Tags(text).found if tag == "img"]
    return [base64.b64decode(source.removeprefix("data:image/png;base64,")) for source in sources]


def test_completeness_counts_what_is_there_of_what_is_expected(own: Run) -> None:
    def counts() -> list[tuple[int, int]]:
        rows = completeness(own, read_json(own.workspace.path("reports/train.json"))).rows
        return [(int(row[1]), int(row[2])) for row in rows]

    (kept, checkpoints), steps, (known, files) = counts()
    assert kept == checkpoints > 0 and steps == (4, 4) and known == files - 1, "train.json is written by the test"
    metrics = own.workspace.path("reports/metrics.jsonl")
    metrics.write_bytes(b"".join(metrics.read_bytes().splitlines(keepends=True)[:3]))
    shutil.rmtree(own.workspace.path("checkpoints/rc1/step_00004"))
    own.workspace.path("reports/config_effective.yaml").write_text("a: b\n")
    assert counts() == [(kept - 1, checkpoints), (3, 4), (known - 1, files)]


def test_page_of_a_passed_run_is_reproducible_whole_and_part_of_the_release(own: Run) -> None:
    first = write_page(own)
    assert write_page(own) == first and first.failed == ()
    assert sha256_file(own.workspace.path(first.path)) == first.sha256
    text = own.workspace.path(first.path).read_text(encoding="utf-8")
    _assert_loads_nothing(text)
    _assert_shows_reports(own, text)
    package = write_package(check_ready(own), also=(first.path,))
    found = verify(own.workspace.path(package.path))
    assert found.problems == [] and found.files[first.path] == first.sha256


def _assert_loads_nothing(text: str) -> None:
    tags = Tags(text).found
    assert {tag for tag, _ in tags} & {"script", "iframe", "object", "embed", "audio", "video"} == set()
    attributes = [(name, value or "") for _, one in tags for name, value in one.items()]
    assert [name for name, _ in attributes if name.startswith("on")] == []
    assert [value for name, value in attributes if name == "src" and not value.startswith("data:image/png;")] == []
    assert [value for name, value in attributes if name == "href" and "//" in value] == []
    assert "@import" not in text and "url(" not in text


def _assert_shows_reports(run: Run, text: str) -> None:
    """The waivers and settings come first; then what changed, each picture once, and every gate."""
    evaluation = read_json(run.workspace.path(read_json(run.workspace.path("reports/train.json"))["evaluation"]))
    top = text[: text.index("<section")]
    assert ">PASSED<" in top and "Why this run failed" not in top
    assert "judge_agreement" in top and "gates.evaluation.min_prompts" in top
    compared = evaluation["modes"]["sampled"]["overall"]
    before, after = (f"{100 * compared[side]['success_needed']['value']:.1f} %" for side in ("before", "after"))
    assert f"<b>{before} → {after}</b>" in top
    drawn = pictures(text)
    titles = re.findall(r'<img [^>]*alt="([^"]*)"', text)
    assert len(drawn) == len(titles) == len(set(titles))
    for title, name in evaluation["plots"].items():  # the curves of all seeds: each seed's own are shown instead
        assert title == "training" or run.workspace.path(name).read_bytes() in drawn
    round1 = read_json(run.workspace.path("reports/preflight/round1.json"))
    for gate in round1["gates"]:
        assert f"<td>{gate['name']}</td>" in text
        for check in gate["checks"]:
            assert escape(check["name"]) in text


def test_hostile_text_is_escaped_and_secrets_are_masked(own: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", SECRET)
    evaluated(own, examples=f"# Dialogues\n\n{HOSTILE} {SECRET}\n")
    report = own.workspace.path("reports/train.json")
    write_json(report, {**read_json(report), "message": f"<script>{SECRET}</script>"})
    text = page_of(own)
    assert "<script" not in text and "<img src=x" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "{{ 7 * 7 }}" in text
    assert SECRET not in text


def test_a_training_that_failed_after_its_evaluation_has_not_passed(own: Run) -> None:
    assert not write_page(own).failed and not write_junit(own).failed
    path = own.workspace.path("reports/train.json")
    write_json(path, {**read_json(path), "pass": False, "message": "no disk"})
    assert write_page(own).failed == ("the training failed after its evaluation: no disk",)
    assert "the training failed after it: no disk" in str(write_junit(own).failed)


@pytest.mark.parametrize("name", ["../secret.pem", "reports/plots/a.png"])
def test_a_report_cannot_bring_a_file_into_the_page_that_is_no_picture(name: str, tmp_path: Path) -> None:
    run = open_run(profile="local", workspace=tmp_path / "workspace")
    for path in (run.workspace.path(name), tmp_path / "secret.pem"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a private key")
    write_json(run.workspace.path("reports/shadow_run_pre_run_check.json"), {"plots": {"picture": name}})
    text = page_of(run)
    assert "shadow_run_pre_run_check.json" in text
    assert pictures(text) == []


def test_cost_of_a_judge_without_prices_is_unknown(tmp_path: Path) -> None:
    run = open_run(profile="local", workspace=tmp_path)
    scoring = {"models": ["a"], "rows": 2, "calls": 6.0, "replayed": 0.0, "coverage": 1.0, "unstable": [], "usd": None}
    write_json(run.workspace.path("reports/shadow_run_pre_run_check.json"), {"scoring": scoring})
    assert "<td>unknown</td>" in page_of(run)


def test_failed_run_shows_its_reasons_at_the_top(own: Run) -> None:
    evaluated(own, replace(PPO, asks_needed=0.0, asks_clear=0.0))
    revoke_ticket(own, "wrong data")
    text = page_of(own)
    head = text[: text.index("Gates that did not judge")]
    assert ">FAILED<" in head and ">PASSED<" not in text
    assert "the gate ppo_eval failed: success where asking is needed up, pp" in head
    assert "the ticket was revoked: wrong data" in head


@pytest.mark.parametrize(("time", "shown"), [("2001-01-01T00:00:00+00:00", False), ("2999-01-01T00:00:00+00:00", True)])
def test_failed_nightly_counts_until_a_later_preflight(own: Run, time: str, shown: bool) -> None:
    write_json(
        own.workspace.path("reports/preflight/nightly.json"), {"time": time, "pass": False, "rounds": {"round1": []}}
    )
    assert any("nightly, round1" in reason for reason in write_page(own).failed) is shown


def test_missing_parts_are_reported_on_the_page(tmp_path: Path) -> None:
    run = open_run(profile="local", workspace=tmp_path)
    page = write_page(run)
    text = run.workspace.path(page.path).read_text(encoding="utf-8")
    for sentence in (
        "Nothing was trained", "The policy was not evaluated", "Nothing was calibrated", "No pool was measured",
        "No round was judged",
    ):  # fmt: skip
        assert sentence in text
    assert pictures(text) == []
    assert page.failed == (
        "round 1 was not judged",
        "round 2 was not judged",
        "there is no ticket",
        "the policy was not evaluated",
    )


@pytest.mark.parametrize(
    ("file", "body", "field"),
    [
        ("reports/train.json", {"runs": [{"seed": 1, "sha256": ""}]}, "checkpoint"),
        ("reports/preflight/ticket.json", {"version": 1}, "issued"),
        ("reports/preflight/round1.json", {"gates": [{"name": "a", "status": "passed"}]}, "checks"),
    ],
)
def test_report_of_another_form_is_named_with_what_it_lacks(
    file: str, body: object, field: str, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps(body))
    run = open_run(profile="local", workspace=tmp_path)
    with pytest.raises(RC1Error, match=rf"{re.escape(str(path))}: .*\b{field}\b"):
        write_page(run)
    assert not (tmp_path / PAGE).exists()
