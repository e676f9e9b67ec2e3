"""The document that all reports share: one HTML file, readable on any screen, light or dark."""

from hardmargin.pages.document import document, scrolling_table

__all__ = ["document", "scrolling_table"]
