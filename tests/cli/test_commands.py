"""Every command once, on a small pool of the embedded source."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import typer

from rc1_lib.cli.app import app

from .conftest import SMALL, Rc1, widest_table_line


def test_existing_pool_is_not_rebuilt(rc1: Rc1, tmp_path: Path) -> None:
    first = rc1("build_pool", "--workspace", tmp_path, "--n", "120", "--max_turns=6", *SMALL[2:], "--json")
    body = json.loads(first.out)
    assert (first.code, body["pool"]["rows"], body["pool"]["written_now"]) == (0, 120, True)
    again = rc1("build-pool", "--workspace", tmp_path, "--n", "120", "--max-turns", "6", *SMALL[2:], "--json")
    assert json.loads(again.out)["pool"]["written_now"] is False
    assert json.loads(again.out)["pool"]["sha256"] == body["pool"]["sha256"]


def test_validate_pool_reports_its_gates_and_changed_thresholds(rc1: Rc1, workspace: Path) -> None:
    done = rc1(
        "validate-pool", "--workspace", workspace, *SMALL, "data/rollouts/rc1_seed.jsonl", "--max_dup_pct", "100"
    )
    report = json.loads((workspace / "reports/rc1/validate_pool.json").read_text())
    names = ["mix", "length", "diversity", "duplicates", "leakage", "consistency", "missing_piece"]
    assert [gate["name"] for gate in report["gates"]] == names
    assert done.code == (0 if report["pass"] else 2)
    assert {"key": "gates.duplicates.max_dup_pct", "value": 100.0, "published": 2.0} in report["thresholds_changed"]
    assert widest_table_line(done.out) <= 100


def test_failed_gate_exits_2_with_advice_and_offending_rows(rc1: Rc1, workspace: Path) -> None:
    done = rc1("validate-pool", "--workspace", workspace, *SMALL, "--min_len", "300")
    offenders = workspace / "reports/rc1/validate_pool_length_offenders.jsonl"
    assert done.code == 2
    assert "wanted >= 300" in done.out
    assert "rows at fault: reports/rc1/validate_pool_length_offenders.jsonl" in done.out
    first = json.loads(offenders.read_text().splitlines()[0])
    assert first["reason"] == "length" and first["source_id"].startswith("embedded/")


def test_difficulty_report_is_written_and_drawn(rc1: Rc1, workspace: Path) -> None:
    done = rc1("validate-difficulty", "--workspace", workspace, *SMALL, "--tool_hops_max", "9")
    report = json.loads((workspace / "reports/rc1/difficulty_report.json").read_text())
    assert report["counts"]["pool"]["all"]["total"] == 150
    assert "rows per bucket" in done.out
    assert "█" in done.out
    assert widest_table_line(done.out) <= 100


def test_assert_not_simulated_ignores_the_waiver_of_the_preflight(rc1: Rc1, workspace: Path) -> None:
    done = rc1("assert_not_simulated", "--workspace", workspace, *SMALL, "--cache_hit_lt", "0.9", "--json")
    gate = json.loads(done.out)["gates"][0]
    assert (done.code, gate["status"], gate["waiver"]) == (2, "error", "")


def _commands(command: Any, name: str = "rc1") -> dict[str, Any]:
    """Name -> command, those of groups included."""
    if not hasattr(command, "commands"):
        return {name: command}
    return {
        key: found for one in command.commands.values() for key, found in _commands(one, f"{name} {one.name}").items()
    }


def test_every_command_that_takes_other_settings_takes_other_sources(rc1: Rc1, tmp_path: Path) -> None:
    """A preflight with --sources needs the same sources in the commands after it."""
    commands = _commands(typer.main.get_command(app)).items()
    known = {name: {flag for parameter in one.params for flag in parameter.opts} for name, one in commands}
    assert {"rc1 train", "rc1 evaluate", "rc1 ckpt export"} < known.keys()
    assert [name for name, flags in known.items() if "--set" in flags and "--sources" not in flags] == []
    assert [name for name, flags in known.items() if "--set" not in flags and "--sources" in flags] == []
    (tmp_path / "questions").mkdir()
    shown = ("config", "verify", "--workspace", tmp_path, "--json", "--sources")
    for given, more in ((str(tmp_path / "questions"), ()), ("hub", ("--set", "sources.use=embedded"))):
        assert json.loads(rc1(*shown, given, *more).out)["config"]["sources"]["use"] == given
    rejected = rc1(*shown, tmp_path / "nowhere")
    assert (rejected.code, "found no such folder or .jsonl file" in rejected.err) == (2, True)


def test_config_verify_fails_for_settings_that_may_not_train(rc1: Rc1, tmp_path: Path) -> None:
    assert rc1("config", "verify", "--workspace", tmp_path).code == 0
    done = rc1("config", "verify", "--workspace", tmp_path, "--set", "steps=10")
    assert done.code == 2
    assert "steps is 10, wanted >= 20" in done.out
    live = ("--set", "judge.provider=gemini", "--set", "judge.model=gemini-x", "--set", "judge.budget.max_calls=100")
    few = rc1("config", "verify", "--workspace", tmp_path, *live)
    assert few.code == 2 and "judge.budget.max_calls is 100, but the evaluation" in few.err
    for setting in (
        "training.held_out.prompts=599", "gates.reward_hacking.prompts=1", "base_model=Qwen/Qwen3-4B-Thinking-2507",
    ):  # fmt: skip
        never = rc1("config", "verify", "--workspace", tmp_path, "--set", setting)
        assert never.code == 2 and setting.partition("=")[0] in never.err


def test_rc1_without_a_command_shows_the_first_commands(rc1: Rc1) -> None:
    done = rc1()
    assert done.code == 0
    shown = [line.split("  ")[1] for line in done.out.splitlines() if line.startswith("  rc1 ")]
    known = _commands(typer.main.get_command(app))
    assert len(shown) == 5 and set(shown) <= known.keys()
    assert "rc1 --help" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_every_help_has_a_summary_an_example_and_exit_codes(rc1: Rc1) -> None:
    for name, command in _commands(typer.main.get_command(app)).items():
        first = command.help.split("\n\n")[0]
        assert len(first) <= 120 and first[-1] in ".?", name
        example, codes = command.epilog.split("\n\n")
        assert codes.startswith("Exit codes: 0 "), name
        words = shlex.split(example.removeprefix("Example: "))
        assert " ".join(words).startswith(name), name
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= flags, name
    assert "Example: rc1 train" in rc1("train", "--help").out
