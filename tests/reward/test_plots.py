"""The plots: right figures, the same bytes each time, nothing cut off."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image
from scipy import stats

from rc1_lib.plots import reward as plots
from rc1_lib.plots.reward import binned

pytestmark = pytest.mark.usefixtures("drawn")


def dialogues(rows: int = 245) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    quality = rng.beta(3, 2, rows)
    return pl.DataFrame(
        {
            "old": np.round(0.6 + 0.3 * quality + rng.normal(0, 0.05, rows), 2).clip(0, 1),
            "new": quality,
            "solved": rng.random(rows) < quality,
        }
    )


def split(**changed: float | None) -> dict[str, dict[str, float | None]]:
    half = {f"{name}_{side}": 0.5 for name in ("success", "overclar_rate", "avg_turns") for side in ("old", "new")}
    return {"easy": {"n": 60.0, **half}, "hard": {"n": 80.0, **half, **changed}}


WEIGHTS: dict[str, tuple[float, float, float, float | None, float | None]] = {
    "answered": (0.2, 0.5, 0.7, 0.6, 0.8),
    "settled": (0.0, 0.5, 0.3, None, None),
}


def draw_all(folder: Path) -> dict[str, bytes]:
    frame = dialogues()
    plots.reliability(folder / "reliability.png", frame, {"old score": "old", "new reward": "new"}, outcome="solved")
    plots.weights(folder / "weights.png", WEIGHTS, cap=0.8, caption="n = 1,500")
    plots.by_bucket(folder / "buckets.png", split())
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_plots_are_900_wide_opaque_and_without_metadata(tmp_path: Path) -> None:
    names = draw_all(tmp_path)
    assert sorted(names) == ["buckets.png", "reliability.png", "weights.png"]
    for name in names:
        with Image.open(tmp_path / name) as image:
            assert image.format == "PNG"
            assert image.width == 900
            assert set(image.info) == {"dpi"}
            assert image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


def test_the_same_data_give_the_same_bytes_in_every_thread(tmp_path: Path) -> None:
    def draw(number: int) -> tuple[bytes, bytes]:
        buckets, weights = tmp_path / f"{number}/buckets.png", tmp_path / f"{number}/weights.png"
        plots.by_bucket(buckets, split())
        plots.weights(weights, WEIGHTS, cap=0.8)
        return buckets.read_bytes(), weights.read_bytes()

    first = draw(0)
    with ThreadPoolExecutor(3) as pool:
        assert all(other == first for other in pool.map(draw, range(1, 4)))


def test_importing_the_plots_does_not_import_matplotlib() -> None:
    code = "import sys, rc1_lib.plots.reward; sys.exit('matplotlib' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_bins_hold_equal_counts_and_jeffreys_intervals() -> None:
    frame = pl.DataFrame({"score": np.arange(40) / 40, "success": [False] * 10 + [True, False] * 10 + [True] * 10})
    found = binned(frame, "score", "success", bins=4, confidence=0.9)
    assert found["count"].to_list() == [10, 10, 10, 10]
    assert found["share"].to_list() == [0.0, 0.5, 0.5, 1.0]
    assert found["score"].to_list() == pytest.approx([0.1125, 0.3625, 0.6125, 0.8625])
    assert found["low"][0] == 0.0
    assert found["high"][3] == 1.0
    low, high = stats.beta(5.5, 5.5).ppf([0.05, 0.95])
    assert (found["low"][1], found["high"][1]) == pytest.approx((low, high))
    assert found["high"][0] == pytest.approx(stats.beta(0.5, 10.5).ppf(0.95))
    assert found["low"][3] == pytest.approx(stats.beta(10.5, 0.5).ppf(0.05))
