"""Loading through Hugging Face `datasets`, with real local files, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.run import open_run
from rc1_lib.sources import sources_sha256
from rc1_lib.sources.hub import load_hub
from rc1_lib.sources.local import load_local
from rc1_lib.workspace.artifacts import Workspace

HOTPOT: dict[str, Any] = {
    "id": "a1",
    "question": "Who is mayor of the place where Brindle Tower stands?",
    "answer": "Ida Voss",
    "type": "bridge",
    "level": "easy",
    "supporting_facts": {"title": ["Brindle Tower", "Quorn"], "sent_id": [0, 0]},
    "context": {
        "title": ["Quorn", "Brindle Tower"],
        "sentences": [["Its mayor is Ida Voss."], ["It stands in Quorn."]],
    },
}
STRATEGY: dict[str, Any] = {
    "qid": "q1",
    "term": "Brindle Tower",
    "description": "tower",
    "question": "Is Brindle Tower tall?",
    "answer": True,
    "facts": "Brindle Tower is 90 metres tall. Tall means over 50 metres.",
}
STORY: dict[str, Any] = {"question": "He packed 3 pears. How many are two packs?", "answer": "<<3*2=6>>\n#### 6"}


def _write(folder: Path, task: str, *records: dict[str, Any]) -> Path:
    file = folder / task / "train.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def test_files_loaded_through_datasets_equal_those_of_the_local_reader(tmp_path: Path) -> None:
    data = tmp_path / "data"
    names = {
        "gsm8k": str(_write(data, "gsm8k", STORY, STORY)),
        "hotpotqa": str(_write(data, "hotpotqa", HOTPOT)),
        "strategyqa": str(_write(data, "strategyqa", STRATEGY).parent),
    }
    tasks = ["gsm8k", "hotpotqa", "strategyqa"]
    loaded = load_hub(names, tasks, cache_dir=tmp_path / "cache")
    assert loaded == load_local(data, tasks)
    assert loaded["gsm8k"].skipped == {"duplicate question": 1}
    assert [question.id for question in loaded["strategyqa"].questions] == ["strategyqa/train/0"]


def test_the_fingerprint_covers_local_files(tmp_path: Path) -> None:
    file = _write(tmp_path, "gsm8k", STORY)
    config = open_run(overrides=["sources.use=hub", f"sources.hub.gsm8k={file}"], workspace=tmp_path).config
    before = sources_sha256(config, Workspace(tmp_path))
    file.write_text(file.read_text() + json.dumps(STORY) + "\n")
    assert sources_sha256(config, Workspace(tmp_path)) not in (before, "hub")


def test_a_row_with_other_columns_raises_an_error_that_names_its_number(tmp_path: Path) -> None:
    file = _write(tmp_path, "gsm8k", {"problem": "Why?", "solution": "#### 1"})
    with pytest.raises(SourceError, match=r"row 0 .*'train': .*'question'"):
        load_hub({"gsm8k": str(file)}, ["gsm8k"], cache_dir=tmp_path / "cache")


def test_a_missing_path_is_not_taken_for_a_hub_name(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"none\.jsonl .*\bhub\b"):
        load_hub({"gsm8k": str(tmp_path / "none.jsonl")}, ["gsm8k"])


@pytest.fixture
def proxy() -> Iterator[str]:
    """A proxy that refuses every request."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("why", ["offline", "a proxy refuses"])
def test_an_unreachable_hub_raises_an_error_with_the_remedy(why: str, proxy: str, tmp_path: Path) -> None:
    # `datasets` reads its offline switch once, at import: only a separate process is surely offline.
    program = (
        "from rc1_lib.errors import SourceError\n"
        "from rc1_lib.sources.hub import load_hub\n"
        "try:\n    load_hub({'gsm8k': 'openai/gsm8k'}, ['gsm8k'])\n"
        "except SourceError as error:\n    print(error)\n"
    )
    cause = {"HF_HUB_OFFLINE": "1"} if why == "offline" else {"HF_HUB_OFFLINE": "0", "HTTPS_PROXY": proxy}
    environment = {**os.environ, **cause, "HF_HOME": str(tmp_path)}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("the gsm8k data set 'openai/gsm8k' could not be loaded (")
    assert done.stdout.strip().endswith("or use a folder with the data sets' files as the source instead.")
