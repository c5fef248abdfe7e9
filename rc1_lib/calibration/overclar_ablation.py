"""The ablation of the over-clarification penalty: which dialogues the reward prefers with and without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rc1_lib.calibration.ablation_checks import ablation_gate
from rc1_lib.calibration.judged_rows import (
    AsksJudge,
    judge_checks,
    judge_rows,
    measured_rows,
    scoring,
    with_outcome,
    with_reward,
)
from rc1_lib.calibration.keyed_report import kept_verdict, report_key, report_path
from rc1_lib.calibration.weights_file import weights_in_force
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import TAKES
from rc1_lib.pool.takes import by_prompt
from rc1_lib.provenance.derived import Artifact, fingerprint
from rc1_lib.records import GateResult
from rc1_lib.reward.ablation import ablate
from rc1_lib.run import Run


def overclar_ablation(
    run: Run, weights: Mapping[str, float] | None = None, *, judge: AsksJudge = judge_rows
) -> GateReport:
    """Choose among several dialogues about the same prompt by the reward with and without the penalty.

    The reward is the judged score, or the verified outcome if training pays for nothing else.

    Args:
        run: supplies dialogues, judge, penalty and thresholds.
        weights: of the calibrated reward; default: the weights in force.
        judge: scores rows, like `judge_rows`.

    Raises:
        RC1Error: when there are no weights or dialogues, or the judge cannot be asked.
    """
    scored, gates = run.config.pays_judged_score, run.config.gates
    chosen = (weights_in_force(run) if weights is None else dict(weights)) if scored else {}
    takes = rows_of(run, TAKES)
    judged = judge(run, takes) if scored else None
    ablated = ablate(
        with_outcome(run, by_prompt(measured_rows(run, takes)))
        if judged is None
        else with_reward(run, by_prompt(judged.rows), chosen),
        confidence=gates.shared.confidence,
        resamples=gates.shared.resamples,
        seed=run.config.shadow.seed,
    )
    gate = ablation_gate(ablated, judged.coverage if judged else None, gates.ablation, gates.shared)
    gate = replace(gate, checks=(*gate.checks, *(judge_checks(run, judged.models) if judged else ())))
    key = _key(run, chosen)
    body = {
        "key": key,
        "takes": fingerprint(TAKES, run),
        "alpha": run.config.overclar.alpha,
        "cap": run.config.overclar.cap,
        "weights": chosen,
        "scoring": scoring(run, judged) if judged else None,
        **ablated.to_dict(),
    }
    return write_report(run, report_path(ABLATION.name, key), gate, body, {}, ABLATION.name)


def ablation_verdict(run: Run) -> GateResult:
    """Return the verdict of the ablation with the weights and the penalty in force.

    Raises:
        RC1Error: when there are no weights, or the report cannot be read.
    """
    return kept_verdict(run, ABLATION, _key(run, weights_in_force(run)), "ablation of this reward and this penalty")


def _key(run: Run, weights: Mapping[str, float]) -> str:
    return report_key(run, weights, run.config.gates.ablation)


ABLATION = Artifact(
    "overclar_ablation",
    lambda run: report_path("overclar_ablation", _key(run, weights_in_force(run))), None,
    "rc1_lib.calibration.overclar_ablation.overclar_ablation", "rc1 overclar-penalty --ablation",
)  # fmt: skip
"""For the weights and the penalty in force; its name contains a hash of everything it is made from, including code."""
