"""Every command once, on a small pool of the embedded source."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
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


def test_mix_and_output_path_reach_the_builder(rc1: Rc1, tmp_path: Path) -> None:
    flags = ("--mix", "hotpotqa:0.2,strategyqa:0.2,gsm8k:0.6", "--out", "data/other.jsonl", "--tools", "wiki,calc")
    done = rc1("build-pool", "--workspace", tmp_path, *SMALL, *flags, "--templates_dir", "templates/pack_v2")
    assert done.code == 0
    assert "gsm8k 90" in done.out
    assert (tmp_path / "data/other.jsonl").exists()


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


def test_by_task_restricts_checks_per_task_except_the_mix(rc1: Rc1, workspace: Path) -> None:
    done = rc1("validate-pool", "--workspace", workspace, *SMALL, "--by_task", "gsm8k", "--json")
    names = {gate["name"]: [check["name"] for check in gate["checks"]] for gate in json.loads(done.out)["gates"]}
    assert "shortest[gsm8k]" in names["length"]
    assert "shortest[hotpotqa]" not in names["length"]
    assert "share[hotpotqa]" in names["mix"]


def test_failed_gate_exits_2_with_advice_and_offending_rows(rc1: Rc1, workspace: Path) -> None:
    done = rc1("validate-pool", "--workspace", workspace, *SMALL, "--min_len", "300")
    offenders = workspace / "reports/rc1/validate_pool_length_offenders.jsonl"
    assert done.code == 2
    assert "wanted >= 300" in done.out
    assert "rows at fault: reports/rc1/validate_pool_length_offenders.jsonl" in done.out
    first = json.loads(offenders.read_text().splitlines()[0])
    assert first["reason"] == "length" and first["source_id"].startswith("embedded/")


def test_offenders_of_an_earlier_run_are_removed(rc1: Rc1, workspace: Path) -> None:
    rc1("validate-pool", "--workspace", workspace, *SMALL, "--min-len", "300")
    rc1("validate-pool", "--workspace", workspace, *SMALL, "--min-len", "2")
    assert not (workspace / "reports/rc1/validate_pool_length_offenders.jsonl").exists()


def test_difficulty_report_is_written_and_drawn(rc1: Rc1, workspace: Path) -> None:
    done = rc1("validate-difficulty", "--workspace", workspace, *SMALL, "--tool_hops_max", "9")
    report = json.loads((workspace / "reports/rc1/difficulty_report.json").read_text())
    assert report["counts"]["pool"]["all"]["total"] == 150
    assert "rows per bucket" in done.out
    assert "█" in done.out
    assert widest_table_line(done.out) <= 100


def test_existing_difficulty_files_are_not_rewritten(rc1: Rc1, workspace: Path) -> None:
    for name in ("difficulty-metrics", "difficulty-bucketize"):
        done = rc1(name, "--workspace", workspace, *SMALL, "--json")
        assert (done.code, json.loads(done.out)["written_now"]) == (0, False)


def test_custom_target_changes_the_balanced_pool(rc1: Rc1, workspace: Path) -> None:
    target = ("--target", "easy:0.10,medium:0.45,hard:0.45", "--by_task", "gsm8k,hotpotqa,strategyqa")
    flags = (*target, "--out", "data/b.jsonl")
    done = rc1("difficulty-bucketize", "--workspace", workspace, *SMALL, *flags, "--json")
    assert done.code == 0
    assert 0 < json.loads(done.out)["rows"] < 150


@pytest.mark.parametrize("pool", [(), ("data/rollouts/rc1_seed.jsonl",)], ids=["pack", "rows"])
def test_diversity_is_reported_for_a_pack_and_for_rows(rc1: Rc1, workspace: Path, pool: tuple[str, ...]) -> None:
    done = rc1("diversity-report", "--workspace", workspace, *SMALL, *pool, "--json")
    report = json.loads((workspace / "reports/diversity_report.json").read_text())
    assert done.code == 0
    assert json.loads(done.out) == report
    assert report["kl_3gram"] > 0


def test_probe_passes_with_the_rubric_and_fails_without_a_live_judge(rc1: Rc1, workspace: Path) -> None:
    assert rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4").code == 0
    assert rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4", "--live").code == 2
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--provider", "gemini")
    assert done.code == 2
    assert "judge.model is empty" in " ".join(done.out.split())
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--provider", "gemini", "--model", "any")
    assert done.code == 2
    assert "SCORER_API_KEY is not set" in done.out.splitlines()[-4]
    assert "asked about" not in done.out, "no judge was called"


def test_assert_not_simulated_ignores_the_waiver_of_the_preflight(rc1: Rc1, workspace: Path) -> None:
    done = rc1("assert_not_simulated", "--workspace", workspace, *SMALL, "--cache_hit_lt", "0.9", "--json")
    gate = json.loads(done.out)["gates"][0]
    assert (done.code, gate["status"], gate["waiver"]) == (2, "error", "")


def test_shadow_set_is_materialised_with_its_manifest(rc1: Rc1, tmp_path: Path) -> None:
    files = ("--materialize", "data/s.jsonl", "--dump_manifest", "reports/m.json")
    flags = ("--n", "30", "--seed", "7", "--stratify", *files)
    done = rc1("shadow-run", "--workspace", tmp_path, *SMALL, *flags)
    manifest = json.loads((tmp_path / "reports/m.json").read_text())
    assert done.code == 0
    assert (manifest["n"], manifest["seed"]) == (30, 7)
    assert len((tmp_path / "data/s.jsonl").read_text().splitlines()) == 30


def test_config_is_shown_with_its_overrides(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("config", "show", "--workspace", tmp_path, "--set", "pool.n=77", "--json")
    assert json.loads(done.out)["pool"]["n"] == 77
    assert "n: 77" in rc1("config", "show", "--workspace", tmp_path, "--set", "pool.n=77").out


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
    shown = ("config", "show", "--workspace", tmp_path, "--json", "--sources")
    assert json.loads(rc1(*shown, tmp_path / "questions").out)["sources"]["use"] == str(tmp_path / "questions")
    assert json.loads(rc1(*shown, "hub", "--set", "sources.use=embedded").out)["sources"]["use"] == "hub"
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


def test_version_and_help_end_with_0(rc1: Rc1) -> None:
    assert rc1("--version").out.startswith("rc1 ")
    assert "Exit codes" in rc1("--help").out


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


def test_blank_lines_in_the_pool_are_ignored(rc1: Rc1, workspace: Path) -> None:
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    balanced = workspace / "data/rollouts/rc1_seed.balanced.jsonl"
    before = balanced.read_bytes()
    first, *others = pool.read_bytes().splitlines(keepends=True)
    pool.write_bytes(b"".join((first, b"\n", *others, b"\n")))
    for name in ("difficulty-metrics", "difficulty-bucketize"):
        assert rc1(name, "--workspace", workspace, *SMALL).code == 0
    assert balanced.read_bytes() == before


@pytest.mark.parametrize("lost", ["sample_manifest.json", "shadow_eval_245.sha256"])
def test_lost_side_file_of_the_shadow_set_is_rewritten(rc1: Rc1, workspace: Path, lost: str) -> None:
    path = workspace / "reports/rc1" / lost
    before = json.loads(path.read_text())["rows"] if path.suffix == ".json" else path.read_text()
    path.unlink()
    done = rc1("build-pool", "--workspace", workspace, *SMALL, "--json")
    written = {part: body["written_now"] for part, body in json.loads(done.out).items()}
    assert written == {"shadow": True, "takes": False, "pool": False}
    assert (json.loads(path.read_text())["rows"] if path.suffix == ".json" else path.read_text()) == before


def test_file_of_finished_rows_can_be_a_source(rc1: Rc1, workspace: Path, tmp_path: Path) -> None:
    rows = workspace / "data/rollouts/rc1_seed.jsonl"
    flags = ("--sources", rows, "--n", "60", "--set", "shadow.n=10", "--set", "pool.workers=1", "--json")
    done = rc1("build-pool", "--workspace", tmp_path / "other", *flags)
    assert (done.code, json.loads(done.out)["pool"]["rows"]) == (0, 60)


def test_pool_outside_the_workspace_can_be_validated(rc1: Rc1, workspace: Path, tmp_path: Path) -> None:
    outside = tmp_path / "rc1_seed.balanced.jsonl"
    outside.write_bytes((workspace / "data/rollouts/rc1_seed.jsonl").read_bytes())
    assert "Traceback" not in rc1("validate-pool", "--workspace", workspace, *SMALL, outside).err
    report = json.loads((workspace / "reports/rc1/validate_pool.json").read_text())
    assert report["files"]["pool"]["path"] == "rc1_seed.balanced.jsonl"
