"""Numbers: one definite value, in whatever dress, or nothing (docs/answers.md has the definition and the table).

A text is made plain, cut into sentences, and each sentence read as numbers, signs and words. A sentence that hedges,
denies, compares or sets a condition has no value; nor has one with several numbers of which none is clearly its result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rc1_lib.answer_rules.arithmetic import Part, Sum, reckoned
from rc1_lib.answer_rules.chinese_numerals import UnclearNumeral, in_digits
from rc1_lib.answer_rules.plain_text import plain_text
from rc1_lib.answer_rules.rule import MAX_LENGTH
from rc1_lib.answer_rules.tokens import Unreadable, tokens_of

_PLAIN = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")
_NUMBER = r"(?:about |around |exactly |the |a |an )?\$?\s?-?\.?\d"
_DOUBTFUL = re.compile(
    r"\b(?:some|most|out|none) of (?:the )?\d|\bevery \d|^is (?:it|the answer) |\bat the (?:most|"
    r"least|very)\b|"
    r"[&+] ?(?:up|above|over|more)\b|\b(?:mindestens|höchstens|mehr als|weniger als|más de|menos de|al menos|plus de|"
    r"moins de|au moins|ou|oder)\b|\d\s*来|出头|正负|正負|近(?!似)|\d\s*[个個人]?中[有的]|[上下]午\s?\d|"
    r"\d\s*[月号折](?!牌)|"
    r"(?:平方|立方)(?![米厘公英分毫])|根号|次方|"
    r"\b(?:twice|thrice|doubled?|tripled?|quadruple|half (?:of|the|as))\b(?!.*(?:\b(?:is|are|makes|equals)\b|=))|"
    r"\b(?:or|nor|not|neither|never|cannot|either|versus|vs|unless|if|suppose|assuming|except|any|etc|others|unknown|"
    r"unsure|uncertain|undetermined|maybe|perhaps|possibly|probably|presumably|likely|guess(?:ing)?|seems|possible|might|wrong|incorrect|false|mistake|"
    r"mistaken|error|wait|instead|rather|alternatively|otherwise|range|ranges|ranging|between|whichever|several|few|"
    r"nearly|almost|barely|approaching|exceed|exceeds|exceeding|"
    r"plus or minus|up to|at least|at most|at minimum|at maximum|as many as|as much as|as few as|as little as|"
    r"(?:could|may|can|would) (?:also |well )?be|and (?:up|above|over|more|counting|so on|beyond|below|under)|no|"
    r"none|but)\b|"
    rf"n't\b|\bthan (?:or equal to )?{_NUMBER}|\b(?:over|under|above|below|beneath|beyond|within|past|until|till|"
    rf"before|exceeding|minimum(?: of)?|maximum(?: of)?|min|max|short of|close to|near) {_NUMBER}|"
    r"\b(?:log|ln|sin|cos|tan|root|cube|inverse|reciprocal|opposite|excluding|excluded|ish|something|odd)\b|"
    r"\b(?:square|negative|multiple|factor|multiples|factors|pair|pairs|one|part|fraction|number) of (?:the )?-?\d|"
    r"\d\s?(?:[a-z]+ )?(?:minimum|maximum|max|upwards|tops|at (?:least|most))\b|起(?!初|来)|\btoo (?:many|much|"
    r"few|little|high|low|big|small|large)\b|\.{2,}|\?|"
    r"(?:(?<!没)[不没沒非](?!过)|或|还是|還是|大于|大於|小于|小於|多于|多於|少于|少於|超过|超過|低于|低於|高于|高於|不足|至少|至多|最多|"
    r"最少|以上|以下|以内|之间|之間|介于|也许|也許|可能|或许|如果|假如|假设|要是|除非|若|将近|將近|错|錯|未知|但|等等|任何|任意|所有整数|"
    r"倍于|猜)|\d\s*成(?![本功为])"
)
_NO_DENIAL = re.compile(r"没错|沒錯|不错|不过|对的|,?\s*(?:no doubt|of course|not surprisingly)\b|\bwhether or not\b")
_DATE = re.compile(
    r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b|\b\d{1,2}[-/]\d{1,2}[-/]\d{2,4}\b|\d\s?[年月]\s?\d|"
    r"\b(?:jan|january|feb|february|mar|march|apr|april|june?|july?|aug|august|sept?|september|oct|october|nov|november|"
    r"dec|december)\.? \d|\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|january|feb|february|march|apr|april|june?|"
    r"july?|aug|"
    r"august|sept?|september|oct|october|nov|november|dec|december)\b"
)
_LIST_OF_ONE = re.compile(r"^\(?1[.)]\s+(?=[^\s\d]*\s?-?[$.]?\d)")
_SENTENCES = re.compile(r"[\n;!]+|(?<!\.)\.(?=\s|$)(?!\s[a-z]*\.)|\?(?=\s)")
_QUESTION = re.compile(r"^[^?]*[a-z\u4e00-\u9fff][^?]*\?\s*(?=[^?]*\d[^?]*$)")
_ASSIGNED = re.compile(r"(?<![a-z])([a-z])\s?[=≈]")
_RETRACTS = re.compile(
    r"\b(?:or|no|not|nor|wait|actually|maybe|perhaps|possibly|but|however|instead|rather|alternatively|otherwise|if|unless|"
    r"wrong|mistake|sorry|either|correction|oops|hmm|also|should|answer)\b|n't\b|[不没沒或错錯但]|也许|可能|如果|更正|应该|等一下|答案"
)
_TAKES_BACK = re.compile(r"(?:or|no|not|wait|maybe|perhaps|but that is wrong|wrong|just kidding)\b|不|错|也许|可能")
_ANSWER = re.compile(r"\b(?:final )?(?:answer|result)\b|\bfinal\b|答案")
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|total|altogether|in all|answer|result|final|finally|overall|sum|consequently|means|"
    r"conclusion|left)\b|=|所以|因此|共|总|總|答案|最后|最終|最终|剩|合计"
)
_BECAUSE = re.compile(
    r"\b(?:because|since|as|where|given that|which is|which are|i e)\b|因为|由于|因為|由於|,\s*(?:or so)\b"
)
_SO = re.compile(
    r"\b(?:so|therefore|thus|hence|which means|meaning|that is|that's|that makes|for a total of|consequently)\b|"
    r"所以|因此"
)
_SKIPPED = frozenset(
    "about exactly only just a an the total of approximately around roughly now then precisely simply equal to "
    'still : ≈ — " '
    "clearly therefore thus , obviously altogether usd us".split()
)
_LEADS = frozenset(
    "is are was were be equals equal makes gives leaves yields totals namely total answer result altogether so "
    "therefore hence "
    "thus sum that's it's = means comes amounts adds sums get gets got cost costs".split()
)
_HAN_LEADS = re.compile(
    r"(?:所以|因此|一?共|总共|總共|共计|合计|总计|答案|等于|等於|就是|即|得到?|还?剩下?|[是為为了有赚要花])(?:是|有|为|了|约|大约|要)*$"
)
_AROUND = frozenset("in for after during within".split())
_LABELS = frozenset("day week month year step question problem part grade level case round".split())
_FIRST_AROUND = _AROUND | frozenset("with at on by over from of".split())
_BETWEEN_TWO = frozenset("of in out to per by and or with vs versus & , : ~ into over x — 到 至 比 and each".split())
_TOTAL = frozenset("total altogether overall".split())
_DOING = re.compile(r"[a-z]+ing|away|out")
_SMALL_WORDS = frozenset("a an the first last next another about each every these those".split())


def same_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` says one definite number, and it is that of `gold`; aliases add nothing."""
    wanted = number_in(gold)
    return wanted is not None and number_in(given) == wanted


def number_in(text: str) -> Fraction | None:
    """The one definite number that `text` says, exactly; None where it says none, or more than one."""
    if _PLAIN.fullmatch(text := text.strip()) and text.isascii():
        return Fraction(text)
    if not text or len(text) > MAX_LENGTH:
        return None
    plain = plain_text(text)
    if plain is None:
        return None
    try:
        plain = _LIST_OF_ONE.sub("", _QUESTION.sub("", plain.replace("i.e.", "that is")))
        return _agreed(_sentences(in_digits(plain)))
    except UnclearNumeral:
        return None


def last_number(message: str) -> str:
    """What of a message without a mark is taken as the answer to a word problem: its last number, as it stands there.

    GSM8K's own evaluation reads so. Where the last sentence with a number hedges, the whole sentence is taken.
    """
    with_number = [
        part for part in re.split(r"\n+|(?<=[.!?。！？])(?=\s|$)|(?<=[。！？])", message) if re.search(r"\d", part)
    ]
    if not with_number:
        return message.strip().rpartition("\n")[2].strip()
    sentence = with_number[-1].strip()
    if (plain := plain_text(sentence)) is None or _DOUBTFUL.search(_NO_DENIAL.sub("", plain)):
        return sentence
    if number_in(sentence) is not None:
        return sentence
    *_, last = _AS_WRITTEN.finditer(sentence)
    return last[0].strip()


_AS_WRITTEN = re.compile(r"(?:(?<![\w\d)])[-−–]\s?)?[$€£¥]?\s?-?\d[\d,.'_]*(?:(?<=\d)|(?<=[\d][.,]))(?:/\d+)?%?")


_Value = Fraction | str
"""The value of a sentence, or why it has none."""
_SILENT, _UNCLEAR = "no number", "unclear"


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence, what it says, and whether it says nothing else: a number with a word or three."""

    text: str
    value: _Value
    bare: bool = False


def _sentences(text: str) -> list[_Sentence]:
    read, starts = [], 0
    for mark in (*_SENTENCES.finditer(text), None):
        sentence = text[starts : mark.start() if mark else len(text)].strip()
        if sentence:
            read.append(_Sentence(sentence, _UNCLEAR) if mark and mark[0] == "?" else _read(sentence))
        starts = mark.end() if mark else len(text)
    return read


def _agreed(sentences: Sequence[_Sentence]) -> Fraction | None:
    """What the sentences say together: the same, or what the first says by itself, or what the last concludes."""
    spoken = [one for one in sentences if one.value != _SILENT]
    if not spoken:
        return None
    first, last = spoken[0], spoken[-1]
    if isinstance(first.value, Fraction) and {one.value for one in spoken} == {first.value}:
        return None if any(_TAKES_BACK.match(one.text) for one in sentences[1:]) else first.value
    if isinstance(first.value, Fraction) and first.bare:
        disagreed = any(one.bare and one.value != first.value for one in spoken)
        retracted = any(_RETRACTS.search(one.text) for one in sentences[1:])
        return None if disagreed or retracted else first.value
    if not isinstance(last.value, Fraction) or not _CONCLUDES.search(last.text):
        return None
    doubted = any(one.value == _UNCLEAR and _DOUBTFUL.search(one.text) for one in spoken)
    answered = any(one.value != last.value and _ANSWER.search(one.text) for one in spoken)
    return None if doubted or answered else last.value


def _read(sentence: str) -> _Sentence:
    if not re.search(r"[\da-z]", sentence):
        return _Sentence(sentence, _SILENT)
    doubtful = _DOUBTFUL.search(_NO_DENIAL.sub(" ", sentence)) or _DATE.search(sentence)
    if doubtful or len(_ASSIGNED.findall(sentence)) > 1 or len(_ANSWER.findall(sentence)) > 1:
        return _Sentence(sentence, _UNCLEAR)
    try:
        parts = reckoned(tokens_of(sentence))
        value = _value(_sides(parts))
    except Unreadable:
        return _Sentence(sentence, _UNCLEAR)
    words = [part for part in parts if isinstance(part, str) and part.isalpha()]
    return _Sentence(sentence, value, isinstance(value, Fraction) and len(words) <= 3 and len(_sums(parts)) == 1)


def _sums(parts: Sequence[Part]) -> list[Sum]:
    return [part for part in parts if isinstance(part, Sum)]


def _sides(parts: Sequence[Part]) -> list[list[Part]]:
    """Divided at `=`."""
    sides: list[list[Part]] = [[]]
    for part in parts:
        if part in ("=", "≈"):
            sides.append([])
        else:
            sides[-1].append(part)
    return sides


def _value(sides: Sequence[Sequence[Part]]) -> _Value:
    """The value of the last side with a number; a bare number before it has to be the same."""
    with_number = [side for side in sides if _sums(side)]
    if not with_number:
        return _SILENT
    value = _resolved(with_number[-1])
    for side in with_number[:-1]:
        alone = side[0] if len(side) == 1 else None
        if isinstance(alone, Sum) and not alone.reckoned and alone.value != value:
            return _UNCLEAR
    return value


def _resolved(parts: Sequence[Part]) -> _Value:
    """The one value that a sentence without `=` states."""
    sums = _sums(parts)
    if not sums:
        return _SILENT
    if len({one.value for one in sums}) == 1 and not (len(sums) > 1 and _paired(parts)):
        return sums[0].value
    if len({one.value for one in sums}) == 1:
        return _UNCLEAR
    for cut, take_tail in ((_BECAUSE, False), (_SO, True)):
        if (rest := _side_of(parts, cut, take_tail)) is not None:
            return _resolved(rest)
    if _paired(parts):
        places = [place for place, part in enumerate(parts) if isinstance(part, Sum)]
        if not (_led(parts, places[-1]) or _summed_up(parts, places[-1])):
            return _UNCLEAR
    return _result(parts)


def _side_of(parts: Sequence[Part], cut: re.Pattern[str], take_tail: bool) -> Sequence[Part] | None:
    """The parts before the first cause, or after the last conclusion, where these hold a number; None without one."""
    text, starts = "", []
    for part in parts:
        starts.append(len(text))
        text += f"{part if isinstance(part, str) else '#'} "
    found = list(cut.finditer(text))
    if not found:
        return None
    mark = found[-1] if take_tail else found[0]
    at = mark.end() if take_tail else mark.start()
    side = [part for start, part in zip(starts, parts, strict=True) if (start >= at if take_tail else start < at)]
    return side if _sums(side) and len(side) < len(parts) else None


def _paired(parts: Sequence[Part]) -> bool:
    """Whether two numbers stand right before and after one small word: `3 of 4`, `5 to 6`, `3, 4`."""
    return any(
        isinstance(one, Sum) and isinstance(two, Sum) and word in _BETWEEN_TWO and one.value != two.value
        for one, word, two in zip(parts, parts[1:], parts[2:], strict=False)
    )


def _result(parts: Sequence[Part]) -> _Value:
    """Of several numbers the one that a verb or "in total" makes the result, else the only one beside circumstances."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Sum)]
    around = {place for place in places if _is_around(parts, place, first=place == places[0])}
    led = [place for place in places if _led(parts, place)]
    if (
        len({_at(parts, place) for place in led}) > 1
        and [place for place in led if _concluded(parts, place)] != led[-1:]
    ):
        return _UNCLEAR  # two statements ("there are 3 apples and there are 4 pears"), or two conclusions
    for place in reversed(places):
        later = [other for other in places if other > place and other not in around]
        if not later and (_led(parts, place) or _summed_up(parts, place)):
            return _at(parts, place)
    stated = [place for place in places if place not in around]
    if len({_at(parts, place) for place in stated}) == 1 and not _in_han(parts):
        return _at(parts, stated[0])
    return _UNCLEAR


def _at(parts: Sequence[Part], place: int) -> Fraction:
    part = parts[place]
    assert isinstance(part, Sum)
    return part.value


def _in_han(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, str) and part.isalpha() and not part.isascii() for part in parts)


def _led(parts: Sequence[Part], place: int) -> bool:
    """Whether the number at `place` stands right after a verb such as `is`."""
    before = place - 1
    while before >= 0 and parts[before] in _SKIPPED:
        if parts[before] in ("total", "altogether", "therefore", "thus"):
            return True
        before -= 1
    word = parts[before] if before >= 0 else ""
    return isinstance(word, str) and (word in _LEADS or _HAN_LEADS.search(word) is not None)


def _concluded(parts: Sequence[Part], place: int) -> bool:
    """Whether a word of conclusion stands between the number at `place` and the one before it."""
    before = place - 1
    while before >= 0 and not isinstance(parts[before], Sum):
        before -= 1
    between = " ".join(part for part in parts[before + 1 : place] if isinstance(part, str))
    return _CONCLUDES.search(between) is not None


def _summed_up(parts: Sequence[Part], place: int) -> bool:
    """Whether `in total` or the like stands at most three words after the number at `place`."""
    after: list[str] = []
    for part in parts[place + 1 : place + 6]:
        if isinstance(part, Sum):
            break
        after.append(part)
    return bool(_TOTAL & set(after)) or "in all" in " ".join(after)


def _is_around(parts: Sequence[Part], place: int, *, first: bool) -> bool:
    """Whether the number at `place` is a circumstance: `in 2 hours`."""
    before = place - 1
    while before >= 0 and (
        (word := parts[before]) in _SMALL_WORDS or (isinstance(word, str) and _DOING.fullmatch(word))
    ):
        before -= 1
    if before < 0:
        return False
    return (
        parts[before] in _AROUND
        or parts[before] in _LABELS
        or (first and before == 0 and parts[before] in _FIRST_AROUND)
    )
