"""The limiter on a virtual clock: the limits it obeys, the limits it discovers, and no leaked slots."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import pytest

from rc1_lib.judge.limiter import Limiter
from tests.judge.hidden_limits import Limits, campaign, limiter, now, run_virtual


async def send(gate: Limiter, seconds: float = 0.1) -> float:
    """Send one request that is answered, and return when it was sent."""
    async with gate.slot() as permit:
        sent = now()
        await asyncio.sleep(seconds)
        permit.answered(seconds)
    return sent


# ---- discovered limits ----


@pytest.mark.parametrize(("rps", "latency_s"), [(10.0, 0.3), (40.0, 0.05)])
def test_a_rate_limit_is_used_and_rarely_exceeded(rps: float, latency_s: float) -> None:
    outcome = campaign([Limits(1500.0 / rps, rps=rps)], latency_s=latency_s)
    assert outcome.utilisation >= 0.92
    assert outcome.share_429 <= 0.04


@pytest.mark.parametrize("concurrent", [2, 6])
def test_a_concurrency_limit_is_used_and_rarely_exceeded(concurrent: int) -> None:
    outcome = campaign([Limits(800.0 / concurrent, concurrent=concurrent)], latency_s=0.4)
    assert outcome.utilisation >= 0.92
    assert outcome.share_429 <= 0.02
    assert outcome.peak == concurrent


def test_a_share_refused_at_random_does_not_stop_the_limiter() -> None:
    """Every 429 would otherwise lower the pace, down to the lowest. It takes some hundred requests to recognise it."""
    phases = [Limits(60.0, at_random=0.08), Limits(60.0, at_random=0.08)]
    learning, whole = (campaign(phases[:some], latency_s=0.07) for some in (1, 2))
    assert (whole.admitted - learning.admitted) / 60.0 >= 15.0


async def queued(seconds: float, workers: int, work_s: float, timeout_s: float) -> tuple[int, int]:
    """Simulate a server that refuses nothing, serves few at a time, and also serves requests that timed out."""
    gate, free, ends, on_time, late = limiter(rps=50.0), asyncio.Semaphore(workers), now() + seconds, 0, 0

    async def work() -> None:
        async with free:
            await asyncio.sleep(work_s)

    async def ask() -> None:
        nonlocal on_time, late
        while now() < ends:
            async with gate.slot() as permit:
                began = now()
                try:
                    await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(work())), timeout_s)
                except TimeoutError:
                    permit.failed(late=True)
                    late += 1
                else:
                    permit.answered(now() - began)
                    on_time += 1

    await asyncio.gather(*(ask() for _ in range(16)))
    return on_time, late


def test_timeouts_lower_the_concurrency() -> None:
    """Two at a time, one second each: of eight concurrent requests four are on time, in a longer queue none."""
    on_time, late = run_virtual(lambda: queued(300.0, workers=2, work_s=1.0, timeout_s=2.5))
    assert on_time >= 0.8 * 600
    assert late <= 0.2 * on_time


def test_the_highest_rate_is_never_exceeded() -> None:
    async def main() -> list[float]:
        gate = limiter(rps=5.0, max_rps=12.0)
        return sorted(await asyncio.gather(*(send(gate) for _ in range(200))))

    sent = run_virtual(main)
    assert min(later - earlier for earlier, later in pairwise(sent)) == pytest.approx(1 / 12)


# ---- Retry-After ----


def test_no_request_is_sent_before_retry_after_ends() -> None:
    async def main() -> tuple[list[float], float, float]:
        gate = limiter(rps=10.0)
        sent: list[float] = []

        async def one() -> None:
            sent.append(await send(gate))

        async with asyncio.TaskGroup() as group:
            async with gate.slot() as permit:
                for _ in range(50):
                    group.create_task(one())
                await asyncio.sleep(1.0)
                permit.throttled(5000.0)
                until = now() + 5000.0
            await asyncio.sleep(1.0)
            paused = gate.paused_for()
            group.create_task(one())
        assert gate.paused_for() == 0.0
        return sent, until, paused

    sent, until, paused = run_virtual(main)
    assert len(sent) == 51
    assert paused == pytest.approx(4999.0)
    before = [time for time in sent if time < until]
    after = [time for time in sent if time >= until]
    assert max(before) <= until - 5000.0
    assert after[0] == pytest.approx(until)
    # No stampede: the waiting requests leave one by one, and slower than before.
    assert min(later - earlier for earlier, later in pairwise(after[:5])) > before[-1] - before[-2] > 0.0


# ---- order, cancellation, reports ----


def test_slots_are_granted_in_the_order_of_the_requests() -> None:
    async def main() -> list[int]:
        gate, order = limiter(), list[int]()

        async def one(number: int) -> None:
            async with gate.slot() as permit:
                order.append(number)
                await asyncio.sleep(random.Random(number).uniform(0.01, 2.0))
                permit.answered(0.1)

        tasks = [asyncio.create_task(one(number)) for number in range(60)]
        await asyncio.sleep(1.0)
        for number in range(30, 60, 3):
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return order

    assert run_virtual(main) == [number for number in range(60) if number < 30 or number % 3]


@pytest.mark.parametrize("seed", range(2))
def test_cancelled_requests_leak_no_slot(seed: int) -> None:
    async def main() -> None:
        rng = random.Random(seed)
        gate = limiter(rps=20.0)

        async def one() -> None:
            async with gate.slot() as permit:
                await asyncio.sleep(rng.uniform(0.0, 0.5))
                end = rng.random()
                if end < 0.05:
                    permit.throttled(rng.choice((None, 0.3)))
                elif end < 0.1:
                    permit.failed()
                else:
                    permit.answered(0.1)

        tasks = [asyncio.create_task(one()) for _ in range(400)]
        for task in rng.sample(tasks, 300):
            await asyncio.sleep(rng.uniform(0.0, 0.05))
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert gate.stats().in_flight == 0
        bound = gate.stats().concurrency
        async with asyncio.TaskGroup() as group:
            again = [group.create_task(send(gate, seconds=1e6)) for _ in range(bound)]
        assert all(task.done() for task in again)

    run_virtual(main)


def test_a_block_that_raises_releases_its_slot() -> None:
    async def main() -> int:
        gate = limiter(concurrency=(1, 1))
        for _ in range(3):
            with pytest.raises(ValueError, match="broken"):
                async with gate.slot():
                    raise ValueError("broken")
        return gate.stats().in_flight

    assert run_virtual(main) == 0


# ---- evidence ----


def test_a_dead_provider_is_still_tried_at_the_lowest_rate() -> None:
    async def main() -> tuple[float, float]:
        gate = limiter()
        for _ in range(400):
            async with gate.slot() as permit:
                permit.throttled(None)
        lowest = gate.stats().rate
        for _ in range(300):
            await send(gate, seconds=0.0)
        return lowest, gate.stats().rate

    lowest, recovered = run_virtual(main)
    assert lowest == pytest.approx(0.1, rel=0.1)
    assert recovered > 4.0


# ---- figures for the log ----


def test_the_reported_traffic_equals_the_requests() -> None:
    async def main() -> None:
        gate = limiter()
        empty = gate.stats()
        assert (empty.rps, empty.share_429, empty.avg_latency_ms, empty.p95_latency_ms) == (0.0, 0.0, None, None)
        for number in range(1, 20):
            async with gate.slot() as permit:
                permit.answered(number / 1000.0)
        async with gate.slot() as permit:
            permit.throttled(None)
            assert gate.stats().in_flight == 1
        async with gate.slot() as permit:
            permit.failed()
        seconds = now()
        traffic = gate.stats()
        assert traffic.rps == pytest.approx(21 / seconds)
        assert traffic.share_429 == 1 / 20
        assert traffic.avg_latency_ms == pytest.approx(10.0)
        assert traffic.p95_latency_ms == pytest.approx(19.0)
        assert traffic.in_flight == 0
        await asyncio.sleep(61.0)
        later = gate.stats()
        assert (later.rps, later.share_429, later.avg_latency_ms) == (0.0, 0.0, None)

    run_virtual(main)
