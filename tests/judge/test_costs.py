"""Over loopback: every channel of every provider, replies that end early, a filter, and what a run costs."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from rc1_lib.judge import client
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.judge import UNKNOWN_COST, traffic_note
from rc1_lib.judge.providers import LIVE
from tests.judge.bench import Bench, dialogues
from tests.judge.gateway import Gateway, completion
from tests.judge_server import Behaviour, running

pytestmark = pytest.mark.usefixtures("planted_key")


@pytest.mark.parametrize("channel", ["schema", "tool", "text"])
@pytest.mark.parametrize("provider", sorted(LIVE))
def test_every_provider_works_with_every_channel_and_without_parameters(
    provider: str, channel: str, bench: Bench
) -> None:
    bare = ("judge.sampling={temperature: null, max_tokens: null}", "judge.names={system: user}")
    with running(Behaviour(delay="zero")) as server:
        judged = bench.score(server, dialogues(1), *bare, f"judge.channel={channel}", provider=provider)
    assert judged.coverage == 1.0, judged.why_unscored


@pytest.mark.parametrize(
    ("finish", "outcomes"),
    [
        ("error", {"server_error": 2}), ("model_context_window_exceeded", {"truncated": 1}), ("safety", {"refused": 1}),
        ("something_new", {"unreadable": 1}),
    ],
)  # fmt: skip
def test_an_incomplete_reply_gives_a_missing_score_and_is_not_paid_again(
    finish: str, outcomes: dict[str, int], bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = completion()
    reply[2]["choices"][0]["finish_reason"] = finish
    gateway.replies = lambda number, body, headers: reply
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    judged = bench.score_at(gateway.url, dialogues(1), "judge.samples=1")
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    again = bench.score_at(gateway.url, dialogues(1), "judge.samples=1")
    assert (judged.coverage, judged.rows["answered"].to_list()) == (0.0, [None])
    assert again.calls == (1 if "server_error" in outcomes else 0)
    assert dict(bench.outcomes()) == {name: count + again.calls for name, count in outcomes.items()}


def test_a_content_filter_refuses_one_dialogue_once_and_the_rest_is_scored(bench: Bench, gateway: Gateway) -> None:
    def replies(number: int, body: str, headers: dict[str, str]) -> Any:
        error = {"message": "no", "code": "content_filter"}
        return (400, {}, {"error": error}) if "What is 2 + 1?" in body else completion()

    gateway.replies = replies
    judged = bench.score_at(gateway.url, dialogues(4), "judge.samples=1", "judge.limits.concurrency=[1, 1]")
    assert (judged.stopped, judged.coverage) == ("", 0.75)
    assert bench.outcomes() == {"ok": 3, "refused": 1}
    assert bench.score_at(gateway.url, dialogues(4), "judge.samples=1").calls == 0


def test_the_cost_without_prices_is_unknown_instead_of_zero(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        judged = bench.score(server, dialogues(2))
        config = bench.run(server.base_url).config.judge
        free = bench.run(server.base_url, "judge.prices={input: 0, output: 0}").config.judge
    assert bench.log()["cost_usd"].null_count() == 6
    assert traffic_note(judged.traffic, known_usd(config, judged.usd, judged.calls)).endswith(UNKNOWN_COST)
    assert known_usd(free, 0.0, 6) == 0.0


def test_a_request_that_was_never_sent_costs_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    more = ("judge.samples=1", "judge.prices={input: 1, output: 1}")
    judged = bench.score_at("http://127.0.0.1:9/v1", dialogues(1), *more)
    log = bench.log().filter(pl.col("outcome") == "connection")
    assert (judged.usd, log["cost_usd"].to_list()) == (0.0, [0.0, 0.0])
