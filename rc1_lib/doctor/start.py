"""What a training would start from: its ticket, base, rows and checkpoint, and whether it can learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rc1_lib.check_words import check_line
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.doctor.base import base_config, base_folder
from rc1_lib.doctor.finding import Finding
from rc1_lib.preflight.ticket import verify_ticket, vouched_by
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.training.run_paths import LEDGER, paths_of
from rc1_lib.workspace.artifacts import in_form, read_json
from rc1_lib.workspace.folder import holding


def look_at_ticket(run: Run) -> Finding:
    """Whether the ticket allows training with this configuration."""
    ticket = verify_ticket(run)
    left = (datetime.fromisoformat(ticket["expires"]) - datetime.now(UTC)).total_seconds() / 3600
    return Finding(f"valid, of profile {ticket['profile']}, for {left:.1f} h more")


def look_at_base(run: Run) -> Finding:
    """Whether the base is on this machine; the ticket compares its bytes."""
    return Finding(f"{run.config.base_model}: {base_config(run).model_type}, in {base_folder(run)}")


def look_at_chat_contract(run: Run) -> Finding:
    """Whether the base's chat template says what training would learn, and what it lacks."""
    from rc1_lib.training.base_model import end_ids, load_tokenizer
    from rc1_lib.training.chat_contract import CHECKS, check_chat_contract
    from rc1_lib.training.chat_format import format_of
    from rc1_lib.training.models import model_section

    folder = str(base_folder(run).absolute())
    tokenizer = load_tokenizer(model_section(run.config, folder))
    ends = end_ids(folder, base_config(run))
    found = check_chat_contract(format_of(tokenizer, run.config.training), run.config, ends)
    return Finding(f"{', '.join(CHECKS)}: as sampled{f'; {found}' if found else ''}")


def look_at_rows(run: Run) -> Finding:
    """Whether there are rows to train and to evaluate on."""
    from rc1_lib.forecast.too_few import shortages

    if not (METRICS.path(run).is_file() and BALANCED.path(run).is_file()):
        return Finding("there is no balanced pool", "build it: rc1 preflight")
    lacking = "; ".join(filter(None, shortages(run)))
    if lacking:
        return Finding(lacking, "raise pool.n or training.max_tokens, and run the preflight again")
    return Finding("every bucket has rows to train on; as many prompts are held out as an evaluation needs in all")


def look_at_learnability(run: Run) -> Finding:
    """What the last check of learnability with this configuration found."""
    from rc1_lib.forecast.learnability import REPORT, START_REPORT

    found = dict[str, dict[str, Any]]()
    for name in (REPORT, START_REPORT):
        if (path := run.workspace.path(name)).is_file():
            with in_form(path):
                if (report := read_json(path))["config_sha256"] == run.config_sha256:
                    found[report["time"]] = {**report, "name": name}
    if found:
        report = found[max(found)]
        if report["pass"] is True:
            return Finding(f"{report['name']}: it passed")
        with in_form(run.workspace.path(report["name"])):
            failed = GateResult.from_report(report["gate"]).failures
        return Finding(
            f"{report['name']}: it failed: {'; '.join(map(check_line, failed))}",
            f"{failed[0].advice}; then repeat it: rc1 doctor --learnability",
        )
    return Finding("not tried with this configuration: rc1 doctor --learnability plays prompts, as training does first")


def try_learnability(run: Run) -> Finding:
    """Whether the initial policy can learn: it plays prompts several times."""
    from rc1_lib.forecast.learnability import run_learnability
    from rc1_lib.training.ppo_run import prepare

    run = replace(run, vouched=vouched_by(verify_ticket(run)))
    with holding(run.workspace, "a check of learnability"):
        run_learnability(prepare(run))
    return look_at_learnability(run)


def look_at_resume(run: Run) -> Finding:
    """The step from which every seed would resume; damaged checkpoints do not count, another run's are refused."""
    if not any(run.workspace.path(paths_of(run, seed).checkpoints).is_dir() for seed in run.config.seeds):
        return Finding(f"from the start: no seed of {', '.join(map(str, run.config.seeds))} has a checkpoint")
    found = {seed: _resume_of(run, seed) for seed in run.config.seeds}
    damaged = [fault for one in found.values() for fault in one.damaged]
    words = "; ".join(f"seed {seed}: {one.words}" for seed, one in found.items())
    advice = [one.refusal for one in found.values() if one.refusal]
    if damaged:
        advice.append(f"{'; '.join(damaged)}. Training would resume from the one before; move the damaged one away")
    return Finding(words, "; ".join(advice))


@dataclass(frozen=True, slots=True)
class _Resume:
    """Where a seed's run would resume.

    Attributes:
        step: of the checkpoint; 0 for the beginning.
        damaged: what is wrong with newer checkpoints.
        refusal: why it would not be trained at all: another run's checkpoints are there.
    """

    step: int
    damaged: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def words(self) -> str:
        """As part of a sentence."""
        if self.refusal:
            return "refused"
        return f"from step {self.step}" if self.step else "from the start"


def _resume_of(run: Run, seed: int) -> _Resume:
    """Check a seed's checkpoints, newest first, until one is intact and matches this configuration, code and pool."""
    from rc1_lib.training.another_run import differences, refuse_others
    from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
    from rc1_lib.training.checkpoint.manifest import steps
    from rc1_lib.training.checkpoint.save_load import load_to_resume
    from rc1_lib.training.ppo_run import known_facts

    folder, ledger = run.workspace.path(paths_of(run, seed).checkpoints), run.workspace.path(LEDGER)
    differs = partial(differences, facts=known_facts(run, seed))
    try:
        refuse_others(folder, ledger, differs)
    except CheckpointError as error:
        return _Resume(0, refusal=str(error))
    damaged = list[str]()
    for step, path in sorted(steps(folder).items(), reverse=True):
        if step > run.config.steps:
            continue
        try:
            if not differs(load_to_resume(path, ledger).values):
                return _Resume(step, tuple(damaged))
        except CheckpointError as error:
            damaged.append(str(error))
    return _Resume(0, tuple(damaged))
