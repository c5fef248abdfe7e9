"""The sections of a run's configuration about data: sources, pool, shadow set, difficulty."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from rc1_lib.config.values import (
    BucketShares,
    Positive,
    Range,
    Section,
    Seed,
    Share,
    TaskName,
    WrittenPath,
    names_all,
    sums_to_one,
)
from rc1_lib.errors import ConfigError
from rc1_lib.records import BUCKETS, Bucket, SourceKey


class Sources(Section):
    """Where questions come from, and how they may be used."""

    use: str
    """`embedded`, `hub`, a folder with one sub-folder of public files per task, or a .jsonl file of finished rows."""
    hub: dict[TaskName, str]
    """Task -> hub name of its data set (`NAME`, `NAME:CONFIGURATION` or `NAME:CONFIGURATION:SPLIT`), read through
    Hugging Face `datasets`."""
    columns: dict[TaskName, dict[SourceKey, str]]
    """Task -> its keys -> the columns of its data set that hold them, where these have other names; a dot leads into a
    column with parts (`answers.text`). The task's answer rule has to fit what is mapped."""
    max_uses: Positive
    """How often the pool may use one question; a second use is posed differently, and the report counts it."""


class Teacher(Section):
    """Habits of the scripted expert that writes the demonstrations."""

    cue_pull: Annotated[float, Field(ge=1.0)]
    """How many times as likely the scripted expert is to ask if the prompt is vague."""
    need_pull: Annotated[float, Field(ge=1.0)]
    """How many times as likely it is to ask if something is missing; 1: it does not notice."""
    skip_tool_rate: Share
    """How often it omits a needed call."""


class Recipe(Section):
    """How prompts of one intended difficulty are posed."""

    withhold: Share
    """Share of these rows with missing information."""
    detours: Range
    """Minimum and maximum number of needless pages that the scripted expert reads."""
    overlap: Share
    """Target clue overlap: quotes are cut, or diluted by sentences from other pages, to approach it."""


class Pool(Section):
    """The seed pool."""

    path: WrittenPath
    """Where the pool is written."""
    n: Annotated[int, Field(gt=0, le=1_000_000)]
    """Rows of the pool."""
    seed: Seed
    """Seed of all choices of the builder."""
    max_turns: Annotated[int, Field(ge=2)]
    """Maximum assistant messages in one dialogue; questions that need more are left out."""
    clarify_rate: Share
    """Share of dialogues in which the scripted expert asks the user something."""
    tools: tuple[Literal["wiki", "calc"], ...]
    """Tools of the assistant in addition to `ask_user`."""
    templates_dir: str
    """The template pack that words the prompts."""
    reference_templates_dir: str
    """The template pack with which the diversity gate compares."""
    teacher: Teacher
    intended: BucketShares
    """Share of rows posed with each recipe; the actual difficulty is measured afterwards."""
    recipes: Annotated[dict[Bucket, Recipe], names_all(*BUCKETS)]
    workers: Annotated[int, Field(ge=1, le=256)]
    """Processes that write rows; their number does not change the result."""
    hold_out: str | None = None
    """Another shadow set (rows in JSONL) whose questions the pool leaves out too."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.intended, "pool.intended")
        return self


class Shadow(Section):
    """The held-out shadow set."""

    path: WrittenPath
    """Where the shadow set is written."""
    n: Annotated[int, Field(gt=0, le=20_000)]
    """Dialogues of the shadow set."""
    seed: Seed
    """Seed of the draw, and of the bootstraps in shadow run and ablation."""
    stratify: bool
    """Whether it is drawn by the shares of `datasets`."""


class Difficulty(Section):
    """Difficulty measures and balance."""

    metrics_path: WrittenPath
    """Where the measures of every row are written."""
    balanced_path: WrittenPath
    """Where the balanced pool is written."""
    target: BucketShares
    """Share of each difficulty in the balanced pool; they sum to 1."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.target, "difficulty.target")
        return self


class ScaleUp(Section):
    """Growing the pool from size to size: `rc1 scale-up`."""

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Rows of each size, rising; the last one is `pool.n`."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(larger <= smaller for smaller, larger in pairwise(self.sizes)):
            raise ValueError(f"scale_up.sizes is {list(self.sizes)}, expected each size larger than the one before")
        return self

    def check_last(self, rows: int) -> None:
        """Require the last size to be that of the whole pool.

        Args:
            rows: `pool.n`.

        Raises:
            ConfigError: names both, and what to do.
        """
        if self.sizes[-1] != rows:
            raise ConfigError(
                f"scale_up.sizes: ends with {self.sizes[-1]}, expected {rows} (pool.n), because the last size must be "
                f"the whole pool; change one of the two"
            )
