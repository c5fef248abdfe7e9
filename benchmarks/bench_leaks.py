"""Measure the leak gate: its recall of planted leaks by kind, its false alarms on clean rows, and its time.

    python benchmarks/bench_leaks.py [ROWS] [EACH]

Builds an embedded pool, plants EACH leaks of every kind in separate rows, and evaluates the gate without and with them.
Time is CPU time of all threads. It is compared with a search for word n-grams alone in unnormalised texts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.gates.leakage import leakage_gate
from rc1_lib.pool.build import BuildReport, plan, write_rows
from rc1_lib.pool.templates import load_pack
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.spoken import question_texts, spoken
from rc1_lib.run import open_run
from rc1_lib.sources import load_questions
from rc1_lib.text.ngrams import ngrams, shares
from tests.gates.planted_leaks import KINDS, SURE, Planted, planted

_MEASURES = ("n-grams", "words in order", "letters", "id")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds and the result of `work()`."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def table(leaks: list[Planted], found: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Print recall by kind and language, and which measures found the leaks."""
    print(f"{'kind':38} sure  planted  found    en    zh  n-grams  in order  letters   id  place named")
    for kind in KINDS:
        of_kind = [leak for leak in leaks if leak.kind == kind]
        hits = [(leak, found[leak.id, leak.shadow_id]) for leak in of_kind if (leak.id, leak.shadow_id) in found]
        by_lang = [sum(leak.lang == lang for leak, _ in hits) for lang in ("en", "zh")]
        by = [sum(hit["measure"] == measure for _, hit in hits) for measure in _MEASURES]
        named = sum(hit["where"].startswith(leak.where) for leak, hit in hits)
        print(
            f"{kind:38} {'yes' if kind in SURE else '':4} {len(of_kind):8} {len(hits):6} {by_lang[0]:5} {by_lang[1]:5}"
            f" {by[0]:8} {by[1]:9} {by[2]:8} {by[3]:4} {named:12}"
        )


def main() -> None:
    """Build, evaluate the clean pool, plant leaks, evaluate again, print."""
    rows, each = (int(given) for given in (*sys.argv[1:], *("5000", "40")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        run = open_run(workspace=folder, overrides=[f"pool.n={rows}"])
        questions, _ = load_questions(run.config, run.workspace)
        plans = plan(run.config, questions)
        pack = load_pack(run.workspace.find(run.config.pool.templates_dir))
        frames = []
        for name, part in (("pool", plans.pool), ("shadow", plans.shadow)):
            path = Path(folder) / f"{name}.jsonl"
            path.write_bytes(b"".join(write_rows(part, run.config, pack, BuildReport())))
            frames.append(read_rows(path))
        old = load_pack(run.workspace.find(run.config.pool.reference_templates_dir))
    pool, shadow = frames
    limits = run.config.gates.leakage
    literals = [text for each_pack in (old, pack) for lang in ("en", "zh") for text in each_pack.literals(lang)]
    seconds, clean = timed(lambda: leakage_gate(pool, shadow, limits, literals, list(run.config.datasets)))
    sought = ngrams(question_texts(shadow), limits.ngram)
    plain, _ = timed(lambda: shares(ngrams(spoken(pool), limits.ngram), sought))
    print(
        f"{pool.height} clean rows x {shadow.height} questions: {len(clean.offenders)} accused, {seconds:.1f} s of CPU"
    )
    print(f"word n-grams alone: {plain:.1f} s")
    for check in clean.checks:
        if check.name.startswith("highest") and "[" not in check.name:
            print(f"  {check.name}: {check.value} (limit {check.threshold})")
    damaged, leaks = planted(pool, shadow, each)
    result = leakage_gate(damaged, shadow, limits, literals, list(run.config.datasets))
    found = {(leak["id"], leak["shadow_id"]): dict(leak) for leak in result.offenders if "shadow_id" in leak}
    table(leaks, found)
    accused = {row for row, _ in found} - {leak.id for leak in leaks}
    print(f"rows accused that hold no leak: {len(accused)}")


if __name__ == "__main__":
    main()
