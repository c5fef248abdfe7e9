"""Sound rules pass the check; a planted fault fails exactly the kinds of answers that it affects."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import orjson
import pytest

from rc1_lib.answer_rules.check import Rule, RuleReport, ask_rule
from rc1_lib.answer_rules.golds import Form, Gold, form_of, gold_of, sample
from rc1_lib.answer_rules.spellings import SPELLINGS, chinese, english, right_answers
from rc1_lib.answer_rules.wrong_answers import EMPTY, LIST, PAGE, WRONG_ANSWERS, wrong_answers
from tests.answer_rules import plain_rules as rules

PAGE_TEXT = "Nobody on the river in the valley saw the old mill burn in the night before the fair. " * 8
NUMBERS = ("0", "1", "2", "-2", "5", "-5", "10", "11", "72", "100", "144", "0.5", "3.25", "1200", "1000000", "12345.5")
NAMES = (
    "Paris", "J.K. Rowling", "The Beatles", "Jay-Z", "New York City", "yes", "1984", "阿尔伯特湖", "U.S.",
    "Saint Lucia",
)  # fmt: skip
VERDICTS = ("yes", "no")


def golds(*answers: str) -> list[Gold]:
    return [Gold(answer, (), f"What is asked in question {at}?", PAGE_TEXT) for at, answer in enumerate(answers)]


def asked(rule: Rule, *answers: str) -> RuleReport:
    return ask_rule(rule, sample(golds(*answers), 200, 7))


def failed(report: RuleReport) -> set[str]:
    return {one.kind.name for one in report.kinds if one.rate.failed}


@pytest.mark.parametrize(
    ("rule", "answers", "form"),
    [
        (rules.sound_number, NUMBERS, Form.NUMBER),
        (rules.sound_text, NAMES, Form.TEXT),
        (rules.sound_verdict, VERDICTS, Form.VERDICT),
    ],
    ids=["numbers", "names", "verdicts"],
)
def test_sound_rule_pays_every_spelling_and_no_wrong_answer(rule: Rule, answers: tuple[str, ...], form: Form) -> None:
    report = asked(rule, *answers)
    assert report.form is form
    assert [(one.kind, one.given, one.gold.answer, one.error) for one in report.offences] == []
    for right, library in ((True, SPELLINGS), (False, WRONG_ANSWERS)):
        applied = {one.kind.name for one in report.kinds if one.right is right}
        assert applied == {name for name, kind in library.items() if form in kind.forms} - {"alias"}
        assert len(applied) >= 20


@pytest.mark.parametrize(
    ("rule", "answers", "kinds", "never"),
    [
        (rules.first_number, NUMBERS, {"not_it", "more_than", "first_of_a_sum", "two_answers"}, {LIST}),
        (rules.last_number, NUMBERS, {"not_it", "two_answers_turned", "it_is_not"}, {LIST}),
        (rules.empty_is_right, NAMES, {"empty"}, {EMPTY}),
        (rules.long_is_right, NAMES, {"longest_page", "page_and_answer"}, {PAGE}),
        (rules.holds_it, NAMES, {"all_candidates", "not_it", "with_another_word", "two_names"}, {LIST}),
        (rules.one_of_a_list, NAMES, {"all_candidates", "a_name_after_it"}, {LIST}),
        (rules.deaf_to_not, NAMES, {"not_it"}, set()),
        (rules.deaf_to_signs, NUMBERS, {"other_sign", "typeset_other_sign"}, set()),
        (rules.near_enough, NUMBERS, {"one_more", "one_less"}, set()),
        (rules.no_chinese, VERDICTS, {"chinese_word", "chinese_sentence", "the_answer_in_chinese"}, set()),
        (rules.case_counts, NAMES, {"upper_case", "swapped_case"}, set()),
        (rules.as_programs_read, NUMBERS, {"thousands_commas", "bold", "boxed", "with_unit"}, set()),
        (rules.first_word, VERDICTS, {"yes_or_no", "then_the_opposite", "no_answer"}, {LIST}),
        (rules.anything, NUMBERS, set(WRONG_ANSWERS) & {"empty", "blanks", "longest_page"}, {EMPTY, PAGE, LIST}),
        (rules.nothing, VERDICTS, {"as_given", "full_stop"}, set()),
    ],
)  # fmt: skip
def test_planted_fault_fails_the_kinds_that_it_affects(
    rule: Rule, answers: tuple[str, ...], kinds: set[str], never: set[str]
) -> None:
    report = asked(rule, *answers)
    assert failed(report) >= kinds
    assert {name for name, (_, paid) in report.never().items() if paid} >= never
    wrongly = report.wrong_paid.failed + report.right_refused.failed
    assert wrongly == len([one for one in report.offences if not one.error]) > 0


def test_rule_that_raises_is_counted_as_broken_and_pays_nothing() -> None:
    report = asked(rules.breaks_on_nothing, *NAMES)
    assert report.broken == 2 * len(NAMES)
    assert {(one.kind, one.error) for one in report.offences} == {
        (kind, "IndexError: string index out of range") for kind in ("empty", "blanks")
    }
    assert report.wrong_paid.failed == 0


@pytest.mark.parametrize("answer", NUMBERS)
def test_wrong_answers_for_a_number_never_equal_it(answer: str) -> None:
    """A generator is skipped if it would leave the number as it is: another sign of 0, one digit less of 0."""
    gold, others = Gold(answer, (), "?", PAGE_TEXT), golds(*(one for one in NUMBERS if one != answer))
    given = dict((kind.name, text) for kind, text in wrong_answers(gold, others, Form.NUMBER))
    assert all(rules.value(text) != Fraction(answer) for text in given.values())
    assert ("other_sign" in given) is (answer != "0")
    assert ("digit_dropped" in given) is (abs(Fraction(answer)) >= 10 and "." not in answer)
    assert {rules.value(text) for kind, text in right_answers(gold, Form.NUMBER)} == {Fraction(answer)}


def test_possibly_right_answers_are_not_generated_as_wrong() -> None:
    gold = Gold("Barack Obama", ("Obama", "President Obama"), "Who?", "")
    given = dict((kind.name, text) for kind, text in wrong_answers(gold, golds("obama", "Ann Lee"), Form.TEXT))
    assert "last_part" not in given and given["first_part"] == "Barack"
    assert given["another_gold"] == "Ann Lee"
    undecided = {kind.name for kind, _ in wrong_answers(Gold("Cannot be determined"), golds("Ann Lee"), Form.TEXT)}
    assert not undecided & {"unknown", "cannot_be_determined", "unknown_in_chinese"}


@pytest.mark.parametrize(
    ("answers", "form"),
    [
        (("1", "-2.5", "1,200", ".5"), Form.NUMBER),
        (("yes", "No"), Form.VERDICT),
        (("yes", "no", "maybe"), Form.TEXT),
        (("1", "two"), Form.TEXT),
        (("1,20",), Form.TEXT),
    ],
)
def test_form_is_inferred_from_the_golds(answers: tuple[str, ...], form: Form) -> None:
    assert form_of(answers) is form


def test_sample_of_golds_is_even_and_reproducible() -> None:
    many = golds(*(str(number) for number in range(1000)), "7", "7")
    drawn = sample(many, 50, 3)
    assert (drawn.distinct, len(drawn.golds)) == (1000, 50)
    assert [int(gold.answer) // 20 for gold in drawn.golds] == list(range(50))
    assert drawn == sample(many, 50, 3) != sample(many, 50, 4)
    assert sample(golds("!!!", "Paris"), 50, 3).distinct == 1, "the published normalisation empties the first gold"


@pytest.mark.parametrize(
    ("number", "words", "numerals"),
    [
        (0, "zero", "零"), (10, "ten", "十"), (15, "fifteen", "十五"), (72, "seventy-two", "七十二"),
        (105, "one hundred five", "一百零五"), (110, "one hundred ten", "一百一十"),
        (1005, "one thousand five", "一千零五"), (1050, "one thousand fifty", "一千零五十"),
        (10300, "ten thousand three hundred", "一万零三百"), (12000, "twelve thousand", "一万二千"),
        (120000, "one hundred twenty thousand", "十二万"), (100001, "one hundred thousand one", "十万零一"),
        (2000000, "two million", "二百万"),
    ],
)  # fmt: skip
def test_numbers_are_spelled_out_in_english_and_chinese(number: int, words: str, numerals: str) -> None:
    assert (english(number), chinese(number)) == (words, numerals)
    assert rules.value(words) == rules.value(numerals) == number


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (72, "expected the text of an answer"),
        ({"answer": 72}, "write a number as '72'"),
        ({"answer": "72", "aliases": "seventy-two"}, "a list of texts"),
    ],
)
def test_invalid_gold_is_rejected(given: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        gold_of(given)


@pytest.mark.parametrize("task", ["gsm8k", "hotpotqa"])
def test_sound_rules_are_right_about_every_public_gold(task: str, shared_data: Path) -> None:
    """Generated spellings are right and generated wrong answers are wrong for thousands of golds, not only for ours."""
    if task == "gsm8k":
        rule: Rule = rules.sound_number
        said = (orjson.loads(line)["answer"] for line in (shared_data / "gsm8k/train.jsonl").open("rb"))
        answers = {text.rpartition("####")[2].strip().replace(",", "") for text in said}
    else:
        rule = rules.sound_text
        lines = (shared_data / "hotpotqa/distractor_masarena_aflow_validate.jsonl").open("rb")
        answers = {orjson.loads(line)["answer"] for line in lines}
    report = ask_rule(rule, sample([Gold(answer) for answer in sorted(answers)], 10_000, 7))
    assert report.used == len(answers) > 100
    assert [(one.kind, one.given, one.gold.answer) for one in report.offences] == []


def test_page_that_ends_in_the_answer_is_not_used_as_a_wrong_answer() -> None:
    """A rule that reads the last number may pay that page; a page that ends in another number stays a wrong answer."""
    by_chance = Gold("25", (), "What did the meal cost?", "Three samosas cost $2 each. She left a 25% tip.")
    other = Gold("25", (), "What did the meal cost?", "She left a 25% tip for three samosas at $2 each.")
    kinds = [{kind.name for kind, _ in wrong_answers(gold, golds("7"), Form.NUMBER)} for gold in (by_chance, other)]
    assert "longest_page" not in kinds[0] and "longest_page" in kinds[1] and "page_and_answer" in kinds[0]
