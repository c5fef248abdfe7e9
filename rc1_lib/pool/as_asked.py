"""A row beside the source's question that it was made from: what of it is another question's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.config.run_config import RunConfig
from rc1_lib.pool.prompting import take_out
from rc1_lib.records import Question, Row
from rc1_lib.rows.inconsistency import Inconsistency, Kind
from rc1_lib.runtime.gc_paused import uncollected
from rc1_lib.sources import load_questions
from rc1_lib.workspace.artifacts import Workspace

Questions = Mapping[tuple[str, str], Question]
"""Source and id -> the question."""
_SLOT = ("where", "value", "vague", "wanted")


def known_questions(config: RunConfig, workspace: Workspace) -> Questions:
    """The questions of the configured source; none of the hub's, which a judgement is not to hang on.

    Raises:
        SourceError: when the source is missing or damaged.
    """
    if config.sources.use == "hub":
        return {}
    with uncollected():
        questions, _ = load_questions(config, workspace)
    return {(question.source, question.id): question for of_task in questions.values() for question in of_task}


def as_asked(row: Row, question: Question) -> Iterator[Inconsistency]:
    """What of `row` is not what `question` says, with the missing piece taken out where one is.

    The prompt has to hold what the row says that it was made of. Of a finished dialogue question and gold answer alone:
    its world is as it brought it along. Pages that were lent by other questions follow the question's own and are not
    looked at.
    """
    for name, found, expected in _compared(row, question):
        if found != expected:
            yield Inconsistency(Kind.SOURCE, name, str(found), str(expected))
    if question.dialogue is None:
        prompt, posed = row["messages"][1]["content"] or "", row["posed"]
        for said in (posed["ask"], *posed["quoted"], *posed["listed"]):
            if said not in prompt:
                yield Inconsistency(Kind.SOURCE, "messages[1].content", prompt, f"a prompt that says: {said}")


def _compared(row: Row, question: Question) -> Iterator[tuple[str, object, object]]:
    """Place in the row, what stands there, what the question says."""
    yield "question", row["question"], question.ask
    yield "answer", row["answer"], question.answer
    yield "aliases", row["aliases"] or [], list(question.aliases)
    if question.dialogue is None:
        missing = question.slot if row["needs_clarification"] else None
        posed = take_out(question, missing) if missing else question
        pages = [{"title": page.title, "text": page.text} for page in posed.passages]
        yield "posed.ask", row["posed"]["ask"], posed.ask
        yield "slot", row["slot"], asdict(missing) if missing else None
        yield "support", row["support"], list(posed.support)
        yield "passages", (row["passages"] or [])[: len(pages)], pages


def are_as_asked(rows: pl.DataFrame, questions: Questions) -> NDArray[np.bool_]:
    """Of each row whether `as_asked` is certain to find nothing; what is false is not known, as of finished dialogues.

    Args:
        rows: columns of `ROW_COLUMNS`.
        questions: those that the rows were made from.

    Returns:
        Shape (rows,).
    """
    keys = zip(rows["source"], rows["source_id"], strict=True)
    asked = [questions.get(key) for key in keys]
    sure = np.array([question is not None and question.dialogue is None for question in asked], bool)
    rows = rows.filter(sure)
    found = [question for question in asked if question is not None and question.dialogue is None]
    sure[sure] = _alike(rows, found) & _said(rows)
    return sure


def _alike(rows: pl.DataFrame, questions: Sequence[Question]) -> NDArray[np.bool_]:
    """Whether each row holds what its question says: `_compared`, in columns."""
    needs = rows["needs_clarification"].fill_null(value=False).to_list()
    missing = [question.slot if lacking else None for question, lacking in zip(questions, needs, strict=True)]
    posed = [take_out(question, slot) if slot else question for question, slot in zip(questions, missing, strict=True)]
    pages = [question.passages for question in posed]
    page, held = pl.element().struct, pl.col("slot").struct
    own = pl.col("passages").list.head(pl.lit(pl.Series([len(of_row) for of_row in pages], dtype=pl.Int64)))
    texts: dict[str, tuple[pl.Expr, list[str | None]]] = {
        "question": (pl.col("question"), [question.ask for question in questions]),
        "answer": (pl.col("answer"), [question.answer for question in questions]),
        "ask": (pl.col("posed").struct.field("ask"), [question.ask for question in posed]),
        **{name: (held.field(name), [getattr(slot, name, None) for slot in missing]) for name in _SLOT},
    }
    lists: dict[str, tuple[pl.Expr, list[tuple[str, ...]]]] = {
        "aliases": (pl.col("aliases"), [question.aliases for question in questions]),
        "support": (pl.col("support"), [question.support for question in posed]),
        "titles": (own.list.eval(page.field("title")), [tuple(one.title for one in of_row) for of_row in pages]),
        "texts": (own.list.eval(page.field("text")), [tuple(one.text for one in of_row) for of_row in pages]),
    }
    places = {name: place for name, (place, _) in [*texts.items(), *lists.items()]}
    said = rows.select(**places, missing=pl.col("slot").is_not_null())
    same: NDArray[np.bool_] = said["missing"].to_numpy() == np.array([slot is not None for slot in missing], bool)
    same &= said["support"].is_not_null().to_numpy()
    for name, (_, expected) in texts.items():
        same &= said[name].eq_missing(pl.Series(expected, dtype=pl.String)).to_numpy()
    for name, (_, expected_lists) in lists.items():
        same &= _same_lists(said[name], expected_lists)
    return same


def _same_lists(found: pl.Series, expected: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
    """Whether each list of texts is the expected one; none is as an empty one."""
    lengths = np.array([len(texts) for texts in expected], np.int64)
    same: NDArray[np.bool_] = found.list.len().fill_null(0).cast(pl.Int64).to_numpy() == lengths
    filled = same & (lengths > 0)
    wanted = [text for texts, one in zip(expected, filled, strict=True) if one for text in texts]
    other = found.filter(filled).explode().eq_missing(pl.Series(wanted, dtype=pl.String)).not_().to_numpy()
    same[np.repeat(np.flatnonzero(filled), lengths[filled])[other]] = False
    return same


def _said(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether each prompt says what the row says that it was made of."""
    posed = pl.col("posed").struct
    prompt = pl.col("messages").list.get(1, null_on_oob=True).struct.field("content")
    parts = rows.select(
        prompt=prompt, said=pl.concat_list(posed.field("ask"), posed.field("quoted"), posed.field("listed"))
    ).with_row_index("row")
    sure: NDArray[np.bool_] = (
        parts.select(pl.col("said").is_not_null() & pl.col("prompt").is_not_null()).to_series().to_numpy().copy()
    )
    unsaid = parts.explode("said").filter(
        ~pl.col("prompt").str.contains(pl.col("said"), literal=True).fill_null(value=False)
    )
    sure[unsaid["row"].to_numpy()] = False
    return sure
