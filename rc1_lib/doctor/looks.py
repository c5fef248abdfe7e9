"""All checks, in the order in which a run would meet them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rc1_lib.doctor.endpoints import look_at_judge, look_at_vllm
from rc1_lib.doctor.finding import Finding, Look
from rc1_lib.doctor.machine import look_at_disk, look_at_engine, look_at_environment, look_at_memory
from rc1_lib.doctor.start import (
    look_at_base,
    look_at_chat_contract,
    look_at_learnability,
    look_at_resume,
    look_at_rows,
    look_at_ticket,
    try_learnability,
)
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress

NOT_CHECKED = "not checked"
"""Found by a check that another one's failure prevents."""
LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "environment": look_at_environment,
        "ticket": look_at_ticket,
        "base": look_at_base,
        "engine": look_at_engine,
        "chat_contract": look_at_chat_contract,
        "judge": look_at_judge,
        "vllm": look_at_vllm,
        "rows": look_at_rows,
        "learnability": look_at_learnability,
        "resume": look_at_resume,
        "disk": look_at_disk,
        "memory": look_at_memory,
    }
)


def examined(run: Run, *, plays: bool = False) -> dict[str, Finding]:
    """The findings of all checks. An error that would stop a run is a finding with the same words.

    Args:
        run: what would be trained.
        plays: whether the initial policy plays, for `learnability`; else its latest report is read.
    """
    found, refusals = dict[str, Finding](), dict[str, str]()
    looks = {**LOOKS, "learnability": try_learnability} if plays else LOOKS
    for done, (name, look) in enumerate(looks.items()):
        report_progress("doctor", done, len(LOOKS))
        try:
            found[name] = look(run)
        except RC1Error as error:
            first = refusals.setdefault(str(error), name)
            found[name] = Finding("", str(error)) if first == name else Finding(NOT_CHECKED, f"fix the {first} first")
    return found
