"""A study as one HTML page without scripts or outside files, to send to somebody."""

from __future__ import annotations

from html import escape
from pathlib import Path

from shoestring.errors import StorageError
from shoestring.study import Study

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 } th, td { padding: .2em .8em; border-bottom: 1px solid #ddd }
th { text-align: left; font-weight: 600 } td { font-variant-numeric: tabular-nums }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; font-size: 13px }
"""


def page(study: Study) -> str:
    """The page as text. Everything from the user's side is escaped."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width'>"
        f"<title>{escape(study.name)}</title><style>{_STYLE}</style></head>"
        f"<body>{study._repr_html_()}<h4>Decisions</h4><pre>{escape(str(study.log()))}</pre></body></html>\n"
    )


def write_page(study: Study, path: Path) -> None:
    try:
        path.write_text(page(study), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", hint="choose another file") from error
