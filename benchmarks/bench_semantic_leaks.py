"""Measure how many paraphrases the leak gate finds by lexical measures and by a sentence-embedding model, and the time.

    python benchmarks/bench_semantic_leaks.py MODEL [SOURCES [ROWS]]

MODEL is the folder of a sentence-embedding model; SOURCES is `embedded` or a folder of public questions. Builds a pool,
evaluates it as it is, then searches it for RC1's own paraphrases of questions that are put into the shadow set.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.extras.semantic.leaks import NEIGHBOURS, PARAPHRASES, leaks_in_other_words, surroundings
from rc1_lib.extras.semantic.sentence_model import SentenceModel
from rc1_lib.gates.leakage import leakage_gate, question_texts
from rc1_lib.pool.build import BuildReport, plan, write_rows
from rc1_lib.pool.templates import load_pack
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import open_run
from rc1_lib.sources import load_questions


def frames(sources: str, rows: int, folder: str) -> tuple[pl.DataFrame, pl.DataFrame, Any, list[str]]:
    """Build pool and shadow set; return them with the thresholds and the texts of both template packs."""
    settings = [f"pool.n={rows}", "pool.workers=1", f"sources.use={sources}"]
    if sources != "embedded":  # the public folder has few HotpotQA questions
        settings.append("datasets={gsm8k: 0.72, strategyqa: 0.25, hotpotqa: 0.03}")
    run = open_run(workspace=folder, profile="local", overrides=settings)
    plans = plan(run.config, load_questions(run.config, run.workspace)[0])
    packs = [load_pack(run.workspace.find(run.config.pool.templates_dir))]
    found = []
    for name, part in (("pool", plans.pool), ("shadow", plans.shadow)):
        path = Path(folder) / f"{name}.jsonl"
        path.write_bytes(b"".join(write_rows(part, run.config, packs[0], BuildReport())))
        found.append(read_rows(path))
    packs.append(load_pack(run.workspace.find(run.config.pool.reference_templates_dir)))
    literals = [text for pack in packs for lang in ("en", "zh") for text in pack.literals(lang)]
    return found[0], found[1], run.config.gates.leakage, literals


def asking(rows: pl.DataFrame, pairs: list[dict[str, str]], side: str, name: str) -> pl.DataFrame:
    """Make rows, not of word problems, that ask one side of each pair."""
    plain = rows.filter(pl.col("task") != "gsm8k").head(len(pairs))
    ids = [f"{name}-{at:03}" for at in range(len(pairs))]
    texts = pl.Series([pair[side] for pair in pairs])
    texts, languages = ([pair[key] for pair in pairs] for key in (side, "lang"))
    columns = {"id": ids, "source_id": ids, "question": texts, "lang": languages}
    return plain.with_columns(pl.Series(column, values) for column, values in columns.items())


def recognised(
    model: SentenceModel, shadow: pl.DataFrame, pairs: list[dict[str, str]], questions: int, false_alarms: float
) -> list[bool]:
    """Return for each pair whether its paraphrase would be found if its original was in the shadow set.

    Pairs are tested one at a time: a hundred unusual questions would change the shadow set, and so the bound.
    """
    asked = question_texts(shadow).to_list()
    held, first, second = (
        model.vectors(texts)[0]
        for texts in (asked, [pair["question"] for pair in pairs], [pair["in_other_words"] for pair in pairs])
    )
    bound = surroundings(held).bound(questions, false_alarms)
    others = first @ held.T
    others[np.array([[text == pair["question"] for text in asked] for pair in pairs])] = -1.0
    near = np.sort(others, axis=1)[:, -NEIGHBOURS:].mean(axis=1)
    return ((first * second).sum(axis=1) - near > bound).tolist()


def main() -> None:
    """Build, evaluate the clean pool, plant paraphrases, search by both, print."""
    folder, sources, rows = (*sys.argv[1:], *("embedded", "5000")[len(sys.argv) - 2 :])
    with tempfile.TemporaryDirectory() as workspace:
        pool, shadow, limits, literals = frames(sources, int(rows), workspace)
    pairs = [json.loads(line) for line in PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    pairs = [pair for pair in pairs if pair["lang"] in set(shadow["lang"])]
    begun, wall = time.process_time(), time.monotonic()
    checks, accused = leaks_in_other_words(pool, shadow, limits.semantic, Path(folder))
    spent, waited = time.process_time() - begun, time.monotonic() - wall
    rows_accused = {leak["id"] for leak in accused}
    print(f"{pool.height} clean rows x {shadow.height} shadow questions: {len(rows_accused)} accused")
    print(f"{spent:.0f} s of CPU, {1000 * spent / pool.height:.0f} per 1,000 rows; {waited:.0f} s of wall")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    for check in checks:
        print(f"  {check.name}: {check.value}" + ("" if check.op == "info" else f" (wanted {check.threshold})"))
    texts = {
        row["id"]: row["question"] for frame in (pool, shadow) for row in frame.select("id", "question").to_dicts()
    }
    for leak in accused[:10]:
        print(f"  {leak['similarity']} from {leak['bound']}: {texts[leak['id']]!r} <- {texts[leak['shadow_id']]!r}")
    held = pl.concat([shadow, asking(shadow, pairs, "question", "held")])
    few = pl.concat([pool.head(1000), asking(pool, pairs, "in_other_words", "planted")])
    lexical = leakage_gate(few, held, limits, literals, []).offenders
    lexical_hits = {(leak["id"], leak.get("shadow_id")) for leak in lexical}
    found = {"lexical": [(f"planted-{at:03}", f"held-{at:03}") in lexical_hits for at in range(len(pairs))]}
    for allowed in (limits.semantic.false_alarms, 0.5, 1.0):
        found[f"by meaning, {allowed:g} false alarms"] = recognised(
            SentenceModel(Path(folder)), shadow, pairs, pool.height, allowed
        )
    for name, hits in found.items():
        print(f"{name}: {sum(hits)} of {len(pairs)} paraphrases")
        for lang, of in dict.fromkeys((pair["lang"], pair["of"]) for pair in pairs):
            those = [hit for hit, pair in zip(hits, pairs, strict=True) if (pair["lang"], pair["of"]) == (lang, of)]
            print(f"  {lang} {of}: {sum(those)} of {len(those)}")


if __name__ == "__main__":
    main()
