"""Every kind of damage fails exactly the gates that it names, and docs/experiments/damage-table.md shows the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rc1_lib.calibration.stages import STAGES
from rc1_lib.evaluation.control import GATE as CONTROL
from rc1_lib.evaluation.gate import GATE as PPO_EVAL
from rc1_lib.gates.gate_list import PREFLIGHT
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.gates.damage_done import GATES, SIZE, build_small, failing_gates, outcome
from tests.gates.damages import Damage
from tests.gates.damages_by_gate import DAMAGES, UNSEEN
from tests.gates.damages_of_scores import FOUND

PAGE = PROJECT_ROOT / "docs/experiments/damage-table.md"
SHARE = (
    "half of a task's rows gone", "a row of a few words", "made-up styles", "36 rows copied under new ids",
    "a row that names a shadow question as its source", "a wrong sum", "a complete row marked as needing",
    "an unknown tool",
    "shadow set: a repeated question", "metrics: a chosen row of 9 turns", "balanced pool: a prompt altered",
    "another bucket's recipe named",
)  # fmt: skip
"""The share for `make test`: one kind per gate, one with invalid rows, and one that no gate detects."""


def name_of(damage: Damage) -> str:
    return damage.name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with the fewest rows that all thresholds allow."""
    return build_small(tmp_path_factory.mktemp("small") / "whole", rows=240, shadow=48)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The workspace that the page's table was measured on."""
    return build_small(tmp_path_factory.mktemp("damage") / "whole", *SIZE)


def check(damage: Damage, built: Run, root: Path) -> None:
    found = outcome(damage, built, root)
    assert found.failed.keys() == damage.failing
    assert found.noticed


def test_no_gate_fails_on_the_intact_workspace(small: Run) -> None:
    assert failing_gates(small) == {}


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage.name in SHARE], ids=name_of)
def test_damage_fails_exactly_the_gates_that_it_names(damage: Damage, small: Run, tmp_path: Path) -> None:
    check(damage, small, tmp_path / "damaged")


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=name_of)
def test_every_kind_of_damage_fails_exactly_the_gates_that_it_names(damage: Damage, whole: Run, tmp_path: Path) -> None:
    check(damage, whole, tmp_path / "damaged")


def test_every_gate_has_its_own_damage_in_the_full_and_the_short_list() -> None:
    counted = Counter(damage.name for damage in DAMAGES)
    assert max(counted.values()) == 1
    assert len(counted) >= 60
    of_share = [damage for damage in DAMAGES if damage.name in SHARE]
    assert len(of_share) == len(SHARE)
    for some in (DAMAGES, of_share):
        assert frozenset(GATES) == frozenset().union(*(damage.meant for damage in some if len(damage.meant) == 1))


def test_the_page_lists_each_kind_with_the_gates_that_it_names() -> None:
    shown: dict[str, frozenset[str]] = {}
    for line in PAGE.read_text().splitlines():
        name, *cells = (cell.strip() for cell in line.replace("\\|", "¦").split("|")[1:-1] or [""])
        if len(cells) == len(GATES) and set(name) != {"-"} and name != "damage":
            shown[name.replace("¦", "|")] = frozenset(gate for gate, cell in zip(GATES, cells, strict=True) if cell)
    assert shown == {damage.name: damage.failing for damage in DAMAGES}
    assert all(not shown[damage.name] for damage in UNSEEN)


def test_every_other_gate_has_damages_whose_tests_exist() -> None:
    gates = {spec.name for spec in PREFLIGHT} | {stage.name for stage in STAGES} | {PPO_EVAL, CONTROL}
    assert {found.gate for found in FOUND} == gates - set(GATES)
    cited = {tuple(found.test.split("::")) for found in FOUND}
    missing = [test for file, test in cited if f"def {test}(" not in (PROJECT_ROOT / "tests" / file).read_text()]
    assert missing == []


def test_the_page_lists_the_damage_to_judge_reward_machine_and_training() -> None:
    shown = PAGE.read_text().splitlines()
    assert [found.line for found in FOUND if found.line not in shown] == []
