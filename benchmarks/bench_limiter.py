"""Compare the rate limiter with other ways to send many requests to a provider with unknown limits.

    python benchmarks/bench_limiter.py [--quick] [--random] [--rps RPS] [--litellm-python PATH]

Every way drives the real OpenAI SDK (litellm: its own) in a separate process against a separate loopback server, all at
the same time, so that they share the machine fairly. Each always has more to send and retries rejected requests; the
servers answer 429 without a hint. Printed for each scenario: requests admitted per second, the share used of what the
server allowed, the share of requests it rejected, and our ratio to each of the others. The last scenario rejects 8 % at
random and has no limit; --random runs only this one. A full run takes about eight minutes, --quick two.

litellm pins an older `openai`, so it needs a separate environment:
`python -m venv litellm && litellm/bin/pip install litellm`, then `--litellm-python litellm/bin/python`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

MODEL = "rc1-test-double-1"
MESSAGES = [{"role": "user", "content": "Grade this dialogue."}]
OURS = "RC1's limiter"
LITELLM = "litellm's Router, 8 at a time"
SIGMA = 0.4
MAX_RPS = 50.0


# ---- the ways of sending: each runs in a separate process and imports only what it needs ----

Call = Callable[[], Awaitable[None]]


def sdk_call(url: str, retries: int) -> Call:
    """Return a function that requests one chat completion through the OpenAI SDK."""
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=retries, timeout=60.0)

    async def call() -> None:
        await client.chat.completions.create(model=MODEL, messages=MESSAGES)

    return call


async def many(count: int, one: Call) -> None:
    """Run `count` tasks that repeat the same call forever."""

    async def again() -> None:
        while True:
            await one()

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(again())


async def backed_off(call: Call) -> None:
    """Retry rejected requests after delays that double from half a second to 8 s, with jitter."""
    import openai

    delay = 0.5
    while True:
        try:
            return await call()
        except openai.RateLimitError:
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(8.0, 2.0 * delay)


async def ours(url: str) -> tuple[Call, int]:
    """Use the limiter as the judge does: every attempt takes a slot, and rejected ones back off outside it."""
    import openai

    from rc1_lib.judge.limiter import Limiter

    limiter = Limiter(rps=4.0, max_rps=MAX_RPS, concurrency=(2, 8))
    call = sdk_call(url, retries=0)

    async def attempt() -> None:
        async with limiter.slot() as permit:
            started = time.monotonic()
            try:
                await call()
            except openai.RateLimitError:
                permit.throttled(None)
                raise
            permit.answered(time.monotonic() - started)

    return (lambda: backed_off(attempt)), 24


async def fixed(url: str) -> tuple[Call, int]:
    """Use a semaphore of five; a task keeps its place while it backs off, as in most scripts."""
    semaphore = asyncio.Semaphore(5)
    call = sdk_call(url, retries=0)

    async def one() -> None:
        async with semaphore:
            await backed_off(call)

    return one, 24


async def sdk_alone(url: str) -> tuple[Call, int]:
    """Use eight tasks; the SDK retries."""
    import openai

    call = sdk_call(url, retries=10)

    async def one() -> None:
        with contextlib.suppress(openai.RateLimitError):  # after ten retries, go on with the next request
            await call()

    return one, 8


async def litellm_router(url: str) -> tuple[Call, int]:
    """Use eight tasks; litellm's Router retries."""
    import litellm

    litellm.suppress_debug_info = True
    parameters = {"model": f"openai/{MODEL}", "api_base": url, "api_key": "none", "timeout": 60.0}
    router = litellm.Router(model_list=[{"model_name": "judge", "litellm_params": parameters}], num_retries=10)

    async def one() -> None:
        with contextlib.suppress(litellm.RateLimitError):
            await router.acompletion(model="judge", messages=MESSAGES)

    return one, 8


WAYS = {
    OURS: ours,
    "5 at a time, exponential backoff": fixed,
    "the SDK's own retries, 8 at a time": sdk_alone,
    LITELLM: litellm_router,
}


async def send(way: str, url: str) -> None:
    """Send one request to warm up, then as many as possible for the seconds that standard input says."""
    one, tasks = await WAYS[way](url)
    await one()
    print("ready", flush=True)
    seconds = float(await asyncio.to_thread(sys.stdin.readline))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await many(tasks, one)


# ---- the scenarios ----


@dataclass(frozen=True)
class Phase:
    """What the servers allow during one phase."""

    seconds: float
    rps: float | None = None
    concurrent: int | None = None
    at_random: float = 0.0

    def allowed(self, latency_s: float) -> float:
        """Return the most requests that the phase admits, without the initial burst.

        Without a limit, that is what is not rejected of the most that RC1's limiter is set to send.
        """
        if self.rps is not None:
            return self.rps * self.seconds
        if self.concurrent is None:
            return MAX_RPS * self.seconds * (1.0 - self.at_random)
        return self.concurrent * self.seconds / (latency_s * math.exp(SIGMA**2 / 2.0))


@dataclass(frozen=True)
class Scenario:
    """Consecutive phases with one median latency."""

    name: str
    latency_s: float
    phases: tuple[Phase, ...]


@dataclass
class Counted:
    """What a server saw in one phase."""

    admitted: int
    refused: int
    used: float


def run(scenario: Scenario, interpreters: dict[str, str]) -> dict[str, list[Counted]]:
    """Run all ways at once through a scenario, and return what each server counted in each phase."""
    from tests.judge_server import Behaviour, FaultKind, running

    def behaviour(phase: Phase) -> Behaviour:
        return Behaviour(
            latency_ms=(1000.0 * scenario.latency_s, SIGMA),
            rps=phase.rps,
            concurrent=phase.concurrent,
            faults={FaultKind.RATE_LIMIT: phase.at_random},
        )

    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    counted: dict[str, list[Counted]] = {way: [] for way in interpreters}
    with contextlib.ExitStack() as stack:
        servers = {way: stack.enter_context(running(behaviour(scenario.phases[0]))) for way in interpreters}
        senders = {
            way: stack.enter_context(
                subprocess.Popen(
                    [interpreter, __file__, "--way", way, "--url", servers[way].base_url],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL if way == LITELLM else None,  # it logs every retry
                    text=True,
                    env=environment,
                )
            )
            for way, interpreter in interpreters.items()
        }
        for way, sender in senders.items():
            assert sender.stdin is not None
            assert sender.stdout is not None
            if sender.stdout.readline() != "ready\n":
                raise SystemExit(f"'{way}' did not start with {interpreters[way]}; see its message above")
        time.sleep(2.0)  # the token buckets refill after the warm-up requests
        for sender in senders.values():
            assert sender.stdin is not None
            sender.stdin.write(f"{sum(phase.seconds for phase in scenario.phases) + 1.0}\n")
            sender.stdin.flush()
        end = time.monotonic()
        for phase in scenario.phases:
            before = {}
            for way, server in servers.items():
                server.behaviour = behaviour(phase)
                before[way] = server.stats().by_kind
            end += phase.seconds
            time.sleep(max(0.0, end - time.monotonic()))
            for way, server in servers.items():
                after = server.stats().by_kind
                admitted = after.get("ok", 0) - before[way].get("ok", 0)
                refused = sum(
                    after.get(kind, 0) - before[way].get(kind, 0)
                    for kind in ("limited_rps", "limited_concurrent", "rate_limit")
                )
                counted[way].append(Counted(admitted, refused, admitted / phase.allowed(scenario.latency_s)))
        for sender in senders.values():
            sender.wait(timeout=30.0)
    return counted


def report(scenario: Scenario, counted: dict[str, list[Counted]]) -> None:
    """Print the table of one scenario."""
    allowed = sum(phase.allowed(scenario.latency_s) for phase in scenario.phases)
    seconds = sum(phase.seconds for phase in scenario.phases)
    print(f"\n{scenario.name}: {allowed:.0f} requests allowed in {seconds:.0f} s")
    print(f"{'':36}{'a second':>9}{'used':>8}{'429s':>8}{'sent':>7}   ours/this: used  429s   used in each phase")
    admitted = {way: sum(phase.admitted for phase in phases) for way, phases in counted.items()}
    refused = {way: sum(phase.refused for phase in phases) for way, phases in counted.items()}
    share = {way: refused[way] / max(1, admitted[way] + refused[way]) for way in counted}
    for way, phases in counted.items():
        each = "  ".join(f"{phase.used:6.1%}" for phase in phases)
        line = f"{way:36}{admitted[way] / seconds:9.1f}{admitted[way] / allowed:8.1%}{share[way]:8.2%}"
        line += f"{admitted[way] + refused[way]:7}"
        more_used = f"{admitted[OURS] / max(1, admitted[way]):.2f}" if way != OURS else ""
        more_429s = f"{share[OURS] / share[way]:.2f}" if way != OURS and refused[way] else ""
        print(f"{line}{more_used:>18}{more_429s:>6}   {each}")


def interpreters(litellm_python: str | None) -> dict[str, str]:
    """Return the interpreter of each way; litellm is left out if no interpreter has it."""
    found = {way: sys.executable for way in WAYS if way != LITELLM}
    if litellm_python is not None:
        found[LITELLM] = litellm_python
    elif importlib.util.find_spec("litellm") is not None:
        found[LITELLM] = sys.executable
    else:
        print(f"{LITELLM}: skipped, since it is not installed; see --help for how to add it")
    return found


def main() -> None:
    """Run the scenarios, or, in a process that the benchmark started, one way of sending."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short phases, in which the start weighs more")
    parser.add_argument("--random", action="store_true", help="only the scenario that rejects at random")
    parser.add_argument("--rps", type=float, default=20.0, help="the hidden limit on the rate")
    parser.add_argument("--litellm-python", metavar="PATH", help="an interpreter that has litellm")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way is not None:
        asyncio.run(send(options.way, options.url))
        return
    rps, short, long = options.rps, 40.0, 80.0
    if options.quick:
        short, long = 15.0, 15.0
    latency_s = 4.0 / rps  # about four requests in flight at the limit, so concurrency is not the bottleneck
    scenarios = (
        Scenario(f"{rps:g} requests a second", latency_s, (Phase(short, rps=rps),)),
        Scenario("6 requests at a time", 0.3, (Phase(short, concurrent=6),)),
        Scenario(
            f"{rps:g} a second, halved, doubled",
            latency_s,
            (Phase(long, rps=rps), Phase(long, rps=rps / 2.0), Phase(long, rps=rps)),
        ),
        Scenario("8 % refused at random, no limit", 0.07, (Phase(1.5 * long, at_random=0.08),)),
    )
    if options.random:
        scenarios = scenarios[-1:]
    found = interpreters(options.litellm_python)
    for scenario in scenarios:
        report(scenario, run(scenario, found))


if __name__ == "__main__":
    main()
