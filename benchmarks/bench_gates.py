"""The two heavy gates against the plain way of doing the same, and the builder with one worker against two.

    python benchmarks/bench_gates.py [ROWS]

Prints seconds and ratios from one run. The plain versions are what a short script would do: Python sets of n-grams, row
by row; for near duplicates one MinHash object per row, filled token by token.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from rensa import RMinHash, RMinHashLSH

from rc1_lib.folded_text import folded, words
from rc1_lib.gates.duplicates import near_duplicates
from rc1_lib.ngrams import contained, ngrams_of
from rc1_lib.pool.build import BuildReport, plan, write_rows
from rc1_lib.pool.plan import held_text
from rc1_lib.pool.templates import load_pack
from rc1_lib.rows.frame import read_rows, with_texts
from rc1_lib.run import open_run
from rc1_lib.sources import load_questions
from rc1_lib.text import tokenize


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of `work()`."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def grams(text: str, n: int) -> set[tuple[str, ...]]:
    """The n-grams of a text, the plain way."""
    words = tokenize(text)
    return {tuple(words[place : place + n]) for place in range(len(words) - n + 1)}


def plain_containment(texts: list[str], held: list[str], n: int) -> dict[tuple[int, int], float]:
    """Containment of every held text in every text, with sets and two loops."""
    wanted = [grams(text, n) for text in held]
    found = {}
    for row, text in enumerate(texts):
        mine = grams(text, n)
        for number, theirs in enumerate(wanted):
            if shared := len(mine & theirs):
                found[row, number] = shared / len(theirs)
    return found


def plain_near_duplicates(texts: list[str], n: int, similarity: float, permutations: int) -> int:
    """Rows that a MinHash index calls similar to an earlier one, one row at a time."""
    index = RMinHashLSH(similarity, permutations, permutations // 4)
    repeated = 0
    for row, text in enumerate(texts):
        sketch = RMinHash(permutations, 42)
        sketch.update([" ".join(gram) for gram in grams(text, n)])
        repeated += bool(index.query(sketch))
        index.insert(row, sketch)
    return repeated


def report(name: str, ours: float, plain: float) -> None:
    """One line of the table."""
    print(f"{name:34} {ours:8.2f} s {plain:8.2f} s   {plain / ours:5.1f} x")


def main() -> None:
    """Build a pool with one and with two workers, then time both gates on it."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    with tempfile.TemporaryDirectory() as folder:
        run = open_run(workspace=folder, overrides=[f"pool.n={rows}"])
        questions, _ = load_questions(run.config, run.workspace)
        plans = plan(run.config, questions)
        pack = load_pack(run.workspace.find(run.config.pool.templates_dir))
        config = {
            workers: run.config.model_copy(update={"pool": run.config.pool.model_copy(update={"workers": workers})})
            for workers in (1, 2)
        }
        one, lines = timed(lambda: list(write_rows(plans.pool, config[1], pack, BuildReport())))
        two, again = timed(lambda: list(write_rows(plans.pool, config[2], pack, BuildReport())))
        assert lines == again, "the number of workers must not change a byte"
        path = Path(folder) / "pool.jsonl"
        path.write_bytes(b"".join(lines))
        texts = with_texts(read_rows(path))
    held = [held_text(row.question) for row in plans.shadow]
    gates = run.config.gates
    print(f"{rows} rows{'':26} here       plain      ratio")
    report("build, two workers against one", two, one)
    # Both search the same folded texts: what is compared is the search.
    everything, asked = folded(texts["everything"]), folded(pl.Series(held))
    sought = ngrams_of(words(asked), gates.leakage.ngram)
    ours, pairs = timed(lambda: contained(words(everything), gates.leakage.ngram, sought))
    plain, found = timed(lambda: plain_containment(everything.to_list(), asked.to_list(), gates.leakage.ngram))
    assert pairs.height == len(found), "both ways must find the same pairs"
    report("leakage: containment", ours, plain)
    dialogue = texts["dialogue"]
    ours, _ = timed(lambda: near_duplicates(dialogue, gates.duplicates))
    plain, _ = timed(
        lambda: plain_near_duplicates(
            dialogue.to_list(), gates.duplicates.shingle, gates.duplicates.similarity, gates.duplicates.permutations
        )
    )
    report("duplicates: MinHash (ours verifies)", ours, plain)


if __name__ == "__main__":
    main()
