"""Work on very many small records without Python's search for cyclic garbage.

Records and rows hold no cycles: what nobody holds any more is freed at once. The search goes through all of them again
and again, finds nothing, and takes a third of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Search for no cycles while the block runs."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
