"""Every planted fault fails its own check of an audit, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from rc1_lib.extras.rollouts.audit import audit, hedges, leaks
from rc1_lib.extras.rollouts.read import COLUMNS, read_rollouts
from rc1_lib.records import GateResult, Status
from rc1_lib.run import open_run

PROMPTS, TAKES = 40, 4
WORDS = (
    "kettle lantern marble needle orchard pepper quarry ribbon saddle timber velvet walnut yellow zephyr amber".split()
)
Damage = Callable[[pl.DataFrame], pl.DataFrame]


def sound() -> pl.DataFrame:
    """Forty prompts of four rollouts each, two of them right and better paid; all texts differ."""
    rows = []
    for number in range(PROMPTS * TAKES):
        prompt, take = divmod(number, TAKES)
        right = take < 2
        words = " ".join(f"{WORDS[(number * 7 + place * place) % 15]}{number * place % 11}" for place in range(30))
        question = f"How many {WORDS[prompt % 15]} boxes does merchant number {prompt} of the harbour keep in stock?"
        rows.append({
            "line": number + 1, "group": str(prompt), "question": question, "written": f"{words} Answer: {prompt}",
            "final": f"Answer: {prompt if right else prompt + 1}", "gold": str(prompt), "cut": False,
            "samples": [0.5, 0.52], "messages": None, "reward": 0.9 if right else 0.2, "truth": float(right),
        })  # fmt: skip
    return pl.DataFrame(rows, schema={**COLUMNS, "reward": pl.Float64, "truth": pl.Float64})


def verdicts(frame: pl.DataFrame, tmp_path: Path, held_out: pl.Series | None = None) -> dict[str, GateResult]:
    run = open_run(profile="local", workspace=tmp_path, overrides=["gates.shared.resamples=100"])
    return {one.name: one for one in audit(frame, run.config.gates, held_out)}


def some(share: float, **change: object) -> Damage:
    """Change columns of the first rollouts."""
    changed = pl.int_range(pl.len()) < share * pl.len()
    values = {name: value if isinstance(value, pl.Expr) else pl.lit(value) for name, value in change.items()}
    return lambda frame: frame.with_columns(
        pl.when(changed).then(value).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


DAMAGES: dict[str, tuple[str, Damage]] = {
    "missing rewards": ("scored", some(0.05, reward=None)),
    "NaN everywhere": (
        "scored",
        lambda frame: frame.with_columns(of_=pl.lit(None, pl.Float64), reward=pl.lit(None, pl.Float64)).rename(
            {"of_": "of.reward"}
        ),
    ),
    "limits": ("cut_turns", some(0.3, cut=True)),
    "equal rewards": ("groups", lambda frame: some(0.95, reward=0.9)(frame).with_columns(truth=None)),
    "a list of candidates": ("hedges", some(0.1, final=pl.format("Answer: {} or 999", "gold"))),
    "refusals": ("hedges", some(0.1, final=pl.lit("Answer: it cannot be determined"))),
    "the wrong ones paid": ("proxy", lambda frame: frame.with_columns(truth=1 - pl.col("truth"))),
    "one text everywhere": ("duplicates", some(0.1, written=pl.col("written").first())),
    "noise": ("judge", some(0.3, samples=[0.0, 1.0])),
}


def test_sound_rollouts_pass_every_check(tmp_path: Path) -> None:
    held_out = pl.Series(["Which old lighthouse did the painter of the northern fjords restore by hand in 1888?"])
    found = verdicts(sound(), tmp_path, held_out)
    assert {name: one.status for name, one in found.items() if one.status is not Status.PASSED} == {}


@pytest.mark.parametrize("kind", DAMAGES)
def test_planted_fault_fails_its_own_check_and_lists_rollouts(tmp_path: Path, kind: str) -> None:
    name, damage = DAMAGES[kind]
    found = verdicts(damage(sound()), tmp_path)
    assert [one.name for one in found.values() if one.status is Status.FAILED] == [name]
    assert found[name].offenders and all(one["line"] for one in found[name].offenders)


def test_answer_that_earns_nothing_is_not_paid(tmp_path: Path) -> None:
    unpaid = sound().with_columns(final=pl.lit("I don't know."), reward=pl.lit(0.0), truth=None)
    assert verdicts(unpaid, tmp_path)["hedges"].status is Status.NOT_APPLICABLE
    some_unknown = some(0.1, final=pl.lit("Answer: it cannot be determined"), reward=None)(sound())
    assert verdicts(some_unknown, tmp_path)["hedges"].status is Status.PASSED


def test_prompt_around_a_held_out_question_is_a_leak(tmp_path: Path) -> None:
    frame = some(0.025, question=pl.format("Dear helper, tell me this. {} Be brief.", "question"))(sound())
    found = verdicts(frame, tmp_path, pl.Series([sound()["question"][0], "Who built the old mill?"]))["leaks"]
    assert found.status is Status.FAILED
    assert [one["line"] for one in found.offenders] == [1]


def test_edited_questions_of_gsm8k_are_leaks_and_other_questions_are_not(shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()[:400]
    questions = [json.loads(line)["question"] for line in lines]
    words = [question.split() for question in questions[:20]]
    edited = [" ".join("really" if at % 12 == 5 else word for at, word in enumerate(one)) for one in words]
    asked = pl.Series([*edited, *questions[100:]])
    frame = pl.DataFrame({"line": range(1, len(asked) + 1), "question": asked})
    run = open_run(profile="local", workspace=tmp_path)
    found = leaks(frame, run.config.gates, pl.Series(questions[:100]))
    told = [one["line"] for one in found.offenders]
    assert max(told) <= 20 and len(told) >= 12, "a word in twelve was changed"


def test_check_without_anything_to_judge_says_so(tmp_path: Path) -> None:
    bare = sound().with_columns(
        pl.lit(None, dtype).alias(name)
        for name, dtype in {**COLUMNS, "reward": pl.Float64, "truth": pl.Float64}.items()
        if name in ("gold", "cut", "samples", "reward", "truth")
    )
    found = verdicts(bare.with_columns(final=pl.lit("Done."), written=pl.lit("Done.")), tmp_path)
    assert {one.status for one in found.values()} == {Status.NOT_APPLICABLE}
    assert all(one.not_applicable for one in found.values())


def test_right_answers_of_every_form_are_no_hedges(tmp_path: Path) -> None:
    golds = ["no", "yes", "2 March 1972", "To Kill or Not to Kill", "72", "-3"]
    frame = sound().head(len(golds)).with_columns(gold=pl.Series(golds), final=pl.Series(golds), reward=1.0)
    found = verdicts(frame, tmp_path)["hedges"]
    assert (found.status, found.offenders) == (Status.PASSED, ())


def test_last_sentences_of_gsm8k_are_hardly_ever_called_a_hedge(shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "gsm8k" / "train.jsonl").read_text(encoding="utf-8").splitlines()[:1000]
    solutions = [json.loads(line)["answer"].rpartition("####") for line in lines]
    frame = pl.DataFrame(
        {"line": range(1000), "final": [said.strip() for said, _, _ in solutions],
         "gold": [gold.strip() for *_, gold in solutions], "reward": 1.0}
    )  # fmt: skip
    found = hedges(frame)
    assert found.status is Status.PASSED and len(found.offenders) <= 10, "people wrote them as solutions"


def test_real_dialogues_of_tau_bench_show_cut_ones_and_flat_prompts(shared_data: Path, tmp_path: Path) -> None:
    _, frame = read_rollouts(shared_data / "tau_bench" / "gpt-4o-airline.json")
    found = verdicts(frame, tmp_path)
    assert {name for name, one in found.items() if one.status is Status.PASSED} == {
        "scored", "cut_turns", "groups", "duplicates",
    }  # fmt: skip
    figures = {check.name: check.value for one in found.values() for check in one.checks}
    assert figures["rollouts cut, share"] == 5 / 200
    cut = frame.filter("cut")
    assert cut["messages"].list.len().to_list() == [62] * 5, "they ran out of 30 turns, counted by hand"
    # Counted by hand: of 50 tasks 14 fail in all four trials, and 10 succeed in all.
    assert figures["prompts without a difference, share"] == 24 / 50
    assert (figures["prompts that always earn the least"], figures["prompts that always earn the most"]) == (14, 10)
