"""Check answer rules that others wrote, those of reasoning-gym's tasks.

    python benchmarks/bench_rules_of_others.py [TASK ...]

Each task's `score_answer` grades the answers that `rc1 check-answers` makes of 60 of the task's golds; a score above
0.99 counts as paid. Prints a row for every task, in tables by form of the golds;
docs/experiments/rules-of-others.md has those that pay wrong answers.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lacking import not_run

from rc1_lib.answer_rules.check import Rate, Rule, RuleReport, ask_rule
from rc1_lib.answer_rules.golds import Gold, sample

ENTRIES, GOLDS, SEED = 240, 60, 7
NUMBERS = (
    "aiw", "basic_arithmetic", "binary_alternation", "chain_sum", "coin_flip", "count_bits", "count_primes",
    "decimal_arithmetic", "decimal_chain_sum", "gcd", "gsm_symbolic", "largest_island", "lcm", "leg_counting",
    "letter_counting", "maze", "number_format", "number_sequence", "products", "rectangle_count", "rotten_oranges",
    "simple_equations", "simple_geometry",
)  # fmt: skip
WORDS = (
    "acre", "bf", "caesar_cipher", "calendar_arithmetic", "color_cube_rotation", "family_relationships", "figlet_font",
    "isomorphic_strings", "letter_jumble", "mahjong_puzzle", "needle_haystack", "ransom_note", "spell_backward",
    "string_manipulation", "syllogism", "zebra_puzzles",
)  # fmt: skip
"""With the numbers, the tasks of 0.1.25 with one right answer: others accept what a comparison with it rejects."""
FULL_SCORE = 0.99
_SHOWN = 6
"""Most kinds that a cell lists."""


def task(name: str, entries: int = ENTRIES) -> tuple[Rule, list[Gold]]:
    """Return a task's rule and the golds of its entries; if two entries have the same gold, the first one grades it."""
    import reasoning_gym

    by_gold: dict[str, dict[str, Any]] = {}
    with redirect_stdout(sys.stderr):  # some tasks print while they generate entries
        made = reasoning_gym.create_dataset(name, size=entries, seed=SEED)
        for at in range(entries):
            entry = made[at]
            by_gold.setdefault(str(entry["answer"]), entry)

    def rule(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
        return bool(made.score_answer(given, by_gold[gold]) > FULL_SCORE)

    return rule, [Gold(answer, (), str(entry["question"])) for answer, entry in by_gold.items()]


def asked(name: str, entries: int = ENTRIES, golds: int = GOLDS) -> RuleReport:
    """Check a task's rule."""
    rule, known = task(name, entries)
    return ask_rule(rule, sample(known, golds, SEED))


def line(name: str, report: RuleReport) -> str:
    """Return a task's line of the table."""
    right = [found for found in report.kinds if found.right]
    accepted = [found.kind.name for found in right if not found.rate.failed]
    shown = f"{len(accepted)} of {len(right)}: {_named(accepted)}" if accepted else f"0 of {len(right)}"
    paid = _named([found.kind.name for found in report.kinds if not found.right and found.rate.failed])
    cells = (name, str(report.used), _rate(report.wrong_paid), paid, _rate(report.right_refused), shown)
    return f"| {' | '.join(cells)} |"


def _named(kinds: Sequence[str]) -> str:
    more = f" and {len(kinds) - _SHOWN} more" if len(kinds) > _SHOWN else ""
    return ", ".join(f"`{kind}`" for kind in kinds[:_SHOWN]) + more


def _rate(rate: Rate) -> str:
    return f"{100 * rate.share:.1f} % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def main(names: Sequence[str]) -> int:
    """Check every rule, and print the tables."""
    if importlib.util.find_spec("reasoning_gym") is None:
        return not_run(
            "answer rules of others", "reasoning-gym is not installed",
            "pip install -c constraints.txt -e '.[rule-tests]', then python benchmarks/bench_rules_of_others.py",
        )  # fmt: skip
    reports = {name: asked(name) for name in names or (*NUMBERS, *WORDS)}
    for form in dict.fromkeys(report.form for report in reports.values()):
        print(f"\n## Golds: {form.value}\n")
        print("| task | golds | wrong answers paid | by kinds | right spellings refused | kinds accepted throughout |")
        print("|---|---|---|---|---|---|")
        for name, report in reports.items():
            if report.form is form:
                print(line(name, report))
    print(
        "\nrules that raise an error for some answer:",
        ", ".join(name for name, report in reports.items() if report.broken) or "none",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
