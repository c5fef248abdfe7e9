"""Each gate passes on the intact pool and fails on data with its kind of damage; the other gates still pass.

`test_damage_table.py` has whole workspaces and all kinds of damage. These tests have what it lacks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.gates.difficulty import difficulty_gate
from rc1_lib.gates.diversity import diversity_gate
from rc1_lib.gates.duplicates import duplicates_gate
from rc1_lib.gates.leakage import leakage_gate
from rc1_lib.gates.length import length_gate
from rc1_lib.gates.mix import mix_gate
from rc1_lib.pool.templates import Pack, Template, load_pack, worded_apart
from rc1_lib.records import GateResult, Status
from rc1_lib.runtime import batches
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS
from tests.gates.damages_by_gate import cyrillic


class PoolGates:
    """Evaluates the five gates that read the pool."""

    def __init__(self, evidence: Evidence) -> None:
        self.config = evidence.run.config
        self.shadow = evidence.rows("shadow")
        self.reference = load_pack(evidence.path("reference_templates"))
        self.pack = load_pack(evidence.path("templates"))
        packs = [self.reference, self.pack]
        self.literals = [text for pack in packs for lang in ("en", "zh") for text in pack.literals(lang)]
        self._judged: tuple[pl.DataFrame | None, dict[str, GateResult]] = (None, {})

    def evaluate(self, rows: pl.DataFrame) -> dict[str, GateResult]:
        """Return every gate's verdict. Keeps the verdicts on the last rows for tests that read them twice."""
        if self._judged[0] is not rows:
            self._judged = (rows, self._evaluate(rows))
        return self._judged[1]

    def _evaluate(self, rows: pl.DataFrame) -> dict[str, GateResult]:
        gates = self.config.gates
        results = [
            mix_gate(rows, gates.mix, self.config.datasets),
            length_gate(rows, gates.length, TASKS),
            self.diversity(rows),
            duplicates_gate(rows, gates.duplicates, TASKS),
            leakage_gate(rows, self.shadow, gates.leakage, self.literals, TASKS),
        ]
        return {result.name: result for result in results}

    def diversity(self, rows: pl.DataFrame) -> GateResult:
        limits, seed = self.config.gates.diversity, self.config.pool.seed
        return diversity_gate(rows, self.pack, self.reference, limits, TASKS, seed)

    def failing(self, rows: pl.DataFrame) -> set[str]:
        return {name for name, result in self.evaluate(rows).items() if result.status is Status.FAILED}


@pytest.fixture(scope="module")
def gates(evidence: Evidence) -> PoolGates:
    return PoolGates(evidence)


@pytest.fixture(scope="module")
def rows(evidence: Evidence) -> pl.DataFrame:
    """A third of every task's rows: enough for all thresholds, and fast to evaluate."""
    return pl.concat([part.head(part.height // 3) for part in evidence.rows("pool").partition_by("task")])


def with_user_message(rows: pl.DataFrame, change: pl.Expr) -> pl.DataFrame:
    """Replace the user's first message by `change`, an expression over the old text `prompt`."""
    records = rows.to_dicts()
    prompts = rows.select(prompt=pl.col("messages").list.get(1).struct.field("content"), question="question")
    for record, text in zip(records, prompts.select(text=change)["text"], strict=True):
        record["messages"][1]["content"] = text
    return pl.DataFrame(records, schema=rows.schema)


def test_the_intact_pool_passes(gates: PoolGates, rows: pl.DataFrame) -> None:
    results = gates.evaluate(rows)
    assert {name: result.failures for name, result in results.items()} == {name: () for name in results}


def test_verdicts_do_not_depend_on_the_batch_size(
    gates: PoolGates, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = rows.sample(120, seed=1)
    near = with_user_message(few.head(9), pl.format("{} Please.", "prompt"))
    repeated = pl.concat([few, few.tail(9), near])
    in_one_batch = gates.evaluate(repeated)
    monkeypatch.setattr(batches, "AT_ONCE", 7)
    assert gates.evaluate(repeated.clone()) == in_one_batch
    assert {row["reason"] for row in in_one_batch["duplicates"].offenders} == {"duplicate"}
    assert len({row["similarity"] for row in in_one_batch["duplicates"].offenders}) > 2


def test_rows_copied_with_another_number_fail_only_the_duplicates_gate(gates: PoolGates, rows: pl.DataFrame) -> None:
    """Changing a digit is the cheapest way to multiply a row."""
    asked = pl.col("messages").list.get(1).struct.field("content")
    numbered = rows.filter(asked.str.contains(r"\d"))
    copies = pl.concat([numbered.filter(pl.col("task") == task).head(12) for task in TASKS])
    copies = copies.with_columns(id=pl.col("id") + "-again")
    changed = with_user_message(copies, pl.col("prompt").str.replace_all(r"\d", "7"))
    result = gates.evaluate(pl.concat([rows, changed]))
    assert {name for name, verdict in result.items() if verdict.failures} == {"duplicates"}


def test_two_per_cent_of_copies_pass_and_three_fail(gates: PoolGates, rows: pl.DataFrame) -> None:
    for share, expected in ((0.018, set()), (0.03, {"duplicates"})):
        copies = pl.concat([part.head(round(part.height * share)) for part in rows.partition_by("task")])
        assert gates.failing(pl.concat([rows, copies.with_columns(id=pl.col("id") + "-again")])) == expected


def with_own_name(template: Template) -> Template:
    """Add the template's id to each phrase, which leaves the wording the same."""
    return template.model_copy(
        update={"system": f"{template.system} {template.id}", "user": f"{{question}} {template.id}"}
    )


def partly_cyrillic(template: Template) -> Template:
    """Write every second template in Cyrillic letters, except its slots."""

    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\{.*?\}|[^{}]+", lambda part: part[0] if part[0][0] == "{" else cyrillic(part[0]), value)
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    if int(template.id[-2:]) % 2:
        return template
    spoken = type(template.spoken)(**{tool: changed(lines) for tool, lines in template.steps.items()})
    names = ("system", "user", "quote", "lookup", "final", "ask", "reply", "nothing_missing")
    return template.model_copy(update={name: changed(getattr(template, name)) for name in names} | {"spoken": spoken})


@pytest.mark.parametrize(
    "change", [lambda one: one, with_own_name, partly_cyrillic], ids=["copied", "with its id", "Cyrillic"]
)
def test_one_wording_under_ten_labels_counts_as_one_template(
    gates: PoolGates, rows: pl.DataFrame, change: Callable[[Template], Template]
) -> None:
    def relabelled(group: tuple[Template, ...]) -> tuple[Template, ...]:
        labels = ("id", "role", "style")
        return tuple(change(group[0].model_copy(update={name: getattr(one, name) for name in labels})) for one in group)

    pack = Pack("copies", {key: relabelled(group) for key, group in gates.pack.groups.items()})
    opening = {template.id: template.system for template in pack.templates}
    records = rows.to_dicts()
    for record in records:
        record["messages"][0]["content"] = opening[record["template_id"]]
    limits, worded = gates.config.gates.diversity, pl.DataFrame(records, schema=rows.schema)
    judged = diversity_gate(worded, pack, gates.reference, limits, TASKS, 0)
    failed = {check.name.split("[")[0] for check in judged.failures}
    assert {"roles", "styles", "templates used"} <= failed
    alike = next(check.value for check in judged.checks if check.name.startswith("templates worded like"))
    assert alike == len(pack.templates) - len(pack.groups)


def test_the_shipped_templates_differ_in_wording(gates: PoolGates) -> None:
    assert len(worded_apart(gates.pack)) == len(gates.pack.templates)


@pytest.mark.parametrize(
    ("lacking", "above", "below"),
    [
        ("medium", "hard share, upper bound", "medium share"),
        ("easy", "medium share, upper bound", "easy share, lower bound"),
    ],
)
def test_a_bucket_without_rows_leaves_another_above_its_share(
    evidence: Evidence, lacking: str, above: str, below: str
) -> None:
    """The table only says that the gate fails, which the lower bounds alone would do."""
    config, metrics, balanced = evidence.run.config, evidence.metrics(), evidence.rows("balanced")
    gone = metrics.filter(pl.col("bucket") == lacking)["id"]
    kept = balanced.filter(~pl.col("id").is_in(gone.implode()))
    judged = difficulty_gate(metrics, kept, config.gates.difficulty, TASKS, config.gates.mix, config.datasets)
    failed = {check.name for check in judged.failures}
    assert {f"{name}{suffix}" for name in (above, below) for suffix in ("", *(f"[{task}]" for task in TASKS))} <= failed
