"""The list of everything that a run reads, given or derived, and the files of one run as gates read them."""

from rc1_lib.evidence.files import Evidence

__all__ = ["Evidence"]
