"""The plots of a report, drawn as SVG."""
