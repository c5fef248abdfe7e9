"""Errors that are the user's to mend: each says what was found, what was expected and what to do."""

from __future__ import annotations


class RC1Error(Exception):
    """Bad input or a refused step. The command line prints the sentence alone and exits 2."""


class ConfigError(RC1Error):
    """A configuration that cannot be used."""


class TaskError(RC1Error):
    """A task that nobody knows, or that cannot be one."""


class SourceError(RC1Error):
    """A question source that is missing, damaged or too small."""


class TemplateError(RC1Error):
    """A template pack that does not fit its schema."""


class RowError(RC1Error):
    """A pool, shadow or metrics file that does not hold rows of RC1's schema."""


class TicketError(RC1Error):
    """A ticket that does not vouch for what is there now."""
