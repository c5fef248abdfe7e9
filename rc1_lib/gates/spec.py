"""How a gate describes itself; the file of a gate ends with its description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rc1_lib.config.values import Section
from rc1_lib.evidence import Evidence
from rc1_lib.records import GateResult

Round = int
NIGHTLY: Round = 0
"""Gates that run only in the nightly, after both rounds."""


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One gate of the preflight.

    Attributes:
        name: its name in reports, tickets and waivers.
        title: the question that it answers, for people.
        reads: names of `Evidence.names`; their content and the gate's thresholds decide the verdict.
        gate: from the evidence and the round to the verdict; the round matters only if it reads the world.
        reads_world: whether it also reads what is in no file (disk, git, a provider, the clock). Round 2 then evaluates
            it again; otherwise it reuses a pass of round 1 on the same bytes.
        asks: whether it calls the judge, which costs money if the judge is live.
        looks_at: the gates whose calls of the judge it reads.
        on_score: whether it is about the judged score; if training does not reward that, the gate is not applicable.
        thresholds: of a gate of another package: the numbers that it publishes. A configuration may change them in
            `gates.<name>`; what holds is `Evidence.thresholds(name)`.
    """

    name: str
    title: str
    reads: tuple[str, ...]
    gate: Callable[[Evidence, Round], GateResult]
    rounds: tuple[Round, ...] = (1, 2)
    reads_world: bool = False
    asks: bool = False
    looks_at: tuple[str, ...] = ()
    on_score: bool = False
    thresholds: Section | None = None
