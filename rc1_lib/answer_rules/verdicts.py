"""Yes or no: whole statements in English and Chinese, negation included (docs/answers.md has the table).

A text is cut into clauses. A clause is a verdict if all of it reads as one (`yes`, `it is false`, `不可以`), or if it
begins with one and continues as people do (`yes it can`). The first clause has to be a verdict, or a later one that is
marked as the conclusion. Another verdict, a doubt or a condition leaves no verdict.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rc1_lib.answer_rules.plain_text import STRUCK
from rc1_lib.answer_rules.rule import MAX_LENGTH

_SIMPLIFIED = str.maketrans(
    "夠會對沒錯確實無認這個應該當還並過為從來說則於誤嗎樣總結論終稱顯絕許斷記極難時見視題問後開決屬準綜們況點觀覺際陳須麼",
    "够会对没错确实无认这个应该当还并过为从来说则于误吗样总结论终称显绝许断记极难时见视题问后开决属准综们况点观觉际陈须么",
)
_MARK_UP = re.compile(
    r"\\(?:boxed|text(?:bf|it|rm)?|math(?:rm|bf)|mbox|emph)\b|\\[()\[\]]|</?[a-z][^<>\n]{0,40}>|[$*_`#{}\[\]()]|"
    r"[\ufe0f\u200b\u200c\u200d\ufeff]"
)
_QUOTES = re.compile('["“”„«»「」『』‘]')
_CLAUSES = re.compile(
    r"[,.;:!=>\n，。；：！、—–|…]+|\?|？|/|\s-+\s|\s*\b(?:or|and|(?<!anything\s)but|wait|i mean|sorry|rather|instead|"
    r"actually|however|versus|vs|then|although|though)\b\s*"
)
_ADVERBS = (
    "definitely|certainly|absolutely|surely|clearly|indeed|obviously|simply|really|very|actually|in fact|of course|"
    "always|generally speaking|quite|totally|completely|entirely|just|technically|strictly speaking"
)
_QUOTE = re.compile(r"(?<![a-z])'|'(?![a-z])")
_CUT_SHORT = re.compile(r"^\s*or\b|\bor\s*$")
_OR_NOT = re.compile(
    r"(?<!whether )\bor (?:not|yes|no)\b|"
    r"或者?\s*(?:yes|no|true|false|[不是否对错没能会可有真假])|(?<=[是否对错能会有真假])还是"
)
"""Two verdicts to choose from; 还是 alone also means "still"."""
_OPENING = re.compile(
    r"(?:(?:so|therefore|thus|hence|then|well|ok|okay|also|again|in short|in summary|in conclusion|to conclude|overall|"
    r"ultimately|finally|"
    r"to summarize|in brief|ans|long story short|to sum up|without doubt|unfortunately|sadly|fortunately|luckily|"
    r"surprisingly|without a doubt|undoubtedly|no doubt|(?:it|that|this)(?: would be|'s| is) an?(?! lie\b)|"
    r"(?:it|that|this) would be|a (?:firm|clear|definite|resounding)|a(?=$)|"
    r"(?:my|the|our|its|this|his)? ?(?:final |correct |short |right )?(?:answer|verdict|conclusion|response|"
    r"result)(?: to (?:the|this|your) question)?"
    r"(?:'s| is| was| would be| must be| has to be| should be)?(?: that)?|"
    r"(?:i|we)(?: would| do|'d|'ll)? (?:think|believe|say|conclude|answer|go with)(?: that)?(?: the answer is)?|"
    rf"it (?:follows|is clear|is known) that|the truth is(?: that)?|{_ADVERBS})\b\s*)+"
)
_CONCLUSION = re.compile(
    r"^(?:also )?(?:so|therefore|thus|hence|in short|in summary|in conclusion|to conclude|overall|ultimately|"
    r"finally|then|in brief|"
    r"(?:my|the|our)? ?(?:final |correct |short )?(?:answer|verdict|conclusion|result|response))\b"
)
_YES = "yes|yeah|yep|yup|yea|aye|true|correct|right|affirmative|sure|accurate|valid|exactly|agreed"
_ONLY_YES = re.compile("yes|yeah|yep|yup|yea|sure|exactly")
_NO = (
    "no way|no chance|not so|not the case|not at all|not really|not possible|by no means|no|nope|nah|naw|nay|"
    "false|incorrect|untrue|negative|"
    "never|inaccurate|"
    "invalid|wrong|impossible|a lie"
)
_SUBJECT = (
    r"(?:it|that|this|both|they|he|she|there|you|one|these|those|we|i|"
    r"(?:the|this|that|your) (?:statement|claim|answer|assertion|proposition|premise|sentence|hypothesis|idea))"
)
_VERB = (
    r"(?:is|are|was|were|does|do|did|can|could|will|would|has|have|had|should|may|might|must|shall|wo(?=n't)|ca(?=n't))"
)
_STATED = re.compile(
    rf"(?P<subject>{_SUBJECT})(?: (?:{_ADVERBS}))?(?: (?P<verb>{_VERB})|(?P<short>'s|'re|s))?(?: (?P<not>not|"
    rf"never)|(?P<nt>n't|nt))?"
    rf"(?: (?:{_ADVERBS}|so))*(?: have(?: been)?| do)?(?: (?P<state>{_YES}|{_NO}|the case|possible|so|be(?: true|"
    rf" possible|"
    rf" correct)?|be false))?"
)
_HOLDS = re.compile(
    rf"{_SUBJECT} (?:(?P<yes>holds|stands)|(?:does not|doesn't) (?:hold|stand))(?: true| up)?|"
    rf"(?:{_SUBJECT} )?(?:{_VERB}(?:n'?t)|cannot)(?: be| have(?: been)?)?|{_VERB} not"
)
_HEAD = re.compile(rf"(?:(?P<not>not) )?(?:(?P<yes>{_YES})|(?P<no>{_NO}))(?: (?P<rest>.+))?")
_GOES_ON = re.compile(
    rf"(?:(?!one\b){_SUBJECT}(?:'|\b)|because|since|as|given|due|for|{_ADVERBS}|yes|no|not|never|thanks|sir|"
    rf"answer is|at all|in (?:this|that|both) case)\b.*"
)
_ALONE = {
    **dict.fromkeys(
        (
            "y",
            "t",
            "of course",
            "without a doubt",
            "undoubtedly",
            "no doubt",
            "certainly",
            "definitely",
            "absolutely",
            "indeed",
            "clearly",
            "obviously",
        ),
        True,
    ),
    **dict.fromkeys(("n", "f", "of course not", "not", "i don't think so", "i do not think so"), False),
}
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|likely|unlikely|presumably|depends|depending|sometimes|partly|partially|unsure|"
    r"uncertain|unknown|undetermined|unclear|undecided|debatable|arguably|supposedly|allegedly|neither|either|"
    r"not sure|not certain|not clear|not known|no idea|do not know|don't know|dont know|cannot (?:say|tell|know|be)|"
    r"can't (?:say|tell|know|be)|could (?:also )?be (?:either|yes|no)|hard to say|guess|seems|suppose|who knows|n a|"
    r"might|may|not enough|insufficient)\b"
)
_DOUBT_OF_IT = re.compile(
    r"(?:i am |i'm |we are |it is |it's |this is |that is |that's |it |that |this |really |very |most |also |only )*"
    r"(?:maybe|perhaps|possibly|probably|presumably|(?:un)?likely(?: so)?$|supposedly|allegedly|arguably|apparently|"
    r"seem(?:s|ingly)(?: so)?$|i (?:guess|suppose|assume)(?: so)?$|i(?: am|'m) lying|unsure|"
    r"not (?:sure|certain|clear|known|always|necessarily)|uncertain|unclear|unknown|undetermined|"
    r"depends|depending|sometimes|partly|partially|who knows|no idea|(?:do not|don't|dont) know|hard to say|n a|"
    r"either|neither|both$|debatable|(?:my )?(?:best )?guess|scratch that|"
    r"could (?:also )?be (?:either|yes|no)|cannot be|can't be|"
    r"(?:i|we) (?:cannot|can't|do not|don't)|(?:kind|sort) of$|as if$|(?:just )?(?:kidding|joking)|lol$|jk$|"
    r"(?:i )?lied|sarcastically$|i (?:take|took) (?:it|that) back|(?:i )?retract)\b"
)
"""A doubt about the verdict itself, at the beginning of a later clause."""
_CONDITION = re.compile(
    r"^(?:(?:only|yes|no) )?(?:if|unless|except|assuming|provided|(?:as|so) long|when|under|in some|for some|"
    r"not always|not necessarily|not sure)\b"
)
_VERDICT_WORD = re.compile(rf"\b(?:{_YES}|{_NO}|not)\b")
_REASON = re.compile(r"(?<!likely)\s+(?:because|since|as(?! long as\b)|given that|due to)\b.*")

_HAN = re.compile(r"[\u4e00-\u9fff]")
_HAN_OPENING = re.compile(
    r"(?:所以|因此|因而|故|于是|总之|总的来说|综上所述|综上|那么|最终|最后|我的?|正确|这个问题的?|答案|结论|回答|判断|应该说|认为|觉得|嗯|哦|也|又|但是?|不过|还是|或者?|也许|可能|"
    r"当然|确实|肯定|绝对|毫?无疑问?|显然|的确|其实|完全|一定|实际上|事实上|并(?=[不没非]))"
)
_HAN_CONCLUSION = re.compile(r"^(?:所以|因此|因而|故|于是|总之|综上|那么|最终|最后|我的答案|正确答案|答案|结论|回答)")
_ANNOUNCED = r"(?:答案|结论|回答|判断|结果)[是为]"
_HAN_ANNOUNCES = re.compile(f"{_ANNOUNCED}$")
"""Ends a clause before the answer itself: in `答案是：否` its 是 says nothing."""
_ANNOUNCED_QUOTE = re.compile(f'(?<={_ANNOUNCED})["“„«「『‘]')
_HAN_SUBJECT = re.compile(
    r"^(?:(?:它|他|她|这|那|我|人)们?(?:个?(?:说法|陈述|结论|观点|命题))?|该?(?:说法|陈述|命题)|都)"
)
_HAN_YES = frozenset((
    "是 对 能 能够 会 可以 可 有 行 真 正确 没错 成立 属实 当然 确实 肯定 是真 是对 是正确 的确 需要 必须 存在 "
    "可能会 当然是 当然能 当然会 没有错 "
    "是这样 真实 没问题 如此 正是 能做到 为真 做得到 必然 准确 同意 要 有可能做到"
).split()) - {"可能会"}  # fmt: skip
_HAN_NO = frozenset((
    "不 不是 否 不对 不能 不能够 不会 不可以 不可 没有 没 无 不行 假 错 错误 不正确 不成立 不属实 不可能 非 并非 "
    "不真 不存在 不需要 不必 不用 是假 是错 是错误 决不 决不是 决不会 决不能 "
    "不是真 绝不 从不 从未 非也 不准确 不同意 没能 没法 为假 并非如此 不是如此 绝不会 绝不是 绝不能 并不会 "
    "并不是 并不能 做不到 没有过 从来没有 不可能会 无法 不要 不是这样 否定"
).split())  # fmt: skip
_HAN_DOUBTS = (
    r"(?:不一定|不确定|不太确定|不清楚|不知道|不好说|难说|也许|可能(?!性)(?<!不可能)|或许|大概|恐怕|看情况|取决于|未必|未知|"
    r"(?<!没)[说弄搞想记]错|无法(?:确定|判断|知道|回答)|不见得|有时|部分|不全|不完全|不都|才怪|开玩笑|视|(?:可以|能|会)不$|既.+又|没有(?:答案|信息))"
)
_HAN_DOUBT = re.compile(_HAN_DOUBTS)
_HAN_DOUBT_OF_IT = re.compile(rf"(?:但是?|不过|也|又|或者?|我|这|还|有|[很极])*{_HAN_DOUBTS}")
_HAN_CONDITION = re.compile(r"^(?:但|只要|只有)?(?:如果|若|假如|前提|除非|要是|要看|只有|只要|在某些|有些|有时)")
_A_NOT_A = re.compile(r"(.)不\1|有没有|(?<!答案)(?<!结论)是否(?!定)|是否(?!定|$)|能否|可否|会否|对错|真假|是非(?!常)")
_PARTICLES = re.compile(r"(?:的|了|啊|呀|哦|嗯|呢|哟)+$")
_ASKING = re.compile(r"[吗吧么]$")


def same_verdict(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` states the same yes or no as `gold`, in either language; aliases are ignored."""
    verdict = verdict_in(given)
    return verdict is not None and verdict == verdict_in(gold)


def verdict_in(text: str) -> bool | None:
    """Return the one verdict that `text` states; None for neither, both, or one with a doubt or a condition."""
    if not text or len(text) > MAX_LENGTH or STRUCK.search(text):
        return None
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").translate(_SIMPLIFIED)
    return _verdict_of(_QUOTES.sub("", _ANNOUNCED_QUOTE.sub(" ", _MARK_UP.sub(" ", plain))))


def last_verdict(message: str) -> str:
    """Return the answer of a message without a mark: its last sentence with a verdict, else its last sentence."""
    sentences = [part.strip() for part in re.split(r"\n+|(?<=[.!?])\s+|(?<=[。！？])", message) if part.strip()]
    return next(
        (part for part in reversed(sentences) if verdict_in(part) is not None), sentences[-1] if sentences else ""
    )


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause's verdict, whether it doubts or sets a condition, and whether it is marked as the conclusion."""

    stated: bool | None
    doubts: bool = False
    concludes: bool = False


def _verdict_of(text: str) -> bool | None:
    text = _QUOTE.sub(" ", text)
    if (
        text.lstrip().startswith("!")
        or _CUT_SHORT.search(text)
        or _OR_NOT.search(text)
        or re.search(r"\bn\s?[/.]\s?a\b|\?\s*$", text)
    ):
        return None
    han = _HAN.search(text) is not None
    clauses = _han_clauses(text) if han else [" ".join(clause.split()) for clause in _CLAUSES.split(text)]
    found: bool | None = None
    opened, concluding = True, False
    for text in filter(None, clauses):
        clause = (_han_clause if han else _clause)(text, explains=found is not None)
        if clause.doubts and (opened or found is not None or clause.stated is not None):
            return None
        if clause.stated is not None and (opened or clause.concludes or concluding or found is not None):
            if found is not None and clause.stated != found:
                return None
            found = clause.stated
        elif opened and not han and not _OPENING.fullmatch(text) and _VERDICT_WORD.search(text):
            return None  # the verdict is the subject of another statement: "yes is wrong"
        concluding = clause.concludes and clause.stated is None
        opened = opened and (_HAN_OPENING if han else _OPENING).fullmatch(text) is not None
    return found


def _clause(text: str, *, explains: bool) -> _Clause:
    """Read an English clause; if it `explains` an earlier verdict, it may express doubt about anything else."""
    if re.match(r"(?:because|since|as(?! long as\b)|given|due|for)\b", text):
        return _Clause(None)
    head = _REASON.sub("", text)
    if (stated := _ALONE.get(head)) is None:
        stated = _stated((head[opening.end() :] if (opening := _OPENING.match(head)) else head).strip())
    doubts = (_DOUBT.search if stated is not None or not explains else _DOUBT_OF_IT.match)(head)
    return _Clause(stated, bool(doubts or _CONDITION.match(head)), _CONCLUSION.match(text) is not None)


def _stated(clause: str) -> bool | None:
    if (alone := _ALONE.get(clause)) is not None and len(clause) > 1:
        return alone
    if stated := _STATED.fullmatch(clause):
        denied = bool(stated["not"] or stated["nt"])
        state = stated["state"]
        if not (stated["verb"] or stated["short"]):
            return None
        if state is None and stated["short"]:
            return False if denied else None
        negative = state is not None and (re.fullmatch(_NO, state) is not None or state == "be false")
        if denied and (negative or _ONLY_YES.fullmatch(state or "")):
            return None
        if state in ("possible", "be possible") and not denied:
            return None
        return not (negative or denied)
    if holds := _HOLDS.fullmatch(clause):
        return holds["yes"] is not None
    if not (head := _HEAD.fullmatch(clause)):
        return None
    if head["rest"] and not _GOES_ON.fullmatch(head["rest"]):
        return None
    if head["not"] and head["no"]:
        return None
    if head["not"] and _ONLY_YES.fullmatch(head["yes"]):
        return None
    says = bool(head["yes"]) and not head["not"]
    rest = _stated(head["rest"]) if head["rest"] else None
    both = head["rest"] is not None and _HEAD.match(head["rest"]) is not None
    return None if (rest is not None or both) and rest != says else says


def _han_clauses(text: str) -> list[str]:
    return [
        clause.strip()
        for part in _CLAUSES.split(text)
        for clause in re.split(r"\s+|(?<=[^不])(?=或者?|还是|但是?|不过|因为)", part)
    ]


def _han_clause(text: str, *, explains: bool) -> _Clause:
    """Read a Chinese clause, like `_clause`."""
    if not _HAN.search(text):
        return _clause(text, explains=explains)
    if text.startswith(("因为", "由于", "理由")):
        return _Clause(None)
    if _HAN_ANNOUNCES.search(text):
        return _Clause(None, _HAN_DOUBT.search(text) is not None, concludes=True)
    rest, stated = text, _han_stated(text)
    while stated is None and (opening := _HAN_OPENING.match(rest)):
        rest = rest[opening.end() :]
        if (stated := _han_stated(rest)) is None and rest[:1] in ("是", "为", "应"):
            stated = _han_stated(rest[1:])
    if stated is None and (subject := _HAN_SUBJECT.match(text)):
        said = text[subject.end() :]
        stated = _han_stated(said) if _han_stated(said) is not None or said[:1] != "是" else _han_stated(said[1:])
    doubts = (_HAN_DOUBT.search if stated is not None or not explains else _HAN_DOUBT_OF_IT.match)(text)
    asks = _A_NOT_A.search(text) or _ASKING.search(text)
    return _Clause(stated, bool(doubts or asks or _HAN_CONDITION.match(text)), bool(_HAN_CONCLUSION.match(text)))


def _han_stated(text: str) -> bool | None:
    word = _PARTICLES.sub("", text) or text
    for form in (text, word):
        if form in _HAN_YES:
            return True
        if form in _HAN_NO:
            return False
    return None
