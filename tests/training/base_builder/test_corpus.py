"""The bundled base's training corpus: its own worlds, independent of the number of processes."""

from __future__ import annotations

from rc1_lib.extras.base_builder.corpus import Shard, demonstrations, shards, written
from rc1_lib.pool.templates import Pack, load_pack
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.training.tiny_world import shipped


def pack() -> Pack:
    return load_pack(PROJECT_ROOT / shipped().pool.templates_dir)


def test_corpus_seeds_are_negative_and_differ_by_corpus() -> None:
    assert all(part.seed < 0 for part in shards(TASKS, 60_000, 0, 2000))
    assert {part.seed for part in shards(TASKS, 60_000, 7, 2000)}.isdisjoint(
        part.seed for part in shards(TASKS, 60_000, 8, 2000)
    )


def test_row_says_whether_the_expert_invented_missing_information() -> None:
    parts = [Shard(task, 30, -6) for task in TASKS]
    rows = [row for part in parts for row in demonstrations(part, shipped().pool, pack())]
    marked = [row for shard in written(parts, shipped().pool, pack(), 1) for row in shard]
    assert [row["made_up"] for row in marked] == [row["needs_clarification"] and not row["asked"] for row in rows]
    assert len({row["made_up"] for row in marked}) == 2


def test_number_of_processes_does_not_change_the_corpus() -> None:
    parts = shards(TASKS, 18, 7, 3)
    one, two = (list(written(parts, shipped().pool, pack(), workers)) for workers in (1, 2))
    assert one == two and len(one) == len(parts)
