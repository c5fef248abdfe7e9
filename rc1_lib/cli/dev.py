"""`dev judge-server`, a test double of a judge for trying the pipeline and its limits; and `dev reference`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from rc1_lib.cli.session import Session
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import INSTALLED, PROJECT_ROOT, write_text

if TYPE_CHECKING:
    from rc1_lib.testing.judge_server import FaultKind, JudgeServer, Manner, Stats

_LISTEN_S = 0.2


def judge_server(
    session: Session,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port, open to this machine only; 0 takes a free one.")
    ] = 8901,
    seed: Annotated[int, typer.Option(help="Seed of grades, noise, latencies and faults.")] = 0,
    latency_ms: Annotated[float, typer.Option(min=0, help="Median latency of a reply in milliseconds.")] = 20.0,
    noise_sd: Annotated[float, typer.Option(min=0, help="Standard deviation of the noise on each grade.")] = 0.02,
    rps: Annotated[
        float | None, typer.Option(help="Requests per second; above this it answers 429. Default: no limit.")
    ] = None,
    concurrent: Annotated[
        int | None, typer.Option(min=1, help="Concurrent requests; above this it answers 429. Default: no limit.")
    ] = None,
    retry_after: Annotated[
        float | None, typer.Option(min=0, help="Retry-After of its 429 replies, in seconds. Default: none.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=RATE", help="Share of requests that fail this way, for example reset=0.1; repeatable."
        ),
    ] = None,
    shift: Annotated[
        float, typer.Option(min=-1, max=1, help="Added to every grade, as if the judge had become milder.")
    ] = 0.0,
    model: Annotated[
        str, typer.Option(help="Model version that it reports; begins with rc1-test-double.")
    ] = "rc1-test-double-1",
    manner: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Imitate a provider's quirk, for example no_temperature; repeatable."),
    ] = None,
    finish: Annotated[str | None, typer.Option(help="The finish reason of its replies. Default: stop.")] = None,
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="Answer a repeated Idempotency-Key from memory, at no cost.")
    ] = False,
) -> int:
    """Serve a TEST DOUBLE of a judge until interrupted: it speaks OpenAI's and Gemini's protocols and makes scores up.

    It does not start with profile prod.
    """
    profile = session.options.profile or os.environ.get("RUN_MODE") or "local"
    if profile != "local":
        raise RC1Error(
            f"dev judge-server: the profile is {profile} (--profile or RUN_MODE), but this test double makes up its "
            "scores; use profile local, or a real judge"
        )
    from rc1_lib.testing.judge_server import Behaviour, running

    behaviour = Behaviour(
        seed=seed, latency_ms=(latency_ms, 0.4), noise_sd=noise_sd, model=model, faults=_faults(fault or ()), rps=rps,
        concurrent=concurrent, retry_after=retry_after, idempotent=idempotent, shift=shift,
        manners=_manners(manner or ()), finish=finish,
    )  # fmt: skip
    with running(behaviour, port=port) as server:
        session.show(*_invitation(server))
        # In short waits: with polars' handler of SIGINT the system resumes a long one, and Ctrl-C would have no effect.
        with suppress(KeyboardInterrupt):  # how the user stops it
            while not threading.Event().wait(_LISTEN_S):
                pass
    session.show("", *_summary(server.stats()))
    return 0


def _manners(given: Sequence[str]) -> tuple[Manner, ...]:
    from rc1_lib.testing.judge_server import Manner

    known = {manner.value: manner for manner in Manner}
    for name in given:
        if name not in known:
            raise RC1Error(f"--manner {name}: expected one of {', '.join(known)}")
    return tuple(known[name] for name in given)


def _faults(given: Sequence[str]) -> dict[FaultKind, float]:
    from rc1_lib.testing.judge_server import FaultKind

    known = {kind.value: kind for kind in FaultKind}
    found: dict[FaultKind, float] = {}
    for text in given:
        name, separator, rate = (piece.strip() for piece in text.partition("="))
        if not separator or name not in known:
            raise RC1Error(
                f"--fault {text}: expected KIND=RATE, for example reset=0.1; KIND is one of {', '.join(known)}"
            )
        if known[name] in found:
            raise RC1Error(f"--fault {text}: '{name}' is given twice; name each once")
        try:
            found[known[name]] = float(rate)
        except ValueError:
            raise RC1Error(f"--fault {text}: the rate is '{rate}', expected a number from 0 to 1") from None
    return found


def _invitation(server: JudgeServer) -> tuple[str, ...]:
    model = server.behaviour.model
    return (
        "TEST DOUBLE: this is not a judge. It makes its scores up.",
        "",
        "In another terminal, as an OpenAI-compatible judge:",
        f"  export SCORER_PROVIDER=openai SCORER_BASE_URL={server.base_url} SCORER_API_KEY=anything-at-all",
        f"  rc1 probe-scorer --set judge.model={model}",
        "or as Gemini:",
        f"  export SCORER_PROVIDER=gemini SCORER_BASE_URL={server.gemini_url} SCORER_API_KEY=anything-at-all",
        f"  rc1 probe-scorer --set judge.model={model}",
        f"Counts so far: {server.gemini_url}/stats",
        "",
        "Ctrl-C stops it.",
    )


def _summary(stats: Stats) -> tuple[str, ...]:
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(stats.by_kind.items()))
    twice = sum(times > 1 for times in stats.billed_by_key.values())
    return (
        f"TEST DOUBLE ended: {stats.requests} requests ({kinds or 'none'})",
        f"  {stats.answered} replies billed, {twice} idempotency keys more than once; "
        f"{stats.tokens_in} tokens in, {stats.tokens_out} out; at most {stats.peak_concurrent} requests at a time",
    )


def reference_of(app: typer.Typer) -> Callable[..., int]:
    """Return the command that compares the reference pages with `app`, or writes them."""

    def reference(
        session: Session,
        write: Annotated[bool, typer.Option("--write", help="Write the pages; otherwise only compare them.")] = False,
    ) -> int:
        """Compare docs/reference with the code, or write it: all configuration keys and all commands."""
        from rc1_lib.cli.reference import FOLDER, pages

        del session
        if INSTALLED:  # the pages would be written into the package, whose fingerprint tickets name
            raise RC1Error("docs/reference is not in an installed package; run `rc1 dev reference` in a checkout")
        differ = []
        for name, text in pages(app).items():
            page = PROJECT_ROOT / FOLDER / name
            if page.is_file() and page.read_text(encoding="utf-8") == text:
                continue
            differ.append(f"{FOLDER}/{name}")
            if write:
                write_text(page, text)
                print(f"written: {FOLDER}/{name}")
        if differ and not write:
            raise RC1Error(f"{' and '.join(differ)}: out of date; run `rc1 dev reference --write`")
        print(f"{FOLDER}: up to date")
        return 0

    return reference
