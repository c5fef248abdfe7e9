"""The judge over the real SDKs: scores, missing scores and their reasons, costs; failures never become scores."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge import client, judge
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.judge import check_judge, open_judge, open_store
from rc1_lib.judge.results import NOT_ASKED, JudgeStoppedError
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.run import open_run
from tests.judge.bench import NUMBERS, PROVIDERS, Bench, answered, dialogue, dialogues, sent
from tests.judge.gateway import Gateway, completion
from tests.judge_server import Behaviour, FaultKind, running
from tests.shares import share

PAID_FAULTS = {
    FaultKind.BAD_JSON_REPLY: AttemptOutcome.BAD_REPLY,
    FaultKind.WRONG_SCHEMA: AttemptOutcome.BAD_REPLY,
    FaultKind.REFUSAL: AttemptOutcome.REFUSED,
    FaultKind.TRUNCATED: AttemptOutcome.TRUNCATED,
}
STORM = {
    FaultKind.SERVER_ERROR: 0.09,
    FaultKind.RESET: 0.08,
    FaultKind.HALF_BODY: 0.06,
    FaultKind.NOT_JSON: 0.04,
    FaultKind.EMPTY: 0.03,
    FaultKind.BAD_JSON_REPLY: 0.03,
    FaultKind.WRONG_SCHEMA: 0.03,
    FaultKind.REFUSAL: 0.02,
    FaultKind.TRUNCATED: 0.015,
    FaultKind.RATE_LIMIT: 0.005,
}


def _assert_missing_scores_have_no_numbers(rows: pl.DataFrame) -> None:
    numbers = rows.select(pl.sum_horizontal(pl.col(NUMBERS).is_not_null().cast(pl.Int64)).alias("numbers"))["numbers"]
    assert numbers.filter(~rows["scored"]).sum() == 0
    assert numbers.filter(rows["scored"]).to_list() == [len(NUMBERS)] * int(rows["scored"].sum())
    assert rows.filter(~pl.col("scored"))["reason"].str.len_chars().min() != 0
    assert rows.filter("scored")["reason"].unique().to_list() in ([], [""])


# ---- faults ----


@pytest.mark.parametrize(
    ("provider", "rate"), share([("openai", 0.15), ("openai", 0.4), ("gemini", 0.4)], ("openai", 0.15))
)
def test_faults_never_become_scores_and_no_paid_reply_is_lost(provider: str, rate: float, bench: Bench) -> None:
    assert math.isclose(sum(STORM.values()), 0.4)
    faults = {kind: of_all * rate / 0.4 for kind, of_all in STORM.items()}
    with running(Behaviour(latency_ms=(5.0, 0.4), faults=faults)) as server:
        judged = bench.score(server, dialogues(28), provider=provider)
        stats = server.stats()
    log = bench.log()
    lines, paid = sent(log), answered(log)

    assert set(stats.by_kind) > {"ok", "server_error", "reset"}
    # The logged attempts are those that the server received.
    assert Counter(lines["attempt_id"]) == Counter(stats.attempt_ids)
    assert set(Counter(stats.attempt_ids).values()) == {1}
    assert judged.calls == stats.requests == len(lines)
    # Every paid reply is logged once, and the store keeps the last reply to each ask.
    assert len(paid) == stats.answered
    assert set(stats.billed_by_key.values()) == {1}
    assert set(bench.sql("SELECT ask_key, reply_sha256 FROM replies")) == set(
        paid.unique("ask_key", keep="last", maintain_order=True).select("ask_key", "reply_sha256").iter_rows()
    )
    assert lines["tokens_in"].sum() == stats.tokens_in
    assert lines["tokens_out"].sum() == stats.tokens_out
    # Each kind of fault has the count of the server.
    logged = Counter(lines["outcome"])
    sent_by_server = Counter(stats.by_kind)
    assert logged["ok"] == sent_by_server["ok"]
    assert logged["bad_reply"] == sent_by_server["bad_json_reply"] + sent_by_server["wrong_schema"]
    assert logged["refused"] == sent_by_server["refusal"]
    assert logged["truncated"] == sent_by_server["truncated"]
    assert logged["connection"] == sent_by_server["reset"]
    assert logged["server_error"] == sent_by_server["server_error"]
    assert logged["rate_limited"] == sent_by_server["rate_limit"]
    assert logged["bad_body"] == sent_by_server["half_body"] + sent_by_server["not_json"] + sent_by_server["empty"]
    # No failure became a score.
    assert 0 < judged.coverage < 1
    _assert_missing_scores_have_no_numbers(judged.rows)
    without = judged.replies.filter(pl.col("outcome") != "ok")
    assert without.select(pl.col(DIMENSIONS).is_not_null().any()).row(0) == (False,) * len(DIMENSIONS)
    assert lines.filter(pl.col("outcome") != "ok")["scores"].null_count() == len(lines) - logged["ok"]


@pytest.mark.parametrize(("kind", "outcome"), PAID_FAULTS.items())
def test_a_paid_reply_without_scores_is_stored_and_not_requested_in_the_next_run(
    kind: FaultKind, outcome: AttemptOutcome, bench: Bench
) -> None:
    with running(Behaviour(delay="zero", faults={kind: 1.0})) as server:
        first = bench.score(server, dialogues(2))
        server.behaviour = Behaviour(delay="zero")
        again = bench.score(server, dialogues(2))
        stats = server.stats()
    paid = 12 if outcome is AttemptOutcome.BAD_REPLY else 6  # an unreadable reply is requested once more
    assert (first.coverage, again.coverage) == (0.0, 0.0)
    assert (first.calls, again.calls, stats.requests, stats.answered) == (paid, 0, paid, paid)
    assert set(first.replies["outcome"]) == set(again.replies["outcome"]) == {outcome.value}
    assert first.reasons == again.reasons
    assert bench.outcomes() == {outcome.value: paid}
    _assert_missing_scores_have_no_numbers(again.rows)


def test_an_unreadable_reply_is_retried_billed_and_logged(bench: Bench, gateway: Gateway) -> None:
    seen: Counter[str] = Counter()

    def first_is_bad(number: int, body: str, headers: dict[str, str]) -> Any:
        seen[headers["idempotency-key"]] += 1
        return completion("No idea.") if number == 0 else completion()

    gateway.replies = first_is_bad
    # One sample: with several, a second attempt may come before another's first.
    judged = bench.score_at(gateway.url, dialogues(1), "judge.samples=1", "judge.prices={input: 1000, output: 0}")
    log = bench.log()
    assert (judged.coverage, judged.calls) == (1.0, 2)
    assert list(zip(log["outcome"], log["attempt"], strict=True)) == [("bad_reply", 1), ("ok", 2)]
    assert log["billable"].all()
    assert judged.usd == pytest.approx(log["cost_usd"].sum())
    assert set(seen.values()) == {1}  # with the same key the gateway would return the old reply
    assert bench.sql("SELECT count(*) FROM replies WHERE scores IS NULL") == [(0,)]


def test_a_bad_reply_does_not_replace_a_good_one(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        good = bench.score(server, dialogues(1))
        server.behaviour = Behaviour(delay="zero", faults={FaultKind.WRONG_SCHEMA: 1.0})
        probe = bench.score(server, dialogues(1), fresh=True)
        again = bench.score(server, dialogues(1))
    assert probe.coverage == 0.0
    assert again.calls == 0
    assert again.rows.select(NUMBERS).equals(good.rows.select(NUMBERS))


def test_one_missing_sample_gives_a_missing_score(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BAD_REPLY_ATTEMPTS", 1)
    gateway.replies = lambda number, body, headers: completion("No idea.") if number == 1 else completion()
    judged = bench.score_at(gateway.url, dialogues(1), "judge.limits.concurrency=[1,1]")
    assert judged.rows["samples"].to_list() == [2]
    assert judged.coverage == 0.0
    assert "contains no JSON" in judged.rows["reason"].item()
    assert judged.replies["text"].to_list()[1] == "No idea."
    _assert_missing_scores_have_no_numbers(judged.rows)


def test_require_raises_an_error_below_the_coverage(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BAD_REPLY_ATTEMPTS", 1)
    gateway.replies = lambda number, body, headers: completion("?") if number == 0 else completion()
    judged = bench.score_at(gateway.url, dialogues(4), "judge.samples=1")
    assert judged.coverage == 0.75
    assert len(judged.require(0.75)) == 4
    with pytest.raises(RC1Error, match=r"75\.0% of 4 .* 98%"):
        judged.require(0.98)


# ---- hits ----


@pytest.mark.parametrize("provider", share(PROVIDERS, "openai"))
def test_a_second_run_sends_no_request_and_costs_nothing(provider: str, bench: Bench) -> None:
    prices = ("judge.prices.input=1", "judge.prices.output=2")
    with running(Behaviour(delay="zero")) as server:
        first = bench.score(server, dialogues(5), *prices, provider=provider)
        requests = server.stats().requests
        second = bench.score(server, dialogues(5), *prices, provider=provider)
        assert server.stats().requests == requests == 15
    log = bench.log()
    paid, hits = log.filter(pl.col("outcome") == "ok"), log.filter(pl.col("outcome") == "hit")
    assert (len(paid), len(hits), len(log)) == (15, 15, 30)
    assert first.usd == pytest.approx(paid["cost_usd"].sum())
    assert first.usd == pytest.approx((paid["tokens_in"].sum() + 2 * paid["tokens_out"].sum()) / 1e6)
    assert (second.usd, second.calls) == (0.0, 0)
    assert hits.select("tokens_in", "tokens_out", "cost_usd", "billable").unique().rows() == [(0, 0, 0.0, False)]
    same = ["ask_key", "model", "request_id", "reply_sha256", "scores"]
    assert hits.select(same).sort("ask_key").equals(paid.select(same).sort("ask_key"))
    assert len(set(log["attempt_id"])) == 30
    assert second.rows["replayed"].to_list() == [3] * 5
    assert second.rows.select("dialogue", *NUMBERS).equals(first.rows.select("dialogue", *NUMBERS))


def test_a_repeated_dialogue_is_scored_once(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        judged = bench.score(server, [dialogue(1), dialogue(2), dialogue(1)])
        assert server.stats().requests == 6
    assert judged.rows["dialogue"].to_list()[0] == judged.rows["dialogue"].to_list()[2]
    assert judged.coverage == 1.0


def test_fresh_ignores_stored_replies(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        bench.score(server, dialogues(2))
        judged = bench.score(server, dialogues(2), fresh=True)
        stats = server.stats()
    # Each has a new idempotency key: with the old one the gateway would have repeated the old reply.
    assert (judged.calls, stats.answered, len(stats.billed_by_key)) == (6, 12, 12)
    assert bench.outcomes() == {"ok": 12}


def test_every_setting_that_can_change_a_reply_is_part_of_the_key(bench: Bench, gateway: Gateway) -> None:
    spec = bench.folder / "configs/judge/v1.yaml"
    spec.parent.mkdir(parents=True)
    text = (bench.run(gateway.url).workspace.find("configs/judge/v1.yaml")).read_text()
    spec.write_text(text)

    def calls(*more: str) -> int:
        return bench.score_at(gateway.url, dialogues(1), *more).calls

    assert calls() == 3
    assert calls() == 0
    assert calls("judge.samples=5") == 2
    assert calls("judge.samples=2") == 0
    for change in ("judge.sampling.temperature=0.5", "judge.sampling.max_tokens=99"):
        assert calls(change) == 3
        assert calls(change) == 0
    assert calls("judge.channel=text") == 3
    assert calls("judge.model=another") == 3
    assert calls(f"judge.base_url={gateway.url}/") == 3
    spec.write_text(text.replace("and no more.", "and nothing more."))
    assert calls() == 3
    spec.write_text(text)
    assert calls() == 0
    # Settings that cannot change a reply are not part of the key.
    assert calls("judge.limits.timeout_s=7", "judge.prices={input: 3, output: 0}", "judge.budget.max_calls=1") == 0


# ---- the model's version ----


@pytest.mark.parametrize("provider", share(PROVIDERS, "openai"))
def test_scores_of_an_old_model_version_do_not_count(provider: str, bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        bench.score(server, dialogues(4), provider=provider)
        server.behaviour = Behaviour(delay="zero", model="rc1-test-double-2")
        # The last version check was a moment ago, so the new version is still unknown.
        unseen = bench.score(server, dialogues(4), provider=provider)
        assert unseen.calls == 0
        mixed = bench.score(server, dialogues(5), provider=provider)
        after = bench.score(server, dialogues(5), provider=provider)
    # A single new dialogue shows the version, and the same run stops using the old scores.
    assert mixed.calls == 15
    assert set(mixed.replies["model"]) == {"rc1-test-double-2"}
    assert after.calls == 0
    assert after.rows["models"].to_list() == [["rc1-test-double-2"]] * 5
    assert mixed.rows.select(NUMBERS).equals(after.rows.select(NUMBERS))
    # The paid replies of both versions are still stored.
    assert bench.sql("SELECT model, count(*) FROM replies GROUP BY model ORDER BY model") == [
        ("rc1-test-double-1", 12),
        ("rc1-test-double-2", 15),
    ]


def test_the_model_version_is_checked_again_after_a_day(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Behaviour(delay="zero")) as server:
        bench.score(server, dialogues(3))
        monkeypatch.setattr(judge, "MODEL_CHECK_S", 0)
        same = bench.score(server, dialogues(3))
        assert (same.calls, same.coverage) == (1, 1.0)
        assert Counter(same.replies["outcome"]) == {"hit": 8, "ok": 1}
        server.behaviour = Behaviour(delay="zero", model="rc1-test-double-2")
        other = bench.score(server, dialogues(3))
    assert (other.calls, other.coverage) == (9, 1.0)
    assert set(other.replies["model"]) == {"rc1-test-double-2"}


def test_unstable_dialogues_have_all_replies_and_the_dimensions_that_differ(bench: Bench, gateway: Gateway) -> None:
    def graded(grade: float) -> str:
        rest = ", ".join(f'"{name}": 0.8' for name in DIMENSIONS if name != "concise")
        return f'{{"reason": "So.", "concise": {grade}, {rest}}}'

    grades = [0.1, 0.9, 0.5, 0.6, 0.6, 0.7]
    gateway.replies = lambda number, body, headers: completion(graded(grades[number]))
    judged = bench.score_at(gateway.url, dialogues(2), "judge.limits.concurrency=[1,1]")
    (one,) = judged.unstable()
    assert judged.rows["unstable"].to_list() == [True, False]
    assert one["dialogue"] == judged.rows["dialogue"][0]
    assert (one["concise"], one["concise_variance"]) == (0.5, pytest.approx(0.16))
    assert one["straddles"] == ["concise"]
    assert [reply["concise"] for reply in one["replies"]] == [0.1, 0.9, 0.5]
    assert [reply["text"] for reply in one["replies"]] == [graded(grade) for grade in (0.1, 0.9, 0.5)]
    assert judged.rows["straddles"].to_list()[1] == []


def test_a_dialogue_without_a_score_is_not_unstable(bench: Bench, gateway: Gateway) -> None:
    apart = [completion(json.dumps({"reason": "So.", **dict.fromkeys(DIMENSIONS, grade)})) for grade in (0, 1)]
    broken = (400, {}, {"error": {"message": "Filtered.", "code": "content_filter"}})
    gateway.replies = lambda number, body, headers: [*apart, broken][number]
    judged = bench.score_at(gateway.url, dialogues(1), "judge.limits.concurrency=[1,1]")
    assert judged.rows.select("scored", "unstable").row(0) == (False, False)


# ---- what stops a run ----


def test_a_retry_after_longer_than_the_backoff_is_obeyed(bench: Bench) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.RATE_LIMIT_RETRY_AFTER: 1.0}, retry_after=1.5)) as server:

        async def score() -> None:
            run = bench.run(server.base_url, "judge.samples=1", "judge.limits.concurrency=[1,1]")
            with open_store(run) as store:
                task = asyncio.create_task(open_judge(run, store).score_async(dialogues(1)))
                while not server.stats().requests:
                    await asyncio.sleep(0.01)
                server.behaviour = Behaviour(delay="zero")
                assert (await task).coverage == 1.0

        asyncio.run(score())
    refused, accepted = bench.log().rows(named=True)
    assert (refused["outcome"], accepted["outcome"]) == ("rate_limited", "ok")
    # Both times come from the same clock, so a slow machine does not matter.
    assert accepted["started"] - refused["started"] >= 1.5


@pytest.mark.timeout(60)
def test_a_retry_after_above_max_wait_stops_the_run_and_keeps_its_scores(bench: Bench, gateway: Gateway) -> None:
    slow = (429, {"Retry-After": "3600"}, {"error": {"message": "Come back later."}})
    gateway.replies = lambda number, body, headers: slow if number == 20 else completion()
    # At this slow pace most workers are still waiting to send when the refusal comes.
    judged = bench.score_at(gateway.url, dialogues(30), "judge.limits.rps=100")
    assert "wait 3600 s, more than 300" in judged.stopped
    kept = Counter(judged.replies["outcome"])
    assert kept["ok"] >= 20
    assert kept["rate_limited"] == 1
    assert sum(kept.values()) == 90
    assert set(judged.rows.filter(~pl.col("scored"))["reason"]) >= {NOT_ASKED}
    with pytest.raises(JudgeStoppedError, match="more than 300"):
        judged.require(0.0)
    gateway.replies = lambda number, body, headers: completion()
    rest = bench.score_at(gateway.url, dialogues(30))
    assert (rest.coverage, rest.calls) == (1.0, 90 - kept["ok"])


@pytest.mark.timeout(60)
def test_a_call_under_way_when_the_run_stops_does_not_wait_for_the_providers_pause(
    bench: Bench, gateway: Gateway
) -> None:
    slow = (429, {"Retry-After": "3600"}, {"error": {"message": "Come back later."}})
    gateway.replies = lambda number, body, headers: slow if number == 1 else completion("not JSON")
    judged = bench.score_at(gateway.url, dialogues(8))
    assert "wait 3600 s, more than 300" in judged.stopped


def test_a_rejected_api_key_stops_the_run_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-the-wrong-one-4711")
    with running(Behaviour(delay="zero", api_key="sk-the-right-one-42")) as server:
        judged = bench.score(server, dialogues(30))
        assert 1 <= server.stats().requests <= 8
        assert server.stats().answered == 0
    assert "SCORER_API_KEY" in judged.stopped
    assert "4711" not in judged.stopped
    assert judged.coverage == 0.0
    assert bench.outcomes() == {"rejected": judged.calls}
    _assert_missing_scores_have_no_numbers(judged.rows)


def test_one_rejected_request_does_not_stop_the_run(bench: Bench, gateway: Gateway) -> None:
    too_long = (400, {}, {"error": {"message": "This model's maximum context length is 12 tokens.", "code": "length"}})
    gateway.replies = lambda number, body, headers: too_long if "What is 3 + 1?" in body else completion()
    judged = bench.score_at(gateway.url, dialogues(12))
    assert judged.stopped == ""
    assert judged.rows["scored"].to_list() == [number != 3 for number in range(12)]
    assert "maximum context length" in judged.rows["reason"][3]
    # A rejected request is not retried.
    assert len(gateway.requests) == 36
    _assert_missing_scores_have_no_numbers(judged.rows)
    again = bench.score_at(gateway.url, dialogues(12), "judge.limits.concurrency=[1,1]")
    assert (again.stopped, again.calls) == ("", 3), "what is stored shows that the provider answers others"
    assert again.rows["scored"].to_list() == judged.rows["scored"].to_list()


def test_a_filtered_dialogue_does_not_hide_the_model_version(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    filtered = (400, {}, {"error": {"message": "Filtered.", "code": "content_filter"}})
    gateway.replies = lambda number, body, headers: filtered if "What is 0 + 1?" in body else completion()
    first = bench.score_at(gateway.url, dialogues(3))
    assert first.rows["scored"].to_list() == [False, True, True]
    monkeypatch.setattr(judge, "MODEL_CHECK_S", 0)
    again = bench.score_at(gateway.url, dialogues(3))
    assert (again.stopped, again.rows["scored"].to_list()) == ("", [False, True, True])


def test_a_provider_that_rejects_every_request_stops_the_run(bench: Bench, gateway: Gateway) -> None:
    gateway.replies = lambda number, body, headers: (400, {}, {"error": {"message": "Unknown parameter: top_p."}})
    judged = bench.score_at(gateway.url, dialogues(100))
    assert "Unknown parameter: top_p." in judged.stopped
    assert judged.coverage == 0.0
    assert len(gateway.requests) <= 16


@pytest.mark.parametrize("provider", share(PROVIDERS, "openai"))
def test_cancelling_closes_every_connection_and_the_store_still_works(provider: str, bench: Bench) -> None:
    more = ("judge.samples=1",)

    async def cancel() -> None:
        run = bench.run(server.gemini_url if provider == "gemini" else server.base_url, *more, provider=provider)
        with open_store(run) as store:
            task = asyncio.create_task(open_judge(run, store).score_async(dialogues(40)))
            while server.stats().requests < 20:
                await asyncio.sleep(0.005)
            server.behaviour = Behaviour(delay="zero", faults={FaultKind.HANG: 1.0})
            asked = server.stats().requests
            while server.stats().by_kind.get("hang", 0) < 8:
                await asyncio.sleep(0.005)
            assert asked < 40
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while server.stats().open_connections:
                await asyncio.sleep(0.005)
            server.behaviour = Behaviour(delay="zero")
            # The same store can be used again at once.
            judged = await open_judge(run, store).score_async(dialogues(40))
            assert judged.coverage == 1.0

    with running(Behaviour(latency_ms=(20.0, 0.2))) as server:
        asyncio.run(cancel())
        stats = server.stats()
    outcomes = bench.outcomes()
    assert outcomes["cancelled"] == 8
    assert outcomes["ok"] == stats.answered == 40
    assert Counter(sent(bench.log())["attempt_id"]) == Counter(stats.attempt_ids)
    assert bench.sql("SELECT count(*) FROM sent") == [(0,)]


@pytest.mark.parametrize(("kind", "advised"), [(FaultKind.HANG, True), (FaultKind.SERVER_ERROR, False)])
def test_a_run_without_replies_stops_and_names_the_concurrency_only_after_timeouts(
    kind: FaultKind, advised: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    timeout_s = 0.3 if advised else 60  # an answer may be late on a busy machine
    quick = ("judge.limits.concurrency=[2,2]", f"judge.limits.timeout_s={timeout_s}")
    with running(Behaviour(delay="zero", faults={kind: 1.0})) as server:
        judged = bench.score(server, dialogues(4), *quick)
    assert judged.stopped.startswith("4 attempts in a row brought no reply")
    assert ("judge.limits.concurrency=[1,1]" in judged.stopped) is advised


# ---- the test double is not accepted as a judge ----


def test_profile_prod_rejects_the_test_double(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        judged = bench.score(server, dialogues(20), profile="prod")
        assert server.stats().requests <= 8
    assert "test double" in judged.stopped
    assert judged.coverage == 0.0
    assert set(bench.outcomes()) == {"rejected"}
    assert bench.sql("SELECT count(*) FROM replies") == [(0,)]
    _assert_missing_scores_have_no_numbers(judged.rows)


def test_a_provider_from_the_environment_needs_its_own_model_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "a-key-of-somebodys")
    monkeypatch.setenv("SCORER_PROVIDER", "openai")
    with pytest.raises(ConfigError, match=r"'gemini-2\.5-flash', .*ppo_scale\.yaml .*--set judge\.model=NAME"):
        check_judge(open_run(profile="prod", workspace=tmp_path))
    check_judge(open_run(profile="prod", workspace=tmp_path, overrides=["judge.model=a-model"]))
    monkeypatch.setenv("SCORER_PROVIDER", "gemini")
    check_judge(open_run(profile="prod", workspace=tmp_path))
