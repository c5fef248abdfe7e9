"""Faults, interruptions, the log and the debug bundle (`failpack`)."""

from __future__ import annotations

import base64
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from deployments.local_run import FlowOutcome
from rc1_lib.cli.command import run_command
from rc1_lib.cli.endings import Ending
from rc1_lib.cli.flows import end_flow
from rc1_lib.cli.options import Options
from rc1_lib.cli.session import Session
from rc1_lib.failpack import write_failpack
from rc1_lib.masking import conceal, mask, secrets
from rc1_lib.workspace.artifacts import Workspace, write_text
from rc1_lib.workspace.file_hashes import sha256_file

from .conftest import Rc1

PLANTED = "sk-planted-4711"


def options(root: Path, as_json: bool = False) -> Options:
    return Options(root, as_json=as_json)


def broken(session: Session) -> int:
    session.show(f"working with {PLANTED}")
    raise ValueError(f"the disk of {PLANTED} is on fire")


def interrupted(session: Session) -> int:
    raise KeyboardInterrupt


def read_package(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]


def test_fault_exits_1_and_writes_a_report_and_a_debug_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(broken, options(tmp_path), {}) == 1
    (report,) = (tmp_path / "reports").glob("ERROR_*.json")
    body = json.loads(report.read_text())
    assert "FATAL: the disk of" in capsys.readouterr().err
    assert body["kind"] == "ValueError"
    assert any("broken" in line for line in body["trace"])
    assert any(line.startswith("working with") for line in body["last_lines"])
    (package,) = (tmp_path / "reports/rc1").glob("FAIL_*.tgz")
    assert f"reports/{report.name}" in read_package(package)


def large(session: Session) -> int:
    write_text(session.workspace.path("data/large.txt"), "x" * 1_000_000)
    return 0


def test_full_disk_error_names_the_file_that_could_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        assert run_command(large, options(tmp_path), {}) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    stderr = capsys.readouterr().err
    assert f"FATAL: {tmp_path}/data/large.txt: cannot be written (File too large); free space" in stderr
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_at_the_log_fails_with_a_message_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs/ops_now.log"
    log.parent.mkdir()
    log.symlink_to("/dev/full")
    monkeypatch.setattr("rc1_lib.cli.streams.stamped", lambda *_: log)
    assert run_command(large, options(tmp_path), {}) == 2
    stderr = capsys.readouterr().err
    assert stderr == (
        f"rc1: --workspace {tmp_path}: cannot write the log there (No space left on device); "
        f"free space, or choose another folder\n"
    )
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_missing_permission_is_a_user_error_not_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    really = os.open

    def refuse(path: str | Path, *flags: Any, **more: Any) -> int:
        if str(path).endswith(".tmp"):
            raise OSError(number, os.strerror(number), str(path))
        return really(path, *flags, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert run_command(large, options(tmp_path), {}) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(
        f"rc1: {tmp_path}/data: cannot be used ({os.strerror(number)}); give yourself the right to read"
    )
    assert "FATAL" not in stderr and not (tmp_path / "reports").exists()


@pytest.mark.parametrize(("state", "code", "packed"), [("Refused", 2, 0), ("GatesFailed", 2, 1), ("Failed", 1, 1)])
def test_rejected_run_writes_no_debug_bundle(tmp_path: Path, state: str, code: int, packed: int) -> None:
    outcome = FlowOutcome(code, state, "pool.n: too small", "")
    assert end_flow(Session(options(tmp_path), sys.stdout), outcome, {}, Ending("fail", "it")) == code
    assert len(list(tmp_path.glob("reports/rc1/FAIL_*.tgz"))) == packed


def test_refusal_before_the_log_exists_is_printed_as_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run_command(large, options(tmp_path / "file", as_json=True), {}) == 2
    body = json.loads(capsys.readouterr().out)
    assert (body["exit_code"], body["failpack"]) == (2, None) and "is a file" in body["error"]


def test_interruption_exits_130_without_traceback_or_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(interrupted, options(tmp_path), {}) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not (tmp_path / "reports").exists()


STOPPED = """
import os, signal, sys, time
from pathlib import Path
from rc1_lib.cli.command import run_command
from rc1_lib.cli.options import Options

def sleep():  # in short pieces: a signal between the last byte code and the sleep waits until the sleep is over
    for _ in range(600):
        time.sleep(0.1)

def wait(session):
    ready, says = os.pipe()
    worker = os.fork()
    if not worker:
        os.write(says, b".")
        sleep()
        os._exit(1)
    os.read(ready, 1)  # a signal that comes while Python sets a fork up is lost to its handler
    os.kill(worker, signal.SIGTERM)
    assert os.waitpid(worker, 0)[1] == signal.SIGTERM
    print("waits", flush=True)
    sleep()

run_command(wait, Options(Path(sys.argv[1])), {})
"""


def test_terminated_command_reports_it_once_and_its_workers_do_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert (
        stderr.split()
        == "rc1: stopped (SIGTERM); files are written whole or not at all, so run the command again".split()
    )


def test_planted_key_appears_in_no_output_log_or_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/older.log").write_text(f"key={PLANTED}\n")
    (tmp_path / ".env").write_text(f"SCORER_API_KEY={PLANTED}\n")
    (tmp_path / "reports/.prefect").mkdir(parents=True)
    (tmp_path / "reports/.prefect/profile.toml").write_text("x")
    run_command(broken, options(tmp_path, as_json=True), {})
    assert PLANTED not in "".join(capsys.readouterr())
    (package,) = (tmp_path / "reports/rc1").glob("FAIL_*.tgz")
    files = read_package(package)
    assert files["logs/older.log"] == b"key=***\n"
    assert not any(".env" in name or ".prefect" in name for name in files)
    assert not any(PLANTED.encode() in content for content in files.values())
    assert PLANTED not in "".join(path.read_text() for path in (tmp_path / "logs").glob("ops_*.log"))


@pytest.mark.parametrize(
    "setting",
    [
        "judge.api_key=sk-planted-4711", "judge.base_url=http://sk-planted-4711@host/v1", "base_model=h://u@sk-planted-4711@h",
        "judge.base_url=http://host/v1?a=b&token=sk-planted-4711", "judge.api_key=[sk-planted-4711",
    ],
)  # fmt: skip
@pytest.mark.parametrize("joined", [True, False])
def test_key_given_as_a_setting_appears_in_no_output_or_log(
    rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, joined: bool
) -> None:
    flags = [f"--set={setting}"] if joined else ["--set", setting]
    monkeypatch.setattr("sys.argv", ["rc1", "config", "verify", *flags])  # the log's first line shows it
    done = rc1("config", "verify", "--workspace", tmp_path, *flags)
    assert done.code == 2
    assert PLANTED not in done.out + done.err
    (log,) = (tmp_path / "logs").glob("ops_*.log")
    assert "--set" in log.read_text()
    assert PLANTED not in log.read_text()


def test_bundle_includes_a_rejected_configuration_with_keys_masked(rc1: Rc1, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(f"judge:\n  api_key: '{PLANTED}'\n  base_url: http://{PLANTED}@host\n  n: 3\n")
    done = rc1("failpack", "--workspace", tmp_path, "--config", tmp_path / "mine.yaml", "--json")
    assert done.code == 0
    packed = read_package(Path(json.loads(done.out)["failpack"]))["configs/mine.yaml"]
    assert packed == b"judge:\n  api_key: '***'\n  base_url: http://***@host\n  n: 3\n"


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_secret_is_masked_in_base64(before: str) -> None:
    text = base64.b64encode(f"{before}{PLANTED}:suffix".encode()).decode()
    shown = mask(text, secrets({"A_KEY": PLANTED}))
    assert "***" in shown
    assert b"planted" not in b"".join(base64.b64decode(piece + "=" * (-len(piece) % 4)) for piece in shown.split("***"))


@pytest.mark.parametrize(
    "before",
    ["Authorization: Bearer ", "{'Authorization': 'Token  ", "x-api-key: ", "SECRET_KEY=", '"my-access-token": "'],
)
def test_value_after_the_name_of_a_credential_is_masked(before: str) -> None:
    assert conceal(f"sent {before}{PLANTED} now", ()) == f"sent {before}*** now"


def test_text_that_only_resembles_a_secret_is_kept() -> None:
    text = "max_tokens: 128; key: gates.mix; a // b; tokens=5; see https://host/v1?page=2 and mail@host"
    assert conceal(text, ()) == text


def test_bundle_has_hashes_of_the_data_but_not_the_data(rc1: Rc1, workspace: Path) -> None:
    done = rc1("failpack", "--workspace", workspace, "--json")
    files = read_package(Path(json.loads(done.out)["failpack"]))
    listed = {item["path"]: item for item in json.loads(files["FINGERPRINTS.json"])["data"]}
    pool = workspace / "data/rollouts/rc1_seed.jsonl"
    assert done.code == 0
    assert listed["data/rollouts/rc1_seed.jsonl"] == {
        "path": "data/rollouts/rc1_seed.jsonl", "bytes": pool.stat().st_size, "sha256": sha256_file(pool),
    }  # fmt: skip
    assert not any(name.startswith("data/") for name in files)
    assert "configs/local.yaml" in files


def test_bundle_lists_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"data/caf\xe9.jsonl")
    write_text(tmp_path / name, "{}")
    listed = json.loads(read_package(write_failpack(Workspace(tmp_path)))["FINGERPRINTS.json"])
    assert [one["path"] for one in listed["data"]] == [name]


def test_bundle_has_no_dialogues_and_no_rows(tmp_path: Path) -> None:
    kept = {"metrics.jsonl", "ppo_eval_0a.json", "preflight/round1_length_offenders.jsonl"}
    for name in kept | {
        "dialogues_0a.jsonl", "reward_hacking.dialogues.jsonl", "shadow_run_now.rows.jsonl", "ppo_eval_0a.examples.md",
        "release/report.html",
    }:  # fmt: skip
        write_text(tmp_path / "reports" / name, "{}")
    packed = read_package(write_failpack(Workspace(tmp_path)))
    assert {name.removeprefix("reports/") for name in packed if name.startswith("reports/")} == kept


def test_secrets_are_found_by_name_and_short_values_are_kept() -> None:
    environment = {"A_KEY": "abcdef-1", "b_token": 'quo"ted-2', "C_PASSWORD": "none", "GIT_ASKPASS": "qwertz-3"}
    found = secrets(environment)
    assert mask('abcdef-1 quo"ted-2 quo\\"ted-2 none qwertz-3', found) == "*** *** *** none qwertz-3"


@pytest.mark.parametrize(
    "name", ["OPENAI_APIKEY", "db_pass", "SCORER_KEY_2", "MY_SECRET_VALUE", "API_TOKEN_3", "PGPASSWORD"]
)
def test_variable_with_a_secret_like_name_is_masked(name: str) -> None:
    assert mask("it is abcdef-1", secrets({name: "abcdef-1"})) == "it is ***"


def test_password_in_an_address_is_masked_encoded_and_decoded() -> None:
    found = secrets({"DATABASE_URL": "postgresql+asyncpg://rc1:pa%40ss-word@host:5432/db", "PLAIN_URL": "http://a/b"})
    assert mask("postgresql://rc1:pa%40ss-word@host pa@ss-word", found) == "postgresql://rc1:***@host ***"


def test_help_imports_no_heavy_library() -> None:
    heavy = ("polars", "pandera", "prefect", "datasets", "pydantic")
    code = f"import sys; import rc1_lib.cli.app; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
