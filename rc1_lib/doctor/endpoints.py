"""Who has to be reached: the servers of judge, Prefect and vLLM. Nothing of a run is sent to any of them."""

from __future__ import annotations

import asyncio
import http.client
import os
import urllib.error
import urllib.request
from dataclasses import replace

from rc1_lib.config.addresses import KEY_VARIABLE, VLLM_KEY, read_address
from rc1_lib.doctor.base_files import read_base
from rc1_lib.doctor.finding import Finding
from rc1_lib.errors import RC1Error
from rc1_lib.preflight.ticket_key import ticket_key
from rc1_lib.run import TICKET_KEY, Run
from rc1_lib.scoring.judge import check_judge
from rc1_lib.scoring.providers import LIVE, address_of
from rc1_lib.training.run_paths import SFT

_TIMEOUT_S = 3.0
_PREFECT = "PREFECT_API_URL"
_WEBHOOK = "RC1_WEBHOOK_SECRET_URL"
_SECRET = "rc1-scorer-api-key"


def look_at_keys(run: Run) -> Finding:
    """Whether the environment holds the keys that this run needs; which, and never what they are.

    What a Prefect server keeps in blocks is not asked for: it would be a secret in a process that has no use for it.
    """
    there = [name for name in (KEY_VARIABLE, TICKET_KEY, _WEBHOOK) if os.environ.get(name)]
    found = f"set: {', '.join(there) or 'none'}; needed by the judge {run.config.judge.provider}: "
    try:
        ticket_key(run)
    except RC1Error as error:
        return Finding(f"set: {', '.join(there)}", str(error))
    try:
        check_judge(run)
    except RC1Error as error:
        return Finding(
            f"{found}what is missing from this environment",
            f"{error} A flow that finds none takes the Prefect secret {_SECRET}: where you keep it there this is no "
            f"fault, and nobody can tell from here, since the doctor reads the environment alone and asks no server",
        )
    return Finding(f"{found}{'nothing more' if run.config.judge.provider in LIVE else 'none'}")


def look_at_judge(run: Run) -> Finding:
    """Whether the judge's server answers at all."""
    judge = run.config.judge
    if judge.provider not in LIVE:
        return Finding(f"none: {judge.provider} is asked in this process")
    address = address_of(judge.provider, judge.base_url)
    host = read_address(address).hostname
    why = unreachable(address)
    if not why:
        return Finding(f"{judge.provider} at {host} answers")
    return Finding(
        f"{judge.provider} at {host}: {why}",
        "start the server, correct judge.base_url (SCORER_BASE_URL), or let this machine through to it",
    )


def look_at_prefect(_: Run) -> Finding:
    """Whether the Prefect server answers that deployments would be started on."""
    named = os.environ.get(_PREFECT, "")
    if not named:
        return Finding(f"{_PREFECT} names none: a command starts its own where none serves the workspace")
    why = unreachable(f"{named.rstrip('/')}/health")
    if not why:
        return Finding(f"the server of {_PREFECT} answers")
    return Finding(f"the server of {_PREFECT}: {why}", f"start it (make serve), or unset {_PREFECT}")


def look_at_vllm(run: Run) -> Finding:
    """Whether the vLLM server answers where one samples, and is started as it has to be, as far as it tells.

    Whether what it serves is the policy that training starts from is looked at by the first rollout.
    """
    training = run.config.training
    if training.rollout.sampler != "vllm":
        return Finding(f"none: training.rollout.sampler is {training.rollout.sampler}")
    from rc1_lib.training.rollout.decoding import longest_dialogue
    from rc1_lib.training.rollout.vllm.adapter import PREFIX
    from rc1_lib.training.rollout.vllm.server import GO_ON, Served, VLLMError, access_of, connected, quoted

    access = replace(access_of(training.vllm), attempts=1, timeout_s=_TIMEOUT_S, bound="the doctor's")

    async def asked() -> tuple[Served, bool]:
        async with connected(access) as server:
            return await server.served(), await server.loads_adapters()

    try:
        served, loads = asyncio.run(asked())
    except VLLMError as error:
        return Finding(
            str(error).removesuffix(f". {GO_ON}"),
            f"start it (docs/how-to/vllm.md), correct training.vllm.base_url, or set {VLLM_KEY} if it wants a key",
        )
    found = read_base(run)
    base, longest = found.folder, longest_dialogue(training, found.configuration())
    faults = []
    if served.context < longest:
        faults.append(
            f"a dialogue may have {longest:,} tokens (training.max_tokens + training.limits.tokens, or all that the "
            f"policy reads): start it with --max-model-len {longest} or more"
        )
    if not loads:
        faults.append(
            f"it loads no adapters: start it with --enable-lora, --max-lora-rank {training.adapter.rank} or more, and "
            f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment"
        )
    if training.warm_start.steps and served.root in (str(base), str(base.resolve()), run.config.base_model):
        faults.append(f"that is base_model, but training starts from {SFT}, which the warm start makes of it: serve it")
    left = [name for name in served.adapters if name.startswith(PREFIX)]
    return Finding(
        f"{access.host} serves '{quoted(served.root)}', {served.context:,} tokens long"
        + (f"; {len(left)} adapters of other runs, or of one that was killed, are loaded" if left else ""),
        "; ".join(faults),
    )


def unreachable(address: str) -> str:
    """Why nobody answers there in time; "" where anybody does, whatever it says. The address is not repeated."""
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S):
            return ""
    except urllib.error.HTTPError:
        return ""
    except urllib.error.URLError as error:
        return str(getattr(error.reason, "strerror", None) or error.reason)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{type(error).__name__}"
