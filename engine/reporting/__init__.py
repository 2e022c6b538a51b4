"""A run as one HTML file that is complete in itself: figures, tables and examples, readable without the server (docs/exporting.md)."""

from __future__ import annotations

from engine.reporting.document import ReportedRun, report_html, write_report

__all__ = ["ReportedRun", "report_html", "write_report"]
