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
from rc1_lib.records import BUCKETS, Bucket


class Sources(Section):
    """Where questions come from: `embedded`, `hub`, or a folder with a sub-folder of the public files for each task."""

    use: str
    """`embedded`, `hub`, a folder with one sub-folder per task, or a .jsonl file of finished rows."""
    hub: dict[TaskName, str]
    """Task -> hub name of its data set, read through Hugging Face `datasets`."""
    chinese_share: Share
    """Share of embedded questions written in Chinese."""
    max_uses: Positive
    """How often the pool may use one question; a second use is posed differently, and the report counts it."""
    max_unusable: Share
    """Largest share of a task's public records with a key missing or of another type; they are left out and counted."""


class Teacher(Section):
    """Habits of the scripted expert that writes the demonstrations."""

    cue_pull: Annotated[float, Field(ge=1.0)]
    """How many times more likely the scripted expert asks if the prompt is vague."""
    need_pull: Annotated[float, Field(ge=1.0)]
    """How many times more likely it asks if something is missing; at 1 it does not notice."""
    skip_tool_rate: Share
    """How often it omits a needed call."""


class Recipe(Section):
    """How prompts of one intended difficulty are posed."""

    withhold: Share
    """Share of these rows with a slot withheld."""
    detours: Range
    """Fewest and most needless pages that the scripted expert reads."""
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
    """Most assistant messages in one dialogue; questions that need more are left out."""
    max_tool_hops: Positive
    """Most calls of wiki and calc in one dialogue; the scripted expert omits needless ones to stay below it."""
    clarify_rate: Share
    """Share of dialogues in which the scripted expert asks the user something."""
    tools: tuple[Literal["wiki", "calc"], ...]
    """Tools of the assistant besides `ask_user`."""
    templates_dir: str
    """The template pack that words the prompts."""
    reference_templates_dir: str
    """The old pack, the reference of the diversity gate."""
    teacher: Teacher
    intended: BucketShares
    """Shares of rows posed with each recipe; the actual difficulty is measured afterwards."""
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


class Bounds(Section):
    """Where a feature stops being easy and starts being hard; `rising` features are harder when larger."""

    easy: float
    """Boundary of the vote for easy: up to or below it (clue_overlap: above it); see docs/gates.md."""
    hard: float
    """Boundary of the vote for hard: from it on or above it (clue_overlap: below it)."""


class Difficulty(Section):
    """Difficulty measures, buckets and balance."""

    metrics_path: WrittenPath
    """Where the measures of every row are written."""
    balanced_path: WrittenPath
    """Where the balanced pool is written."""
    target: BucketShares
    """Share of each difficulty in the balanced pool; they sum to 1."""
    bounds: dict[str, Bounds]
    clarification_hard_turns: Positive
    """Turns from which a row with missing information votes hard; below, it votes medium."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        sums_to_one(self.target, "difficulty.target")
        wanted = {
            "len_tokens", "turns", "tool_hops", "ops_numeric", "entities", "connector_density", "clue_overlap",
        }  # fmt: skip
        if set(self.bounds) != wanted:
            raise ValueError(f"difficulty.bounds must name exactly {', '.join(sorted(wanted))}")
        return self


class ScaleUp(Section):
    """Growing the pool size by size: rc1 scale-up."""

    sizes: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """Rows of each size, rising; the last one is `pool.n`."""
    judged: Positive
    """Dialogues of a size that the judge scores again, before and after the pool grows."""
    approval: bool
    """Whether a person has to approve each further size in the Prefect UI."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(larger <= smaller for smaller, larger in pairwise(self.sizes)):
            raise ValueError(f"scale_up.sizes is {list(self.sizes)}, expected each size larger than the one before")
        return self
