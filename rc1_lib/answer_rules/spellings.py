"""Known-right spellings: a table of kinds, each with a name, a sentence, and a function that writes it.

Numbers and verdicts are spelled as people and models write them; each is one definite value and nothing else. Texts are
varied only within the published normalisation of HotpotQA (Yang et al., 2018: lower case, ASCII punctuation deleted,
articles removed, white space collapsed); a generated text that it does not call equal is left out.
"""

from __future__ import annotations

from collections.abc import Callable

from rc1_lib.answer_rules.golds import ALL, Form, Gold, Kind, decimal, normalised, number

NUMBERS, VERDICTS, TEXTS = (Form.NUMBER,), (Form.VERDICT,), (Form.TEXT,)
NUMBERS_TEXTS, NUMBERS_VERDICTS, VERDICTS_TEXTS = NUMBERS + TEXTS, NUMBERS + VERDICTS, VERDICTS + TEXTS
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def right_answers(gold: Gold, form: Form) -> list[tuple[Kind, str]]:
    """Return every known-right spelling of a gold, with its kind."""
    made = ((kind, kind.make(gold, ())) for kind in SPELLINGS.values() if form in kind.forms)
    return [
        (kind, given) for kind, given in made if given is not None and (form is not Form.TEXT or _kept(given, gold))
    ]


def _kept(given: str, gold: Gold) -> bool:
    """Whether a text equals the gold or one of its aliases under the published normalisation."""
    return bool(normalised(given)) and normalised(given) in {normalised(text) for text in (gold.answer, *gold.aliases)}


def _latin(gold: Gold) -> bool:
    """Whether case and articles matter in the answer."""
    return gold.answer.isascii() and any(mark.isalpha() for mark in gold.answer)


def _verdict(gold: Gold, yes: str, no: str) -> str:
    return no if gold.opposite == "yes" else yes


def _grouped(gold: Gold, comma: str) -> str | None:
    """Write a number of at least a thousand with its digits in groups of three."""
    if abs(gold.value) < 1000:
        return None
    whole, point, rest = decimal(gold.value).partition(".")
    return f"{int(whole):,}".replace(",", comma) + point + rest


def _the_answer_in_chinese(gold: Gold) -> str:
    """Write the answer as a Chinese sentence."""
    said = gold.answer if gold.answer.strip().lower() not in ("yes", "no") else _verdict(gold, "是", "否")
    return f"答案：{said}。"


def _chinese_numerals(gold: Gold) -> str | None:
    """Write a whole number in Chinese numerals."""
    whole = gold.whole
    if whole is None or abs(whole) > MOST_CHINESE:
        return None
    return ("负" if whole < 0 else "") + chinese(abs(whole))


def _english_words(gold: Gold) -> str | None:
    """Write a whole number in English words."""
    whole = gold.whole
    if whole is None or abs(whole) > MOST_ENGLISH:
        return None
    return ("minus " if whole < 0 else "") + english(abs(whole))


def _fraction_in_latex(gold: Gold) -> str | None:
    """Write a positive number that is not whole as a LaTeX fraction."""
    if gold.whole is not None or gold.value < 0:
        return None
    return rf"\frac{{{gold.value.numerator}}}{{{gold.value.denominator}}}"


def _alias(gold: Gold) -> str | None:
    """Return an alias of the gold answer; for a number, only one that is plainly its value."""
    numbers = number(gold.answer) is not None
    return next((text for text in gold.aliases if not numbers or number(text) == number(gold.answer)), None)


def _kind(name: str, sentence: str, forms: tuple[Form, ...], write: Callable[[Gold], str | None]) -> Kind:
    return Kind(name, sentence, forms, lambda gold, _: write(gold))


_KINDS = (
    _kind("as_given", "The gold answer itself", ALL, lambda gold: gold.answer),
    _kind("blanks_around", "With blanks and a line break around it", ALL, lambda gold: f"  {gold.answer} \n"),
    _kind("full_stop", "With a full stop", ALL, lambda gold: f"{gold.answer}."),
    _kind("bold", "In bold, as Markdown", ALL, lambda gold: f"**{gold.answer}**"),
    _kind("italics", "In italics, as Markdown", ALL, lambda gold: f"*{gold.answer}*"),
    _kind("code", "As code, in Markdown", ALL, lambda gold: f"`{gold.answer}`"),
    _kind("double_quotes", "In double quotes", ALL, lambda gold: f'"{gold.answer}"'),
    _kind("dollars_around", "As a LaTeX formula in a line", ALL, lambda gold: f"${gold.answer}$"),
    _kind("boxed", r"In LaTeX's `\boxed{}`, as MATH and its descendants ask for it", NUMBERS_VERDICTS,
        lambda gold: rf"\boxed{{{gold.answer}}}"),
    _kind("the_answer_is", "As a sentence: The answer is X", NUMBERS_VERDICTS,
        lambda gold: f"The answer is {gold.answer}."),
    _kind("final_answer", "After the words 'Final answer'", NUMBERS_VERDICTS,
        lambda gold: f"Final answer: {gold.answer}"),
    _kind("the_answer_in_chinese", "As a Chinese sentence", NUMBERS_VERDICTS, _the_answer_in_chinese),
    _kind("decimal_zero", "A whole number with a decimal point and a zero", NUMBERS,
        lambda gold: f"{gold.whole}.0" if gold.whole is not None else None),
    _kind("trailing_zero", "A decimal with one more zero at its end", NUMBERS,
        lambda gold: f"{gold.answer}0" if "." in gold.answer else None),
    _kind("leading_plus", "A positive number with its sign", NUMBERS,
        lambda gold: f"+{decimal(gold.value)}" if gold.value > 0 else None),
    _kind("thousands_commas", "With commas between the thousands", NUMBERS, lambda gold: _grouped(gold, ",")),
    _kind("thousands_in_latex", "With LaTeX's commas between the thousands", NUMBERS,
        lambda gold: _grouped(gold, "{,}")),
    _kind("thousands_by_blanks", "With narrow no-break blanks between the thousands, as ISO 80000-1 writes them",
        NUMBERS,
        lambda gold: _grouped(gold, "\u202f")),
    _kind("full_width", "In full-width digits, as Chinese input methods write them", NUMBERS,
        lambda gold: gold.answer.translate(_FULL_WIDTH)),
    _kind("chinese_numerals", "A whole number in Chinese numerals", NUMBERS, _chinese_numerals),
    _kind("english_words", "A whole number in English words", NUMBERS, _english_words),
    _kind("equals_sign", "After an equals sign", NUMBERS, lambda gold: f"= {gold.answer}"),
    _kind("variable", "As the value of a variable", NUMBERS, lambda gold: f"x = {gold.answer}"),
    _kind("hash_marks", "After the four hash marks of GSM8K's own solutions", NUMBERS,
        lambda gold: f"#### {gold.answer}"),
    _kind("with_currency", "With a dollar sign before it", NUMBERS,
        lambda gold: f"${gold.answer}" if gold.value >= 0 else None),
    _kind("with_unit", "With a unit after it", NUMBERS, lambda gold: f"{gold.answer} apples"),
    _kind("with_chinese_unit", "With the Chinese word for all in all before it, and a measure word after it", NUMBERS,
        lambda gold: f"共{gold.answer}个。" if gold.value >= 0 else None),
    _kind("whole_sentence", "As a whole sentence that names no other number", NUMBERS,
        lambda gold: f"So there are {gold.answer} apples left."),
    _kind("worked_sum", "As the result of a worked sum", NUMBERS,
        lambda gold: f"{gold.whole - 1} + 1 = {gold.whole}" if gold.whole is not None and gold.whole > 2 else None),
    _kind("latex_parentheses", "As a LaTeX formula in its parentheses", NUMBERS, lambda gold: rf"\({gold.answer}\)"),
    _kind("power_of_ten", "A large whole number as a power of ten", NUMBERS,
        lambda gold: f"{decimal(gold.value / 1000)} × 10^3"
        if gold.whole is not None and abs(gold.whole) >= 1000 else None),
    _kind("exponent", "A large whole number with an exponent, as programs print it", NUMBERS,
        lambda gold: f"{decimal(gold.value / 1000)}e3" if gold.whole is not None and abs(gold.whole) >= 1000 else None),
    _kind("magnitude_word", "Whole millions with the word", NUMBERS,
        lambda gold: f"{gold.whole // 10**6} million"
        if gold.whole is not None and gold.whole > 0 and gold.whole % 10**6 == 0 else None),
    _kind("fraction", "A number that is not whole as a fraction", NUMBERS,
        lambda gold: f"{gold.value.numerator}/{gold.value.denominator}" if gold.whole is None else None),
    _kind("fraction_in_latex", "A positive number that is not whole as a LaTeX fraction", NUMBERS, _fraction_in_latex),
    _kind("typeset_minus", "A negative number with the minus sign of typesetting (U+2212)", NUMBERS,
        lambda gold: f"\u2212{decimal(-gold.value)}" if gold.value < 0 else None),
    _kind("minus_in_words", "A negative number with the word minus", NUMBERS,
        lambda gold: f"minus {decimal(-gold.value)}" if gold.value < 0 else None),
    _kind("alias", "An alias of the gold answer; of a number only one that is plainly its value",
        NUMBERS_TEXTS, _alias),
    _kind("lower_case", "In small letters", VERDICTS_TEXTS, lambda gold: gold.answer.lower() if _latin(gold) else None),
    _kind("upper_case", "In capitals", VERDICTS_TEXTS, lambda gold: gold.answer.upper() if _latin(gold) else None),
    _kind("first_capital", "With a capital at its start", VERDICTS_TEXTS,
        lambda gold: gold.answer[:1].upper() + gold.answer[1:] if _latin(gold) else None),
    _kind("exclamation_mark", "With an exclamation mark", VERDICTS_TEXTS, lambda gold: f"{gold.answer}!"),
    _kind("single_quotes", "In single quotes", VERDICTS_TEXTS, lambda gold: f"'{gold.answer}'"),
    _kind("in_parentheses", "In parentheses", VERDICTS_TEXTS, lambda gold: f"({gold.answer})"),
    _kind("swapped_case", "With small letters for capitals, and capitals for small letters", TEXTS,
        lambda gold: gold.answer.swapcase() if _latin(gold) else None),
    _kind("definite_article", "With 'the' before it", TEXTS,
        lambda gold: f"the {gold.answer}" if _latin(gold) else None),
    _kind("indefinite_article", "With 'a' before it", TEXTS, lambda gold: f"a {gold.answer}" if _latin(gold) else None),
    _kind("capital_article", "With 'The' before it and a full stop after it", TEXTS,
        lambda gold: f"The {gold.answer}." if _latin(gold) else None),
    _kind("square_brackets", "In square brackets", TEXTS, lambda gold: f"[{gold.answer}]"),
    _kind("underscores", "In underscores, which Markdown reads as italics", TEXTS, lambda gold: f"_{gold.answer}_"),
    _kind("heading", "As a heading, in Markdown", TEXTS, lambda gold: f"# {gold.answer}"),
    _kind("list_mark", "After the mark of a list, in Markdown", TEXTS, lambda gold: f"- {gold.answer}"),
    _kind("quoted_line", "As a quotation, in Markdown", TEXTS, lambda gold: f"> {gold.answer}"),
    _kind("comma_after", "With a comma after it", TEXTS, lambda gold: f"{gold.answer},"),
    _kind("colon_before", "After a colon", TEXTS, lambda gold: f": {gold.answer}"),
    _kind("question_mark", "With a question mark, which is punctuation to the published normalisation", TEXTS,
        lambda gold: f"{gold.answer}?"),
    _kind("tabs_around", "With tabs around it", TEXTS, lambda gold: f"\t{gold.answer}\t"),
    _kind("doubled_blanks", "With two blanks for each one", TEXTS,
        lambda gold: gold.answer.replace(" ", "  ") if " " in gold.answer else None),
    _kind("without_full_stops", "Initials and abbreviations without their full stops", TEXTS,
        lambda gold: gold.answer.replace(".", "")
        if "." in gold.answer and not any(map(str.isdigit, gold.answer)) else None),
    _kind("without_hyphens", "Compounds without their hyphens, which the published normalisation deletes", TEXTS,
        lambda gold: gold.answer.replace("-", "")
        if "-" in gold.answer and not any(map(str.isdigit, gold.answer)) else None),
    _kind("short_statement", "Yes, it is; no, it is not", VERDICTS,
        lambda gold: _verdict(gold, "Yes, it is.", "No, it is not.")),
    _kind("with_reason", "With a reason after it", VERDICTS,
        lambda gold: f"{gold.answer.capitalize()}, because the first one is older than the second."),
    _kind("true_or_false", "As a truth value", VERDICTS, lambda gold: _verdict(gold, "true", "false")),
    _kind("capital_true_or_false", "As a truth value of Python", VERDICTS,
        lambda gold: _verdict(gold, "True", "False")),
    _kind("it_is_true", "It is true; it is false", VERDICTS,
        lambda gold: _verdict(gold, "It is true.", "It is false.")),
    _kind("correct", "Correct; incorrect", VERDICTS, lambda gold: _verdict(gold, "Correct", "Incorrect")),
    _kind("in_short", "After the words 'in short'", VERDICTS, lambda gold: f"In short: {gold.answer}."),
    _kind("so", "After the word 'so'", VERDICTS, lambda gold: f"So {gold.answer}."),
    _kind("chinese_word", "In Chinese, one character", VERDICTS, lambda gold: _verdict(gold, "是", "否")),
    _kind("chinese_sentence", "In Chinese, with its particle or verb, and a full stop", VERDICTS,
        lambda gold: _verdict(gold, "是的。", "不是。")),
    _kind("chinese_right_or_wrong", "In Chinese, right or not right", VERDICTS,
        lambda gold: _verdict(gold, "对", "不对")),
    _kind("chinese_correct", "In Chinese, correct or incorrect", VERDICTS,
        lambda gold: _verdict(gold, "正确", "不正确")),
    _kind("chinese_can", "In Chinese, can or cannot", VERDICTS, lambda gold: _verdict(gold, "能", "不能")),
    _kind("chinese_will", "In Chinese, will or will not", VERDICTS, lambda gold: _verdict(gold, "会", "不会")),
    _kind("chinese_with_reason", "In Chinese, with a reason after it", VERDICTS,
        lambda gold: _verdict(gold, "是的，因为第一个更早。", "不是，因为第一个更晚。")),
)  # fmt: skip
SPELLINGS: dict[str, Kind] = {kind.name: kind for kind in _KINDS}


# Whole numbers in words: English, and Chinese numerals.

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**6, "million"), (10**3, "thousand"))
MOST_ENGLISH, MOST_CHINESE = 10**9 - 1, 10**8 - 1
_DIGITS = "零一二三四五六七八九"
_UNITS = ("", "十", "百", "千")


def english(number: int) -> str:
    """Write a number from 0 to `MOST_ENGLISH` in words: `one thousand two hundred five`, `seventy-two`."""
    parts = []
    for scale, word in _SCALES:
        if number >= scale:
            parts.append(f"{english(number // scale)} {word}")
            number %= scale
    if number >= 100:
        parts.append(f"{_SMALL[number // 100]} hundred")
        number %= 100
    if number >= 20:
        ones = f"-{_SMALL[number % 10]}" if number % 10 else ""
        parts.append(_TENS[number // 10] + ones)
    elif number or not parts:
        parts.append(_SMALL[number])
    return " ".join(parts)


def chinese(number: int) -> str:
    """Write a number from 0 to `MOST_CHINESE` in Chinese numerals: `七十二`, `一千二百零五`, `一万零三百`."""
    if number >= 10**4:
        high, low = divmod(number, 10**4)
        gap = "零" if 0 < low < 1000 else ""
        return f"{chinese(high)}万{gap}{_four(low) if low else ''}"
    written = _four(number) if number else "零"
    return written.removeprefix("一") if written.startswith("一十") else written


def _four(number: int) -> str:
    """Write up to four digits; inner zeros are written once, trailing zeros not at all."""
    written, zero = "", False
    for place in (3, 2, 1, 0):
        digit = number // 10**place % 10
        if digit:
            written += ("零" if zero and written else "") + _DIGITS[digit] + _UNITS[place]
        zero = digit == 0
    return written
