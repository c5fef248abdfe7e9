"""Reading replies: scores to the last key, or the reason why there are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.judge.prompt import BadReplyError, read_scores

NAMES = ("answered", "concise")


def _reply(**changes: Any) -> str:
    return json.dumps({"reason": "So.", "answered": 0.25, "concise": 1, **changes})


@pytest.mark.parametrize(
    "text",
    [_reply(), f"\n {_reply()} \n", f"```json\n{_reply()}\n```", f"```\n{_reply()}\n```\n", _reply(answered=0.250)],
)
def test_good_replies(text: str) -> None:
    assert read_scores(text, NAMES) == {"answered": 0.25, "concise": 1.0}


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, 1e-300, 0.5])
def test_the_bounds_belong_to_it(value: float) -> None:
    assert read_scores(_reply(answered=value), NAMES)["answered"] == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not one JSON object"),
        ("I would give it 0.5 throughout.", "is not one JSON object"),
        (_reply()[:-1], "is not one JSON object"),
        (_reply() + _reply(), "is not one JSON object"),
        (f"Here it is: {_reply()}", "is not one JSON object"),
        (f"{_reply()}\nI hope this helps.", "is not one JSON object"),
        (f"```json\n{_reply()}\n```\n```json\n{_reply()}\n```", "is not one JSON object"),
        ("[" * 100_000, "is not one JSON object"),
        (f"[{_reply()}]", "is a JSON list"),
        ("0.5", "is a JSON float"),
        ("null", "is a JSON NoneType"),
        (_reply(answered="0.5"), 'holds answered = "0.5", expected a number'),
        (_reply(answered=True), "holds answered = true, expected a number"),
        (_reply(answered=None), "holds answered = null, expected a number"),
        (_reply(answered=[0.5]), "holds answered = [0.5], expected a number"),
        (_reply(answered=1.7), "holds answered = 1.7, expected a number from 0 to 1"),
        (_reply(answered=-0.01), "holds answered = -0.01, expected a number from 0 to 1"),
        (_reply(answered=float("nan")), "holds NaN"),
        (_reply(answered=float("inf")), "holds Infinity"),
        (_reply().replace("0.25", "1e999"), "holds answered = inf"),
        (_reply().replace("0.25", "1" * 400), "holds answered = 11111111111111111111, expected a number from 0 to 1"),
        (_reply().replace("0.25", "1" * 5000), "is not one JSON object"),
        (_reply(overall=0.5), "holds the unknown overall"),
        (_reply(reason=1), "holds a reason that is no text"),
        ('{"answered": 0.25, "concise": 1}', "lacks reason"),
        ('{"reason": "So.", "concise": 1}', "lacks answered"),
        ('{"reason": "So.", "answered": 0, "concise": 1, "concise": 0}', "names a key twice"),
        ("{}", "lacks answered, concise, reason"),
    ],
)
def test_bad_replies(text: str, why: str) -> None:
    with pytest.raises(BadReplyError) as caught:
        read_scores(text, NAMES)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 500


@given(st.text())
def test_no_text_is_worth_a_score_by_chance(text: str) -> None:
    with pytest.raises(BadReplyError):
        read_scores(text, NAMES)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional={"reason": _JSON, "answered": _JSON, "concise": _JSON, "overall": _JSON}))
def test_only_numbers_from_0_to_1_under_the_right_names_are_scores(body: dict[str, Any]) -> None:
    good = set(body) == {"reason", *NAMES} and isinstance(body["reason"], str)
    good = good and all(
        isinstance(body[name], int | float) and not isinstance(body[name], bool) and 0 <= body[name] <= 1
        for name in NAMES
    )
    try:
        scores = read_scores(json.dumps(body), NAMES)
    except BadReplyError:
        assert not good
    else:
        assert good
        assert scores == {name: body[name] for name in NAMES}
