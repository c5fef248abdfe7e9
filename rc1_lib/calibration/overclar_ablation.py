"""The ablation of the over-clarification penalty: which dialogues the reward prefers with and without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.thresholds import AblationGate
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.judge.results import MIN_COVERAGE
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import TAKES
from rc1_lib.pool.takes import by_prompt
from rc1_lib.provenance.derived import Artifact, fingerprint
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.ablation import Ablation, Figures, ablate
from rc1_lib.reward.intervals import interval_in_words
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
        with_outcome(run, by_prompt(measured_rows(takes)))
        if judged is None
        else with_reward(run, by_prompt(judged.rows), chosen),
        confidence=CONFIDENCE,
        resamples=gates.shared.resamples,
        seed=run.config.shadow.seed,
    )
    gate = ablation_gate(ablated, judged.coverage if judged else None, gates.ablation)
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

_MIN_PROMPTS = 10
"""Fewest prompts where nothing is missing and whose dialogues differ in whether they ask: the penalty can change no
others, and of fewer one or two decide."""
_DIFFER = "prompts whose dialogues differ in needless asking"


def ablation_gate(ablation: Ablation, coverage: float | None, thresholds: AblationGate) -> GateResult:
    """Compare the dialogues chosen without the penalty with those chosen with it.

    The checks use the point values; next to each is its interval and whether the whole interval would pass.

    Args:
        ablation: from `rc1_lib.reward.ablation.ablate`.
        coverage: share of the dialogues that are scored; None if training does not reward a score.
        thresholds: `gates.ablation`.
    """
    overall, counts = ablation.overall, ablation.counts
    interval = {name: found.of(counts.prompts, "prompts") for name, found in ablation.intervals.items()}
    judged = {
        "rate_drop_pct": at_least(
            "rate drop, %", overall.rate_drop_pct, thresholds.min_rate_drop_pct, _rate_advice(ablation),
            interval["rate_drop_pct"],
        ),
        "turns_up": at_most(
            "mean turns up", overall.turns_up, thresholds.max_turns_up,
            "dialogues should get shorter without needless questions, but the penalty chooses dialogues that are "
            "longer for other reasons; check the weights of 'economical' and 'concise', or lower overclar.alpha",
            interval["turns_up"],
        ),
        "success_drop_pp": at_most(
            "success drop, pp", overall.success_drop_pp, thresholds.max_success_drop_pp,
            "the penalty outweighs correctness: lower overclar.alpha, or calibrate again so that the dimensions that "
            "predict success weigh more (rc1 weight-calib)",
            interval["success_drop_pp"],
        ),
    }  # fmt: skip
    unscored = "score the dialogues that have no score, since they are never chosen"
    checks = [
        *(() if coverage is None else (at_least("coverage", coverage, MIN_COVERAGE, unscored),)),
        at_least(
            _DIFFER, counts.differing, _MIN_PROMPTS,
            "the penalty has too few rollouts to choose from: raise ablation.takes or shadow.n, and use a source whose "
            "dialogues can be played again",
        ),
        *judged.values(),
        *(info(f"{one.name}: interval", interval_in_words(ablation.intervals[name])) for name, one in judged.items()),
        *_figures("without", overall.without),
        *_figures("with", overall.with_penalty),
        info("prompts", counts.prompts),
        info("prompts with more than one scored dialogue", counts.with_choice),
        info("prompts where nothing is missing", counts.nothing_missing),
        info("of these, with needless asking in every dialogue", counts.unavoidable),
        info("prompts where the penalty changes the asking", counts.changed),
        info("prompts without any scored dialogue, left out", counts.left_out),
        info("dialogues", counts.dialogues),
        info("unscored dialogues", counts.unscored),
    ]  # fmt: skip
    return GateResult("overclar_ablation", tuple(checks))


def _rate_advice(ablation: Ablation) -> str:
    counts = ablation.counts
    # Whole numbers of prompts unless dialogues tie.
    if not ablation.overall.without.overclar_rate * counts.nothing_missing > counts.unavoidable + 1e-6:
        return (
            "the penalty has nothing to lower: even without it, no dialogue that asks needlessly is chosen over one "
            "that does not. Other dimensions already do its work; check the weights of 'reply_used' and 'restrained', "
            "or sample more dialogues (ablation.takes)"
        )
    return (
        f"the penalty changes whether the chosen dialogue asks on {counts.changed} of the {counts.differing} prompts "
        "where it could: raise overclar.alpha, or lower the weights of dimensions that reward needless questions "
        "(check 'reply_used' and 'restrained')"
    )


def _figures(side: str, figures: Figures) -> tuple[Check, ...]:
    return (
        info(f"over-clarification rate {side}", figures.overclar_rate),
        info(f"success {side}", figures.success),
        info(f"mean turns {side}", figures.avg_turns),
        info(f"rate of asking where needed {side}", figures.ask_rate_where_needed),
    )
