"""A workspace with a live judge, shared by the tests of scoring and storing."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.judge.calls import ANSWERED, AttemptOutcome
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.results import Judged
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.judge.store import Store
from rc1_lib.run import Run, open_run
from tests.judge_server import JudgeServer

NUMBERS = [*DIMENSIONS, *(f"{name}_variance" for name in DIMENSIONS)]
PLANTED = "sk-planted-0123456789-abcdefghij"
PROVIDERS = ("openai", "gemini")


def dialogue(number: int) -> list[dict[str, Any]]:
    """Return a dialogue that differs for each number."""
    return [
        {"role": "user", "content": f"What is {number} + 1?"},
        {"role": "assistant", "content": f"Adding 1 to {number} gives {number + 1}. Answer: {number + 1}"},
    ]


def dialogues(count: int, first: int = 0) -> list[list[dict[str, Any]]]:
    """Return `count` different dialogues."""
    return [dialogue(number) for number in range(first, first + count)]


def overrides(url: str, provider: str = "openai") -> tuple[str, ...]:
    """Return settings for a fast judge on this machine."""
    return (
        f"judge.provider={provider}",
        f"judge.base_url={url}",
        "judge.model=rc1-test-double-1",
        "judge.limits.rps=300",
        "judge.limits.timeout_s=20",
    )


def url_of(server: JudgeServer, provider: str) -> str:
    return server.gemini_url if provider == "gemini" else server.base_url


@dataclass(frozen=True)
class Bench:
    """A workspace with shortcuts to score in it and to read its store."""

    folder: Path

    def run(self, url: str, *more: str, provider: str = "openai", profile: str = "local") -> Run:
        return open_run(profile=profile, workspace=self.folder, overrides=(*overrides(url, provider), *more))

    def score(
        self,
        server: JudgeServer,
        asked: Sequence[list[dict[str, Any]]],
        *more: str,
        provider: str = "openai",
        profile: str = "local",
        fresh: bool = False,
    ) -> Judged:
        """Open the store, score, and close it."""
        return self.score_at(url_of(server, provider), asked, *more, provider=provider, profile=profile, fresh=fresh)

    def score_at(
        self,
        url: str,
        asked: Sequence[list[dict[str, Any]]],
        *more: str,
        provider: str = "openai",
        profile: str = "local",
        fresh: bool = False,
    ) -> Judged:
        run = self.run(url, *more, provider=provider, profile=profile)
        with open_store(run) as store:
            return open_judge(run, store).score(asked, fresh=fresh)

    @property
    def path(self) -> Path:
        return self.folder / "data/judge/scores.sqlite"

    def store(self) -> Store:
        """Open the store without a configuration. The caller closes it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return Store(self.path, ttl_days=14)

    def log(self) -> pl.DataFrame:
        """Return the whole usage log."""
        with self.store() as store:
            return store.log()

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement on the file, as anyone with sqlite3 can."""
        with closing(sqlite3.connect(self.path)) as db, db:
            return db.execute(statement, values).fetchall()

    def outcomes(self) -> Counter[str]:
        return Counter(self.log()["outcome"].to_list())


def sent(log: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of attempts, without replays."""
    return log.filter(pl.col("outcome") != AttemptOutcome.HIT.value)


def answered(log: pl.DataFrame) -> pl.DataFrame:
    """Return the lines of attempts in which a model replied."""
    return log.filter(pl.col("outcome").is_in([outcome.value for outcome in ANSWERED]))


def idempotency_key(store: str, ask_key: str, replies_before: int) -> str:
    """Return the key that a request sends as `Idempotency-Key`."""
    return hashlib.sha256(f"{store}/{ask_key}/{replies_before}/".encode()).hexdigest()[:40]
