"""Quirks of providers, end to end over loopback: scores, missing scores and their reasons, and requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from rc1_lib.gates.judge_probe import probe_on
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.judge import UNKNOWN_COST, traffic_note
from rc1_lib.judge.providers import LIVE
from rc1_lib.judge.rubric import DIMENSIONS
from tests.judge.bench import Bench, dialogues
from tests.judge.gateway import Gateway, completion
from tests.judge_server import Behaviour, FaultKind, Manner, running

pytestmark = pytest.mark.usefixtures("planted_key")

ONE_SAMPLE = ("judge.samples=1",)


def behaving(*manners: Manner, **more: Any) -> Behaviour:
    return Behaviour(delay="zero", manners=manners, **more)


# ---- parameters that a server rejects ----


def test_a_rejected_parameter_stops_the_run_with_the_servers_sentence(bench: Bench) -> None:
    with running(behaving(Manner.NO_TEMPERATURE)) as server:
        judged = bench.score(server, dialogues(20))
        assert server.stats().requests <= 16
        fixed = bench.score(server, dialogues(2), "judge.sampling.temperature=null")
    assert "'temperature' does not support it with this model" in judged.stopped
    assert fixed.coverage == 1.0


@pytest.mark.parametrize(
    ("manner", "setting"),
    [
        (Manner.NO_PAIR, "judge.sampling.top_p=null"),
        (Manner.COMPLETION_TOKENS, "judge.names={max_tokens: max_completion_tokens}"),
        (Manner.NO_SCHEMA, "judge.channel=tool"),
        (Manner.NO_SYSTEM, "judge.names={system: user}"),
        (Manner.MAX_TOKENS_ONLY, "judge.sampling.max_tokens=null"),
    ],
)
def test_the_documented_settings_satisfy_servers_that_refuse_a_parameter(
    manner: Manner, setting: str, bench: Bench
) -> None:
    with running(behaving(manner)) as server:
        assert bench.score(server, dialogues(1), *ONE_SAMPLE, setting).coverage == 1.0


def test_a_limit_that_one_request_exceeds_leaves_its_dialogue_unscored_at_once(bench: Bench, gateway: Gateway) -> None:
    def replies(number: int, body: str, headers: dict[str, str]) -> Any:
        if "What is 2 + 1?" in body:
            return 429, {"Retry-After": "20"}, {"error": {"message": "Request too large: Limit 900, Requested 1200."}}
        return completion()

    gateway.replies = replies
    judged = bench.score_at(gateway.url, dialogues(4), *ONE_SAMPLE, "judge.limits.concurrency=[1, 1]")
    assert (judged.stopped, judged.coverage) == ("", 0.75)
    assert "Limit 900, Requested 1200" in judged.why_unscored
    assert bench.outcomes() == {"ok": 3, "rejected": 1}


def test_a_reply_in_the_thoughts_is_stored_and_compared_as_the_reply(bench: Bench) -> None:
    with running(behaving(Manner.JSON_IN_THOUGHTS)) as server:
        bench.score(server, dialogues(3))
    replies = bench.log()["reply_sha256"]
    assert replies.n_unique() == len(replies) == 9


def test_the_store_separates_replies_by_settings(bench: Bench) -> None:
    with running(behaving()) as server:
        for more in ((), ("judge.sampling.top_p=null",), ("judge.channel=tool",), ("judge.names={system: user}",)):
            assert bench.score(server, dialogues(1), *ONE_SAMPLE, *more).calls == 1
            assert bench.score(server, dialogues(1), *ONE_SAMPLE, *more).calls == 0


@pytest.mark.parametrize("channel", ["schema", "tool", "text"])
@pytest.mark.parametrize("provider", sorted(LIVE))
def test_every_provider_works_with_every_channel(provider: str, channel: str, bench: Bench) -> None:
    bare = ("judge.sampling={temperature: null, top_p: null, max_tokens: null}", "judge.names={system: user}")
    with running(behaving()) as server:
        judged = bench.score(server, dialogues(2), *ONE_SAMPLE, *bare, f"judge.channel={channel}", provider=provider)
    assert judged.coverage == 1.0, judged.why_unscored


# ---- Retry-After ----


def shut_for(seconds: float, answer: Callable[[float], Any]) -> Callable[..., Any]:
    """Refuse for `seconds`; `answer` makes the 429 from the seconds that are left."""
    until = time.monotonic() + seconds

    def replies(number: int, body: str, headers: dict[str, str]) -> Any:
        left = until - time.monotonic()
        return completion() if left <= 0 else answer(left)

    return replies


@pytest.mark.parametrize(
    "answer",
    [
        lambda left: (429, {"X-RateLimit-Reset-Requests": f"{left:.2f}s"}, {"error": {"message": "Slow down."}}),
        lambda left: (429, {"Retry-After-Ms": f"{1000 * left:.0f}"}, {"error": {"message": "Slow down."}}),
    ],
    ids=["reset", "ms"],
)
def test_a_wait_is_obeyed_in_every_form(answer: Any, bench: Bench, gateway: Gateway) -> None:
    gateway.replies = shut_for(2.0, answer)
    start = time.monotonic()
    judged = bench.score_at(gateway.url, dialogues(10), *ONE_SAMPLE, "judge.limits.attempts=3")
    assert judged.coverage == 1.0, judged.why_unscored
    assert time.monotonic() - start < 6.0
    assert bench.outcomes()["rate_limited"] <= 10


@pytest.mark.parametrize("manner", [Manner.WAIT_IN_RESET, Manner.WAIT_IN_MS])
def test_the_test_double_asks_to_wait_in_every_form(manner: Manner, bench: Bench) -> None:
    with running(behaving(manner, faults={FaultKind.RATE_LIMIT: 1.0}, retry_after=90.0)) as server:
        judged = bench.score(server, dialogues(1), *ONE_SAMPLE, "judge.limits.max_wait_s=60")
    assert "asks to wait 90 s" in judged.stopped


# ---- finish reasons and forms of replies ----


@pytest.mark.parametrize(
    ("behaviour", "outcomes", "why"),
    [
        (behaving(finish="error"), {"server_error": 2}, "it ended with 'error'"),
        (behaving(Manner.CUT_OFF, finish="error"), {"server_error": 2}, "it ended with 'error'"),
        (behaving(finish="model_context_window_exceeded"), {"truncated": 1}, "was cut off"),
        (behaving(finish="safety"), {"refused": 1}, "declined to grade"),
        (behaving(finish="something_new"), {"unreadable": 1}, "'something_new'"),
        (behaving(Manner.CUT_OFF), {"bad_reply": 2}, "breaks off in the middle"),
        (behaving(Manner.BLANK), {"bad_reply": 2}, "is empty"),
        (behaving(Manner.THOUGHTS_ALONE), {"unreadable": 1}, "set judge.channel=tool"),
        (behaving(Manner.TWICE), {"bad_reply": 2}, "not one JSON object but several"),
    ],
)
def test_an_incomplete_reply_gives_a_missing_score_and_is_not_paid_again(
    behaviour: Behaviour, outcomes: dict[str, int], why: str, bench: Bench
) -> None:
    with running(behaviour) as server:
        judged = bench.score(server, dialogues(1), *ONE_SAMPLE, "judge.limits.attempts=2")
        again = bench.score(server, dialogues(1), *ONE_SAMPLE, "judge.limits.attempts=1")
    assert (judged.coverage, judged.rows["answered"].to_list()) == (0.0, [None])
    assert why in judged.why_unscored
    assert again.calls == (1 if "server_error" in outcomes else 0)
    assert dict(bench.outcomes()) == {name: count + again.calls for name, count in outcomes.items()}


@pytest.mark.parametrize(
    "manner",
    [
        Manner.THINK_TAGS, Manner.THINK_END, Manner.JSON_IN_THOUGHTS, Manner.FENCE, Manner.WORDS, Manner.BOM,
        Manner.TOOL_CALL,
    ],
)  # fmt: skip
def test_a_reply_is_read_inside_thoughts_fences_words_or_a_tool_call(manner: Manner, bench: Bench) -> None:
    with running(behaving(manner)) as server:
        found = bench.score(server, dialogues(3), *ONE_SAMPLE)
    assert found.coverage == 1.0
    assert max(found.rows[list(DIMENSIONS)].row(0)) < 1.0, "the decoy gives full marks"


def test_a_content_filter_refuses_one_dialogue_once_and_the_rest_is_scored(bench: Bench, gateway: Gateway) -> None:
    def replies(number: int, body: str, headers: dict[str, str]) -> Any:
        if "What is 2 + 1?" in body:
            error = {"message": "no", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
            return 400, {}, {"error": error}
        return completion()

    gateway.replies = replies
    judged = bench.score_at(gateway.url, dialogues(4), *ONE_SAMPLE, "judge.limits.concurrency=[1, 1]")
    assert (judged.stopped, judged.coverage) == ("", 0.75)
    assert bench.outcomes() == {"ok": 3, "refused": 1}
    assert bench.score_at(gateway.url, dialogues(4), *ONE_SAMPLE).calls == 0
    with bench.store() as store:
        seen = store.model_of(bench.sql("SELECT endpoint FROM endpoints")[0][0])
    assert seen is not None and seen[0] == "judge-large-2"


# ---- the probe and its cost ----


def test_alternating_model_versions_fail_the_probe(bench: Bench) -> None:
    with running(behaving(Manner.MODELS_IN_TURN)) as server:
        run = bench.run(server.base_url, "gates.probe.n=4")
        checks = {check.name: check for check in probe_on(run, dialogues(4)).checks}
        server.behaviour = behaving()
        after = {check.name: check for check in probe_on(run, dialogues(4)).checks}
    assert not checks["model versions that answered"].passed
    assert "rc1-test-double-1, rc1-test-double-1-b answered in turn" in checks["model versions that answered"].advice
    assert after["model versions that answered"].passed
    assert after["cost, USD"].value == "unknown: set judge.prices"


def test_the_cost_without_prices_is_unknown_instead_of_zero(bench: Bench) -> None:
    with running(behaving()) as server:
        judged = bench.score(server, dialogues(2))
        config = bench.run(server.base_url).config.judge
        free = bench.run(server.base_url, "judge.prices={input: 0, output: 0}").config.judge
    assert bench.log()["cost_usd"].null_count() == 6
    assert traffic_note(judged.traffic, known_usd(config, judged.usd, judged.calls)).endswith(UNKNOWN_COST)
    assert known_usd(free, 0.0, 6) == 0.0


def test_a_request_that_was_never_sent_costs_nothing(bench: Bench) -> None:
    judged = bench.score_at(
        "http://127.0.0.1:9/v1",
        dialogues(1),
        *ONE_SAMPLE,
        "judge.prices={input: 1, output: 1}",
        "judge.limits.attempts=2",
    )
    log = bench.log().filter(pl.col("outcome") == "connection")
    assert (judged.usd, log["cost_usd"].to_list()) == (0.0, [0.0, 0.0])
