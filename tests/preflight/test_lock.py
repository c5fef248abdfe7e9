"""The ticket as a lock for other programs: `rc1 ticket verify` before a job, and a callback in its trainer."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from transformers import Qwen3Config, Qwen3ForCausalLM, Trainer, TrainingArguments

from rc1_lib.errors import TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.extras.adapters.ticket import CARRIED, TicketCallback
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import read_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json
from tests.conftest import Verdicts
from tests.pages import HOW_TO, example
from tests.pages import run as run_block

_RC1 = """
import sys
from rc1_lib.runtime.libraries import TRAINING
sys.modules |= dict.fromkeys(TRAINING)  # importing one of them is an error
from rc1_lib.cli import main
main()
"""
_OTHER = "kl_coef=0.031"


def changed_byte(run: Run, verdicts: Verdicts) -> str:
    path = Evidence(run).path("balanced")
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)
    return "rc1_seed.balanced.jsonl has changed"


def expired(run: Run, verdicts: Verdicts) -> str:
    """Replace the ticket by one of the same rounds that is valid for a second."""
    short = open_run(
        profile="local", workspace=run.workspace.root, overrides=[*run.overrides, f"ticket.ttl_hours={1.5 / 3600}"]
    )
    for number, found in verdicts.items():
        write_round(short, number, found)
    short.write_effective_config()
    expires = issue_ticket(short)["expires"]
    time.sleep(2.1)
    return f"it expired at {expires}"


def other_settings(run: Run, verdicts: Verdicts) -> str:
    return "kl_coef is 0.031"


FAULTS = pytest.mark.parametrize("fault", [changed_byte, expired, other_settings], ids=lambda fault: fault.__name__)
Fault = Callable[[Run, Verdicts], str]


def started(run: Run, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with this checkout's `rc1`, where `srun` only says what it was called with."""
    stubs = run.workspace.root.with_name("stubs")
    stubs.mkdir(exist_ok=True)
    for name, line in (("rc1", f"exec {shlex.quote(sys.executable)} -c {shlex.quote(_RC1)}"), ("srun", "echo trains")):
        (stubs / name).write_text(f'#!/bin/sh\n{line} "$@"\n')
        (stubs / name).chmod(0o755)
    given = {"PYTHONPATH": str(PROJECT_ROOT), "PATH": f"{stubs}{os.pathsep}{os.environ['PATH']}"}
    environment = {**os.environ, **given, "WORKSPACE": str(run.workspace.root)}
    return subprocess.run(command, env=environment, cwd=stubs, capture_output=True, text=True, check=False)


def verified(run: Run, *flags: str) -> subprocess.CompletedProcess[str]:
    return started(run, "rc1", "ticket", "verify", "--workspace", str(run.workspace.root), *flags)


def trainer(run: Run, out: Path, *overrides: str) -> Trainer:
    sizes = {"vocab_size": 8, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "head_dim": 4}
    return Trainer(
        model=Qwen3ForCausalLM(Qwen3Config(**sizes, num_attention_heads=2, num_key_value_heads=1)),
        args=TrainingArguments(str(out), max_steps=2, save_steps=1, use_cpu=True, report_to=[], disable_tqdm=True),
        train_dataset=[{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 8,
        callbacks=[TicketCallback(run.workspace.root, overrides=overrides)],
    )


@pytest.fixture
def recorded(ticketed: Run) -> Run:
    """A workspace with a ticket and the settings of its preflight."""
    ticketed.write_effective_config()
    return ticketed


def test_verify_holds_without_training_libraries(recorded: Run) -> None:
    before = sorted(recorded.workspace.root.rglob("*"))
    done = verified(recorded)
    assert done.returncode == 0, done.stderr
    assert sorted(recorded.workspace.root.rglob("*")) == before, "it may be mounted for reading only"


@FAULTS
def test_verify_refuses_with_a_sentence_that_names_the_cause(recorded: Run, verdicts: Verdicts, fault: Fault) -> None:
    cause = fault(recorded, verdicts)
    done = verified(recorded, *(["--set", _OTHER] if fault is other_settings else []))
    assert done.returncode == 2 and cause in done.stderr and "Traceback" not in done.stderr


def test_callback_lets_a_trainer_train_and_writes_the_ticket_into_the_run(recorded: Run, tmp_path: Path) -> None:
    trainer(recorded, tmp_path / "out").train()
    ticket = read_ticket(recorded)
    carried = read_json(tmp_path / "out" / CARRIED)
    assert carried["ticket_sha256"] == ticket["ticket_sha256"]
    assert carried["pins"]["balanced"] == ticket["files"]["balanced"]["sha256"]
    for step in (1, 2):
        kept = read_json(tmp_path / "out" / f"checkpoint-{step}" / "trainer_state.json")["stateful_callbacks"]
        assert kept["TicketCallback"]["attributes"] == {"ticket_sha256": ticket["ticket_sha256"]}


@FAULTS
def test_callback_refuses_before_a_step(recorded: Run, verdicts: Verdicts, tmp_path: Path, fault: Fault) -> None:
    cause = fault(recorded, verdicts)
    refused = trainer(recorded, tmp_path / "out", *([_OTHER] if fault is other_settings else []))
    with pytest.raises(TicketError, match=cause.replace(".", r"\.").replace("+", r"\+")):
        refused.train()
    assert refused.state.global_step == 0
    assert not list((tmp_path / "out").glob("*"))


def page_block(kind: str, opening: str) -> str:
    """The only block of this kind on the page that starts with these words."""
    blocks = re.findall(rf"```{kind}\n(.*?)```", (HOW_TO / "other-tools.md").read_text("utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(opening)]
    return str(found)


def test_slurm_script_trains_only_with_a_valid_ticket(recorded: Run, verdicts: Verdicts) -> None:
    script = recorded.workspace.root.with_name("grpo.sbatch")
    script.write_text(page_block("bash", "#!/bin/bash\n#SBATCH"))
    done = started(recorded, "bash", str(script))
    assert done.returncode == 0 and done.stdout.endswith("trains python grpo.py\n"), done.stderr
    cause = changed_byte(recorded, verdicts)
    done = started(recorded, "bash", str(script))
    assert done.returncode == 2 and cause in done.stderr and "trains" not in done.stdout


def test_init_container_refuses_after_a_changed_byte(recorded: Run, verdicts: Verdicts) -> None:
    pod = yaml.safe_load(page_block("yaml", "apiVersion: batch/v1"))["spec"]["template"]["spec"]
    (init,), (trainer,), (volume,) = pod["initContainers"], pod["containers"], pod["volumes"]
    (mount,) = init["volumeMounts"]
    assert trainer["volumeMounts"] == [mount] and mount["name"] == volume["name"], "it trains on what is verified"
    mounted = {mount["mountPath"]: str(recorded.workspace.root)}
    command = [mounted.get(word, word) for word in init["command"]]
    assert command != init["command"] and started(recorded, *command).returncode == 0
    cause = changed_byte(recorded, verdicts)
    done = started(recorded, *command)
    assert done.returncode == 2 and cause in done.stderr


@pytest.mark.filterwarnings("ignore")  # TRL calls its environments experimental
def test_grpo_example_trains_two_steps_and_not_after_a_changed_byte(
    recorded: Run, verdicts: Verdicts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "try").symlink_to(recorded.workspace.root)
    trainer = run_block(example("other-tools.md", '"""GRPO by TRL, with the ticket'))["trainer"]
    assert trainer.state.global_step == 2
    assert read_json(tmp_path / "grpo" / CARRIED)["ticket_sha256"] == read_ticket(recorded)["ticket_sha256"]
    with pytest.raises(TicketError, match=changed_byte(recorded, verdicts)):
        trainer.train()
