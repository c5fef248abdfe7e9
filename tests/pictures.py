"""Pictures are not drawn in tests that do not look at them, since they took half of a calibration's time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import IO, Any, TextIO

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.image import imsave

_REALLY, _REALLY_SVG = FigureCanvasAgg.print_png, FigureCanvasSVG.print_svg


def _empty(canvas: FigureCanvasAgg, target: IO[bytes], **_: Any) -> None:
    """A white PNG of the figure's size. The figure has its content, but is not rendered."""
    target.write(_white(*canvas.get_width_height()))


def _empty_svg(canvas: FigureCanvasSVG, target: TextIO, **_: Any) -> None:
    """An empty SVG of the figure's size."""
    width, height = canvas.figure.get_size_inches()
    target.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {72 * width:g} {72 * height:g}"></svg>')


@cache
def _white(width: int, height: int) -> bytes:
    found = BytesIO()
    imsave(found, np.full((height, width, 3), 255, np.uint8), format="png", metadata={"Software": None})
    return found.getvalue()


def leave_empty() -> None:
    """Write empty pictures from now on, in this process and its forks."""
    FigureCanvasAgg.print_png = _empty  # type: ignore[method-assign]
    FigureCanvasSVG.print_svg = _empty_svg  # type: ignore[method-assign]


@contextmanager
def drawn() -> Iterator[None]:
    """Draw pictures within this block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FigureCanvasAgg, "print_png", _REALLY)
        patch.setattr(FigureCanvasSVG, "print_svg", _REALLY_SVG)
        yield
