"""The check finds the known faults of reasoning-gym's rules, and none in rules without one (extra `rule-tests`)."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from rc1_lib.answer_rules.check import RuleReport
from rc1_lib.answer_rules.golds import Form
from rc1_lib.workspace.artifacts import PROJECT_ROOT

needs_reasoning_gym = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym (extra `rule-tests`) is not installed"
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark of the page on other libraries' rules, as a module."""
    path = PROJECT_ROOT / "benchmarks/bench_rules_of_others.py"
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def misjudged(report: RuleReport, *, right: bool) -> set[str]:
    return {one.kind.name for one in report.kinds if one.right is right and one.rate.failed}


@needs_reasoning_gym
def test_rule_that_reads_the_first_number_fails(bench: ModuleType) -> None:
    report = bench.asked("gsm_symbolic", entries=12, golds=6)
    assert report.form is Form.NUMBER
    assert misjudged(report, right=False) >= {"not_it", "two_answers", "other_sign", "more_than", "millions"}
    assert misjudged(report, right=True) >= {"english_words", "chinese_numerals", "worked_sum"}


@needs_reasoning_gym
def test_rule_that_reads_only_the_beginning_fails(bench: ModuleType) -> None:
    report = bench.asked("letter_jumble", entries=12, golds=6)
    assert misjudged(
report, right=False) == {
        "candidates_on_lines", "it_or_not_it", "two_answers", "in_parentheses_another", "on_a_condition", "two_names",
        "with_another_word",
    }  # fmt: skip


@needs_reasoning_gym
@pytest.mark.parametrize("name", ["chain_sum", "products", "spell_backward"])
def test_library_rule_accepts_the_gold_itself(bench: ModuleType, name: str) -> None:
    assert "as_given" not in misjudged(bench.asked(name, entries=12, golds=6), right=True)


@needs_reasoning_gym
def test_rules_that_compare_letter_by_letter_pay_no_wrong_answer(bench: ModuleType) -> None:
    for name in ("gcd", "products", "figlet_font"):
        assert misjudged(bench.asked(name, entries=12, golds=6), right=False) == set()


def test_missing_library_is_reported_with_what_was_not_run(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert bench.main([]) == 77
    assert "NOT RUN: answer rules of others" in capsys.readouterr().out
