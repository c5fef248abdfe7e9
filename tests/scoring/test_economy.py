"""What a text can be recognised by."""

from __future__ import annotations

import tracemalloc

from rc1_lib.scoring.economy import pieces


def test_pages_of_any_length_are_recognised_and_long_ones_take_no_room() -> None:
    assert pieces("The Seine runs 777 km; 河流很长") >= {"seine", "runs", "777", "河流", "流很", "很长"}
    assert "the" not in pieces("The Seine")
    tracemalloc.start()
    try:
        for page in range(40):
            assert len(pieces(" ".join(f"w{page}x{word}" for word in range(1000)))) >= 1000
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2**20, "40 pages of 7 kB would be 3 MB and more"
