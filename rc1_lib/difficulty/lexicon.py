"""The word lists and patterns of the difficulty features, for English and Chinese.

All are regular expressions in Rust syntax for polars. They are rule-based estimates, given here in full.
"""

from __future__ import annotations

from collections.abc import Iterable

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
"""A capital at the start of a sentence does not indicate a name; these spans are removed first."""

ENTITY_EN = r"\p{Lu}[\p{L}\p{N}'’.-]*\p{L}(?:\s+(?:of|the|de|van|von)?\s*\p{Lu}[\p{L}\p{N}'’.-]*\p{L})*"
"""Runs of capitalised words, with lower-case joining words inside."""

ENTITY_ZH = (
    r"[《「“][^》」”]{1,20}[》」”]"
    r"|[\p{Han}]{1,3}(?:市|省|县|镇|村|河|湖|山|港|岛|塔|桥|寺|院|会|社|号|堡|谷|林|街)"
    rf"|[{_SURNAMES_ZH}]\p{{Han}}{{1,2}}"
)
"""Quoted titles, words that end like a place or a guild, and a common surname with one or two further characters."""

VAGUE_TIME = (
    r"(?i)\b(?:recently|back then|at some point|around that time|the other day|once)\b|那时|最近|前些时候|某年|当年"
)
VAGUE_REFERENCE = r"(?i)\b(?:a certain|some|that one|the usual|someone|something)\b|某个|某位|某人|若干|那个"
