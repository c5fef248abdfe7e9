"""The list of everything that a ticket pins, in the order of building; `rc1_lib.evidence` adds what it does not pin.

Importing it imports no library that computes: `rc1 ticket verify` stands before other programs.
"""

from __future__ import annotations

from rc1_lib.calibration.derived import JUDGE_BASELINE, WEIGHTS
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.judge.prompt import JUDGE_SPEC
from rc1_lib.labels.derived import LABELS
from rc1_lib.pool.derived import POOL, REFERENCE_TEMPLATES, SHADOW, TAKES, TEMPLATES
from rc1_lib.provenance.derived import Artifact, Described, Given
from rc1_lib.run import Run
from rc1_lib.training.derived import BASE

CONFIG = Given("config", lambda run: str(run.config_path))
GIVEN: tuple[Given, ...] = (CONFIG, JUDGE_SPEC, LABELS, TEMPLATES, REFERENCE_TEMPLATES, BASE)
DATA: tuple[Artifact, ...] = (SHADOW, TAKES, POOL, METRICS, BALANCED)
"""Rows and their measurements: every preflight builds them if they are missing or out of date."""
_ALL: tuple[Described, ...] = (*DATA, WEIGHTS, JUDGE_BASELINE, *GIVEN)
VOUCHED = {one.name: one for one in _ALL}
"""Name -> description of everything that a ticket may pin."""


def bound(run: Run) -> dict[str, Described]:
    """Return name -> description of everything that a preflight of this run reads and its ticket pins."""
    return {name: one for name, one in VOUCHED.items() if one.applies(run)}
