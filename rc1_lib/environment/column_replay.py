"""Which rows columns alone show to be as their world has them: nearly all, so that few need be played one by one.

Every rule of `rc1_lib.environment.replay` is laid over thousands of rows at once, and only in the form in which the
builder writes: plain arguments, pages asked for by their exact title, an answer that closes its message. Whatever is
otherwise is doubted, not judged: those rows are played, and the player alone says what is untrue.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.answer_rules.message import MARK, OTHER_MARK
from rc1_lib.environment.user import asks_for
from rc1_lib.numbers.calculator import CalculatorError, calculate
from rc1_lib.rows.conventions import ANSWER_MARK, ARGUMENT_OF
from rc1_lib.rows.counts import ASK
from rc1_lib.task_specs import is_right, task_names

_NOT_PLAIN = r'["\\\x00-\x1f]'
"""What may not stand in an argument that JSON spells as it is."""
_MARK_LIKE = r"<\||(?i:</?t(?:ool|hink))"
"""What could be a mark of the chat format: more than `markers` takes for one, whatever a letter is to Python."""
_EDGE = r"^[\s\x1c-\x1f]|[\s\x1c-\x1f]$"
"""White space at an end, as Python knows it."""
_LINE_ENDS = r"[\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]"
_SUM = r"^([0-9]{1,9})([-+*/<>])([0-9]{1,9})$"
"""Two whole numbers, whose value is far within the calculator's limits."""


def confirmed_rows(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Of each row whether `inconsistencies` is certain to find nothing; what is false is not known.

    Args:
        rows: columns of `ROW_COLUMNS`.

    Returns:
        Shape (rows,).
    """
    messages = _messages(rows)
    calls = _calls(messages)
    results = _results(rows, messages, calls)
    sums = sums_of(rows)
    wrong_sums = sums.filter(_true(values_of(sums["expression"]) == sums["result"]).not_())
    sure = _has_a_world(rows) & _comes_out(rows, messages, results)
    for doubted in (_out_of_turn(messages, calls), results.filter(~pl.col("sound"))["row"], wrong_sums["row"]):
        sure[doubted.to_numpy()] = False
    return sure


def sums_of(rows: pl.DataFrame) -> pl.DataFrame:
    """The sums of the reasons that close the dialogues, as `replay.sums` has them: `row`, `expression`, `result`."""
    with_sum = rows.select("lang", reason=pl.col("posed").struct.field("reason")).with_row_index("row")
    with_sum = with_sum.filter(pl.col("reason").str.contains(" = ", literal=True))
    separator = pl.when(pl.col("lang") == "zh").then(pl.lit("，")).otherwise(pl.lit(", "))
    parts = with_sum.select("row", part=pl.col("reason").str.split(separator))
    all_sums = pl.col("part").list.eval(pl.element().str.contains(" = ", literal=True)).list.all()
    parts = parts.filter(all_sums).explode("part")
    sides = parts["part"].str.extract_groups(r"(?s)^(?<expression>.*) = (?<result>.*)$")
    return pl.DataFrame([parts["row"], sides.struct.field("expression"), sides.struct.field("result")])


def values_of(expressions: pl.Series) -> pl.Series:
    """What the calculator says of each expression; null where it refuses."""
    different = expressions.unique()
    sides = different.str.extract_groups(_SUM).struct
    left, sign, right = (sides.field(name) for name in ("1", "2", "3"))
    by_columns = pl.DataFrame(
        {"expression": different, "left": left.cast(pl.Int64), "sign": sign, "right": right.cast(pl.Int64)}
    ).with_columns(value=_value())
    others = by_columns["value"].is_null().arg_true()
    rest = pl.Series([_calculated(text) for text in different.gather(others)], dtype=pl.String)
    values = by_columns["value"].scatter(others, rest)
    return expressions.replace_strict(different, values, default=None, return_dtype=pl.String)


def _value() -> pl.Expr:
    """The value of `left` `sign` `right`; null where it is no whole number."""
    left, sign, right = pl.col("left"), pl.col("sign"), pl.col("right")
    whole = (sign == "/") & (right > 0) & (left % right == 0)
    number = (
        pl.when(sign == "+")
        .then(left + right)
        .when(sign == "-")
        .then(left - right)
        .when(sign == "*")
        .then(left * right)
        .when(whole)
        .then(left // right)
    )
    holds = pl.when(sign == "<").then(left < right).when(sign == ">").then(left > right)
    verdict = pl.when(holds).then(pl.lit("yes")).when(~holds).then(pl.lit("no"))
    return pl.coalesce(number.cast(pl.String), verdict)


def _calculated(expression: str | None) -> str | None:
    try:
        return None if expression is None else calculate(expression)
    except CalculatorError:
        return None


def _true(values: pl.Series) -> pl.Series:
    return values.fill_null(value=False)


def _has_a_world(rows: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether a world can be made of the row, its user says what is missing, and its pages hold no mark of a chat."""
    slot, replies = pl.col("slot").struct, pl.col("user_replies").struct
    gives, otherwise, needs = replies.field("gives"), replies.field("otherwise"), pl.col("needs_clarification")
    said = [slot.field("value") != "", slot.field("wanted") != "", gives != ""]
    known = pl.all_horizontal(
        pl.col("task").is_in(task_names()),
        pl.col("lang").is_in(["en", "zh"]),
        pl.col("answer") != "",
        pl.col("posed").is_not_null(),
        otherwise != "",
        ~needs | pl.all_horizontal(*(one.fill_null(value=False) for one in said)),
        pl.col("slot").is_null() | gives.is_null() | gives.str.contains(slot.field("value"), literal=True),
        *(~one.str.contains(_MARK_LIKE).fill_null(value=False) for one in (gives, otherwise)),
    )
    sure: NDArray[np.bool_] = _true(rows.select(known).to_series()).to_numpy().copy()
    pages = _pages(rows)
    odd = pages["title"].is_null() | _true(~pages["text"].str.contains(_MARK_LIKE)).not_()
    sure[pages["row"].filter(odd).to_numpy()] = False
    return sure


def _pages(rows: pl.DataFrame) -> pl.DataFrame:
    pages = rows.select(page="passages").with_row_index("row").filter(pl.col("page").list.len() > 0).explode("page")
    return pages.select("row", title=pl.col("page").struct.field("title"), text=pl.col("page").struct.field("text"))


def _messages(rows: pl.DataFrame) -> pl.DataFrame:
    """One line a message: `row`, `place` among all lines, `ends` (behind its row's last line) and its fields."""
    message = pl.col("message").struct
    spread = rows.select(message="messages").with_row_index("row").filter(pl.col("message").list.len() > 0)
    spread = spread.with_columns(ends=pl.col("message").list.len().cum_sum().cast(pl.Int64)).explode("message")
    return spread.with_row_index("place").select(
        "row",
        "ends",
        pl.col("place").cast(pl.Int64),
        *(message.field(name) for name in ("role", "content", "tool_calls", "tool_call_id", "name")),
        calls=message.field("tool_calls").list.len().fill_null(0).cast(pl.Int64),
    )


def _calls(messages: pl.DataFrame) -> pl.DataFrame:
    """One line a call: `row`, `ends`, `tool`, `argument` (null where it is not plain), `call_id`, `at` (its result)."""
    after = pl.col("place") + 1
    call = pl.col("call").struct
    function = call.field("function").struct
    spread = (
        messages.filter(pl.col("calls") > 0)
        .select("row", "ends", call="tool_calls", at=pl.int_ranges(after, after + pl.col("calls")))
        .explode("call", "at")
        .select(
            "row", "ends", "at",
            call_id=call.field("id"), tool=function.field("name"), arguments=function.field("arguments"),
        )
    )  # fmt: skip
    argument = pl.lit(None, dtype=pl.String)
    for tool, name in ARGUMENT_OF.items():
        opens, ends = f'{{"{name}":"', '"}'
        inside = pl.col("arguments").str.strip_prefix(opens).str.strip_suffix(ends)
        spelled = pl.concat_str(pl.lit(opens), inside, pl.lit(ends)) == pl.col("arguments")
        argument = pl.when((pl.col("tool") == tool) & spelled).then(inside).otherwise(argument)
    plain = ~(pl.col("argument").str.contains(_NOT_PLAIN) | pl.col("argument").str.contains(_MARK_LIKE))
    return spread.with_columns(argument=argument).with_columns(argument=pl.when(plain).then("argument"))


def _out_of_turn(messages: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Rows, some of them more than once, in which not every turn is followed by just its results, the last by none."""
    row, role = messages["row"].to_numpy(), messages["role"]
    tool, own = _true(role == "tool").to_numpy(), _true(role == "assistant").to_numpy()
    called, last = messages["calls"].to_numpy(), messages["place"].to_numpy() + 1 == messages["ends"].to_numpy()
    turns = np.cumsum(own)
    opening = turns == (turns - own)[np.searchsorted(row, row)]
    awaited = np.bincount(calls["at"].to_numpy(), minlength=len(row))[: len(row)]
    beyond = calls["row"].filter(calls["at"] >= calls["ends"])
    fine = np.where(opening, ~tool & (called == 0) & ~last, tool | own)
    fine &= np.where(own, (called == 0) == last, ~last & (called == 0)) & (awaited == tool)
    marked = messages["content"].is_null() | _true(messages["content"].str.contains(_MARK_LIKE))
    fine &= ~(marked.to_numpy() & ~opening)
    return pl.concat([messages["row"].filter(pl.Series(~fine)), beyond])


def _results(rows: pl.DataFrame, messages: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with what stands in the place of their results: `row`, `tool`, `sound`, `gave` (the missing piece)."""
    held = messages.select("tool_call_id", "name", "content")
    found = held[np.minimum(calls["at"].to_numpy(), max(0, messages.height - 1))] if messages.height else held
    pages = _pages(rows).unique(["row", "title"], keep="first").rename({"title": "argument", "text": "page"})
    of_pages = calls.filter(pl.col("tool") == "wiki").select("row", "argument").unique()
    pages = of_pages.join(pages, on=["row", "argument"])
    gave = _gave(rows, calls)
    user = rows["user_replies"].struct
    gives, otherwise = (user.field(name).gather(calls["row"]) for name in ("gives", "otherwise"))
    table = calls.hstack(found).with_columns(gave=gave, gives=gives, otherwise=otherwise)
    sums = table["argument"].set(_true(table["tool"] == "calc").not_(), None)
    true = (
        pl.when(pl.col("tool") == "wiki")
        .then("page")
        .when(pl.col("tool") == "calc")
        .then("value")
        .when("gave")
        .then("gives")
        .otherwise("otherwise")
    )
    sound = pl.all_horizontal(
        pl.col("argument").is_not_null(),
        (pl.col("tool") != ASK) | pl.col("argument").str.contains(r"[^\s\x1c-\x1f]"),
        pl.col("tool_call_id").eq_missing(pl.col("call_id")),
        pl.col("name").is_null() | (pl.col("name") == pl.col("tool")),
        pl.col("content") == true,
    )
    return (
        table.with_columns(value=values_of(sums))
        .join(pages, on=["row", "argument"], how="left", maintain_order="left")
        .select("row", "tool", "gave", sound=sound.fill_null(value=False))
    )


def _gave(rows: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Of each call whether it asks the user for the missing piece."""
    asking = rows.select("lang", "needs_clarification", wanted=pl.col("slot").struct.field("wanted"))
    asking = asking[calls["row"].to_numpy()].with_columns(calls["tool"], calls["argument"])
    asks = _true(asking.select((pl.col("tool") == ASK) & pl.col("needs_clarification")).to_series())
    heard: dict[tuple[str, str, str], bool] = {}
    found = np.zeros(calls.height, bool)
    wanting = asking.filter(asks).select("argument", "wanted", "lang")
    for place, (question, wanted, lang) in zip(asks.arg_true(), wanting.iter_rows(), strict=True):
        if question is None or wanted is None or lang not in ("en", "zh"):
            continue
        if (key := (question, wanted, lang)) not in heard:
            heard[key] = asks_for(question, wanted, lang)
        found[place] = heard[key]
    return pl.Series(found)


def _comes_out(rows: pl.DataFrame, messages: pl.DataFrame, results: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether the last message ends with `final`, and `solved`, `lucky` and `asked` are what comes of the dialogue."""
    asks = results.filter(pl.col("tool") == ASK).group_by("row").agg(pl.len(), pl.col("gave").any())
    asked, obtained = np.zeros(rows.height, np.int64), np.zeros(rows.height, bool)
    asked[asks["row"].to_numpy()], obtained[asks["row"].to_numpy()] = asks["len"].to_numpy(), asks["gave"].to_numpy()
    last = pl.col("messages").list.last().struct.field("content")
    closed = pl.any_horizontal(last.str.ends_with(pl.lit(mark) + pl.col("final")) for mark in ANSWER_MARK.values())
    marked_once = last.str.count_matches(MARK) == 1
    read_on = pl.col("final").str.contains(f"{_LINE_ENDS}|{OTHER_MARK}")
    right = pl.Series(are_right(rows, rows["final"]))
    solved = right & (pl.Series(obtained) | ~pl.col("needs_clarification"))
    known = pl.all_horizontal(
        pl.col("final") != "",
        closed,
        marked_once,
        ~(read_on | pl.col("final").str.contains(_EDGE)),
        pl.col("asked") == pl.Series(asked),
        pl.col("solved") == solved,
        pl.col("lucky") == (right & ~solved),
    )
    sure: NDArray[np.bool_] = _true(rows.select(known).to_series()).to_numpy().copy()
    return sure


def are_right(rows: pl.DataFrame, given: pl.Series) -> list[bool]:
    """Whether each of the `given` answers is right by its row's task; what stands in many rows is told once.

    Args:
        rows: columns `task`, `answer`, `aliases`, as many rows as answers.
        given: the answers; nobody's, null, is right nowhere.
    """
    told: dict[tuple[str, str, str, tuple[str, ...]], bool] = {}
    found = []
    known = set(task_names())
    for text, task, gold, aliases in zip(given, rows["task"], rows["answer"], rows["aliases"].to_list(), strict=True):
        key = (task, text, gold, tuple(aliases or ()))
        if key not in told:
            told[key] = text is not None and gold is not None and task in known and is_right(*key)
        found.append(told[key])
    return found
