"""The document is made from the types of the answers, has the fields of a spec file, and is correct."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import msgspec
import pytest

from shoestring.report import receipt, trials
from shoestring.server import schemas
from shoestring.server.endpoints import ENDPOINTS
from shoestring.server.openapi import document
from shoestring.specs import build as specfile
from shoestring.specs.request import MARKET_FIELDS
from tests.server.serving import Serving

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,negative_data_rejection,ignored_auth,unsupported_method"
)


def names(kind: type) -> set[str]:
    return {field.name for field in msgspec.structs.fields(kind)}


def test_a_submitted_spec_has_the_fields_of_a_spec_file() -> None:
    sections = {"on", "market", "simulate", "table"}
    assert names(schemas.Spec) == {*specfile.FIELDS, *MARKET_FIELDS, *sections} - {"listings"}


def test_receipts_and_trials_have_all_fields() -> None:
    in_dollars = {"refunded", "charged", "on_demand"}
    for kind, plain in ((schemas.ReceiptOut, receipt.Receipt), (schemas.ReceiptRowOut, receipt.ReceiptRow)):
        shown = {f"{f.name}_usd" if f.name in in_dollars else f.name for f in fields(plain)}
        assert names(kind) == shown
    assert names(schemas.TrialOut) == {f.name for f in fields(trials.TrialRow)} - {"number"} | {"trial", "output"}


def test_every_endpoint_is_described_and_its_schemas_exist() -> None:
    described = document(ENDPOINTS)
    assert described["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = described["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["summary"] == endpoint.summary
        assert ("401" in operation["responses"]) != endpoint.public
    text = json.dumps(described)
    refs = {part.partition('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert refs <= set(described["components"]["schemas"])


def test_it_is_served(shared: Serving) -> None:
    assert json.loads(shared.ask("GET", "/openapi.json")[1]) == json.loads(msgspec.json.encode(document(ENDPOINTS)))


@pytest.mark.heavy
def test_schemathesis_finds_nothing(shared: Serving, tmp_path: Path) -> None:
    """Hundreds of requests made from the document, good ones and bad ones: no 5xx, nothing undocumented. The service
    starts nothing meanwhile: what is submitted may name real programs."""
    try:
        import schemathesis  # noqa: F401
    except ImportError:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "schemathesis>=4"], check=True)
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [
            program,
            "run",
            f"http://127.0.0.1:{shared.port}/openapi.json",
            f"--header=Authorization: Bearer {shared.token}",
            f"--checks={CHECKS}",
            "--max-examples=40",
            "--phases=examples,coverage,fuzzing",
            "--suppress-health-check=all",
            "--seed=1",
            "--no-color",
        ],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert "broke at" not in shared.log.read_text()
