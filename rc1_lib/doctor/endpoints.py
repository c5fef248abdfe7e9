"""Checks that the servers of judge and vLLM are reachable. It sends them nothing of a run."""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request
from dataclasses import replace

from rc1_lib.config.addresses import VLLM_KEY, read_address
from rc1_lib.doctor.base import base_config, base_folder
from rc1_lib.doctor.finding import Finding
from rc1_lib.errors import RC1Error
from rc1_lib.judge.judge import check_judge
from rc1_lib.judge.providers import LIVE, address_of
from rc1_lib.run import Run
from rc1_lib.training.run_paths import SFT

_TIMEOUT_S = 3.0
_SECRET = "rc1-scorer-api-key"


def look_at_judge(run: Run) -> Finding:
    """Whether the judge, if training pays its score, may be called with a key of this environment, and answers."""
    judge = run.config.judge
    if why := run.config.why_not_judged:
        return Finding(f"none: {why}")
    try:
        check_judge(run)
    except RC1Error as error:
        return Finding(
            f"{judge.provider}: it cannot be called from this environment",
            f"{error} A flow without a key uses the Prefect secret {_SECRET}. If you keep the key there, ignore "
            f"this: the doctor only reads the environment and asks no server",
        )
    if judge.provider not in LIVE:
        return Finding(f"none: {judge.provider} runs in this process")
    address = address_of(judge.provider, judge.base_url)
    host = read_address(address).hostname
    why = unreachable(address)
    if not why:
        return Finding(f"{judge.provider} at {host} answers")
    return Finding(
        f"{judge.provider} at {host}: {why}",
        "start the server, correct judge.base_url (SCORER_BASE_URL), or allow this machine to connect",
    )


def look_at_vllm(run: Run) -> Finding:
    """Whether the vLLM server, if one samples, answers and has the right options, as far as it reports them.

    The first rollout checks whether it serves the initial policy.
    """
    training = run.config.training
    if training.rollout.sampler != "vllm":
        return Finding(f"none: training.rollout.sampler is {training.rollout.sampler}")
    from rc1_lib.training.rollout.decoder import longest_dialogue
    from rc1_lib.training.vllm.adapter import PREFIX
    from rc1_lib.training.vllm.server import GO_ON, Served, VLLMError, access_of, connected, quoted

    access = replace(access_of(training.vllm), retries=0, timeout_s=_TIMEOUT_S)

    async def asked() -> tuple[Served, bool]:
        async with connected(access) as server:
            return await server.served(), await server.loads_adapters()

    try:
        served, loads = asyncio.run(asked())
    except VLLMError as error:
        return Finding(
            str(error).removesuffix(f". {GO_ON}"),
            f"start it (docs/how-to/vllm.md), correct training.vllm.base_url, or set {VLLM_KEY} if it requires a key",
        )
    base, longest = base_folder(run), longest_dialogue(training, base_config(run))
    faults = []
    if served.context < longest:
        faults.append(
            f"a dialogue may have {longest:,} tokens (training.max_tokens + training.limits.tokens, or the policy's "
            f"context): start it with --max-model-len {longest} or more"
        )
    if not loads:
        faults.append(
            f"it does not load adapters: start it with --enable-lora, --max-lora-rank {training.adapter.rank} or more, "
            f"and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment"
        )
    if training.warm_start.steps and served.root in (str(base), str(base.resolve()), run.config.base_model):
        faults.append(f"that is base_model, but training starts from {SFT}, the result of the warm start: serve that")
    left = [name for name in served.adapters if name.startswith(PREFIX)]
    return Finding(
        f"{access.host} serves '{quoted(served.root)}', {served.context:,} tokens long"
        + (f"; {len(left)} adapters of other or killed runs are loaded" if left else ""),
        "; ".join(faults),
    )


def unreachable(address: str) -> str:
    """Why no server answers there in time; "" if one does, whatever it says. The address is not repeated."""
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S):
            return ""
    except urllib.error.HTTPError:
        return ""
    except urllib.error.URLError as error:
        return str(getattr(error.reason, "strerror", None) or error.reason)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{type(error).__name__}"
