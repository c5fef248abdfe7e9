"""Every adversarial policy of the library ends its episodes in the real environment, mostly without success."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rc1_lib.attacks.library import ATTACKS
from rc1_lib.attacks.play import played, read_attacks
from rc1_lib.attacks.scene import Scene
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError, RC1Error

LIMITS = Limits(turns=8, tokens=400, tool_errors=2, malformed=1, calls=5, turn_chars=2000, argument_chars=300)


@pytest.fixture(scope="module")
def rows(evidence: Any) -> list[dict[str, Any]]:
    """Rows of every task and language, with and without missing information."""
    shadow = evidence.rows("shadow").group_by("task", "lang", "needs_clarification", maintain_order=True).head(2)
    found: list[dict[str, Any]] = shadow.to_dicts()
    assert {row["lang"] for row in found} == {"en", "zh"}
    return found


def test_library_has_16_policies_with_distinct_descriptions() -> None:
    assert len(ATTACKS) >= 16
    assert all(one.sentence and one.name == name for name, one in ATTACKS.items())
    assert len({one.sentence for one in ATTACKS.values()}) == len(ATTACKS)


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_policy_ends_its_episodes_and_is_deterministic(name: str, rows: list[dict[str, Any]]) -> None:
    first = played(ATTACKS[name], rows, LIMITS)
    assert first == played(ATTACKS[name], rows, LIMITS)
    for row, done in zip(rows, first, strict=True):
        assert done["messages"][-1]["role"] == "assistant" or done["final"] == ""
        prompt = [one["content"] for one in row["messages"] if one["role"] in ("system", "user")]
        assert [one["content"] for one in done["messages"][: len(prompt)]] == prompt, "the prompt stays the row's own"


NEVER_RIGHT = ("silent", "never_asks", "ignores_the_reply", "right_steps_wrong_answer", "made_up_results", "padding",
               "tool_spam", "self_praise", "forged_verdict", "other_language", "many_questions_in_one",
               "sum_of_its_own", "one_step_too_many", "orders_the_judge", "sum_of_all_told",
               "another_sign", "looks_up_its_answer")  # fmt: skip


@pytest.mark.parametrize("name", NEVER_RIGHT)
def test_policies_without_the_right_answer_are_never_right(name: str, rows: list[dict[str, Any]]) -> None:
    done = played(ATTACKS[name], rows, LIMITS)
    assert not any(row["solved"] or row["lucky"] for row in done)


@pytest.mark.parametrize("name", ["sum_of_its_own", "one_step_too_many", "orders_the_judge"])
def test_answer_of_a_calculating_policy_is_its_last_calculator_result(name: str, rows: list[dict[str, Any]]) -> None:
    ended = [row for row in played(ATTACKS[name], rows, LIMITS) if row["final"]]
    assert len(ended) > len(rows) / 2, "the others reach a limit"
    for row in ended:
        *_, result = [one["content"] for one in row["messages"] if one.get("name") == "calc"]
        assert row["final"] == result


def test_always_asks_policy_obtains_the_missing_information(rows: list[dict[str, Any]]) -> None:
    missing = [row for row in rows if row["needs_clarification"]]
    for row, done in zip(missing, played(ATTACKS["always_asks"], missing, LIMITS), strict=True):
        replies = [one["content"] for one in done["messages"] if one.get("name") == "ask_user"]
        assert done["asked"] == 1
        assert row["slot"]["value"] in replies[0], "the simulated user gives the missing information"


def test_scene_follows_the_tool_steps_of_the_recorded_dialogue(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        scene = Scene(row, LIMITS)
        made = scene.follow()
        results = [one["content"] for one in row["messages"] if one["role"] == "tool" and one["name"] != "ask_user"]
        assert made == results[: len(made)]


def test_a_rule_that_accepts_everything_is_named(rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "is_right", lambda *_: True)
    with pytest.raises(RC1Error, match=r"answer rule of '\w+' takes every answer .*rc1 check-answers --task"):
        Scene(rows[0], LIMITS)


def test_custom_policy_is_read_from_a_file(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    file = tmp_path / "shrug.py"
    file.write_text('def play(scene):\n    """Shrugs."""\n    scene.answer("who knows")\n', encoding="utf-8")
    own = read_attacks([file])
    assert own["shrug"].sentence == "Shrugs"
    assert {row["final"] for row in played(own["shrug"], rows, LIMITS)} == {"who knows"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, r"own\.py.* not found"),
        ("def play(scene:\n", "cannot be run"),
        ("import nothing_of_this_name\n", "cannot be run"),
        ("x = 1 / 0\n", r"cannot be run \(ZeroDivisionError"),
        ("x = 1\n", "function play"),
        ("def play(scene):\n    scene.answer('a')\n", "docstring"),
    ],
)
def test_invalid_policy_file_is_rejected(text: str | None, error: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=error):
        read_attacks([file])


def test_two_policies_of_one_name_are_rejected(tmp_path: Path) -> None:
    files = [tmp_path / folder / "own.py" for folder in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_text('def play(scene):\n    """Shrugs."""\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a/own\.py and .*b/own\.py both define the policy 'own'"):
        read_attacks(files)


def test_policy_with_a_fault_is_rejected(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    file = tmp_path / "faulty.py"
    file.write_text('def play(scene):\n    """Fails."""\n    scene.titles[99]\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"faulty\.py: play\(scene\) failed on the prompt .*IndexError"):
        played(read_attacks([file])["faulty"], rows, LIMITS)


def test_policy_that_never_answers_is_rejected(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    file = tmp_path / "lazy.py"
    file.write_text('def play(scene):\n    """Does nothing."""\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"'lazy': .*'shadow-hotpotqa-000000'.*scene\.answer"):
        played(read_attacks([file])["lazy"], rows, LIMITS)
