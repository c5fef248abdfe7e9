"""Patterns of sentences without one definite number: hedges, denials, comparisons, conditions, ranges, dates.

They match plain text (`plain_text`) in English and Chinese. Each rejects more than necessary, which costs a right
answer now and then; a missed hedge would be rewarded, and so learned.
"""

from __future__ import annotations

import re

from rc1_lib.answer_rules.number_words import NUMBER_WORDS

_WORDS = "|".join(sorted(NUMBER_WORDS))
_N = rf"(?:about |around |exactly |the |a |an )?(?:\$?\s?-?\.?\d|(?:minus |negative )?(?:{_WORDS})\b)"
"""The beginning of a number, in figures or in words."""

_HEDGES = (
    r"\b(?:or|either|neither|nor|versus|vs|whichever|any|etc|others|several|few|maybe|perhaps|possibly|possible|probably|"
    r"presumably|likely|guess(?:ing)?|seems|might|unknown|unsure|uncertain|undetermined|doubt(?:s|ed|ful)?|"
    r"ou|oder|vielleicht|peut-[eê]tre|quiz[aá]s)\b",
    r"\b(?:could|may|can|would) (?:also |well )?be\b",
    r"\b(?:allegedly|supposedly|reportedly|apparently|purportedly|pretend(?:ing)?|wish|jok(?:e|ing)|kidding|jk|lol)\b",
    rf"\bhopefully {_N}|\b(?:some|others|people|they|many) (?:say|think|claim|believe) (?:it is |it's )?{_N}",
    r"\b(?:(?:used|ought|(?:was|were) supposed|wants) to be|(?:would|should|could) have been)\b",
    rf"^let(?:'s| us) (?:just )?say {_N}|^(?:answer )?(?:option|choice) #?\d+$",
    r"据说|據說|听说|聽說|有人说|有人說|传说|傳說|号称|號稱|自称|自稱|谎称|謊稱|假定",
    r"^is (?:it|the answer) |\?",
    r"或|还是|還是|也许|也許|可能|好像|似乎|难道|難道|莫非|[吗嗎]|猜|未知|等等|任何|任意|所有整数|正负|正負",
)
_DENIALS = (
    r"\b(?:not|never|cannot|no|none|but|except|excluding|excluded|wrong|incorrect|false|mistake|mistaken|error|wait|instead|"
    r"rather|alternatively|otherwise|opposite|hardly|besides|reject(?:s|ed)?|ruled? out|nicht|"
    r"kein(?:e[nrs]?)?|weder|pas|jamais)\b",
    r"n't\b|\b(?:is|are|was|were|do|does|did|could|would|should|ca|wo|ai)nt\b",
    rf"\b(?:without|barring|(?:apart|aside|far|different|distinct|differs?) from|unlike|(?:any|no)thing like|"
    rf"unequal to|fails? to be|ignor(?:e|ing)|disregard|refuse to say|non|sans|ohne|außer) {_N}",
    r"\b(?:bogus|nonsense|invalid|a lie)\b",
    r"何止|岂止|豈止|忽略|误为|誤為",
    r"\btoo (?:many|much|few|little|high|low|big|small|large)\b",
    r"(?<!没)[不没沒非勿](?!过)|错|錯|但|未[必到满滿足达達]|除了|除.{1,6}[以之]?外|\d\s?(?:以外|除外)|排除\s?\d|才怪|有[误誤]|否[定认認]",
)
_CONDITIONS = (r"\b(?:if|unless|suppose|assuming)\b", r"如果|假如|假设|要是|除非|若")
_COMPARISONS = (
    rf"\bthan (?:or equal to )?{_N}",
    rf"\b(?:over|under|above|below|beneath|beyond|within|past|until|till|before|exceeding|minimum(?: of)?|"
    rf"maximum(?: of)?|min|max|short of|close to|near) {_N}",
    r"\d\s?(?:[a-z]+ )?(?:minimum|maximum|max|upwards|tops)\b",
    r"\b(?:up to|upwards? of|starting (?:at|from|with)|onwards?)\b",
    r"\b(?:at (?:the )?(?:least|most|minimum|maximum)|at the very|as (?:many|much|few|little) as|"
    r"approaching|exceeds?|"
    r"nearly|almost|barely|ish|something|odd)\b",
    r"(?:\band|[&+]) ?(?:up|above|over|more|counting|so on|beyond|below|under|change|a bit|a little|then some)\b",
    rf"\b(?:shy|north|south) of {_N}|\bcloser to {_N}|\bthe \d+'?s\b",
    r"\b(?:mindestens|höchstens|mehr als|weniger als|más de|menos de|al menos|plus de|moins de|au moins)\b",
    r"大于|大於|小于|小於|多于|多於|少于|少於|超过|超過|低于|低於|高于|高於|不足|至少|至多|最多|最少|以上|以下|以内|介于|"
    r"逾|^[过過]\s?\d|^快到?\s?\d|\d\s*有[余餘]|[开開]外|将近|將近|近(?!似)|出头|\d\s*来|起(?!初|来)",
)
_RANGES = (r"\b(?:ranges?|ranging|between|plus or minus)\b", r"\.{2,}", r"之间|之間")
_CHANGES = (
    # "twice 36" is not 36, but "twice 36 is 72" states the result.
    r"\b(?:twice|thrice|doubled?|tripled?|quadruple|half (?:of|the|as))\b(?!.*(?:\b(?:is|are|makes|equals)\b|=))",
    r"\b(?:log|ln|sin|cos|tan|root|cube|inverse|reciprocal)\b",
    r"\b(?:square|negative|multiples?|factors?|pairs?|one|part|fraction|number|some|most|out|none) of (?:the )?-?\d",
    r"\bevery \d",
    rf"(?:^|[^a-z\s]|\b(?:is|are|was|be|equals?|minus|negative|of)) ?point {_N}",
    # "an hour and 5 minutes" is not 5, but a later number may be the result; the same for "5 a.m." below.
    rf"\ban? (?:(?:dollar|pound|euro|buck) (?:and )?|(?:hour|minute|foot) and ){_N}"
    r"[\d.,]*[^\d=]*(?:$|\bwhich (?:is|are)\b)",
    r"(?:平方|立方)(?![米厘公英分毫])|根号|次方|倍于|\d\s*成(?![本功为])|\d\s*[个個人]?中[有的]|\d\s*折",
)
_DATES = (
    r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b",
    r"\b\d{1,2}[-/]\d{1,2}[-/]\d{2,4}\b",
    r"\b[ap]\.\s?m\b(?!.*\d)",
    r"\d\s?[年月]\s?\d|\d\s*[月号](?!牌)|[上下]午\s?\d",
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.? \d",
    r"\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|january|feb|february|march|apr|april|june?|july?|aug|august|sept?|"
    r"september|oct|october|nov|november|dec|december)\b",
)
_DOUBTFUL = re.compile("|".join((*_HEDGES, *_DENIALS, *_CONDITIONS, *_COMPARISONS, *_RANGES, *_CHANGES, *_DATES)))
_NO_DENIAL = re.compile(r"没错|沒錯|不错|不过|对的|,?\s*(?:no doubt|of course|not surprisingly)\b|\bwhether or not\b")


def is_doubtful(sentence: str) -> bool:
    """Whether `sentence`, in plain text, hedges, denies, compares, sets a condition, or is about a range or a date."""
    return _DOUBTFUL.search(_NO_DENIAL.sub(" ", sentence)) is not None
