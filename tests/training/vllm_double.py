"""A local server that speaks vLLM's protocol as observed on vLLM 0.32; a tiny model answers.

It samples with RC1's decoder, one request at a time. A test makes it misbehave with `change`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, PreTrainedModel

from rc1_lib.training.rollout.decoder import Decoder, draw
from rc1_lib.training.rollout.sampling_weights import merged

Answer = tuple[int, Any]
Change = Callable[[str, dict[str, Any], Answer], Answer]
"""Makes another answer from path, request and answer."""
CONTEXT = 1024
_ANSWERS: dict[str, Any] = {}
"""Request -> answer, for all doubles of a process: tests begin with the same base and the same steps."""


class VLLMDouble:
    """Serves a base and the adapters that clients load.

    Attributes:
        base_url: its address.
        loaded: names of the adapters that it has.
        asked: every request: its path and body.
        headers: of the last request, names in lower case.
        change: changes an answer.
        raw: whether it returns log-probabilities of temperature 1, as vLLM does by default.
        context: its context length in tokens.
        release: set when it stops, for requests that wait.
    """

    def __init__(self, base: Path) -> None:
        self._base: PreTrainedModel = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
        self._root, self._models, self._lock = str(base), dict[str, PreTrainedModel](), threading.Lock()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: dict[str, str] = {}
        self.change: Change = lambda path, body, answer: answer
        self.raw, self.context = False, CONTEXT
        self._kept: PreTrainedModel | None = None
        self._sha256 = WeakKeyDictionary[PreTrainedModel, str]()
        self.release = threading.Event()
        self.base_url = ""

    @property
    def loaded(self) -> list[str]:
        return list(self._models)

    def keep(self, name: str) -> None:
        """Answer with this adapter whatever is requested, also after it was unloaded."""
        self._kept = self._models[name]

    def names(self, path: str) -> list[str]:
        """Adapters that requests of this path were about, in order."""
        return [body["lora_name"] for where, body in self.asked if where == path]

    def answer(self, path: str, body: dict[str, Any]) -> Answer:
        with self._lock:
            self.asked.append((path, body))
            return self.change(path, body, self._answer(path, body))

    def routes(self, path: str) -> Answer:
        """The answer to GET of a path that takes only POST."""
        return self.change(path, {}, (405, {"detail": "Method Not Allowed"}))

    def _answer(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "models":
            card = {"id": "base", "root": self._root, "parent": None, "max_model_len": self.context}
            others = [{"id": name, "root": "", "parent": "base", "max_model_len": None} for name in self._models]
            return 200, {"object": "list", "data": [card, *others]}
        if path == "load_lora_adapter":
            if body["lora_name"] in self._models:
                return 400, _error(f"The lora adapter '{body['lora_name']}' has already been loaded.", 400)
            adapted = PeftModel.from_pretrained(copy.deepcopy(self._base), body["lora_path"])
            self._models[body["lora_name"]] = adapted.get_base_model().eval()
            return 200, f"Success: LoRA adapter '{body['lora_name']}' added successfully."
        if path == "unload_lora_adapter":
            if self._models.pop(body["lora_name"], None) is None:
                return 404, _error(f"The lora adapter '{body['lora_name']}' cannot be found.", 404)
            return 200, f"Success: LoRA adapter '{body['lora_name']}' removed successfully."
        assert path == "completions", path
        if body["model"] not in ("base", *self._models):
            return 404, _error(f"The model `{body['model']}` does not exist.", 404)
        if len(body["prompt"]) + body["max_tokens"] > self.context:
            return 400, _error(f"This model's maximum context length is {self.context} tokens.", 400)
        return 200, self._completion(body)

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        model = self._models.get(body["model"], self._base)
        if self._kept is not None and body["model"] != "base":
            model = self._kept
        asked = {name: body[name] for name in ("prompt", "max_tokens", "seed", "temperature", "stop_token_ids")}
        key = json.dumps([self._digest(model), asked, self.raw], sort_keys=True)
        if key not in _ANSWERS:
            _ANSWERS[key] = self._sampled(model, body)
        return copy.deepcopy(_ANSWERS[key]) | {"model": body["model"]}

    def _digest(self, model: PreTrainedModel) -> str:
        """Of all its weights, with the adapter's."""
        if model not in self._sha256:
            digest = hashlib.sha256()
            for name, weight in sorted(model.state_dict().items()):
                digest.update(name.encode() + weight.numpy().tobytes())
            self._sha256[model] = digest.hexdigest()
        return self._sha256[model]

    def _sampled(self, model: PreTrainedModel, body: dict[str, Any]) -> dict[str, Any]:
        ids: list[int] = []
        logprobs: list[float] = []
        numbers = np.random.default_rng(body["seed"]).random(body["max_tokens"])
        with merged(model), Decoder(model, 0, 1).running() as decoder:
            logits_1V = decoder.admit([body["prompt"]])
            for at, number in enumerate(numbers):
                token, logprob = draw(logits_1V, np.array([number]), body["temperature"])
                ids += token
                logprobs += [float(torch.log_softmax(logits_1V[0].float(), -1)[token[0]])] if self.raw else logprob
                if token[0] in body["stop_token_ids"] or at == len(numbers) - 1:
                    break
                logits_1V = decoder.step(token, [len(body["prompt"]) + at])
        ended = ids[-1] in body["stop_token_ids"]
        choice = {
            "index": 0, "text": "", "finish_reason": "stop" if ended else "length",
            "stop_reason": ids[-1] if ended else None, "token_ids": ids, "prompt_token_ids": body["prompt"],
            "logprobs": {"token_logprobs": logprobs, "tokens": [f"token_id:{one}" for one in ids]},
        }  # fmt: skip
        return {"id": "cmpl-0", "object": "text_completion", "choices": [choice]}


def _error(message: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": "BadRequestError", "param": None, "code": code}}


@contextmanager
def served(base: Path) -> Iterator[VLLMDouble]:
    """The double at a free port of this machine."""
    double = VLLMDouble(base)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.endswith("_lora_adapter"):
                double.asked.append((self.path.removeprefix("/v1/"), {}))
                self._give_at_once(*double.routes(self.path.removeprefix("/v1/")))
            else:
                self._give({})

        def do_POST(self) -> None:
            self._give(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _give(self, body: dict[str, Any]) -> None:
            double.headers = {name.lower(): value for name, value in self.headers.items()}
            self._give_at_once(*double.answer(self.path.removeprefix("/v1/"), body))

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client has closed the connection
                super().handle()

        def _give_at_once(self, status: int, answer: Any) -> None:
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Retry-After-Ms", "1")  # the client waits no longer before it asks again
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # the client has closed the connection
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # closing waits for them: one that still computes when Python ends would abort it
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    double.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield double
    finally:
        double.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
