"""A gate of another package, the how-to's: RC1 finds it by its entry point, runs it, and pins its file."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib import run as run_module
from rc1_lib.config.file import departures
from rc1_lib.config.foreign_gates import foreign_gates, sections
from rc1_lib.errors import ConfigError, TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.gates import gate_list
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run, published_config
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import Verdicts
from tests.pages import example

GATE = example("own-gate.md", '"""Answers:')
MOST = "gates.answers.max_share"
Install = Callable[..., Path]


def forget() -> None:
    for cached in (foreign_gates, sections, run_module._published):
        cached.cache_clear()
    sys.modules.pop("rc1_answers", None)
    importlib.invalidate_caches()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with this gate, as pip does, in the place of an earlier one; gives its file."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def put(code: str = GATE, name: str = "answers") -> Path:
        info = site / "rc1_answers-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rc1-answers\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rc1.gates]\n{name} = rc1_answers:SPEC\n")
        (site / "rc1_answers.py").write_text(code)
        forget()
        gates = gate_list.all_gates()
        monkeypatch.setattr(gate_list, "PREFLIGHT", gates)
        monkeypatch.setattr(gate_list, "BY_NAME", {spec.name: spec for spec in gates})
        return site / "rc1_answers.py"

    yield put
    shutil.rmtree(site, ignore_errors=True)
    forget()


def judged(yes: int, no: int, *tasks: str) -> Any:
    answers = ["yes"] * yes + ["no"] * no
    rows = pl.DataFrame({"id": [f"row-{at}" for at in range(len(answers))], "task": "strategyqa", "answer": answers})
    module = importlib.import_module("rc1_answers")
    return module.answers_gate(rows, module.SPEC.thresholds, ["strategyqa", *tasks])


def test_seven_of_ten_answers_may_be_the_same_and_eight_may_not(install: Install) -> None:
    install()
    assert judged(7, 3).status is Status.PASSED
    assert judged(8, 2).status is Status.FAILED and len(judged(8, 2).offenders) == 8
    assert judged(5, 5, "gsm8k").status is Status.FAILED


def test_registered_gate_is_evaluated_behind_the_others_with_thresholds_of_the_configuration(
    install: Install, tmp_path: Path
) -> None:
    house = [spec.name for spec in gate_list.gates_of_round(1)]
    install()
    assert [spec.name for spec in gate_list.gates_of_round(1)] == [*house, "answers"]
    small = ("pool.n=120", "shadow.n=40", "pool.workers=1")
    run = open_run(workspace=tmp_path / "workspace", overrides=small)
    build_seed(run)
    assert gate_list.evaluate("answers", Evidence(run), 1).status is Status.PASSED
    strict = open_run(workspace=tmp_path / "workspace", overrides=(*small, f"{MOST}=0.3"))
    failed = gate_list.evaluate("answers", Evidence(strict), 1)
    assert failed.status is Status.FAILED
    assert [check.threshold for check in failed.failures] == [0.3]
    changed = {one["key"]: one for one in departures(strict.config, published_config())}
    assert (changed[MOST]["value"], changed[MOST]["published"]) == (0.3, 0.7)
    assert MOST not in {one["key"] for one in departures(run.config, published_config())}
    assert run.config_sha256 != strict.config_sha256


@pytest.mark.parametrize("override", [f"{MOST}=2", f"{MOST}=null", "gates.answers.least=0", "gates.other={most: 1}"])
def test_section_that_does_not_fit_the_gate_is_refused(install: Install, tmp_path: Path, override: str) -> None:
    install()
    with pytest.raises(ConfigError, match=override.partition("=")[0]):
        open_run(workspace=tmp_path, overrides=[override])


def test_section_of_a_gate_that_nobody_registers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gates\.answers.*rc1\.gates"):
        open_run(workspace=tmp_path, overrides=["gates.answers={max_share: 0.5}"])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import no_such_module", "answers"),
        ("SPEC = None", "answers"),
        (GATE, "replies"),
        (GATE.replace('"answers", "do', '"mix", "do'), "mix"),
        (GATE.replace('("pool",)', '("swimming pool",)'), "answers"),
        ("class SPEC:\n    name = 'answers'", "answers"),
    ],
    ids=["cannot be imported", "no gate", "another name", "a name of RC1's", "an unknown file", "another class"],
)
def test_faulty_package_is_refused_by_its_name(install: Install, code: str, name: str) -> None:
    with pytest.raises(ConfigError, match="package rc1-answers registers"):
        install(code, name)


def test_ticket_pins_the_gate_by_package_version_and_file(install: Install, passed: Run, verdicts: Verdicts) -> None:
    file = install()
    run = open_run(profile="local", workspace=passed.workspace.root, overrides=passed.overrides)
    with pytest.raises(TicketError):  # of rounds without the gate
        issue_ticket(run)
    for number, found in verdicts.items():
        write_round(run, number, [*found, gate_list.evaluate("answers", Evidence(run), number)])
    ticket = issue_ticket(run)
    facts = {"package": "rc1-answers", "version": "1.0", "sha256": sha256_file(file)}
    assert ticket["foreign_gates"] == {"answers": facts}
    assert verify_ticket(run) == ticket
    install(f"{GATE}\n")
    with pytest.raises(TicketError, match=r"gates of other packages differ \(answers is"):
        verify_ticket(run)
    shutil.rmtree(file.parent)
    forget()
    with pytest.raises(TicketError, match=r"gates of other packages differ \(answers is"):
        verify_ticket(run)
