"""What a training would start from: its ticket, its base, and the checkpoint to resume."""

from __future__ import annotations

from datetime import UTC, datetime

from rc1_lib.doctor.base_files import read_base
from rc1_lib.doctor.finding import Finding
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.run import Run
from rc1_lib.training.run_paths import paths_of


def look_at_ticket(run: Run) -> Finding:
    """Whether the ticket allows training with this configuration."""
    ticket = verify_ticket(run)
    left = (datetime.fromisoformat(ticket["expires"]) - datetime.now(UTC)).total_seconds() / 3600
    return Finding(f"valid, of profile {ticket['profile']}, for {left:.1f} h more")


def look_at_base(run: Run) -> Finding:
    """Whether the base exists and is complete."""
    base = read_base(run)
    return Finding(f"{run.config.base_model}: {base.parameters:,} parameters in {len(base.shapes)} weights, complete")


def look_at_chat_contract(run: Run) -> Finding:
    """Whether the base's chat template says what training would learn, and what it lacks."""
    from rc1_lib.training.base_model import end_ids, load_tokenizer
    from rc1_lib.training.chat_contract import CHECKS, check_chat_contract
    from rc1_lib.training.chat_format import format_of
    from rc1_lib.training.models import model_section

    base = read_base(run)
    tokenizer = load_tokenizer(model_section(run.config, str(base.folder.absolute())))
    ends = end_ids(str(base.folder.absolute()), base.configuration())
    found = check_chat_contract(format_of(tokenizer, run.config.training), run.config, ends)
    return Finding(f"{', '.join(CHECKS)}: as sampled{f'; {found}' if found else ''}")


def look_at_resume(run: Run) -> Finding:
    """The step from which every seed would resume; damaged checkpoints do not count, another run's are refused."""
    if not any(run.workspace.path(paths_of(run, seed).checkpoints).is_dir() for seed in run.config.seeds):
        return Finding(f"from the start: no seed of {', '.join(map(str, run.config.seeds))} has a checkpoint")
    from rc1_lib.doctor.resume import resume_of

    found = {seed: resume_of(run, seed) for seed in run.config.seeds}
    damaged = [fault for one in found.values() for fault in one.damaged]
    words = "; ".join(f"seed {seed}: {one.words}" for seed, one in found.items())
    advice = [one.refusal for one in found.values() if one.refusal]
    if damaged:
        advice.append(f"{'; '.join(damaged)}. Training would resume from the one before; move the damaged one away")
    return Finding(words, "; ".join(advice))
