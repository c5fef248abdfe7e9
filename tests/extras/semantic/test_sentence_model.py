"""What is read as a sentence-embedding model, and what is refused with which sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rc1_lib.extras.semantic.sentence_model as sentence_model
from rc1_lib.cli import main
from rc1_lib.errors import RC1Error
from rc1_lib.extras.semantic.sentence_model import SentenceModel, check_folder

from .sentence_folders import bag_of_words

WORDS = "who built the tower of ara when it was new and where does a river run".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag_of_words(tmp_path_factory.mktemp("sentence") / "model", WORDS)


def test_a_text_has_the_same_vector_whatever_stands_next_to_it(folder: Path) -> None:
    model = SentenceModel(folder)
    short, long = "who built ara", " ".join(WORDS)
    (together, cut), (alone, _) = model.vectors([short, long, short]), model.vectors([short])
    assert not cut.any()
    assert together.shape == (3, 64)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(together[[0, 2]], alone, atol=1e-5)
    assert float(together[0] @ together[1]) < 0.99


def test_texts_of_every_length_keep_their_places_in_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SentenceModel(folder)
    texts = [" ".join(WORDS[:count]) for count in (1, 9, 3, 16, 2, 16)]
    at_once, _ = model.vectors(texts)
    monkeypatch.setattr(sentence_model, "_TOKENS", 20)
    assert np.allclose(model.vectors(texts)[0], at_once, atol=1e-5)


def test_what_is_longer_than_the_model_reads_is_counted(folder: Path) -> None:
    model = SentenceModel(folder)
    vectors, cut = model.vectors(["who " * 63, "who " * 200 + "built", "who " * 62])  # and two marks around them
    assert (model.longest, cut.tolist()) == (64, [True, True, False])
    assert np.allclose(vectors[0], vectors[1], atol=1e-5)


def test_the_first_state_counts_where_the_model_says_so(folder: Path, tmp_path: Path) -> None:
    first = SentenceModel(bag_of_words(tmp_path / "first", WORDS, "cls_token"))
    mean, unsaid = SentenceModel(folder), SentenceModel(bag_of_words(tmp_path / "unsaid", WORDS, ""))
    text = ["who built the tower"]
    assert not np.allclose(first.vectors(text)[0], mean.vectors(text)[0], atol=1e-2)
    assert np.allclose(unsaid.vectors(text)[0], mean.vectors(text)[0], atol=1e-6)


def _without(name: str) -> Callable[[Path], None]:
    return lambda folder: next(folder.glob(name)).unlink()


def _says(name: str, body: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_text(body if isinstance(body, str) else json.dumps(body))

    return write


def _truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _of_no_number(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({name: np.full_like(one, np.nan) for name, one in weights.items()}, folder / "model.safetensors")


def _one_lacks(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.0.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (shutil.rmtree, "folder .*model not found; "),
        (_without("config.json"), r"\(no config\.json\)"),
        (_without("*.safetensors"), r"\*\.safetensors"),
        (_says("modules.json", [{"type": "sentence_transformers.models.Dense"}]), " Dense, .*Transformer"),
        (_says("modules.json", {}), r"modules\.json .*dict, .*list"),
        (_says("1_Pooling/config.json", {"pooling_mode_max_tokens": True}), "says pooling_mode_max_tokens, expected"),
        (_says("1_Pooling/config.json", "{"), r"1_Pooling/config\.json .*JSON"),
        (_without("tokenizer.json"), "cannot be read as a sentence-embedding model"),
        (_says("config.json", {"model_type": "nothing"}), "cannot be read as a sentence-embedding model"),
        (_truncated, "cannot be read as a sentence-embedding model"),
        (_one_lacks, r" encoder\.layer\.0\.output\.dense\.weight"),
        (_of_no_number, "weights .*damaged"),
    ],
)
def test_what_is_no_sentence_model_is_refused(
    folder: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "model"))
    damage(copy)
    with pytest.raises(RC1Error, match=f"gates.leakage.semantic.model: .*{said}"):
        SentenceModel(copy)


def test_missing_libraries_are_named_with_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_model, "find_spec", lambda name: None if name == "torch" else True)
    with pytest.raises(RC1Error, match=r"^gates\.leakage\.semantic\.model .*torch.*rc1\[semantic\]"):
        check_folder(folder)


def test_a_preflight_refuses_a_missing_folder_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--set", "gates.leakage.semantic.model=models/sentences")
    with pytest.raises(SystemExit, match="2"):
        main(["preflight", "--workspace", str(tmp_path / "ws"), *settings])
    assert "gates.leakage.semantic.model: folder" in capsys.readouterr().err
    assert not (tmp_path / "ws" / "seeds").exists()
