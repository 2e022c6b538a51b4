"""The description of the service: complete, without anything from elsewhere."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient

from engine.serving.reference import reference_page
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def schema(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_the_schema_names_every_address_with_its_errors(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    operations = {(method, path): one for path, methods in schema["paths"].items() for method, one in methods.items()}
    base = "/runs/{dataset}/{run}"
    questions = {("get", f"{base}/{name}") for name in ("match", "pair", "explain", "search", "metrics", "reviews")}
    changes = {("post", f"{base}/match"), ("post", f"{base}/reviews")}
    assert set(operations) == questions | changes | {("get", "/health"), ("get", "/runs"), ("get", base)}
    for (_, path), one in operations.items():
        assert one["summary"]
        assert one["description"]
        assert "example" in one["responses"]["200"]["content"]["application/json"]
        if path != "/health":
            assert one["responses"]["422"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}


def test_every_reference_of_the_schema_leads_somewhere(schema: dict[str, Any]) -> None:
    names = set(re.findall(r"#/components/schemas/(\w+)", str(schema)))
    assert names
    assert names <= set(schema["components"]["schemas"])


def test_the_schema_describes_the_token(schema: dict[str, Any]) -> None:
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, methods in schema["paths"].items():
        assert all(("security" in one) == (path != "/health") for one in methods.values())


def test_numbers_and_texts_have_limits(schema: dict[str, Any]) -> None:
    for path, methods in schema["paths"].items():
        for parameter in (one for operation in methods.values() for one in operation.get("parameters", ()) if one["in"] == "query"):
            kinds = [one for one in parameter["schema"].get("anyOf", [parameter["schema"]]) if one.get("type") != "null"]
            for kind in kinds:
                limited = {"string": {"maxLength", "enum"}, "integer": {"maximum"}, "array": {"maxItems"}}[kind["type"]]
                assert limited & set(kind), (path, parameter["name"])


def test_the_page_lists_every_address_and_parameter(client: TestClient, schema: dict[str, Any]) -> None:
    found = client.get("/docs")
    page = unescape(found.text)
    assert found.headers["content-type"].startswith("text/html")
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert f"<h2><span>{method.upper()}</span> {path}</h2>" in page
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in page


def test_the_page_loads_nothing_and_runs_nothing(client: TestClient) -> None:
    found = client.get("/docs")
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|\bsrc=|\bon\w+=", found.text)
    assert re.findall(r'href="([^"]*)"', found.text) == ["openapi.json"]
    assert "default-src 'none'" in found.headers["content-security-policy"]
    assert "script-src" not in found.headers["content-security-policy"]


def test_the_page_escapes_what_it_shows() -> None:
    evil = "<script>alert(1)</script>"
    parameter = {"name": evil, "in": evil, "schema": {"type": "string", "default": evil, "enum": [evil]}, "description": evil}
    operation = {"summary": evil, "description": evil, "parameters": [parameter]}
    page = reference_page({"info": {"title": evil, "description": evil, "version": evil}, "paths": {evil: {"get": operation}}})
    assert "<script" not in page


def test_the_document_lists_the_addresses_and_codes_that_exist(schema: dict[str, Any]) -> None:
    from engine.serving.application import KINDS, OTHER_CODES

    document = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    for path in schema["paths"]:
        assert path.replace("/runs/{dataset}/{run}", "") in document
    guards = (ROOT / "engine" / "serving" / "guards.py").read_text(encoding="utf-8")
    application = (ROOT / "engine" / "serving" / "application.py").read_text(encoding="utf-8")
    routes = (ROOT / "engine" / "serving" / "routes.py").read_text(encoding="utf-8")
    codes = {code for _, code in KINDS.values()} | set(OTHER_CODES.values())
    codes |= set(re.findall(r'Refused\(\d+, "(\w+)"', guards + routes)) | set(re.findall(r'problem_answer\(\d+, "(\w+)"', application))
    rows = document[document.index("| status | codes |") : document.index("## Speed")]
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", rows)) == codes
