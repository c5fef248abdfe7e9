"""Everything that a run is given and that RC1 derives, in the order in which it is made.

This is the only list: what a preflight reads, what a ticket vouches for and what the gate `integrity` checks follow
from it. Builders name the descriptions of their own package.
"""

from __future__ import annotations

from rc1_lib.calibration.judge_baseline import JUDGE_BASELINE
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.reward_hacking import HACKING
from rc1_lib.calibration.weights_file import WEIGHTS
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.derived import EVALUATION
from rc1_lib.judge.prompt import JUDGE_SPEC
from rc1_lib.labels.given import LABELS
from rc1_lib.pool.derived import POOL, REFERENCE_TEMPLATES, SHADOW, TAKES, TEMPLATES
from rc1_lib.provenance.derived import Artifact, Described, Given
from rc1_lib.run import Run
from rc1_lib.training.derived import BASE, CHECKPOINT, REFERENCE
from rc1_lib.workspace.artifacts import sha256_folder

CONFIG = Given("config", lambda run: str(run.config_path))
SENTENCE_MODEL = Given(
    "sentence_model",
    lambda run: run.config.gates.leakage.semantic.model or "",
    sha256_folder,
    wanted=lambda run: run.config.gates.leakage.semantic.model is not None,
    made_by="gates.leakage.semantic.model names the folder of a sentence-embedding model",
)
GIVEN: tuple[Given, ...] = (CONFIG, JUDGE_SPEC, LABELS, TEMPLATES, REFERENCE_TEMPLATES, BASE, SENTENCE_MODEL)
DATA: tuple[Artifact, ...] = (SHADOW, TAKES, POOL, METRICS, BALANCED)
"""Rows and their measurements: every preflight builds them if they are missing or out of date."""
DERIVED: tuple[Artifact, ...] = (
    *DATA, WEIGHTS, HACKING, ABLATION, JUDGE_BASELINE, REFERENCE, CHECKPOINT, EVALUATION,
)  # fmt: skip
_ALL: tuple[Described, ...] = (*DERIVED, *GIVEN)
_BY_NAME = {one.name: one for one in _ALL}
NAMES = frozenset(name for name, one in _BY_NAME.items() if one.vouched)
"""What a ticket may name."""


def described(name: str) -> Described:
    """The description with this name.

    Raises:
        RC1Error: when there is none.
    """
    if name not in _BY_NAME:
        raise RC1Error(f"unknown file '{name}', expected one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def bound(run: Run) -> dict[str, Described]:
    """What a preflight of this run reads, and its ticket vouches for, by name."""
    return {name: one for name, one in _BY_NAME.items() if one.vouched and one.applies(run)}
