"""Exports: JSON that every reader accepts and every terminal can show."""

from __future__ import annotations

import json

from shoestring.report.export import to_json


def test_json_is_the_same_data_without_active_characters() -> None:
    text = "\x1b \x9b \x7f \u202e \u2028 é"
    assert json.loads(to_json([text])) == [text]
    assert not any(character in to_json([text]) for character in "\x1b\x9b\x7f\u202e\u2028")
