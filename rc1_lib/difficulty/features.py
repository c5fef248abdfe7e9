"""The difficulty features of every row, computed on columns; word lists and patterns are given in full.

The features are rule-based estimates for English and Chinese. All patterns are in the syntax of Rust's regex, for
polars.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from rc1_lib.difficulty.buckets import vote
from rc1_lib.rows.frame import METRIC_TYPES, with_texts
from rc1_lib.runtime.batches import in_parts
from rc1_lib.text.ngrams import jaccard_by_row
from rc1_lib.text.tokens import TOKEN_PATTERN, length

_CONNECTORS_EN = """
    and or but if then because since so therefore thus hence while whereas although though unless until when
    after before however instead otherwise moreover both either neither nor than yet
""".split()
_CONNECTORS_ZH = (
    "因为 所以 因此 从而 如果 那么 但是 但 然而 不过 虽然 尽管 而且 并且 同时 然后 接着 之后 之前 于是 否则 "
    "除非 既然 由于 只要 只有 以及 或者 还是 并 而 且 又 若 则 故"
).split()
_PRONOUNS_EN = """
    it its itself they them their theirs this that these those he him his she her hers one ones which who whose whom
""".split()
_PRONOUNS_ZH = "它们 他们 她们 它 他 她 其 这个 那个 这些 那些 这 那 该 此 后者 前者".split()
_OPERATIONS_EN = """
    older younger earlier later longer shorter heavier lighter taller higher lower larger smaller bigger more fewer
    less difference between twice half double triple total altogether sum percent remaining left each per ago
""".split()
_OPERATIONS_ZH = "比 差 一共 总共 共 剩 多少 早 晚 大于 小于 倍 一半 平均 每 相差 之间 合计".split()
_SURNAMES_ZH = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"  # noqa: E501


def _words(words: Iterable[str]) -> str:
    return r"(?i)\b(?:" + "|".join(sorted(set(words), key=len, reverse=True)) + r")\b"


def _marks(words: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(set(words), key=len, reverse=True)) + ")"


CONNECTORS = (_words(_CONNECTORS_EN), _marks(_CONNECTORS_ZH))
PRONOUNS = (_words(_PRONOUNS_EN), _marks(_PRONOUNS_ZH))
OPERATION_WORDS = (_words(_OPERATIONS_EN), _marks(_OPERATIONS_ZH))

OPERATORS = r"[+\-*/%<>=×÷]"

SENTENCE_START = r"(?:^|[.!?:;…\n\"“(]\s*)\p{Lu}[\p{L}'’]*"
"""Words with a capital only because they start a sentence; they are removed before names are searched."""

ENTITY_EN = r"\p{Lu}[\p{L}\p{N}'’.-]*\p{L}(?:\s+(?:of|the|de|van|von)?\s*\p{Lu}[\p{L}\p{N}'’.-]*\p{L})*"
"""Runs of capitalised words, with lower-case connecting words inside."""

ENTITY_ZH = (
    r"[《「“][^》」”]{1,20}[》」”]"
    r"|[\p{Han}]{1,3}(?:市|省|县|镇|村|河|湖|山|港|岛|塔|桥|寺|院|会|社|号|堡|谷|林|街)"
    rf"|[{_SURNAMES_ZH}]\p{{Han}}{{1,2}}"
)
"""Quoted titles, words that end like a place or a guild, and a common surname followed by one or two characters."""

VAGUE_TIME = (
    r"(?i)\b(?:recently|back then|at some point|around that time|the other day|once)\b|那时|最近|前些时候|某年|当年"
)
VAGUE_REFERENCE = r"(?i)\b(?:a certain|some|that one|the usual|someone|something)\b|某个|某位|某人|若干|那个"


MEASURED = ("id", "task", "messages", "support", "needs_clarification")
"""The columns of a row that `measure` reads."""


def measure(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute features and bucket of every row.

    Args:
        rows: frame with at least the columns `MEASURED`.

    Returns:
        One line per row, in the rows' order, columns `METRIC_TYPES`. `len_tokens` estimates the tokens of the whole
        dialogue; `entities` counts distinct names in user and tool text; `ops_numeric` counts operators given to `calc`
        and words of comparison and arithmetic in the prompt; `connector_density` is connectors per 100 words of user
        and assistant text; `clue_overlap` is the Jaccard similarity of the word 3-grams of prompt and supporting text.
    """
    return in_parts(rows, _measured)


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    texts = with_texts(rows)
    measured = texts.with_columns(
        len_tokens=length("everything").cast(pl.Int64),
        entities=_distinct_entities("material"),
        ops_numeric=_operators("expressions") + _count(OPERATION_WORDS, "prompt"),
        connector_density=_density(CONNECTORS, "talk"),
        coref_pronouns=_count(PRONOUNS, "prompt"),
        clue_overlap=jaccard_by_row(texts["prompt"], texts["evidence"], 3),
        ambiguity_flags=_flags(),
    ).with_columns(pl.col("ops_numeric").cast(pl.Int64))
    return measured.with_columns(bucket=vote()).select(list(METRIC_TYPES))


def _count(patterns: tuple[str, ...], column: str) -> pl.Expr:
    text = pl.col(column).fill_null("")
    return pl.sum_horizontal([text.str.count_matches(pattern) for pattern in patterns]).cast(pl.Int64)


def _operators(column: str) -> pl.Expr:
    # The expressions are JSON, whose keys and quotes contain no operators. A leading minus is a sign.
    text = pl.col(column).fill_null("").str.replace_all(r"([\"(])\s*-", "$1")
    return text.str.count_matches(OPERATORS).cast(pl.Int64)


def _density(patterns: tuple[str, ...], column: str) -> pl.Expr:
    words = pl.col(column).fill_null("").str.count_matches(TOKEN_PATTERN)
    return pl.when(words > 0).then(100.0 * _count(patterns, column) / words).otherwise(0.0).clip(0.0, 100.0)


def _distinct_entities(column: str) -> pl.Expr:
    text = pl.col(column).fill_null("")
    inside = text.str.replace_all(SENTENCE_START, ". ")
    english = inside.str.extract_all(ENTITY_EN)
    chinese = text.str.extract_all(ENTITY_ZH)
    return pl.concat_list(english, chinese).list.n_unique().cast(pl.Int64)


def _flags() -> pl.Expr:
    """Return which of `under-specified`, `vague-reference`, `vague-time` and `multi-entity` apply."""
    prompt = pl.col("prompt").fill_null("")
    rules = {
        "under-specified": pl.col("needs_clarification"),
        "vague-reference": prompt.str.contains(VAGUE_REFERENCE),
        "vague-time": prompt.str.contains(VAGUE_TIME),
        "multi-entity": prompt.str.count_matches(ENTITY_EN) >= 3,
    }
    named = [pl.when(rule).then(pl.lit(name)).otherwise(None) for name, rule in rules.items()]
    return pl.concat_list(named).list.drop_nulls()


_CACHE: dict[str, pl.DataFrame] = {}


def cache_metrics(sha256: str, metrics: pl.DataFrame) -> None:
    """Cache the metrics of one file of rows, in place of those cached before.

    Args:
        sha256: SHA-256 of the file's bytes, in hex.
        metrics: one line per row, in the file's order, as `measure` returns.
    """
    _CACHE.clear()
    _CACHE[sha256] = metrics


def cached_metrics(sha256: str) -> pl.DataFrame | None:
    """Return the cached metrics of the file with this hash; None if there are none."""
    return _CACHE.get(sha256)
