"""What no ticket could be issued for; little is imported, so that the answer is there before anything else."""

from __future__ import annotations

from importlib import import_module

from rc1_lib.config.hub_name import check_pinned
from rc1_lib.evidence.registry import SENTENCE_MODEL
from rc1_lib.preflight.ticket_key import check_can_sign
from rc1_lib.run import Run
from rc1_lib.training.derived import BASE


def check_issuable(run: Run) -> None:
    """Refuse what no ticket could be issued for, or signed by the key that is asked for.

    Raises:
        RC1Error: saying what to change.
    """
    check_base(run)
    if SENTENCE_MODEL.wanted(run):
        import_module("rc1_lib.extras.semantic.sentence_model").check_folder(SENTENCE_MODEL.path(run))
    check_can_sign(run)


def check_base(run: Run) -> None:
    """Refuse a base whose bytes no ticket could vouch for: one on the hub that is pinned by no commit.

    Raises:
        ConfigError: saying how to pin it.
    """
    if not BASE.applies(run):
        check_pinned(run.config.base_model, "base_model")
