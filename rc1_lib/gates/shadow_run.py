"""The shadow run: the new reward keeps the old score's order and knows success better."""

from __future__ import annotations

from collections.abc import Mapping

from rc1_lib.checks import above, at_least, at_most, equal, info
from rc1_lib.config.thresholds import CalibrationGate, ShadowRunGate
from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.comparison import Comparison
from rc1_lib.reward.intervals import Interval

_JUDGE = "see the report for why dialogues are unscored, fix the judge, and score them again"
_CALIBRATE = "calibrate the weights on more or better judged dialogues: rc1 weight-calib"


def baseline_gate(compared: Comparison, coverage: float, thresholds: ShadowRunGate) -> GateResult:
    """Judge, before anything is calibrated, whether a comparison on these dialogues can say anything at all."""
    checks = (*usable(compared, coverage, thresholds), constant_shown(compared.constant), *_shown(compared, {}))
    return GateResult("shadow_baseline", checks)


def shadow_run_gate(compared: Comparison, coverage: float, thresholds: ShadowRunGate) -> GateResult:
    """Judge the comparison of the old score with the new reward.

    A check passes on the point value; a line beside it tells whether its interval clears the threshold too.

    Args:
        compared: the comparison.
        coverage: share of the dialogues that are scored.
        thresholds: `gates.shadow_run`.
    """
    value = {name: figure.value for name, figure in compared.figures.items()}
    interval = intervals_of(compared)
    gain = gain_wanted(value["auc_old"], compared.figures["auc_new"], thresholds)
    wanted = {
        "spearman": thresholds.min_spearman,
        "top10_overlap": thresholds.min_top10,
        "corr_improve_pct": gain,
    }
    checks = (
        *usable(compared, coverage, thresholds),
        none_stuck(compared.constant),
        at_least(
            "spearman", value["spearman"], thresholds.min_spearman,
            _but_for_the_price(compared, "spearman", thresholds.min_spearman)
            or "the new reward turns the old order over; look at the rank scatter, raise calibration.l2 or drop a rule",
            interval["spearman"],
        ),
        at_least(
            "top10_overlap", value["top10_overlap"], thresholds.min_top10,
            _but_for_the_price(compared, "top10_overlap", thresholds.min_top10) or _top_advice(compared, thresholds),
            interval["top10_overlap"],
        ),
        above(
            "corr_to_success_new", value["corr_to_success_new"], thresholds.min_corr_new, _CALIBRATE,
            interval["corr_to_success_new"],
        ),
        at_least(
            "corr_improve_pct", value["corr_improve_pct"], gain, _gain_advice(compared, thresholds),
            interval["corr_improve_pct"],
        ),
        room_shown("new reward", value["auc_old"], compared.figures["auc_new"], thresholds),
        _unmoved_by_length("new reward", "length_corr_new", compared, thresholds),
        constant_shown(compared.constant),
        info("ties at the border of the top tenth", compared.top.in_words()),
        info("ties make the top tenth arbitrary", compared.top.arbitrary(thresholds.min_top10)),
        info("ties there, scores in hundredths", compared.near_top.in_words()),
        info("less than a hundredth decides the top tenth", compared.near_top.arbitrary(thresholds.min_top10)),
        *_shown(compared, wanted),
    )  # fmt: skip
    return GateResult("shadow_run", checks)


def gain_wanted(old: float, new: Interval, thresholds: ShadowRunGate | CalibrationGate) -> float:
    """By how many per cent a rank correlation with success must exceed the old score's.

    A correlation with an outcome that is yes or no has a ceiling below 1, which a good judge's old score reaches
    nearly: over 0.75 where 0.78 is the most that any order can have, no weights gain 8 %. Asking for the gain all the
    same would refuse just the judges that are worth having. So where both scores have nearly every pair in order, only
    no loss is asked for.

    Args:
        old: AUC of the old score.
        new: AUC of the new one. Its lower end counts; without an interval the gain is asked for.
        thresholds: of the gate.
    """
    return -thresholds.max_loss_pct if _nothing_to_gain(old, new, thresholds) else thresholds.min_improve_pct


def _nothing_to_gain(old: float, new: Interval, thresholds: ShadowRunGate | CalibrationGate) -> bool:
    return old >= thresholds.enough_auc and new.low >= thresholds.enough_auc


def room_shown(score: str, old: float, new: Interval, thresholds: ShadowRunGate | CalibrationGate) -> Check:
    """How much of success either score knows, and so what is asked of the new one."""
    shown = f"{interval_in_words(new)}; old score {'undefined' if old != old else f'{old:.4g}'}"
    why = (
        f"{shown}; both from {thresholds.enough_auc:g} up: no gain is asked for, and no loss beyond "
        f"{thresholds.max_loss_pct:g} % taken"
        if _nothing_to_gain(old, new, thresholds)
        else f"{shown}: a gain of {thresholds.min_improve_pct:g} % is asked for"
    )
    return info(f"{score} puts solved above unsolved, share of pairs", why)


def usable(compared: Comparison, coverage: float, thresholds: ShadowRunGate) -> list[Check]:
    """Whether enough dialogues are scored, successes and failures among them, by a judge that looks past length."""
    few = "with so few the correlation with success says nothing; compare on more dialogues"
    return [
        at_least("scored, share", coverage, thresholds.min_coverage, _JUDGE),
        at_least("solved dialogues", compared.solved, thresholds.min_outcomes, few),
        at_least("unsolved dialogues", compared.rows - compared.solved, thresholds.min_outcomes, few),
        _unmoved_by_length("old score", "length_corr_old", compared, thresholds),
    ]


def _top_advice(compared: Comparison, thresholds: ShadowRunGate) -> str:
    """Whether the reward is at fault, or scores that hardly differ at the top."""
    if compared.top.arbitrary(thresholds.min_top10):
        return (
            f"ties make the top tenth arbitrary ({compared.top.in_words()}): the scores are too coarse to tell a best "
            f"tenth, so this says little of the reward; take a judge with finer grades, or compare on more dialogues"
        )
    if compared.near_top.arbitrary(thresholds.min_top10):
        return (
            f"differences of less than a hundredth decide the top tenth ({compared.near_top.in_words()}): the scores "
            f"crowd at the top, so this says little of the reward; take a judge that tells good from best"
        )
    lead = compared.figures["top10_lead_kept"].value
    kept = f"by the old score the new best tenth keeps {lead:.0%} of the old one's lead"
    if _nothing_to_gain(compared.figures["auc_old"].value, compared.figures["auc_new"], thresholds):
        return (
            f"the reward knows success, so what has changed is which of the good dialogues are best ({kept}): look at "
            f"them in the report, and raise calibration.l2 to stay nearer to the old weights"
        )
    return f"other dialogues stand on top than before ({kept}); look at them in the report before training on them"


def _but_for_the_price(compared: Comparison, figure: str, wanted: float) -> str:
    """Whether the score alone reaches what the reward misses, so that the price of needless questions is the reason."""
    free = compared.without_price[figure]
    if not free >= wanted:
        return ""
    return (
        f"the price of needless questions has done it: without it the figure is {free:.3g}. A question costs more "
        f"(overclar.alpha) than what sets dialogues apart by the score, so that good ones which asked needlessly fall "
        f"below others; lower overclar.alpha, or take a judge who grades right and wrong further apart"
    )


def pairs_for(gain: float, old: float) -> str:
    """What a relative gain of a rank correlation means where the old score has this share of the pairs in order.

    With an outcome that is yes or no the correlation is (2 auc - 1) sqrt(3 p (1 - p)) for a share p of successes, but
    for ties: the gain is one of auc - 1/2, and auc ends at 1.
    """
    wanted = 0.5 + (old - 0.5) * (1 + gain / 100)
    if wanted > 1:
        return f"a gain of {gain:g} % over {old:.3f} of the pairs in order is more than all of them"
    return f"a gain of {gain:g} % over {old:.3f} of the pairs in order takes about {wanted:.3f} of them"


def _gain_advice(compared: Comparison, thresholds: ShadowRunGate) -> str:
    """Why the reward knows success no better than the old score: by its price, or by its dimensions."""
    free, old = compared.without_price, compared.figures["auc_old"].value
    enough = old >= thresholds.enough_auc and free["auc_new"] >= thresholds.enough_auc
    wanted = -thresholds.max_loss_pct if enough else thresholds.min_improve_pct
    shown = compared.figures["auc_new"].value
    return _but_for_the_price(compared, "corr_improve_pct", wanted) or (
        f"{pairs_for(wanted, old)}; the reward has {shown:.3f}, without its price of needless questions "
        f"{free['auc_new']:.3f}: these weights know little that the old ones do not. "
        f"The calibration's report says whether any weights would (`unpulled`); if none do, it is the judge that has "
        f"to know more"
    )


def intervals_of(compared: Comparison) -> dict[str, CheckInterval]:
    """Figure -> its interval, as a check holds it."""
    return {name: figure.of(compared.rows, "dialogues") for name, figure in compared.figures.items()}


def _unmoved_by_length(score: str, figure: str, compared: Comparison, thresholds: ShadowRunGate) -> Check:
    return at_most(
        f"{score} follows the answers' length, rank correlation", compared.figures[figure].value,
        thresholds.max_length_corr,
        "among dialogues of the same outcome longer answers score higher: the judge grades length; correct its "
        "instructions, or judge with another model",
        intervals_of(compared)[figure],
    )  # fmt: skip


def none_stuck(constant: Mapping[str, float]) -> Check:
    """Whether no weighed dimension gives every dialogue the same grade in between.

    All may well deserve the full grade, or none any; whoever looks at them does not find all of them equally
    half-good.

    Args:
        constant: the weighed dimensions that hold one score in all dialogues, with that score.
    """
    return equal(
        "weighed dimensions stuck on one grade",
        _in_words({name: score for name, score in constant.items() if 0 < score < 1}), _in_words({}),
        "their weight orders nothing: read the judge's replies about them, fix the judge, and score again",
    )  # fmt: skip


def constant_shown(constant: Mapping[str, float]) -> Check:
    """The weighed dimensions that say the same of every dialogue, and what they say."""
    return info("weighed dimensions that say the same of every dialogue", _in_words(constant))


def _in_words(constant: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {score:.4g}" for name, score in constant.items()) or "none"


def _shown(compared: Comparison, wanted: Mapping[str, float]) -> list[Check]:
    return [info(f"{name}, interval", interval_in_words(figure, wanted.get(name)))
            for name, figure in compared.figures.items()]  # fmt: skip


def interval_in_words(figure: Interval, threshold: float | None = None) -> str:
    """`0.81 (95 %: 0.74 to 0.86), clears 0.75: no`; what is undefined is said to be."""
    if figure.value != figure.value:
        return "undefined"
    if figure.low != figure.low:
        return f"{figure.value:.4g}, no interval"
    shown = f"{figure.value:.4g} ({100 * figure.confidence:g} %: {figure.low:.4g} to {figure.high:.4g})"
    if threshold is None:
        return shown
    return f"{shown}, clears {threshold:g}: {'yes' if figure.clears('>=', threshold) else 'no'}"
