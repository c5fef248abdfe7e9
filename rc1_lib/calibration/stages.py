"""The calibration as a list of stages: each is a gate, and nothing runs behind a red one.

Live scores come first in every stage: what is stored counts, the rest is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rc1_lib.artifacts import FileState
from rc1_lib.build_policy import NOT_OURS, Build, needs_build
from rc1_lib.calibration.overclar_ablation import is_ablated, overclar_ablation
from rc1_lib.calibration.shadow_run import CALIBRATED, baseline_run, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.calibration.weights_file import adopt, note_refusal, weights_state
from rc1_lib.difficulty.steps import balanced_state
from rc1_lib.errors import RC1Error
from rc1_lib.gate_report import GateReport
from rc1_lib.pool.seed import seed_state
from rc1_lib.run import Run

Weights = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        name: of its gate.
        title: what it answers, for people.
        evaluate: from the run and the candidate weights (None before there are any) to the outcome.
    """

    name: str
    title: str
    evaluate: Callable[[Run, Weights | None], GateReport]


STAGES: tuple[Stage, ...] = (
    Stage("shadow_baseline", "can the shadow set tell good from bad", lambda run, _: baseline_run(run)),
    Stage("calibration", "do calibrated weights know success better", lambda run, _: weight_calib(run)),
    Stage("overclar_ablation", "does the penalty do what it should", overclar_ablation),
    Stage("shadow_run", "does the new reward order better", lambda run, found: shadow_run(run, CALIBRATED, found)),
)
BY_NAME = {stage.name: stage for stage in STAGES}


def calibrate(run: Run) -> list[GateReport]:
    """Run the stages up to the first red one; when all are green the weights are adopted.

    Raises:
        RC1Error: when a stage cannot be evaluated.
    """
    done: list[GateReport] = []
    for stage in STAGES:
        done.append(stage.evaluate(run, candidate(done)))
        if not done[-1].passed:
            note_refusal(run)
            return done
    adopt_candidate(run, done)
    return done


def candidate(done: list[GateReport]) -> dict[str, float] | None:
    """The weights that the calibration among the stages done has found."""
    for outcome in done:
        if outcome.gate.name == "calibration":
            return dict(outcome.body["weights"])
    return None


def adopt_candidate(run: Run, done: list[GateReport]) -> None:
    """Write the weights of the calibration among the stages done."""
    calibration = next(outcome for outcome in done if outcome.gate.name == "calibration")
    adopt(run, calibration.body["weights"], calibration.report)


def check_overwriting(run: Run, *, rebuild: bool) -> None:
    """Refuse to write over weights that somebody else wrote, and to calibrate on rows that RC1 did not write so.

    Args:
        run: whose files.
        rebuild: whether everything is written again, whoever wrote it.

    Raises:
        RC1Error: naming the file and what befell it.
    """
    states = {
        run.config.weights: (weights_state(run), "write them again with --rebuild"),
        run.config.difficulty.balanced_path: (balanced_state(run), "write it again: rc1 preflight --rebuild"),
        run.config.ablation.takes_path: (seed_state(run, "takes"), "write it again: rc1 build-pool --rebuild"),
    }
    for path, (state, advice) in states.items():
        if not rebuild and state in NOT_OURS:
            raise RC1Error(f"{run.workspace.path(path)}: {NOT_OURS[state]}; move it away, or {advice}")


def is_due(run: Run, build: Build) -> bool:
    """Whether the calibration has to be run: like any file that RC1 makes, weights are never written over somebody's.

    Data that RC1 did not write as they are is for the rounds to name: nothing is calibrated on it.
    """
    if build == "never" or any(
        state is not FileState.FRESH for state in (balanced_state(run), seed_state(run, "takes"))
    ):
        return False
    state = weights_state(run)
    return needs_build(state, build) or (state is FileState.FRESH and not is_ablated(run))
