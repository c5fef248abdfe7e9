"""Takes: exactly the same prompt, other actions, and no change to the shadow set or the pool."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from rc1_lib.config.judge import TAKES_PATH
from rc1_lib.pool.build import chosen_variants, plan
from rc1_lib.pool.derived import PARTS as DERIVED
from rc1_lib.pool.derived import Part
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.seed import build_seed
from rc1_lib.pool.takes import prompt_id
from rc1_lib.pool.templates import load_pack
from rc1_lib.rows.frame import read_rows, with_texts
from rc1_lib.rows.schema import check_rows
from rc1_lib.run import Run
from rc1_lib.sources import load_questions
from rc1_lib.workspace.artifacts import FileState
from rc1_lib.workspace.file_hashes import sha256_file

PARTS: tuple[Part, ...] = ("shadow", "takes", "pool")


@pytest.fixture(scope="module")
def shadow(built: Run) -> pl.DataFrame:
    return read_rows(built.workspace.path(built.config.shadow.path))


@pytest.fixture(scope="module")
def takes(built: Run) -> pl.DataFrame:
    path = built.workspace.path(TAKES_PATH)
    return check_rows(read_rows(path), path, "shadow").with_columns(shadow_id=prompt_id())


def states(run: Run) -> tuple[FileState, ...]:
    return tuple(DERIVED[part].state(run) for part in PARTS)


def test_take_0_equals_the_shadow_row_byte_for_byte(built: Run, takes: pl.DataFrame) -> None:
    shadow = built.workspace.path(built.config.shadow.path).read_bytes()
    lines = built.workspace.path(TAKES_PATH).read_bytes().splitlines(keepends=True)
    first = [line.replace(b"/take-0", b"", 1) for line in lines if b'/take-0"' in line[:60]]
    assert b"".join(first) == shadow
    assert takes.height == len(lines)


def test_every_take_has_exactly_the_prompt_of_its_shadow_row(shadow: pl.DataFrame, takes: pl.DataFrame) -> None:
    posed = pl.col("posed").struct
    same = {
        "system": pl.col("messages").list.get(0).struct.field("content"),
        "user": pl.col("messages").list.get(1).struct.field("content"),
        "ask": posed.field("ask"),
        "quoted": posed.field("quoted"),
        "listed": posed.field("listed"),
        **{
            name: pl.col(name)
            for name in (
                "task", "split", "source", "source_id", "use", "lang", "pack", "template_id", "role", "style",
                "recipe", "question", "support", "passages", "answer", "aliases", "slot", "needs_clarification", "cue",
            )
        },
    }  # fmt: skip
    wanted = takes.select("shadow_id").join(shadow, left_on="shadow_id", right_on="id", maintain_order="left")
    assert takes.select(**same).equals(wanted.select(**same))


def test_scripted_expert_acts_differently_in_each_take(built: Run, takes: pl.DataFrame) -> None:
    per_prompt = with_texts(takes).group_by("shadow_id").agg(
        pl.len(), different=pl.col("everything").n_unique(), asks=pl.col("asked").n_unique()
    )  # fmt: skip
    assert per_prompt["len"].max() == built.config.ablation.takes
    assert (per_prompt["different"] > 1).sum() > 0.9 * per_prompt.height
    assert (per_prompt["asks"] > 1).sum() > 0.3 * per_prompt.height


def test_take_does_not_depend_on_the_number_of_takes(built: Run) -> None:
    config = built.config
    questions, _ = load_questions(config, built.workspace)
    planned = plan(config, questions).shadow[:20]
    pack = load_pack(built.workspace.find(config.pool.templates_dir))
    for row, (variant, _) in zip(planned, chosen_variants(planned, config, pack), strict=True):
        takes = [write_row(row, variant.recipe, config.pool, pack, take) for take in range(6)]
        again = [write_row(row, variant.recipe, config.pool, pack, take) for take in reversed(range(6))]
        assert takes == again[::-1]
        assert takes[0] == write_row(row, variant.recipe, config.pool, pack)


def test_changed_number_of_takes_makes_only_takes_stale(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy("ablation.takes=2")
    assert states(run) == (FileState.FRESH, FileState.STALE, FileState.FRESH)
    before = [sha256_file(run.workspace.path(path)) for path in (run.config.shadow.path, run.config.pool.path)]
    four = run.workspace.path(TAKES_PATH).read_bytes().splitlines()
    assert set(build_seed(run, ("takes",))) == {"takes"}
    assert states(run) == (FileState.FRESH,) * 3
    assert before == [sha256_file(run.workspace.path(path)) for path in (run.config.shadow.path, run.config.pool.path)]
    two = run.workspace.path(TAKES_PATH).read_bytes().splitlines()
    assert two == [line for line in four if b'/take-0"' in line[:60] or b'/take-1"' in line[:60]]
