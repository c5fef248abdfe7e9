"""Compare the answer rules with math-verify: hard pairs, public gold answers against themselves, LaTeX, and time.

    python benchmarks/bench_answer_rules.py              # ../shared/answer_pairs and ../shared/data
    python benchmarks/bench_answer_rules.py --shared DIR

Without math-verify (`pip install math-verify`) or that folder it runs nothing, says so, and ends with 77. math-verify
only reads numbers. Its gold answers are between dollar signs, as its instructions ask, and its timeouts, which use
signals, are off. Prints the Markdown tables of docs/answers.md.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lacking import not_run

from rc1_lib.answer_rules import same_name, same_number, same_verdict
from rc1_lib.workspace.artifacts import PROJECT_ROOT

ANSWERS = 30_000
RULES = {"gsm8k": same_number, "hotpotqa": same_name, "strategyqa": same_verdict}
SPELLINGS = {
    "gsm8k": ("{}", "**{}**", r"\boxed{{{}}}", "${}$", "The answer is {}.", "{} clips", "x = {}", "Total: {}",
              "In 2 hours she earns {} dollars.", "共{}个。"),
    "hotpotqa": ("{}", "{}.", "the {}", '"{}"', "**{}**", "({})", " {} ", "`{}`", "_{}_", "{}!"),
    "strategyqa": ("{}", "{}.", "**{}**", "The answer is {}.", "So {}", "Definitely {}", "In short: {}", '"{}"',
                   "{}, because it is bigger.", r"\boxed{{\text{{{}}}}}"),
}  # fmt: skip
LATEX = (
    (r"\frac{1}{2}", "0.5"), (r"\dfrac{144}{2}", "72"), (r"\frac12", "0.5"), (r"\frac{3}{4}", "0.75"),
    (r"-\frac{5}{2}", "-2.5"),
    (r"\sqrt{16}", "4"), (r"\sqrt{\frac{9}{4}}", "1.5"), (r"2^{5}", "32"), (r"10^{3}", "1000"), (r"3 \times 24", "72"),
    (r"3 \cdot 24", "72"), (r"144 \div 2", "72"), (r"1.2 \times 10^{3}", "1200"), (r"\boxed{72}", "72"),
    (r"$\boxed{\frac{144}{2}}$", "72"), (r"\text{72 clips}", "72"), (r"72\text{ clips}", "72"), (r"\$72", "72"),
    (r"72\%", "72"), (r"1{,}234", "1234"), (r"1\,234", "1234"), (r"\left(72\right)", "72"), (r"x = 72", "72"),
    (r"$x = \frac{144}{2} = 72$", "72"), (r"48 + 24 = \boxed{72}", "72"), (r"\mathbf{72}", "72"), (r"72^\circ", "72"),
    (r"1\frac{1}{2}", "1.5"), (r"\frac{1.5}{3}", "0.5"), (r"2(36)", "72"), (r"\log_{2} 8", "3"), (r"5!", "120"),
    (r"\binom{4}{2}", "6"), (r"\sqrt[3]{27}", "3"), (r"|-5|", "5"), (r"\lfloor 2.5 \rfloor", "2"),
    (r"0.\overline{3}", "1/3"),
)  # fmt: skip
"""LaTeX in which the answer to a word problem may be written, and some that our rules need not read."""


def main() -> int:
    """Print the tables and return the exit code."""
    arguments = argparse.ArgumentParser(description="answer rules next to math-verify")
    arguments.add_argument("--shared", type=Path, default=PROJECT_ROOT.parent / "shared")
    shared = arguments.parse_args().shared
    if find_spec("math_verify") is None:
        return not_run("answer rules", "math-verify is not installed", "pip install math-verify")
    if not (shared / "answer_pairs").exists():
        return not_run("answer rules", f"{shared}/answer_pairs does not exist", "give the folder with --shared")
    peer = _math_verify()
    pairs = [json.loads(line) for line in (shared / "answer_pairs/pairs.jsonl").read_text("utf-8").splitlines()]
    _print_pairs(pairs, peer)
    _print_golds(shared / "data", peer)
    _print_latex(peer)
    _print_time(shared / "data", peer)
    return 0


def _math_verify() -> Callable[[str, str], bool]:
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns at each call that its timeouts are off

    def right(given: str, gold: str) -> bool:
        return bool(
            verify(
                parse(f"${gold}$", parsing_timeout=None),
                parse(given, parsing_timeout=None),
                timeout_seconds=None,
            )
        )

    return right


def _share(found: list[bool]) -> str:
    return f"{sum(found)}/{len(found)} ({100 * sum(found) / max(1, len(found)):.1f} %)"


def _print_pairs(pairs: list[dict[str, Any]], peer: Callable[[str, str], bool]) -> None:
    print("| hard pairs | wrong, paid | right, refused |\n|---|---|---|")
    rows = [(f"`{rule.__name__}` ({task})", task, rule) for task, rule in RULES.items()]
    for name, task, rule in [*rows, ("math-verify (gsm8k)", "gsm8k", peer)]:
        own = [pair for pair in pairs if pair["task"] == task]
        paid = [rule(pair["given"], pair["gold"]) for pair in own if not pair["should"]]
        refused = [not rule(pair["given"], pair["gold"]) for pair in own if pair["should"]]
        print(f"| {name} | {_share(paid)} | {_share(refused)} |")


def _golds(data: Path) -> Iterator[tuple[str, str]]:
    for line in (data / "gsm8k/train.jsonl").read_text("utf-8").splitlines():
        yield "gsm8k", json.loads(line)["answer"].rpartition("####")[2].strip().replace(",", "")
    for line in (data / "hotpotqa/distractor_masarena_aflow_validate.jsonl").read_text("utf-8").splitlines():
        yield "hotpotqa", json.loads(line)["answer"]
    for record in json.loads((data / "hotpotqa/distractor_meve_dev100_hfform.json").read_text("utf-8")):
        yield "hotpotqa", record["answer"]
    for record in json.loads((data / "strategyqa/train.json").read_text("utf-8")):
        yield "strategyqa", "yes" if record["answer"] else "no"


def _print_golds(data: Path, peer: Callable[[str, str], bool]) -> None:
    golds = list(_golds(data))
    print("\n| gold answers in ten spellings | ours, refused | math-verify, refused |\n|---|---|---|")
    for task, rule in RULES.items():
        own = [gold for name, gold in golds if name == task]
        ours = [not rule(spelling.format(gold), gold) for gold in own for spelling in SPELLINGS[task]]
        theirs = "-"
        if task == "gsm8k":
            some = sorted(set(own))[::10]  # a tenth of the distinct ones, since each takes a millisecond
            theirs = _share([not peer(spelling.format(gold), gold) for gold in some for spelling in SPELLINGS[task]])
        print(f"| {task}, {len(own)} | {_share(ours)} | {theirs} |")


def _print_latex(peer: Callable[[str, str], bool]) -> None:
    ours = [(given, same_number(given, gold)) for given, gold in LATEX]
    theirs = [(given, peer(given, gold)) for given, gold in LATEX]
    dollars = [(given, peer(f"${given.strip('$')}$", gold)) for given, gold in LATEX]
    print(f"\n| LaTeX, {len(LATEX)} answers | right | not read |\n|---|---|---|")
    for name, found in (("ours", ours), ("math-verify", theirs), ("math-verify, within `$`", dollars)):
        missed = ", ".join(f"`{given}`" for given, right in found if not right)
        print(f"| {name} | {sum(right for _, right in found)} | {missed.replace('|', '&#124;')} |")


def _print_time(data: Path, peer: Callable[[str, str], bool]) -> None:
    golds = [gold for task, gold in _golds(data) if task == "gsm8k"]
    spelled = [SPELLINGS["gsm8k"][at % 10].format(golds[at % len(golds)]) for at in range(ANSWERS)]
    verdicts = [SPELLINGS["strategyqa"][at % 10].format(("yes", "no")[at % 2]) for at in range(ANSWERS)]
    print(f"\n| seconds for {ANSWERS:,} answers, one core | |\n|---|---|")
    for name, rule, texts, gold in (
        ("`same_number`", same_number, spelled, "72"),
        ("`same_verdict`", same_verdict, verdicts, "yes"),
        ("`same_name`", same_name, spelled, "72"),
    ):
        print(f"| {name} | {_seconds(rule, texts, gold):.2f} |")
    some = spelled[:1000]
    print(f"| math-verify (from {len(some):,}) | {_seconds(peer, some, '72') * ANSWERS / len(some):.1f} |")


def _seconds(rule: Callable[[str, str], bool], texts: list[str], gold: str) -> float:
    started = time.process_time()
    for text in texts:
        rule(text, gold)
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
