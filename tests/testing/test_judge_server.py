"""The local test double of a judge, called through the real SDKs without retries."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from google import genai
from google.genai import errors as gemini_errors
from google.genai import types
from openai.types.chat import ChatCompletion

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.testing.judge_server import Behaviour, FaultKind, JudgeServer, Stats, running
from rc1_lib.testing.judge_server.server import TokenBucket
from rc1_lib.workspace.artifacts import PROJECT_ROOT

AT_ONCE = Behaviour(delay="zero")
SYSTEM = (
    "You grade one finished dialogue between the lines <dialogue-0123456789abcdef> and </dialogue-0123456789abcdef>."
)
USER = '<dialogue-0123456789abcdef>\n[{"role": "user", "content": "How far is it?"}]\n</dialogue-0123456789abcdef>'
LONG_S = 20.0
WITHOUT_TLS: dict[str, Any] = {"verify": False}  # reading certificates takes most of the time of opening a client


def headers(attempt: str | None, key: str | None) -> dict[str, str]:
    given = {"X-Client-Request-Id": attempt, "Idempotency-Key": key}
    return {name: value for name, value in given.items() if value is not None}


class OpenAI:
    """The openai SDK, its connections kept alive."""

    def __init__(self, server: JudgeServer, api_key: str = "any") -> None:
        self.sdk = openai.AsyncOpenAI(
            base_url=server.base_url,
            api_key=api_key,
            max_retries=0,
            timeout=LONG_S,
            http_client=openai.DefaultAsyncHttpxClient(**WITHOUT_TLS),
        )

    async def ask(self, attempt: str | None = None, key: str | None = None) -> ChatCompletion:
        return await self.sdk.chat.completions.create(
            model="asked-for",
            messages=[{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}],
            max_tokens=1024,
            extra_headers=headers(attempt, key),
        )

    async def aclose(self) -> None:
        await self.sdk.close()


class Gemini:
    """The google-genai SDK."""

    def __init__(self, server: JudgeServer, api_key: str = "any") -> None:
        self.sdk = genai.Client(
            api_key=api_key,
            http_options=types.HttpOptions(
                base_url=server.gemini_url,
                timeout=int(1000 * LONG_S),
                client_args=WITHOUT_TLS,
                async_client_args=WITHOUT_TLS,
            ),
        )

    async def ask(self, attempt: str | None = None, key: str | None = None) -> types.GenerateContentResponse:
        return await self.sdk.aio.models.generate_content(
            model="asked-for",
            contents=USER,
            config=types.GenerateContentConfig(
                system_instruction=SYSTEM,
                max_output_tokens=1024,
                response_mime_type="application/json",
                http_options=types.HttpOptions(headers=headers(attempt, key)),
            ),
        )

    async def aclose(self) -> None:
        await self.sdk.aio.aclose()
        self.sdk.close()


SDKS: tuple[type[OpenAI] | type[Gemini], ...] = (OpenAI, Gemini)
both = pytest.mark.parametrize("sdk", SDKS)


@asynccontextmanager
async def client(sdk: type[Any], server: JudgeServer, **given: Any) -> AsyncIterator[Any]:
    opened = sdk(server, **given)
    try:
        yield opened
    finally:
        await opened.aclose()


def use(
    sdk: type[Any], behaviour: Behaviour, body: Callable[[Any, JudgeServer], Coroutine[Any, Any, Any]], **given: Any
) -> tuple[Any, Stats]:
    """The result of `body(client, server)`, and the server's statistics after it."""

    async def run() -> Any:
        async with client(sdk, server, **given) as opened:
            return await body(opened, server)

    with running(behaviour) as server:
        result = asyncio.run(run())
    return result, server.stats()


async def answered(opened: Any, _: JudgeServer) -> Any:
    return await opened.ask()


async def failed(opened: Any, _: JudgeServer) -> Any:
    return await failure(opened.ask())


def text(answer: Any) -> str:
    found = answer.choices[0].message.content if isinstance(answer, ChatCompletion) else answer.text
    assert isinstance(found, str)
    return found


def grades(answer: Any) -> dict[str, float]:
    reply = json.loads(text(answer))
    assert isinstance(reply.pop("reason"), str)
    return {str(name): float(grade) for name, grade in reply.items()}


def always(kind: FaultKind, **fields: Any) -> Behaviour:
    return Behaviour(delay="zero", faults={kind: 1.0}, **fields)


async def failure(awaited: Coroutine[Any, Any, Any]) -> Exception:
    try:
        answer = await awaited
    except Exception as error:
        return error
    raise AssertionError(f"expected a failure, found {answer!r}")


# ---- a well-behaved judge ----


def test_every_response_has_the_test_double_header() -> None:
    with running(Behaviour(delay="zero", api_key="right")) as server:
        for method, path in (("GET", "/v1/models"), ("GET", "/v1beta/models"), ("GET", "/stats"), ("GET", "/else")):
            assert httpx2.request(method, server.gemini_url + path).headers["x-rc1-test-double"] == "1"
        rejected = httpx2.post(f"{server.base_url}/chat/completions", json={})
        assert rejected.status_code == 401 and rejected.headers["x-rc1-test-double"] == "1"


def test_models_are_listed_for_both_sdks() -> None:
    async def listed(server: JudgeServer) -> tuple[list[str], list[str | None]]:
        async with client(OpenAI, server) as one, client(Gemini, server) as other:
            return (
                [model.id async for model in one.sdk.models.list()],
                [model.name async for model in await other.sdk.aio.models.list(config={"query_base": True})],
            )

    with running(AT_ONCE) as server:
        assert asyncio.run(listed(server)) == (["rc1-test-double-1"], ["models/rc1-test-double-1"])


# ---- hidden limits ----


def test_token_bucket_admits_its_capacity_and_then_its_rate() -> None:
    bucket = TokenBucket()
    assert [bucket.take(2.0, 3.0, now=100.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(2.0, 3.0, now=100.5) for _ in range(2)] == [True, False]
    assert not bucket.take(1.0, 3.0, now=100.9)  # the rate has halved
    assert bucket.take(1.0, 3.0, now=101.5)
    assert [bucket.take(2.0, 3.0, now=200.0) for _ in range(4)] == [True, True, True, False]
    assert all(bucket.take(None, 3.0, now=200.0) for _ in range(9))
    assert [Behaviour(rps=rps).capacity for rps in (1.0, 4.0, 40.0)] == [1.0, 1.0, 10.0]


async def burst(opened: Any, count: int) -> list[Any]:
    return await asyncio.gather(*(opened.ask(attempt=f"a-{n}") for n in range(count)), return_exceptions=True)


@both
def test_requests_beyond_the_rate_limit_get_429(sdk: type[Any]) -> None:
    # At a thousandth of a request per second, the bucket does not refill during this test.
    behaviour = Behaviour(delay="zero", rps=0.001, burst=3.0, retry_after=2.0)
    found, stats = use(sdk, behaviour, lambda opened, _: burst(opened, 8))
    limited = [one for one in found if isinstance(one, openai.RateLimitError | gemini_errors.ClientError)]
    assert len(limited) == 5 and all(one.response.headers["retry-after"] == "2" for one in limited)
    assert dict(stats.by_kind) == {"ok": 3, "limited_rps": 5}
    assert (stats.requests, stats.answered, sorted(stats.attempt_ids)) == (8, 3, [f"a-{n}" for n in range(8)])


def test_rate_limit_can_change_while_the_server_runs() -> None:
    async def changing(opened: OpenAI, server: JudgeServer) -> list[int]:
        counts = []
        for burst_size in (1.0, 4.0, None):
            rps = None if burst_size is None else 0.001
            server.behaviour = Behaviour(delay="zero")
            await opened.ask()  # a request without a limit resets the bucket
            server.behaviour = Behaviour(delay="zero", rps=rps, burst=burst_size)
            counts.append(sum(isinstance(one, ChatCompletion) for one in await burst(opened, 6)))
        return counts

    found, _ = use(OpenAI, AT_ONCE, changing)
    assert found == [1, 4, 6]


def test_requests_beyond_the_concurrency_limit_get_429() -> None:
    async def saturate(opened: OpenAI, server: JudgeServer) -> Exception:
        waiting = [asyncio.create_task(opened.ask()) for _ in range(3)]
        while server.stats().by_kind.get("hang", 0) < 3:
            await asyncio.sleep(0.01)
        error = await failure(opened.ask())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        server.behaviour = dataclasses.replace(server.behaviour, faults={})
        return error

    error, stats = use(OpenAI, always(FaultKind.HANG, concurrent=3), saturate)
    assert isinstance(error, openai.RateLimitError)
    assert dict(stats.by_kind) == {"hang": 3, "limited_concurrent": 1} and stats.peak_concurrent == 3


# ---- keys ----


@both
def test_wrong_key_gets_401_and_is_echoed(sdk: type[Any]) -> None:
    error, stats = use(sdk, Behaviour(delay="zero", api_key="right"), failed, api_key="planted-secret")
    assert isinstance(error, openai.AuthenticationError | gemini_errors.ClientError)
    assert error.response.status_code == 401 and "planted-secret" in str(error)
    assert dict(stats.by_kind) == {"unauthorized": 1} and stats.answered == 0


@both
def test_right_key_is_accepted(sdk: type[Any]) -> None:
    _, stats = use(sdk, Behaviour(delay="zero", api_key="right"), answered, api_key="right")
    assert dict(stats.by_kind) == {"ok": 1}


# ---- idempotency ----


@both
def test_idempotent_gateway_bills_a_key_once_even_for_concurrent_requests(sdk: type[Any]) -> None:
    async def repeated(opened: Any, _: JudgeServer) -> list[Any]:
        together = await asyncio.gather(*(opened.ask(key="k") for _ in range(4)))
        return [*together, await opened.ask(key="k"), await opened.ask(key="other")]

    answers, stats = use(sdk, Behaviour(latency_ms=(50.0, 0.1), idempotent=True), repeated)
    ids = [answer.id if sdk is OpenAI else answer.response_id for answer in answers]
    assert len(set(ids)) == 2 and len(set(ids[:5])) == 1 and ids[5] != ids[0]
    assert len({text(answer) for answer in answers[:5]}) == 1
    assert dict(stats.by_kind) == {"ok": 2, "replayed": 4} and stats.answered == 2
    assert dict(stats.billed_by_key) == {"k": 1, "other": 1}


def test_other_gateways_bill_every_request_of_a_key() -> None:
    async def repeated(opened: OpenAI, _: JudgeServer) -> None:
        for number in range(3):
            await opened.ask(key="k", attempt=f"a-{number}")

    _, stats = use(OpenAI, AT_ONCE, repeated)
    assert stats.answered == 3 and dict(stats.billed_by_key) == {"k": 3}


def test_reply_to_a_disconnected_client_is_billed_once_and_kept_for_the_retry() -> None:
    async def impatient(opened: OpenAI, server: JudgeServer) -> ChatCompletion:
        first = asyncio.create_task(opened.ask(key="k"))
        while not server.stats().by_kind:
            await asyncio.sleep(0.005)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return await opened.ask(key="k")

    answer, stats = use(OpenAI, Behaviour(latency_ms=(200.0, 0.0), delay="constant", idempotent=True), impatient)
    assert list(grades(answer)) == list(DIMENSIONS)
    assert dict(stats.by_kind) == {"ok": 1, "replayed": 1} and dict(stats.billed_by_key) == {"k": 1}


def test_failed_idempotency_key_is_retried() -> None:
    async def retried(opened: OpenAI, server: JudgeServer) -> ChatCompletion:
        assert isinstance(await failure(opened.ask(key="k")), openai.InternalServerError)
        server.behaviour = Behaviour(delay="zero", idempotent=True)
        return await opened.ask(key="k")

    _, stats = use(OpenAI, always(FaultKind.SERVER_ERROR, idempotent=True), retried)
    assert dict(stats.by_kind) == {"server_error": 1, "ok": 1} and dict(stats.billed_by_key) == {"k": 1}


# ---- the server itself ----


def test_stats_can_be_fetched() -> None:
    with running(AT_ONCE) as server:
        asyncio.run(asked_once(server))
        fetched = httpx2.get(f"{server.gemini_url}/stats").json()
    assert (fetched["requests"], fetched["by_kind"], fetched["answered"]) == (1, {"ok": 1}, 1)
    assert set(fetched) == {field.name for field in dataclasses.fields(Stats)}


async def asked_once(server: JudgeServer) -> None:
    async with client(OpenAI, server) as opened:
        await opened.ask()


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"{}", b'{"messages": []}', b'{"messages": [{"role": "user", "content": "x"}], "stream": true}'],
)
def test_invalid_request_gets_400(body: bytes) -> None:
    with running(AT_ONCE) as server:
        for url in (f"{server.base_url}/chat/completions", f"{server.gemini_url}/v1beta/models/m:generateContent"):
            answer = httpx2.post(url, content=body)
            assert answer.status_code == 400 and answer.json()["error"]["message"]
    assert dict(server.stats().by_kind) == {"bad_request": 2}


def test_stopped_server_leaves_no_thread_or_connection() -> None:
    async def abandoned(server: JudgeServer, stop: Callable[[], None]) -> list[Any]:
        async with client(OpenAI, server) as opened:
            waiting = [asyncio.create_task(opened.ask(key="k")) for _ in range(3)]
            while server.stats().requests < 3:
                await asyncio.sleep(0.005)
            stop()
            return await asyncio.gather(*waiting, return_exceptions=True)

    before = set(threading.enumerate())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for kind in (FaultKind.HANG, FaultKind.SLOW_BODY, None):
            faults: dict[FaultKind, float] = {} if kind is None else {kind: 1.0}
            with ExitStack() as stack:
                behaviour = Behaviour(latency_ms=(60_000.0, 0.1), faults=faults, idempotent=True)
                server = stack.enter_context(running(behaviour))
                found = asyncio.run(abandoned(server, stack.close))
            assert all(isinstance(one, openai.APIConnectionError) for one in found)
            assert server.stats().open_connections == 0
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port))
        gc.collect()
    assert [str(one.message) for one in seen if issubclass(one.category, ResourceWarning)] == []
    assert set(threading.enumerate()) - before == set()


def test_two_servers_can_run_and_a_taken_port_is_rejected() -> None:
    with running(AT_ONCE) as one, running(AT_ONCE) as other:
        assert one.port != other.port
        with pytest.raises(RC1Error, match=rf"port {one.port} on 127\.0\.0\.1"), running(port=one.port):
            pass


def test_impossible_behaviour_is_rejected() -> None:
    with pytest.raises(ConfigError, match="'rc1-test-double'"):
        Behaviour(model="gpt-9")
    with pytest.raises(ConfigError, match=r"reset=0\.6, hang=0\.6"):
        Behaviour(faults={FaultKind.RESET: 0.6, FaultKind.HANG: 0.6})
    for wrong in ({"rps": 0.0}, {"concurrent": 0}, {"noise_sd": -1.0}, {"latency_ms": (-1.0, 0.4)}, {"burst": 0.5}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Behaviour(**wrong)


# ---- the command ----

PROGRAM = """
import typer
from rc1_lib.cli import dev
from rc1_lib.cli.command import command
app, group = typer.Typer(), typer.Typer()
command(group, "judge-server", dev.judge_server, "rc1 dev judge-server", without=("config", "overrides", "as_json"))
app.add_typer(group, name="dev")
app()
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "dev", "judge-server", "--workspace", str(tmp_path)]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "RUN_MODE"}
    return {**kept, "PYTHONPATH": str(PROJECT_ROOT), **more}


def test_command_serves_until_interrupted(command: list[str]) -> None:
    serving = subprocess.Popen(
        [*command, "--port", "0", "--fault", "server_error=1", "--model", "rc1-test-double-7"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        # A shell makes tests that it starts in the background ignore SIGINT, which the child would inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert serving.stdout is not None
    try:
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(serving.stdout.readline())
            assert lines[-1], "".join(lines)
        url = next(line.split("SCORER_BASE_URL=")[1].split()[0] for line in lines if "SCORER_PROVIDER=openai" in line)
        assert lines[0].startswith("TEST DOUBLE")
        assert any("--set judge.model=rc1-test-double-7" in line for line in lines)
        with urllib.request.urlopen(f"{url}/models", timeout=LONG_S) as answer:
            assert json.load(answer)["data"][0]["id"] == "rc1-test-double-7"
        assert httpx2.post(f"{url}/chat/completions", json={"messages": [{"role": "user"}]}).status_code == 500
        serving.send_signal(signal.SIGINT)
        rest, _ = serving.communicate(timeout=LONG_S)
    finally:
        serving.kill()
        serving.wait()
    assert serving.returncode == 0
    assert "TEST DOUBLE ended: 1 requests (server_error 1)" in rest


@pytest.mark.parametrize(
    ("flags", "mode", "expected"),
    [
        (("--profile", "prod"), "", "profile is prod"),
        ((), "prod", "profile is prod"),
        (("--fault", "wobble=0.1"), "", "rate_limit"),
        (("--fault", "reset"), "", "KIND=RATE"),
        (("--fault", "reset=often"), "", "from 0 to 1"),
        (("--fault", "reset=0.1", "--fault", "reset=0.2"), "", "twice"),
        (("--model", "gpt-9"), "", "'rc1-test-double'"),
    ],
)
def test_invalid_command_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...], mode: str, expected: str,
) -> None:  # fmt: skip
    import typer

    from rc1_lib.cli import dev
    from rc1_lib.cli.command import command as register

    app = typer.Typer()
    register(app, "judge-server", dev.judge_server, "rc1 dev judge-server", without=("config", "overrides", "as_json"))
    monkeypatch.setenv("RUN_MODE", mode)
    with pytest.raises(SystemExit) as ended:
        app(["--workspace", str(tmp_path), *flags])
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err
