"""The evaluation gate: the trained policy asks if needed, not otherwise, and succeeds more often.

The *sampled* episodes decide: PPO optimises them, and the specification set its thresholds for them. Greedy episodes
are only reported, since greedy decoding rounds a habit of asking to always or never. A base that asks on 30 % of all
prompts never asks when greedy: its over-clarification rate is then 0, from which no relative drop is defined.

Four checks come from the specification: success where asking is needed, success on hard rows, over-clarification,
turns. If answers that are right without asking counted, a policy that never asks could pass all four. So they count as
failures, and recall measures the asking itself. Precision, and the gap between asking where needed and where not, are
only shown: on the same prompts neither can fall where recall does not fall and needless asking does.

Success alone can rise without one more right answer, if answers that were right before now follow a question. So right
answers are checked too, by the intervals of their changes: where asking is needed they must rise, over all prompts they
must not fall, and no single task may lose success or right answers where asking is needed, nor right answers where
nothing is missing: a task that is unlearned there hides in the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan

from rc1_lib.check_words import check_line
from rc1_lib.checks import above, at_least, at_most, equal, info
from rc1_lib.config.thresholds import EvaluationGate
from rc1_lib.evaluation.evaluate import Evaluation
from rc1_lib.evaluation.metrics import LUCKY
from rc1_lib.evaluation.paired import OVERCLAR_DROP
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.intervals import Interval, interval_in_words

GATE = "ppo_eval"
PROMPTS = "held-out prompts of a seed, fewest"
GROUPS = {
    "need asking": "prompts that need asking", "clear": "prompts where nothing is missing",
    "hard": "hard prompts of multi-hop tasks",
}  # fmt: skip
NEEDED = "success where asking is needed up, pp"
HARD = "success on hard rows up, pp"
RATE = "over-clarification down, %"
TURNS = "mean turns up"
RECALL = "asking where needed (recall) up, pp"
RIGHT_NEEDED = "right answers where asking is needed up, low end, pp"
RIGHT = "right answers of all not down, high end, pp"
CHECK_OF = {
    "success_needed": NEEDED, "success_hard": HARD, OVERCLAR_DROP: RATE, "turns": TURNS, "ask_recall": RECALL,
    "right_needed": RIGHT_NEEDED, "right": RIGHT,
}  # fmt: skip
"""Metric -> the check on its change."""
END_OF = {"right_needed": "low", "right": "high"}
"""Metric -> the end of its change's interval that the check compares; the others compare the change itself."""
CHANCE = f"{LUCKY}, by chance"

_SHOWN = {
    "success": "success", "success_needed": "success where asking is needed", "success_hard": "success on hard rows",
    "right": "right answers", "right_needed": "right where asking is needed",
    "right_clear": "right where nothing is missing", "right_hard": "right on hard rows",
    "lucky": LUCKY, "declined": "declines to answer", "ask_recall": "asks where needed",
    "overclar_rate": "asks where not needed",
    "ask_precision": "asked prompts that needed it", "needless_questions": "needless questions, mean",
    "turns": "turns, mean", "malformed": "malformed turns, share",
}  # fmt: skip
_CHANGES = {
    "right_needed": _SHOWN["right_needed"], "right": _SHOWN["right"], "ask_precision": _SHOWN["ask_precision"],
    "ask_gap": "gap between asking where needed and where not",
}  # fmt: skip
"""Metrics whose change is shown with its interval, next to those of the checks."""
_OF_TASK = {"success_needed": "success", "right_needed": "right answers"}
"""Metrics that may not fall in any task -> words for them."""


def ppo_eval_gate(
    evaluation: Evaluation,
    thresholds: EvaluationGate,
    by_seed: Mapping[int, Evaluation] | None = None,
    proxy_checks: Sequence[Check] = (),
) -> GateResult:
    """Judge a policy's comparison with the one it started from.

    The point value decides a check; a line of information has the paired interval and says whether all of it passes.
    Checks on right answers compare an end of their interval, as their names say; of a task with one or two source
    questions nothing is checked, and a line says so. Too few prompts of all are an error, whatever the values. With
    several training seeds, each must also pass separately, since a mean can hide a seed that failed.

    Args:
        evaluation: the comparison, of one training seed or of several pooled.
        thresholds: `gates.evaluation`.
        by_seed: training seed -> its own comparison, if several are pooled.
        proxy_checks: the checks on the judged score next to success, from `rc1_lib.evaluation.proxy.proxy_checks`.
    """
    enough = _enough(evaluation, thresholds)
    few = [check for check in enough if not check.passed]
    judged = _judged(evaluation, thresholds)
    right = _right(evaluation)
    alone = {
        seed: [*_judged(compared, thresholds).values(), *_right(compared)] for seed, compared in (by_seed or {}).items()
    }
    checks = [
        *enough,
        *judged.values(),
        *right,
        *(_passes_alone(seed, found) for seed, found in alone.items()),
        *proxy_checks,
    ]
    checks += [info(f"seed {seed}: {check.name}", check.value) for seed, found in alone.items() for check in found]
    change = evaluation.modes["sampled"].overall.change
    checks += [info(f"{check.name}: interval", interval_in_words(change[metric])) for metric, check in judged.items()]
    checks += [info(f"{words}: change, pp", interval_in_words(change[metric])) for metric, words in _CHANGES.items()]
    if evaluation.chance is not None:
        checks.append(info(CHANCE, evaluation.chance.overall))
    for mode, compared in evaluation.modes.items():
        before, after = compared.overall.before, compared.overall.after
        checks += [
            info(f"{words}, {mode}", f"{_number(before[metric])} -> {_number(after[metric])}")
            for metric, words in _SHOWN.items()
        ]
    error = ""
    if few:
        found = "; ".join(map(check_line, few))
        error = f"too few held-out prompts to evaluate a policy: {found}; evaluate on more"
    return GateResult(GATE, tuple(checks), error=error)


def _enough(evaluation: Evaluation, thresholds: EvaluationGate) -> list[Check]:
    more = "evaluate on more held-out prompts: with this few, chance decides"
    fewest = {name: min(counts[name] for counts in evaluation.prompts.values()) for name in ("all", *GROUPS)}
    return [
        at_least(PROMPTS, fewest["all"], thresholds.min_prompts, more),
        *(at_least(words, fewest[group], thresholds.min_group, more) for group, words in GROUPS.items()),
    ]


def _passes_alone(seed: int, judged: Sequence[Check]) -> Check:
    """Check that a seed clears every threshold without the others."""
    missed = [check.name for check in judged if not check.passed]
    return equal(f"seed {seed}: clears every threshold", not missed, True, f"on its own it misses: {'; '.join(missed)}")


def _judged(evaluation: Evaluation, thresholds: EvaluationGate) -> dict[str, Check]:
    """Return the checks by metric."""
    overall = evaluation.modes["sampled"].overall
    value = {name: found.value for name, found in overall.change.items()}
    checks = {
        "success_needed": at_least(
            NEEDED, value["success_needed"], thresholds.min_needed_up_pp,
            "the policy did not learn to obtain and use what is missing: check recall and 'obtained' in the report; "
            "train longer, or start from a base that uses its tools better",
        ),
        "success_hard": at_least(
            HARD, value["success_hard"], thresholds.min_hard_up_pp,
            "hard rows gained too little: sample more of them (priority_sampling.by_difficulty), raise difficulty_beta",
        ),
        OVERCLAR_DROP: at_least(
            RATE, value[OVERCLAR_DROP], thresholds.min_overclar_down_pct, _rate_advice(evaluation),
        ),
        "turns": at_most(
            TURNS, value["turns"], thresholds.max_turns_up,
            "dialogues got longer: check hops, tool errors and needless questions in the report; penalise turns",
        ),
        "ask_recall": at_least(
            RECALL, value["ask_recall"], 0.0,
            "it asks less where something is missing: the penalty is too high, or guesses are rewarded; lower "
            "overclar.alpha, and check that answers right without asking do not count as success",
        ),
    }  # fmt: skip
    return {
        metric: replace(
            check, interval=overall.change[metric].of(overall.prompts // len(evaluation.prompts), "prompts")
        )
        for metric, check in checks.items()
    }


def task_check(task: str) -> str:
    """Return the name of the check on a task's prompts that need asking."""
    return f"{task}: success and right answers where asking is needed not down, high end, pp"


def clear_check(task: str) -> str:
    """Return the name of the check on a task's prompts where nothing is missing."""
    return f"{task}: right answers where nothing is missing not down, high end, pp"


def _right(evaluation: Evaluation) -> list[Check]:
    """Return the checks on right answers: where asking is needed, of all, and by task of either kind of prompts."""
    compared = evaluation.modes["sampled"]
    change = compared.overall.change
    checks = [
        above(
            RIGHT_NEEDED, change["right_needed"].low, 0.0,
            "no more answers are right than before, beyond the interval of the change. If success rose, answers that "
            "were right anyway now follow a question: look for missing pieces that can be found without asking, and "
            "whether the policy uses what the user says",
        ),
        at_least(
            RIGHT, change["right"].high, 0.0,
            "fewer answers are right than before, over all prompts: compare tasks and prompts where nothing is missing "
            "in the report; raise training.reward.success, or lower overclar.alpha and training.reward.turn",
        ),
    ]  # fmt: skip
    for task, found in compared.by["task"].items():
        if not isnan(found.before["right_needed"].value):  # else none of its prompts needs asking
            highs = {words: found.change[metric].high for metric, words in _OF_TASK.items()}
            checks.append(_of_task(task_check(task), list(highs.values()), _task_advice(task, highs)))
        if not isnan(found.before["right_clear"].value):
            high = found.change["right_clear"].high
            checks.append(_of_task(clear_check(task), [high], _clear_advice(task)))
    return checks


def _of_task(name: str, highs: Sequence[float], advice: str) -> Check:
    """Check that no end is below 0. Prompts of one or two source questions have no interval."""
    if any(map(isnan, highs)):
        return info(name, "not checked: too few source questions for an interval")
    return at_least(name, min(highs), 0.0, advice)


def _task_advice(task: str, highs: Mapping[str, float]) -> str:
    fell = " and ".join(words for words, high in highs.items() if high < 0)
    return (
        f"the policy unlearned {task} where asking is needed ({fell} fell): read its dialogues in the examples, train "
        f"on more of its rows, or start from a base that can use what the user says in this task"
    )


def _clear_advice(task: str) -> str:
    return (
        f"fewer complete prompts of {task} are answered right than before: compare its dialogues in the examples; keep "
        f"the policy closer to where it started (lower lr or target_kl, raise kl_coef)"
    )


def _rate_advice(evaluation: Evaluation) -> str:
    if evaluation.modes["sampled"].overall.before["overclar_rate"].value == 0:
        return (
            "undefined: the base never asks needlessly on these prompts, so the rate cannot fall; start from a base "
            "that asks too much, or evaluate on more prompts"
        )
    return "it still asks where nothing is missing: raise overclar.alpha, or train longer with the penalty"


def _number(found: Interval) -> str:
    return "undefined" if found.value != found.value else f"{found.value:.3f}"
