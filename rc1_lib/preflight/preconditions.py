"""Whether a preflight could finish, answered before anything is built, asked or written."""

from __future__ import annotations

from importlib import import_module

from rc1_lib.config.hub_name import check_pinned
from rc1_lib.config.source_path import are_finished, source_path
from rc1_lib.errors import ConfigError
from rc1_lib.preflight.ticket_key import check_can_sign
from rc1_lib.run import Run
from rc1_lib.sources.local import files_of_tasks
from rc1_lib.sources.rows import check_dialogues
from rc1_lib.training.derived import BASE


def check_preconditions(run: Run, *, calibrates: bool, ticket: bool) -> None:
    """Refuse what could not finish. A command asks before a server starts; the flow asks for a worker's runs.

    Args:
        run: its configuration.
        calibrates: whether a calibration may be due.
        ticket: whether a ticket is to be issued at the end.

    Raises:
        RC1Error: saying what to change.
    """
    if calibrates:
        check_can_calibrate(run)
        check_source(run)
    if ticket:
        check_can_issue(run)


def check_source(run: Run) -> None:
    """Reject a folder of questions that lacks files for a task of the mix.

    Raises:
        SourceError: says which tasks, and where their files belong.
    """
    use = run.config.sources.use
    if use not in ("embedded", "hub") and (place := source_path(use, run.workspace)).is_dir():
        files_of_tasks(place, list(run.config.datasets))


def check_can_calibrate(run: Run) -> None:
    """Reject sources on which the ablation cannot run: finished dialogues have only one per prompt.

    Raises:
        ConfigError: says what such dialogues can be used for.
        SourceError: says where questions belong, if the file contains questions without dialogues.
    """
    if are_finished(run.config, run.workspace):
        check_dialogues(source_path(run.config.sources.use, run.workspace))
        raise ConfigError(
            f"{run.config.sources.use}: has finished dialogues, one per prompt. The ablation of the penalty "
            f"compares several dialogues about the same prompt, so these cannot be calibrated on or get a ticket. "
            f"`rc1 build-pool`, `validate-pool`, `score` and `probe-scorer` accept them; for a ticket, give the "
            f"questions themselves (--sources DIR, hub or embedded)"
        )


def check_can_issue(run: Run) -> None:
    """Refuse what no ticket could be issued for, or signed by the key that is asked for.

    Raises:
        RC1Error: saying what to change.
    """
    check_base(run)
    if run.config.gates.leakage.semantic.model is not None:
        from rc1_lib.evidence import SENTENCE_MODEL  # which takes a second to import

        import_module("rc1_lib.extras.semantic.sentence_model").check_folder(SENTENCE_MODEL.path(run))
    check_can_sign(run)


def check_base(run: Run) -> None:
    """Refuse a base whose bytes no ticket could vouch for: one on the hub that is pinned by no commit.

    Raises:
        ConfigError: saying how to pin it.
    """
    if not BASE.applies(run):
        check_pinned(run.config.base_model, "base_model")
