"""The shadow run: the calibrated reward keeps the order of the baseline reward and predicts success better."""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.checks import above, at_least, at_most, equal, info
from rc1_lib.config.thresholds import CalibrationGate, ShadowRunGate
from rc1_lib.judge.results import MIN_COVERAGE
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.comparison import Comparison
from rc1_lib.reward.intervals import Interval, interval_in_words

MIN_OUTCOMES = 10
"""Fewest solved and unsolved dialogues, or good and bad ones by people; with fewer, a correlation with them is
meaningless."""
ENOUGH_AUC = 0.95
"""Share of pairs of a success and a failure that the old score orders correctly, from which hardly any gain is
possible, and none is required of a new score with as much at the lower end of its interval."""
MAX_LOSS_PCT = 5.0
"""By how many per cent the rank correlation with success may then be below the old score's."""
_MIN_CORR_NEW = 0.15
"""What the new reward's own correlation with success must exceed, since an improvement does not make a wrong order
right. On 245 dialogues chance alone exceeds it in about one case in a hundred."""
_MAX_LENGTH_CORR = 0.7
"""Largest rank correlation of a reward with the answers' length among dialogues of the same outcome. At 0.7 length
explains half of the variance of the ranks."""
_REPEATS_AT = 0.95
"""Correlation with another weighted dimension at which a dimension counts as its repetition."""
_MAX_REPEATS = 0.5
"""Largest share of the weighted dimensions that vary, that may repeat another one; a judge that grades all seven by one
impression has 0.86."""
_JUDGE = "the report says why dialogues have no score: fix the judge and score them again"
_CALIBRATE = "calibrate the weights on more or better judged dialogues: rc1 weight-calib"


def baseline_gate(compared: Comparison, coverage: float) -> GateResult:
    """Check, before anything is calibrated, whether these dialogues allow a meaningful comparison."""
    checks = (*usable(compared, coverage), constant_shown(compared.constant), *_shown(compared))
    return GateResult("shadow_baseline", checks)


def shadow_run_gate(compared: Comparison, coverage: float, thresholds: ShadowRunGate) -> GateResult:
    """Check the comparison of the baseline reward ("old score") with the calibrated reward ("new reward").

    A check passes on the point value; it is undecided if its interval covers the threshold.

    Args:
        coverage: share of the dialogues that are scored.
        thresholds: `gates.shadow_run`.
    """
    value = {name: figure.value for name, figure in compared.figures.items()}
    interval = intervals_of(compared)
    gain = gain_wanted(value["auc_old"], compared.figures["auc_new"], thresholds)
    checks = (
        *usable(compared, coverage),
        none_stuck(compared.constant),
        none_repeated(compared.repeats),
        at_least(
            "spearman", value["spearman"], thresholds.min_spearman,
            _penalty_advice(compared, "spearman", thresholds.min_spearman)
            or f"the new reward orders dialogues {'the other way round' if value['spearman'] < 0 else 'differently'}; "
            "raise calibration.l2 or drop a rule",
            interval["spearman"],
        ),
        at_least(
            "top10_overlap", value["top10_overlap"], thresholds.min_top10,
            _penalty_advice(compared, "top10_overlap", thresholds.min_top10)
            or _top_advice(compared),
            interval["top10_overlap"],
        ),
        above(
            "corr_to_success_new", value["corr_to_success_new"], _MIN_CORR_NEW, _CALIBRATE,
            interval["corr_to_success_new"],
        ),
        at_least(
            "corr_improve_pct", value["corr_improve_pct"], gain, _gain_advice(compared, thresholds),
            interval["corr_improve_pct"],
        ),
        room_shown("new reward", value["auc_old"], compared.figures["auc_new"], thresholds),
        _length_check("new reward", "length_corr_new", compared),
        constant_shown(compared.constant),
        *_shown(compared),
    )  # fmt: skip
    return GateResult("shadow_run", checks)


def gain_wanted(old: float, new: Interval, thresholds: ShadowRunGate | CalibrationGate) -> float:
    """Return by how many per cent a rank correlation with success must exceed the old score's.

    A correlation with a binary outcome has a ceiling below 1, and a good judge's old score nearly reaches it: above
    0.75, with 0.79 as the maximum of any order, no weights can gain 8 %. Requiring the gain anyway would reject
    exactly the good judges. So if both scores order nearly every pair correctly, the gate only requires that the
    correlation does not fall.

    Args:
        new: AUC of the new one. Its lower end counts; without an interval the gain is required.
    """
    return -MAX_LOSS_PCT if _near_ceiling(old, new) else thresholds.min_improve_pct


def _near_ceiling(old: float, new: Interval) -> bool:
    return old >= ENOUGH_AUC and new.low >= ENOUGH_AUC


def room_shown(score: str, old: float, new: Interval, thresholds: ShadowRunGate | CalibrationGate) -> Check:
    """Report how well each score predicts success, and so what is required of the new one."""
    shown = f"{interval_in_words(new)}; old score {'undefined' if old != old else f'{old:.4g}'}"
    why = (
        f"{shown}; both are at least {ENOUGH_AUC:g}: no gain is required, and a loss of up to "
        f"{MAX_LOSS_PCT:g} % is accepted"
        if _near_ceiling(old, new)
        else f"{shown}: a gain of {thresholds.min_improve_pct:g} % is required"
    )
    return info(f"{score} puts solved above unsolved, share of pairs", why)


def usable(compared: Comparison, coverage: float) -> list[Check]:
    """Check that enough successes and failures are scored, by a judge that does not grade length."""
    few = "too few for a meaningful correlation with success; compare on more dialogues"
    return [
        at_least("scored, share", coverage, MIN_COVERAGE, _JUDGE),
        at_least("solved dialogues", compared.solved, MIN_OUTCOMES, few),
        at_least("unsolved dialogues", compared.rows - compared.solved, MIN_OUTCOMES, few),
        _length_check("old score", "length_corr_old", compared),
    ]


def _top_advice(compared: Comparison) -> str:
    lead = compared.figures["top10_lead_kept"].value
    kept = f"by the old score, the new top tenth keeps {lead:.0%} of the old one's lead"
    if _near_ceiling(compared.figures["auc_old"].value, compared.figures["auc_new"]):
        return (
            f"the reward predicts success; what changed is which of the good dialogues rank best ({kept}): read "
            f"them in the report, and raise calibration.l2 to stay closer to the old weights"
        )
    return (
        f"the top dialogues have changed ({kept}); read them in the report before training on them. Where many share "
        "the best score, the judge is too coarse to find a best tenth"
    )


def _penalty_advice(compared: Comparison, figure: str, wanted: float) -> str:
    """Return advice if the score alone reaches what the reward misses, so that the penalty is the cause; else ""."""
    free = compared.without_price[figure]
    if not free >= wanted:
        return ""
    return (
        f"the penalty on needless questions is the cause: without it the figure is {free:.3g}. A question costs more "
        f"(overclar.alpha) than the score differs between dialogues, so good ones that asked needlessly fall below "
        f"others; lower overclar.alpha, or use a judge that grades right and wrong further apart"
    )


def pairs_for(gain: float, old: float) -> str:
    """Return what a relative gain of a rank correlation means if the old score orders this share of pairs correctly.

    With a binary outcome the correlation is (2 auc - 1) sqrt(3 p (1 - p)) for a share p of successes, apart from ties:
    the gain is one of auc - 1/2, and auc ends at 1.
    """
    wanted = 0.5 + (old - 0.5) * (1 + gain / 100)
    if wanted > 1:
        return (
            f"the old score orders {old:.3f} of the pairs correctly; a gain of {gain:g} % takes more than all of them"
        )
    return f"the old score orders {old:.3f} of the pairs correctly; a gain of {gain:g} % takes about {wanted:.3f}"


def _gain_advice(compared: Comparison, thresholds: ShadowRunGate) -> str:
    """Return why the reward predicts success no better than the old score: its penalty, or its dimensions."""
    free, old = compared.without_price, compared.figures["auc_old"].value
    enough = old >= ENOUGH_AUC and free["auc_new"] >= ENOUGH_AUC
    wanted = -MAX_LOSS_PCT if enough else thresholds.min_improve_pct
    shown = compared.figures["auc_new"].value
    return _penalty_advice(compared, "corr_improve_pct", wanted) or (
        f"{pairs_for(wanted, old)}; the reward has {shown:.3f}, and {free['auc_new']:.3f} without the penalty on "
        f"needless questions: these weights add little to the old ones. The calibration's report says whether any "
        f"weights could (`unpulled`); if not, the judge has to improve"
    )


def intervals_of(compared: Comparison) -> dict[str, CheckInterval]:
    """Return figure -> its interval, as a check shows it."""
    return {name: figure.of(compared.rows, "dialogues") for name, figure in compared.figures.items()}


def _length_check(score: str, figure: str, compared: Comparison) -> Check:
    return at_most(
        f"{score} follows the answers' length, rank correlation", compared.figures[figure].value,
        _MAX_LENGTH_CORR,
        "longer answers score higher among dialogues of the same outcome: the judge grades length; fix its "
        "instructions, or use another model",
        intervals_of(compared)[figure],
    )  # fmt: skip


def none_stuck(constant: Mapping[str, float]) -> Check:
    """Check that no weighted dimension gives every dialogue the same grade strictly between 0 and 1.

    All dialogues may deserve the full grade, or zero, but a judge that reads them does not find all equally half-good.

    Args:
        constant: weighted dimension that gives all dialogues the same score -> that score.
    """
    return equal(
        "weighed dimensions stuck on one grade",
        _in_words({name: score for name, score in constant.items() if 0 < score < 1}), _in_words({}),
        "their weight has no effect on the order: read the judge's replies about them, fix the judge, score again",
    )  # fmt: skip


def none_repeated(repeats: Mapping[str, float]) -> Check:
    """Check that the weighted dimensions measure different things, not one overall impression.

    Args:
        repeats: dimension that varies -> its highest correlation with an earlier one.
    """
    again = sum(value >= _REPEATS_AT for value in repeats.values())
    return at_most(
        "weighed dimensions that repeat another one, share", again / (len(repeats) + 1), _MAX_REPEATS,
        "several dimensions repeat one impression, so their weights mean nothing: read the judge's replies, and fix "
        "its instructions so that each dimension is graded separately",
    )  # fmt: skip


def constant_shown(constant: Mapping[str, float]) -> Check:
    """Report the weighted dimensions that give every dialogue the same score."""
    return info("weighed dimensions that say the same of every dialogue", _in_words(constant))


def _in_words(constant: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {score:.4g}" for name, score in constant.items()) or "none"


def _shown(compared: Comparison) -> list[Check]:
    return [info(f"{name}, interval", interval_in_words(figure)) for name, figure in compared.figures.items()]
