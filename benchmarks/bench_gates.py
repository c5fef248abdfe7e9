"""Compare the gates' expensive searches with plain Python by the same definitions, and with public tools.

    python benchmarks/bench_gates.py [ROWS [WORKSPACE]]

Builds an embedded pool of ROWS rows in WORKSPACE (by default a temporary folder), or uses an existing one, plants
slightly altered copies in it, and does each job in each way. Times are CPU seconds of all threads. Plain Python must
find exactly the same rows as the gates; of public tools the number of rows found is printed. `datasketch` and
`overlapy` are compared if they are installed (`pip install datasketch overlapy`); `rensa` comes with RC1. Prints a
table and writes `benchmarks/results/gates.json`, which keeps the results of other sizes.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rensa import RMinHash, RMinHashLSH

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.config.thresholds import DuplicatesGate
from rc1_lib.difficulty.buckets import CLARIFICATION_HARD_TURNS, CLUE_OVERLAP, RISING, vote
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import Evidence
from rc1_lib.gates.difficulty import difficulty_gate
from rc1_lib.gates.duplicates import PERMUTATIONS, SHINGLE, SIMILARITY, exact_duplicates, near_duplicates
from rc1_lib.gates.length import length_gate
from rc1_lib.gates.mix import mix_gate
from rc1_lib.pool.seed import build_seed
from rc1_lib.records import GateResult
from rc1_lib.rows.frame import texts_of
from rc1_lib.rows.spoken import question_texts
from rc1_lib.run import open_run
from rc1_lib.text.ngrams import ngrams, shares
from rc1_lib.text.tokens import text_length, tokenize
from rc1_lib.workspace.artifacts import write_json

RESULTS = Path(__file__).parent / "results" / "gates.json"
SEARCHES = ("duplicates", "containment")
Grams = set[tuple[str, ...]]
Job = tuple[str, str, Callable[[], Any]]
"""Name of a job, who does it, and the function; RC1 comes first, plain Python second."""


def grams(text: str, n: int) -> Grams:
    """Return the n-grams of a text."""
    words = tokenize(text)
    return set(zip(*(words[place:] for place in range(n)), strict=False))


def plain_lengths(texts: list[str]) -> tuple[int, int]:
    """Return the lengths of the shortest and the longest text."""
    lengths = [text_length(text) for text in texts]
    return min(lengths), max(lengths)


def plain_duplicates(texts: list[str], n: int, similarity: float) -> set[int]:
    """Find rows whose n-grams have at least this Jaccard similarity to an earlier row's.

    Exact prefix filtering (Bayardo, Ma and Srikant 2007): two sets that similar share one of the rarest few n-grams of
    each, so only rows with a shared rare n-gram are compared.
    """
    sets = [grams(text, n) for text in texts]
    frequency = Counter(gram for of_row in sets for gram in of_row)
    rows_with: dict[tuple[str, ...], list[int]] = defaultdict(list)
    found = set()
    for row, mine in enumerate(sets):
        rarest = sorted(mine, key=lambda gram: (frequency[gram], gram))[: len(mine) - int(similarity * len(mine)) + 1]
        candidates = {earlier for gram in rarest for earlier in rows_with[gram]}
        for earlier in candidates:
            shared = len(mine & sets[earlier])
            if shared >= similarity * (len(mine) + len(sets[earlier]) - shared) > 0:
                found.add(row)
                break
        for gram in rarest:
            rows_with[gram].append(row)
    return found


def plain_containment(texts: list[str], held: list[str], n: int) -> dict[tuple[int, int], float]:
    """Compute the share of every held text's n-grams that each text contains."""
    wanted = [grams(text, n) for text in held]
    found = {}
    for row, text in enumerate(texts):
        mine = grams(text, n)
        for number, theirs in enumerate(wanted):
            if shared := len(mine & theirs):
                found[row, number] = shared / len(theirs)
    return found


def plain_bucket(row: Mapping[str, Any]) -> str:
    """Return the bucket that most of a row's eight features vote for; ties go to the harder one."""
    votes = []
    for name, (low, high) in {**RISING, "clue_overlap": CLUE_OVERLAP}.items():
        value = row[name]
        if name == "clue_overlap":
            easy, hard = value > low, value < high
        elif name in ("turns", "tool_hops", "ops_numeric", "entities"):
            easy, hard = value <= low, value >= high
        else:
            easy, hard = value < low, value > high
        votes.append("hard" if hard else "easy" if easy else "medium")
    if not row["needs_clarification"]:
        votes.append("easy")
    else:
        votes.append("hard" if row["turns"] >= CLARIFICATION_HARD_TURNS else "medium")
    return max(("hard", "medium", "easy"), key=votes.count)


def plain_difficulty(
    measured: Sequence[Mapping[str, Any]], balanced: Sequence[str], tasks: Sequence[str]
) -> dict[str, float]:
    """Compute every value of the difficulty gate."""
    wanted = set(balanced)
    chosen = [row for row in measured if row["id"] in wanted]
    found: dict[str, float] = {}
    for task in tasks:
        found[f"balanced share[{task}]"] = round(100 * sum(row["task"] == task for row in chosen) / len(chosen), 9)
    for suffix, part in (
        ("", chosen),
        *((f"[{task}]", [row for row in chosen if row["task"] == task]) for task in tasks),
    ):
        for bucket in ("easy", "hard"):
            rows = [row for row in part if row["bucket"] == bucket]
            found[f"{bucket} share{suffix}"] = len(rows) / len(part)
            overlap = statistics.median(row["clue_overlap"] for row in rows)
            bound = "upper" if bucket == "easy" else "lower"
            found[f"clue_overlap, {bucket} median{suffix}"] = overlap
            found[f"clue_overlap, {bucket} median, {bound} bound{suffix}"] = overlap
        for name in ("len_tokens", "turns", "tool_hops"):
            found[f"{name}, highest{suffix}"] = max(row[name] for row in part)
    return found


def plain_mix(of: Sequence[str], tasks: Sequence[str]) -> dict[str, float]:
    """Compute every value of the mix gate."""
    counts = Counter(of)
    shares = {f"share[{task}]": round(100 * counts[task] / len(of), 9) for task in tasks}
    return {**shares, "rows of other tasks": sum(counts[task] for task in counts if task not in tasks)}


def by_rensa(texts: list[str]) -> set[int]:
    """Find rows that rensa's index calls similar to an earlier one."""
    index = RMinHashLSH(SIMILARITY, PERMUTATIONS, PERMUTATIONS // 4)
    found = set()
    for row, text in enumerate(texts):
        sketch = RMinHash(PERMUTATIONS, 42)
        sketch.update([" ".join(gram) for gram in grams(text, SHINGLE)])
        if index.query(sketch):
            found.add(row)
        index.insert(row, sketch)
    return found


def by_datasketch(texts: list[str]) -> set[int]:
    """Find rows that datasketch's index calls similar to an earlier one."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=SIMILARITY, num_perm=PERMUTATIONS)
    found = set()
    for row, text in enumerate(texts):
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([" ".join(gram).encode() for gram in grams(text, SHINGLE)])
        if index.query(sketch):
            found.add(row)
        index.insert(row, sketch)
    return found


def by_overlapy(texts: list[str], held: list[str], n: int) -> set[int]:
    """Find rows in which overlapy finds an n-gram of a held text."""
    from overlapy import OverlapyNgramMatcher

    match = OverlapyNgramMatcher({gram for text in held for gram in grams(text, n)})
    found = match([tokenize(text) for text in texts])
    return {row for rows in found.values() for row in rows}


def ours_duplicates(texts: pl.Series, limits: DuplicatesGate) -> set[int]:
    """Find rows that the gate calls duplicates."""
    return {*exact_duplicates(texts)["row"], *near_duplicates(texts, limits.numbers)["row"]}


def ours_contained(texts: pl.Series, held: pl.Series, n: int) -> dict[tuple[int, int], float]:
    """Compute the gate's measure, on the same words as the other implementations."""
    table = shares(ngrams(texts, n), ngrams(held, n)).select("row", "held", "similarity")
    return {(row, number): share for row, number, share in table.iter_rows()}


def with_copies(texts: pl.Series) -> pl.Series:
    """Append copies of a twentieth of the texts, each with one word left out."""
    rng = random.Random(3)
    copies = []
    for text in texts.sample(len(texts) // 20, seed=3):
        words = text.split(" ")
        del words[rng.randrange(len(words))]
        copies.append(" ".join(words))
    return pl.concat([texts, pl.Series(copies)])


def figures(result: GateResult) -> dict[str, Any]:
    """Return a gate's values by name."""
    return {check.name: check.value for check in result.checks}


def jobs(evidence: Evidence) -> Iterator[Job]:
    """Yield every job in every way."""
    yield from difficulty_jobs(evidence)
    gates, rows = evidence.run.config.gates, evidence.rows("pool")
    limits, n = gates.duplicates, gates.leakage.ngram
    everything, dialogues = texts_of(rows, "everything"), with_copies(texts_of(rows, "dialogue"))
    held = question_texts(evidence.rows("shadow"))
    asked, said, spoken = held.to_list(), dialogues.to_list(), everything.to_list()

    def lengths() -> tuple[Any, ...]:
        checks = {check.name: check.value for check in length_gate(rows, gates.length, []).checks}
        return checks["shortest"], checks["longest"]

    yield "length", "RC1", lengths
    yield "length", "plain Python", lambda: plain_lengths(spoken)
    yield "duplicates", "RC1", lambda: ours_duplicates(dialogues, limits)
    yield "duplicates", "plain Python", lambda: plain_duplicates(said, SHINGLE, SIMILARITY)
    yield "duplicates", "rensa", lambda: by_rensa(said)
    if importlib.util.find_spec("datasketch"):
        yield "duplicates", "datasketch", lambda: by_datasketch(said)
    yield "containment", "RC1", lambda: ours_contained(everything, held, n)
    yield "containment", "plain Python", lambda: plain_containment(spoken, asked, n)
    if importlib.util.find_spec("overlapy"):
        yield "containment", "overlapy", lambda: by_overlapy(spoken, asked, n)


def difficulty_jobs(evidence: Evidence) -> Iterator[Job]:
    """Yield the jobs on metrics and tasks only; plain Python gets the rows as Python objects."""
    config, metrics, pool = evidence.run.config, evidence.metrics(), evidence.rows("pool")
    balanced, tasks = evidence.rows("balanced"), list(evidence.run.config.datasets)
    measured, chosen, of = metrics.to_dicts(), balanced["id"].to_list(), pool["task"].to_list()
    gates, mix = config.gates, config.datasets
    yield "mix", "RC1", lambda: figures(mix_gate(pool, gates.mix, mix))
    yield "mix", "plain Python", lambda: plain_mix(of, tasks)
    yield "buckets", "RC1", lambda: metrics.select(bucket=vote())["bucket"].to_list()
    yield "buckets", "plain Python", lambda: [plain_bucket(row) for row in measured]
    yield (
        "difficulty", "RC1",
        lambda: figures(difficulty_gate(metrics, balanced, gates.difficulty, tasks, gates.mix, mix)),
    )  # fmt: skip
    yield "difficulty", "plain Python", lambda: plain_difficulty(measured, chosen, tasks)


def rows_of(found: Any) -> int:
    """Count the rows that a search has found."""
    return len({row for row, _ in found}) if isinstance(found, dict) else len(found)


def judged(evidence: Evidence) -> list[dict[str, Any]]:
    """Do every job, print a line for each, and stop if plain Python finds something else."""
    ngrams(pl.Series(["a b c d"]), 3)  # one-time setup is not part of a job
    lines: list[dict[str, Any]] = []
    own: dict[str, tuple[float, Any]] = {}
    for job, who, work in jobs(evidence):
        start = time.process_time()
        found = work()
        seconds = time.process_time() - start
        ours, expected = own.setdefault(job, (seconds, found))
        assert who != "plain Python" or found == expected, f"{job}: plain Python finds something else"
        rows = rows_of(found) if job in SEARCHES else None
        lines.append({"job": job, "who": who, "cpu_seconds": round(seconds, 2), "times": round(seconds / ours, 1)})
        lines[-1]["rows_found"] = rows
        print(
            f"{job:12} {who:14} {seconds:9.2f} s {seconds / ours:7.1f} x {rows if rows is not None else '':>8}",
            flush=True,
        )
    return lines


def main() -> None:
    """Build or open a pool, do the jobs, and write the results."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    with tempfile.TemporaryDirectory() as temporary:
        run = open_run(workspace=sys.argv[2] if len(sys.argv) > 2 else temporary, overrides=[f"pool.n={rows}"])
        for name, build in (("pool", build_seed), ("metrics", write_metrics), ("balanced", write_balanced)):
            if not Evidence(run).path(name).exists():
                build(run)
        lines = [{"rows": rows, **line} for line in judged(Evidence(run))]
    kept = json.loads(RESULTS.read_bytes())["jobs"] if RESULTS.exists() else []
    kept = [line for line in kept if line["rows"] != rows] + lines
    RESULTS.parent.mkdir(exist_ok=True)
    write_json(RESULTS, {"jobs": sorted(kept, key=lambda line: line["rows"])})


if __name__ == "__main__":
    main()
