"""Check rollouts before more are paid for: a verdict each, or why a check has nothing to judge.

Each check is a pure function of what `read.read_rollouts` returns. Thresholds are those of the gate that measures the
same, else constants with their reasons.
"""

from __future__ import annotations

import re

import polars as pl

from rc1_lib.answer_rules.doubts import is_doubtful
from rc1_lib.answer_rules.golds import Form, form_of
from rc1_lib.answer_rules.message import MARK, OTHER_MARK, final_answer, last_statement
from rc1_lib.answer_rules.plain_text import plain_text
from rc1_lib.answer_rules.refusals import declines
from rc1_lib.answer_rules.verdicts import last_verdict, verdict_in
from rc1_lib.checks import above, at_least, at_most, equal, info, number, offenders
from rc1_lib.config.thresholds import Gates
from rc1_lib.extras.rollouts.means import MOST, means
from rc1_lib.extras.rollouts.read import NUMBER
from rc1_lib.gates.duplicates import exact_duplicates, near_duplicates
from rc1_lib.judge.noise import pooled
from rc1_lib.judge.results import MIN_COVERAGE
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Check, GateResult
from rc1_lib.text.leak_search import LeakSearch
from rc1_lib.text.normalization import undisguised

MAX_CUT = 0.2
"""Largest share of rollouts that a limit ended, as `rc1 doctor --learnability` allows of turns."""
MAX_FLAT = 0.9
"""Largest share of prompts whose rollouts all earn the same, as there: a comparison learns from the others only."""
MAX_OPEN = 0.02
"""Largest share of paid answers that hedge, or refuse: of the last sentences of GSM8K's solutions the patterns misread
0.6 %."""
MAX_UNSTABLE = 0.1
"""Largest share of rollouts on which the judge's scores disagree, as the gate `judge_stability` allows."""
_LEAST_WORDS = 20
"""Fewest words of a text that is no copy by chance: right short answers repeat each other."""
_LEAST_PROMPTS = 10
"""Fewest prompts of an interval that resamples prompts."""
_DIGITS = 9
"""Rewards are compared after rounding to so many decimals: what differs by less differs by rounding."""
_LISTED = (
    "line", "repeats", "similarity", "reward", "rollouts", "most", "gold", "answer", "kind", "samples", "question",
    "held_out",
)  # fmt: skip
"""What the list of rollouts at fault says of each."""
_OR = re.compile(
    r"\b(?:or|either|maybe|perhaps|possibly|probably|presumably|unsure|not sure|likely)\b|或|也许|可能|大概"
)
"""A hedge in words: in sentences and titles the patterns of numbers would find many a denial."""
_SHORT = 6
"""Most words of an answer that is a number and hardly more."""


def audit(frame: pl.DataFrame, gates: Gates, held_out: pl.Series | None = None) -> list[GateResult]:
    """Return the verdicts of all checks on at least one rollout; `held_out` are questions that no prompt may repeat."""
    return [
        scored(frame),
        cut_turns(frame),
        groups(frame),
        hedges(frame),
        proxy(frame, gates.shared.resamples),
        duplicates(frame, gates.duplicates.max_dup_pct),
        leaks(frame, gates, held_out),
        judge(frame, gates.stability.max_variance),
    ]


def scored(frame: pl.DataFrame) -> GateResult:
    """Check that nearly all rollouts have a reward: a missing one is not 0."""
    missing = frame.filter(pl.col("reward").is_null())
    lost = any(frame[name].count() == 0 for name in frame.columns if name.startswith(NUMBER))  # all null, or all NaN
    if missing.height == frame.height and not lost:
        return GateResult("scored", not_applicable="no rollout has a reward; --reward-key names it")
    share, advice = 1 - missing.height / frame.height, "find out why; rc1 rescore --failed-only asks a judge"
    return _verdict("scored", missing, at_least("rollouts with a reward, share", share, MIN_COVERAGE, advice))


def cut_turns(frame: pl.DataFrame) -> GateResult:
    """Check how many rollouts a limit ended."""
    known = frame.drop_nulls("cut")
    if not known.height:
        return GateResult("cut_turns", not_applicable="no key says how a rollout ended")
    cut, advice = known.filter("cut"), "raise the limit on tokens or turns: a rollout that was cut teaches to fail"
    return _verdict(
        "cut_turns", cut, at_most("rollouts cut, share", cut.height / known.height, MAX_CUT, advice),
        info("cut, but paid more than the least", cut.filter(pl.col("reward") > number(frame["reward"].min())).height),
        info("rollouts of which nothing says how they ended", frame.height - known.height),
    )  # fmt: skip


def groups(frame: pl.DataFrame) -> GateResult:
    """Check how many prompts have rollouts with different rewards: from the others a comparison learns nothing."""
    reward, each = pl.col("reward").round(_DIGITS), frame.drop_nulls("reward").group_by("group", maintain_order=True)
    found = each.agg(pl.col("line", "question").first(), rollouts=pl.len(), least=reward.min(), most=reward.max())
    found = found.filter(pl.col("rollouts") > 1)
    if not found.height:
        return GateResult("groups", not_applicable="no prompt has two rollouts with a reward")
    flat, advice = found.filter(pl.col("least") == pl.col("most")), "raise the temperature, or draw other prompts"
    return _verdict(
        "groups", flat, at_most("prompts without a difference, share", flat.height / found.height, MAX_FLAT, advice),
        info("prompts", found.height), info("rollouts of one, median", number(found["rollouts"].median())),
        info("prompts that always earn the least", flat.filter(pl.col("most") == found["least"].min()).height),
        info("prompts that always earn the most", flat.filter(pl.col("least") == found["most"].max()).height),
    )  # fmt: skip


def hedges(frame: pl.DataFrame) -> GateResult:
    """Check how many paid answers leave their question open: they name several things, doubt, or refuse."""
    answers = pl.col("gold").is_not_null() | pl.col("final").str.contains(rf"{MARK}|{OTHER_MARK}")
    some = frame["reward"].drop_nulls()
    if not len(some):
        earns = pl.lit(value=True)  # what an answer is paid is not known, so all are looked at
    elif some.n_unique() == 1:
        earns = pl.col("reward") > 0
    else:
        earns = pl.col("reward") >= _middle(frame["reward"])
    paid = frame.filter(answers & earns & (pl.col("final") != ""))
    if not paid.height:
        return GateResult("hedges", not_applicable="no paid rollout ends in an answer that is marked or has a gold one")
    read = [_openness(final, gold) for final, gold in paid.select("final", "gold").iter_rows()]
    opened = paid.hstack(pl.DataFrame(read, {"answer": pl.String, "kind": pl.String}, orient="row")).drop_nulls("kind")
    shares = {kind: opened.filter(kind=kind).height / paid.height for kind in ("hedges", "refuses")}
    advice = "read them: an answer rule that pays these teaches them; rc1 check-answers tries rules"
    checks = [at_most(f"paid answer {kind}, share", share, MAX_OPEN, advice) for kind, share in shares.items()]
    return _verdict("hedges", opened, *checks, info("paid answers", paid.height))


def _openness(final: str, gold: str | None) -> tuple[str, str | None]:
    """Return a final message's answer, and how it leaves its question open; None if it does not."""
    form = Form.TEXT if gold is None else form_of([gold])
    answer = final_answer(final, last_verdict if form is Form.VERDICT else last_statement)
    plain = (plain_text(answer) or answer).casefold()
    if declines(answer):
        return answer, "refuses"
    if form is Form.VERDICT:
        hedged = verdict_in(answer) is None
    elif form is Form.NUMBER and len(plain.split()) <= _SHORT:
        hedged = is_doubtful(plain) or ";" in plain
    else:
        hedged = _OR.search(plain) is not None and not _OR.search((gold or "").casefold())
    return answer, "hedges" if hedged else None


def proxy(frame: pl.DataFrame, resamples: int) -> GateResult:
    """Check that of a right and a wrong rollout of one prompt the right one earns more."""
    both = frame.select("line", "group", "question", "reward", "truth").drop_nulls(["reward", "truth"])
    if not both.height:
        return GateResult("proxy", not_applicable="no rollout has a reward and a truth; --truth-key names it")
    right = pl.col("truth") > _middle(both["truth"])
    both = both.filter(pl.int_range(pl.len()).over("group") < MOST)
    pairs = both.filter(right).join(both.filter(~right), on="group", suffix="_wrong")
    if (prompts := pairs["question"].n_unique()) < _LEAST_PROMPTS:
        return GateResult("proxy", not_applicable=f"right and wrong rollouts in {prompts} prompts: too few to judge")
    gap = (pairs["reward"] - pairs["reward_wrong"]).round(_DIGITS)
    found = means(pl.DataFrame({"won": (1 + gap.sign()) / 2}), pairs["question"], resamples)["won"]
    advice = "the reward does not distinguish right from wrong on these prompts: fix it before you train on it"
    return _verdict(
        "proxy", pairs.filter(gap < 0), above("right one earns more, lower end", found.low, 0.5, advice),
        info("right one earns more, share of pairs", found.value), info("pairs", pairs.height),
        info("pairs that earn the same", pairs.filter(gap == 0).height),
    )  # fmt: skip


def duplicates(frame: pl.DataFrame, most: float) -> GateResult:
    """Check how many rollouts repeat what was written for another prompt."""
    long = frame.filter(pl.col("written").str.count_matches(r"\S+") >= _LEAST_WORDS)
    if not long.height:
        return GateResult("duplicates", not_applicable=f"in no rollout did the policy write {_LEAST_WORDS} words")
    texts = undisguised(long["written"])
    found = pl.concat([exact_duplicates(texts).with_columns(similarity=1.0), near_duplicates(texts, "differ")])
    found = found.unique("row", keep="first", maintain_order=True)
    one, earlier = long[found["row"]], long[found["earlier"]]
    other = one.with_columns(found["similarity"], repeats=earlier["line"]).filter(
        one["question"] != earlier["question"]
    )
    advice = "one text for different prompts: read them and what they earn; the policy may have collapsed"
    return _verdict(
        "duplicates", other,
        at_most("rollouts that repeat another prompt's, %", 100 * other.height / long.height, most, advice),
        info("that repeat one of their own prompt, %", 100 * (found.height - other.height) / long.height),
        info(f"rollouts of {_LEAST_WORDS} words or more", long.height),
    )  # fmt: skip


def leaks(frame: pl.DataFrame, gates: Gates, held_out: pl.Series | None) -> GateResult:
    """Check that no prompt repeats, retells or spells a held-out question."""
    if held_out is None:
        return GateResult("leaks", not_applicable="no held-out questions; --held-out names their file")
    asked = frame.unique("question", maintain_order=True)
    search = LeakSearch(held_out, asked["question"], gates.leakage)
    found = search.over([asked["question"]])
    repeated = found.repeated.filter(pl.col("similarity") > gates.leakage.max_similarity)
    pairs = pl.concat([one.select("row", "held") for one in (repeated, found.retold.filter("suspect"), found.spelled)])
    pairs = pairs.unique("row", maintain_order=True)
    told = asked[pairs["row"]].with_columns(held_out=held_out[pairs["held"]])
    advice = "take these prompts out of the training data, or their questions out of the held-out set"
    return _verdict(
        "leaks", told, equal("prompts that repeat a held-out question", told.height, 0, advice),
        at_least("held-out questions searched for", search.checkable, 1, "all are shorter than gates.leakage.ngram"),
        info("different prompts", asked.height),
    )  # fmt: skip


def judge(frame: pl.DataFrame, max_variance: float) -> GateResult:
    """Check how far repeated scores of one rollout differ."""
    repeated = frame.filter(pl.col("samples").list.len() > 1)
    if not repeated.height:
        return GateResult("judge", not_applicable="no rollout has several scores of a judge (judge_scores: a list)")
    scores = repeated.select(dialogue=pl.col("line").cast(pl.String), dimension=pl.lit("score"), score="samples")
    noise = pooled(scores.explode("score"), CONFIDENCE)[0]
    unstable = repeated.filter(pl.col("samples").list.var(ddof=1) > max_variance)
    advice = "the judge disagrees with itself: sharpen its instructions, or lower its temperature"
    return _verdict(
        "judge", unstable, at_most("pooled variance", noise.variance, max_variance, advice),
        at_most("unstable rollouts, share", unstable.height / repeated.height, MAX_UNSTABLE, advice),
        info("sd between scores", noise.sd), info("rollouts with several scores", repeated.height),
    )  # fmt: skip


def _verdict(name: str, listed: pl.DataFrame, *checks: Check) -> GateResult:
    kept = [column for column in _LISTED if column in listed.columns and listed[column].null_count() < listed.height]
    return GateResult(name, checks, offenders=offenders(listed.select(kept), name))


def _middle(values: pl.Series) -> float:
    """Return the middle between the least and the most; NaN without values."""
    return (number(values.min()) + number(values.max())) / 2
