"""A simulated judge: it recognises right dialogues with a given skill, and grades better dialogues higher.

Quality comes from the dialogue: how much evidence its final message quotes, how few calls it made, how short it is. A
random part per dialogue is added, and the judge's opinion of right and wrong is drawn too. All seven dimensions share
these, so that they correlate as a real judge's do. No call is made and nothing stored: the grades replace those of the
run's own judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.attacks.library import ATTACKS
from rc1_lib.calibration.judged_rows import judge_rows
from rc1_lib.judge.results import Judged
from rc1_lib.records import Message
from rc1_lib.rows.transcript import read
from rc1_lib.run import Run
from rc1_lib.text.tokens import tokenize

Floats = NDArray[np.float64]
QUOTED, CALLS, WORDS = 8.0, 3.0, 60.0
"""Words of evidence that reach 63 % of their reward; calls and words that halve theirs."""
_HEDGES = [name for name, one in ATTACKS.items() if one.never_right]


@dataclass(frozen=True, slots=True)
class Simulated:
    """The judge, called like `judge_rows`.

    Attributes:
        skill: share of dialogues for which it recognises whether they are right, and whether asking was needed.
        spread: share of the quality differences that it sees; at 0 right dialogues differ only by noise.
        halo: standard deviation of the random part per dialogue, in quality.
        noise: standard deviation of each grade.
        step: grades are rounded to multiples of it; 0 does not round.
        asked: number of the call: each has its own noise, all else is the same.
    """

    skill: float
    spread: float = 1.0
    halo: float = 0.12
    noise: float = 0.05
    step: float = 0.0
    asked: int = 0

    def __call__(self, run: Run, rows: pl.DataFrame, **options: Any) -> Judged:
        """The rows with its grades; rules, counts and outcome are the run's."""
        return self.on(judge_rows(run, rows, **options), rows)

    def on(self, judged: Judged, rows: pl.DataFrame) -> Judged:
        """Rows of another judge with its grades instead."""
        grades = self.grades(rows, judged.rows["clarifications"].to_numpy())
        columns = [pl.Series(name, values) for name, values in grades.items()]
        return replace(judged, rows=judged.rows.with_columns(columns))

    def grades(self, rows: pl.DataFrame, questions: NDArray[Any]) -> Mapping[str, Floats]:
        """Its grades in [0, 1], an array of shape (n,) for each dimension.

        Args:
            rows: `id, messages, solved, lucky, needs_clarification` of n dialogues; an attack's hedge, by its
                id, is wrong whatever the answer rule says.
            questions: shape (n,), number of questions that each asked the user.
        """
        ids = rows["id"].to_list()
        evidence, economy, brevity = (0.5 + self.spread * (features_of(rows["messages"].to_list()) - 0.5)).T
        drawn = self.spread * self.halo * _normal(ids, "halo")
        quality = 0.5 * evidence + 0.25 * economy + 0.25 * brevity + drawn
        hedged = rows["id"].str.extract(r"/([^/]+)$").is_in(_HEDGES).fill_null(False)
        right = (rows["solved"] & ~rows["lucky"] & ~hedged).to_numpy() != (_drawn(ids, "right") >= self.skill)
        needed = rows["needs_clarification"].to_numpy() != (_drawn(ids, "needed") >= self.skill)
        restrained = np.where(needed, 1.0, 1.0 / (1 + questions))

        def grade(name: str, own: Floats, wrong: float) -> Floats:
            """A quarter is the dimension's own, a quarter the dialogue's; `wrong` is subtracted if it looks wrong."""
            noise = self.noise * _normal(ids, f"{name}, {self.asked}")
            kept = np.clip(0.5 + 0.25 * own + 0.25 * quality - wrong * ~right + noise, 0.0, 1.0)
            return np.round(kept / self.step) * self.step if self.step else kept

        return {
            "answered": grade("answered", quality, 0.45),
            "grounded": grade("grounded", evidence, 0.45),
            "well_formed": grade("well_formed", np.ones(len(ids)), 0.05),
            "economical": grade("economical", economy, 0.05),
            "reasoned": grade("reasoned", evidence, 0.35),
            "concise": grade("concise", brevity, 0.05),
            "restrained": grade("restrained", restrained, 0.05),
        }


def features_of(dialogues: list[list[Message]]) -> Floats:
    """Quality of dialogues, each in [0, 1]: evidence quoted, economy of calls, brevity; shape (n, 3)."""
    return np.array([_features(messages) for messages in dialogues], np.float64).reshape(-1, 3)


def _features(messages: list[Message]) -> tuple[float, float, float]:
    dialogue = read(messages)
    found = {word for call in dialogue.calls for word in tokenize(call.result)}
    quoted, words = len(found & set(dialogue.reasoning)), len(dialogue.reasoning) + len(dialogue.answer)
    return 1 - float(np.exp(-quoted / QUOTED)), CALLS / (CALLS + len(dialogue.calls)), WORDS / (WORDS + words)


def _drawn(ids: Sequence[str], what: str) -> Floats:
    """Uniform on (0, 1), the same for the same dialogue in every run and on every machine."""
    numbers = [int.from_bytes(blake2b(f"{what}|{one}".encode(), digest_size=6).digest(), "big") for one in ids]
    drawn: Floats = (np.array(numbers, np.float64) + 0.5) / 2.0**48
    return drawn


def _normal(ids: Sequence[str], what: str) -> Floats:
    """Standard normal, drawn the same way (Box and Muller, 1958)."""
    radius = np.sqrt(-2 * np.log(_drawn(ids, f"{what}, radius")))
    drawn: Floats = radius * np.cos(2 * np.pi * _drawn(ids, f"{what}, angle"))
    return drawn
