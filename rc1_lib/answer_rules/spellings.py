"""Known-right spellings: one short function each, with a name and a sentence.

Numbers and verdicts are spelled as people and models write them; each is one definite value and nothing else. Texts are
changed only where the published normalisation of HotpotQA (Yang et al., 2018: lower case, ASCII punctuation deleted,
articles removed, white space collapsed) calls them the same; a generated text for which it does not is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rc1_lib.answer_rules.golds import ALL, Form, Gold, Kind, decimal, normalised, number
from rc1_lib.answer_rules.written_numbers import MOST_CHINESE, MOST_ENGLISH, chinese, english

NUMBER, VERDICT, TEXT = Form.NUMBER, Form.VERDICT, Form.TEXT
Spelling = Callable[[Gold], str | None]
SPELLINGS: dict[str, Kind] = {}
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


def spelling(*forms: Form) -> Callable[[Spelling], Spelling]:
    """Add a function to the library under its own name, with its docstring as the sentence."""

    def put(write: Spelling) -> Spelling:
        def make(gold: Gold, _: Sequence[Gold]) -> str | None:
            return write(gold)

        SPELLINGS[write.__name__] = Kind(write.__name__, (write.__doc__ or "").strip().rstrip("."), forms, make)
        return write

    return put


def right_answers(gold: Gold, form: Form) -> list[tuple[Kind, str]]:
    """Every known-right spelling of a gold, with its kind."""
    made = ((kind, kind.make(gold, ())) for kind in SPELLINGS.values() if form in kind.forms)
    return [(kind, given) for kind, given in made if given is not None and (form is not TEXT or _kept(given, gold))]


def _kept(given: str, gold: Gold) -> bool:
    """Whether the published normalisation calls a text the same as the gold or one of its aliases."""
    return bool(normalised(given)) and normalised(given) in {normalised(text) for text in (gold.answer, *gold.aliases)}


def _latin(gold: Gold) -> bool:
    """Whether case and articles mean anything to the answer."""
    return gold.answer.isascii() and any(mark.isalpha() for mark in gold.answer)


@spelling(*ALL)
def as_given(gold: Gold) -> str:
    """The gold answer itself."""
    return gold.answer


@spelling(*ALL)
def blanks_around(gold: Gold) -> str:
    """With blanks and a line break around it."""
    return f"  {gold.answer} \n"


@spelling(*ALL)
def full_stop(gold: Gold) -> str:
    """With a full stop."""
    return f"{gold.answer}."


@spelling(*ALL)
def bold(gold: Gold) -> str:
    """In bold, as Markdown."""
    return f"**{gold.answer}**"


@spelling(*ALL)
def italics(gold: Gold) -> str:
    """In italics, as Markdown."""
    return f"*{gold.answer}*"


@spelling(*ALL)
def code(gold: Gold) -> str:
    """As code, in Markdown."""
    return f"`{gold.answer}`"


@spelling(*ALL)
def double_quotes(gold: Gold) -> str:
    """In double quotes."""
    return f'"{gold.answer}"'


@spelling(*ALL)
def dollars_around(gold: Gold) -> str:
    """As a LaTeX formula in a line."""
    return f"${gold.answer}$"


@spelling(NUMBER, VERDICT)
def boxed(gold: Gold) -> str:
    r"""In LaTeX's `\boxed{}`, as MATH and its descendants ask for it."""
    return rf"\boxed{{{gold.answer}}}"


@spelling(NUMBER, VERDICT)
def the_answer_is(gold: Gold) -> str:
    """As a sentence: The answer is X."""
    return f"The answer is {gold.answer}."


@spelling(NUMBER, VERDICT)
def final_answer(gold: Gold) -> str:
    """After the words 'Final answer'."""
    return f"Final answer: {gold.answer}"


@spelling(NUMBER, VERDICT)
def the_answer_in_chinese(gold: Gold) -> str:
    """As a Chinese sentence."""
    said = gold.answer if gold.answer.strip().lower() not in ("yes", "no") else _verdict(gold, "是", "否")
    return f"答案：{said}。"


@spelling(NUMBER)
def decimal_zero(gold: Gold) -> str | None:
    """A whole number with a decimal point and a zero."""
    return f"{gold.whole}.0" if gold.whole is not None else None


@spelling(NUMBER)
def trailing_zero(gold: Gold) -> str | None:
    """A decimal with one more zero at its end."""
    return f"{gold.answer}0" if "." in gold.answer else None


@spelling(NUMBER)
def leading_plus(gold: Gold) -> str | None:
    """A positive number with its sign."""
    return f"+{decimal(gold.value)}" if gold.value > 0 else None


@spelling(NUMBER)
def thousands_commas(gold: Gold) -> str | None:
    """With commas between the thousands."""
    return _grouped(gold, ",")


@spelling(NUMBER)
def thousands_in_latex(gold: Gold) -> str | None:
    """With LaTeX's commas between the thousands."""
    return _grouped(gold, "{,}")


@spelling(NUMBER)
def thousands_by_blanks(gold: Gold) -> str | None:
    """With narrow no-break blanks between the thousands, as ISO 80000-1 writes them."""
    return _grouped(gold, "\u202f")


@spelling(NUMBER)
def full_width(gold: Gold) -> str:
    """In full-width digits, as Chinese input methods write them."""
    return gold.answer.translate(_FULL_WIDTH)


@spelling(NUMBER)
def chinese_numerals(gold: Gold) -> str | None:
    """A whole number in Chinese numerals."""
    whole = gold.whole
    if whole is None or abs(whole) > MOST_CHINESE:
        return None
    return ("负" if whole < 0 else "") + chinese(abs(whole))


@spelling(NUMBER)
def english_words(gold: Gold) -> str | None:
    """A whole number in English words."""
    whole = gold.whole
    if whole is None or abs(whole) > MOST_ENGLISH:
        return None
    return ("minus " if whole < 0 else "") + english(abs(whole))


@spelling(NUMBER)
def equals_sign(gold: Gold) -> str:
    """After an equals sign."""
    return f"= {gold.answer}"


@spelling(NUMBER)
def variable(gold: Gold) -> str:
    """As the value of a variable."""
    return f"x = {gold.answer}"


@spelling(NUMBER)
def hash_marks(gold: Gold) -> str:
    """After the four hash marks of GSM8K's own solutions."""
    return f"#### {gold.answer}"


@spelling(NUMBER)
def with_currency(gold: Gold) -> str | None:
    """With a dollar sign before it."""
    return f"${gold.answer}" if gold.value >= 0 else None


@spelling(NUMBER)
def with_unit(gold: Gold) -> str:
    """With a unit after it."""
    return f"{gold.answer} apples"


@spelling(NUMBER)
def with_chinese_unit(gold: Gold) -> str | None:
    """With the Chinese word for all in all before it, and a measure word after it."""
    return f"共{gold.answer}个。" if gold.value >= 0 else None


@spelling(NUMBER)
def whole_sentence(gold: Gold) -> str:
    """As a whole sentence that names no other number."""
    return f"So there are {gold.answer} apples left."


@spelling(NUMBER)
def worked_sum(gold: Gold) -> str | None:
    """As the result of a worked sum."""
    whole = gold.whole
    return f"{whole - 1} + 1 = {whole}" if whole is not None and whole > 2 else None


@spelling(NUMBER)
def latex_parentheses(gold: Gold) -> str:
    """As a LaTeX formula in its parentheses."""
    return rf"\({gold.answer}\)"


@spelling(NUMBER)
def power_of_ten(gold: Gold) -> str | None:
    """A large whole number as a power of ten."""
    whole = gold.whole
    return f"{decimal(gold.value / 1000)} × 10^3" if whole is not None and abs(whole) >= 1000 else None


@spelling(NUMBER)
def exponent(gold: Gold) -> str | None:
    """A large whole number with an exponent, as programs print it."""
    whole = gold.whole
    return f"{decimal(gold.value / 1000)}e3" if whole is not None and abs(whole) >= 1000 else None


@spelling(NUMBER)
def magnitude_word(gold: Gold) -> str | None:
    """Whole millions with the word."""
    whole = gold.whole
    return f"{whole // 10**6} million" if whole is not None and whole > 0 and whole % 10**6 == 0 else None


@spelling(NUMBER)
def fraction(gold: Gold) -> str | None:
    """A number that is not whole as a fraction."""
    return f"{gold.value.numerator}/{gold.value.denominator}" if gold.whole is None else None


@spelling(NUMBER)
def fraction_in_latex(gold: Gold) -> str | None:
    """A positive number that is not whole as a LaTeX fraction."""
    if gold.whole is not None or gold.value < 0:
        return None
    return rf"\frac{{{gold.value.numerator}}}{{{gold.value.denominator}}}"


@spelling(NUMBER)
def typeset_minus(gold: Gold) -> str | None:
    """A negative number with the minus sign of typesetting (U+2212)."""
    return f"\u2212{decimal(-gold.value)}" if gold.value < 0 else None


@spelling(NUMBER)
def minus_in_words(gold: Gold) -> str | None:
    """A negative number with the word minus."""
    return f"minus {decimal(-gold.value)}" if gold.value < 0 else None


@spelling(NUMBER, TEXT)
def alias(gold: Gold) -> str | None:
    """An alias of the gold answer; of a number only one that is plainly its value."""
    numbers = number(gold.answer) is not None
    return next((text for text in gold.aliases if not numbers or number(text) == number(gold.answer)), None)


@spelling(VERDICT, TEXT)
def lower_case(gold: Gold) -> str | None:
    """In small letters."""
    return gold.answer.lower() if _latin(gold) else None


@spelling(VERDICT, TEXT)
def upper_case(gold: Gold) -> str | None:
    """In capitals."""
    return gold.answer.upper() if _latin(gold) else None


@spelling(VERDICT, TEXT)
def first_capital(gold: Gold) -> str | None:
    """With a capital at its start."""
    return gold.answer[:1].upper() + gold.answer[1:] if _latin(gold) else None


@spelling(VERDICT, TEXT)
def exclamation_mark(gold: Gold) -> str:
    """With an exclamation mark."""
    return f"{gold.answer}!"


@spelling(VERDICT, TEXT)
def single_quotes(gold: Gold) -> str:
    """In single quotes."""
    return f"'{gold.answer}'"


@spelling(VERDICT, TEXT)
def in_parentheses(gold: Gold) -> str:
    """In parentheses."""
    return f"({gold.answer})"


@spelling(TEXT)
def swapped_case(gold: Gold) -> str | None:
    """With small letters for capitals, and capitals for small letters."""
    return gold.answer.swapcase() if _latin(gold) else None


@spelling(TEXT)
def definite_article(gold: Gold) -> str | None:
    """With 'the' before it."""
    return f"the {gold.answer}" if _latin(gold) else None


@spelling(TEXT)
def indefinite_article(gold: Gold) -> str | None:
    """With 'a' before it."""
    return f"a {gold.answer}" if _latin(gold) else None


@spelling(TEXT)
def capital_article(gold: Gold) -> str | None:
    """With 'The' before it and a full stop after it."""
    return f"The {gold.answer}." if _latin(gold) else None


@spelling(TEXT)
def square_brackets(gold: Gold) -> str:
    """In square brackets."""
    return f"[{gold.answer}]"


@spelling(TEXT)
def underscores(gold: Gold) -> str:
    """In underscores, which Markdown reads as italics."""
    return f"_{gold.answer}_"


@spelling(TEXT)
def heading(gold: Gold) -> str:
    """As a heading, in Markdown."""
    return f"# {gold.answer}"


@spelling(TEXT)
def list_mark(gold: Gold) -> str:
    """After the mark of a list, in Markdown."""
    return f"- {gold.answer}"


@spelling(TEXT)
def quoted_line(gold: Gold) -> str:
    """As a quotation, in Markdown."""
    return f"> {gold.answer}"


@spelling(TEXT)
def comma_after(gold: Gold) -> str:
    """With a comma after it."""
    return f"{gold.answer},"


@spelling(TEXT)
def colon_before(gold: Gold) -> str:
    """After a colon."""
    return f": {gold.answer}"


@spelling(TEXT)
def question_mark(gold: Gold) -> str:
    """With a question mark, which is punctuation to the published normalisation."""
    return f"{gold.answer}?"


@spelling(TEXT)
def tabs_around(gold: Gold) -> str:
    """With tabs around it."""
    return f"\t{gold.answer}\t"


@spelling(TEXT)
def doubled_blanks(gold: Gold) -> str | None:
    """With two blanks for each one."""
    return gold.answer.replace(" ", "  ") if " " in gold.answer else None


@spelling(TEXT)
def without_full_stops(gold: Gold) -> str | None:
    """Initials and abbreviations without their full stops."""
    return gold.answer.replace(".", "") if "." in gold.answer and not any(map(str.isdigit, gold.answer)) else None


@spelling(TEXT)
def without_hyphens(gold: Gold) -> str | None:
    """Compounds without their hyphens, which the published normalisation deletes."""
    return gold.answer.replace("-", "") if "-" in gold.answer and not any(map(str.isdigit, gold.answer)) else None


@spelling(VERDICT)
def short_statement(gold: Gold) -> str:
    """Yes, it is; no, it is not."""
    return _verdict(gold, "Yes, it is.", "No, it is not.")


@spelling(VERDICT)
def with_reason(gold: Gold) -> str:
    """With a reason after it."""
    return f"{gold.answer.capitalize()}, because the first one is older than the second."


@spelling(VERDICT)
def true_or_false(gold: Gold) -> str:
    """As a truth value."""
    return _verdict(gold, "true", "false")


@spelling(VERDICT)
def capital_true_or_false(gold: Gold) -> str:
    """As a truth value of Python."""
    return _verdict(gold, "True", "False")


@spelling(VERDICT)
def it_is_true(gold: Gold) -> str:
    """It is true; it is false."""
    return _verdict(gold, "It is true.", "It is false.")


@spelling(VERDICT)
def correct(gold: Gold) -> str:
    """Correct; incorrect."""
    return _verdict(gold, "Correct", "Incorrect")


@spelling(VERDICT)
def in_short(gold: Gold) -> str:
    """After the words 'in short'."""
    return f"In short: {gold.answer}."


@spelling(VERDICT)
def so(gold: Gold) -> str:
    """After the word 'so'."""
    return f"So {gold.answer}."


@spelling(VERDICT)
def chinese_word(gold: Gold) -> str:
    """In Chinese, one character."""
    return _verdict(gold, "是", "否")


@spelling(VERDICT)
def chinese_sentence(gold: Gold) -> str:
    """In Chinese, with its particle or verb, and a full stop."""
    return _verdict(gold, "是的。", "不是。")


@spelling(VERDICT)
def chinese_right_or_wrong(gold: Gold) -> str:
    """In Chinese, right or not right."""
    return _verdict(gold, "对", "不对")


@spelling(VERDICT)
def chinese_correct(gold: Gold) -> str:
    """In Chinese, correct or incorrect."""
    return _verdict(gold, "正确", "不正确")


@spelling(VERDICT)
def chinese_can(gold: Gold) -> str:
    """In Chinese, can or cannot."""
    return _verdict(gold, "能", "不能")


@spelling(VERDICT)
def chinese_will(gold: Gold) -> str:
    """In Chinese, will or will not."""
    return _verdict(gold, "会", "不会")


@spelling(VERDICT)
def chinese_with_reason(gold: Gold) -> str:
    """In Chinese, with a reason after it."""
    return _verdict(gold, "是的，因为第一个更早。", "不是，因为第一个更晚。")


def _verdict(gold: Gold, yes: str, no: str) -> str:
    return no if gold.opposite == "yes" else yes


def _grouped(gold: Gold, comma: str) -> str | None:
    """A number of at least a thousand with its digits in groups of three."""
    if abs(gold.value) < 1000:
        return None
    whole, point, rest = decimal(gold.value).partition(".")
    return f"{int(whole):,}".replace(",", comma) + point + rest
