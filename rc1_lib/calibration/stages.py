"""The stages of a calibration and their driver. Each stage is a gate; nothing runs after a failed one.

Every stage first completes the live scores: stored scores are reused, the rest is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.overclar_ablation import ABLATION, overclar_ablation
from rc1_lib.calibration.reward_hacking import HACKING, attack_reward
from rc1_lib.calibration.shadow_run import CALIBRATED, baseline_run, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.calibration.weights_file import adopt, note_refusal
from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.gate_report import GateReport
from rc1_lib.judge.rubric import NAME as RUBRIC
from rc1_lib.pool.derived import TAKES
from rc1_lib.provenance.derived import Build, needs_build
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import FileState

Weights = Mapping[str, float]
REPORT = "reports/calibration_stages.json"
"""Every stage's verdict from the latest calibration flow."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        title: the question that it answers, for people.
        evaluate: from the run and the candidate weights (None before there are any) to the outcome.
        on_score: whether it is about the judged score; if training does not pay for that, it is not applicable.
    """

    name: str
    title: str
    evaluate: Callable[[Run, Weights | None], GateReport]
    on_score: bool = True


STAGES: tuple[Stage, ...] = (
    Stage("shadow_baseline", "can the shadow set distinguish good from bad", lambda run, _: baseline_run(run)),
    Stage("calibration", "do calibrated weights predict success better", lambda run, _: weight_calib(run)),
    Stage("reward_hacking", "does training pay adversarial policies less", attack_reward, on_score=False),
    Stage("overclar_ablation", "does the penalty do what it should", overclar_ablation, on_score=False),
    Stage("shadow_run", "does the new reward order better", lambda run, found: shadow_run(run, CALIBRATED, found)),
)
BY_NAME = {stage.name: stage for stage in STAGES}
STAND_IN = (
    "the local rubric cannot judge these questions: it is a stand-in that looks at form and length. To reward verified "
    "answers only and ask no judge, use --reward verified; otherwise name a live judge (judge.provider)"
)
"""Reported once, however many checks of a calibration with the rubric fail."""
CLEARED = (Status.PASSED, Status.NOT_APPLICABLE)
"""The results after which the next stage runs; no stage of a calibration can be waived."""


def evaluate_here(run: Run, stage: Stage, weights: Weights | None) -> GateReport:
    """Run a stage in this process; a stage that is not applicable is skipped and says why."""
    if stage.on_score and (why := run.config.why_not_judged):
        return GateReport(GateResult(stage.name, not_applicable=why), "", {})
    return stage.evaluate(run, weights)


def run_stages(
    run: Run,
    evaluate: Callable[[Run, Stage, Weights | None], GateReport],
    *,
    stages: Sequence[Stage] = STAGES,
    adopt: Callable[[Run, Weights, str], object] = adopt,
) -> list[GateReport]:
    """Run stages up to the first that fails; if all pass, adopt the weights that the calibration found.

    A failed stage is recorded, and weights of an earlier calibration with the same inputs no longer count. A stage that
    could not be evaluated says nothing about them.

    Args:
        evaluate: runs a stage: `evaluate_here`, or a task of a flow.
        stages: in order.
        adopt: writes the weights, given (run, weights, report).

    Returns:
        The outcomes of the stages that ran; only the last can have failed.

    Raises:
        RC1Error: when the weights cannot be written; also what `evaluate` raises.
    """
    done: list[GateReport] = []
    found: GateReport | None = None
    for stage in stages:
        outcome = evaluate(run, stage, None if found is None else found.body["weights"])
        done.append(outcome)
        if outcome.gate.status not in CLEARED:
            if outcome.gate.status is Status.FAILED and run.config.pays_judged_score:
                note_refusal(run)
            return done
        if stage.name == "calibration" and outcome.gate.status is Status.PASSED:
            found = outcome
    if found is not None:
        adopt(run, found.body["weights"], found.report)
    return done


def unreached(done: Sequence[GateResult], stages: Sequence[Stage] = STAGES) -> list[GateResult]:
    """Return the verdicts on the stages that were not reached: each waits for the last one, which failed.

    Args:
        done: the verdicts of the stages that ran, in order.
        stages: all stages, in order.
    """
    if not done:
        return []
    why = f"the stage '{done[-1].name}', which failed: no calls are made after it"
    return [GateResult(stage.name, waits_for=why) for stage in stages[len(done) :]]


def stand_in_hint(run: Run, results: Iterable[GateResult]) -> str:
    """Explain a failed calibration if the local rubric graded questions that RC1 did not generate; else empty.

    Args:
        run: supplies judge and sources.
        results: the verdicts on its stages.
    """
    failed = any(result.status is Status.FAILED for result in results)
    known = run.config.judge.provider != RUBRIC or run.config.sources.use == "embedded"
    return "" if known or not failed or not run.config.pays_judged_score else STAND_IN


def check_overwriting(run: Run, *, rebuild: bool) -> None:
    """Refuse to overwrite weights that RC1 did not write, and to calibrate on rows altered since RC1 wrote them.

    Args:
        rebuild: whether to write everything again, even files that RC1 did not write.

    Raises:
        RC1Error: names the file and what happened to it.
    """
    for artifact in (WEIGHTS, BALANCED, TAKES):
        if artifact.applies(run):
            artifact.check_ours(run, rebuild)


def is_due(run: Run, build: Build) -> bool:
    """Whether the calibration has to run.

    RC1 never overwrites weights that it did not write, and never calibrates on data that was altered since RC1 wrote
    it; the rounds report such data.
    """
    if build == "never" or any(artifact.state(run) is not FileState.FRESH for artifact in (BALANCED, TAKES)):
        return False
    reports = {ABLATION.state(run), HACKING.state(run)}
    if not WEIGHTS.applies(run):
        return build == "always" or reports != {FileState.FRESH}
    state = WEIGHTS.state(run)
    return needs_build(state, build) or (state is FileState.FRESH and reports != {FileState.FRESH})
