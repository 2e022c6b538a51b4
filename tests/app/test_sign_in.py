"""Signing in, as far as that goes without a provider: no access before, a name afterwards."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import sign_in
from app.sign_in import SignInError, may_enter, providers
from tests.app.conftest import MAIN, TIMEOUT, assert_no_crash, words
from tests.run_fixture import sample_run, write_run

ONE = {
    "redirect_uri": "http://localhost/oauth2callback",
    "cookie_secret": "x" * 32,
    "client_id": "a",
    "client_secret": "b",
    "server_metadata_url": "c",
}
TWO = {"redirect_uri": "x", "cookie_secret": "y", "entra": {"client_id": "a"}, "okta": {"client_id": "b"}}
ANA = {"is_logged_in": True, "name": "Ana *b*", "email": "ana@example.org", "email_verified": True}


@pytest.fixture
def authlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were installed."""
    monkeypatch.setattr(sign_in, "is_authlib_installed", lambda: True)


def opened(models: Path, secrets: dict[str, Any] | None, user: dict[str, Any] | None = None, page: str | None = None) -> AppTest:
    write_run(sample_run(), models)
    app = AppTest.from_file(str(MAIN), default_timeout=TIMEOUT)
    app.secrets = secrets or {}
    if user is not None:
        app.user = user
    app.run()
    return app if page is None else app.switch_page(f"views/{page}.py").run()


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


@pytest.mark.usefixtures("authlib")
@pytest.mark.parametrize("page", [None, "entity", "export"])
@pytest.mark.parametrize(("secrets", "offered"), [(ONE, ["Sign in"]), (TWO, ["Sign in with \u2068entra\u2069", "Sign in with \u2068okta\u2069"])])
def test_nothing_is_shown_before_signing_in(models: Path, page: str | None, secrets: dict[str, Any], offered: list[str]) -> None:
    app = opened(models, {"auth": secrets}, {"is_logged_in": False}, page)
    assert_no_crash(app)
    assert labels(app) == offered
    assert not app.get("page_link")
    assert "towns" not in words(app)


def test_whoever_has_signed_in_sees_the_app_and_can_sign_out(models: Path) -> None:
    app = opened(models, {"auth": ONE}, ANA)
    assert_no_crash(app)
    assert app.get("page_link")
    assert "towns" in words(app)
    assert app.sidebar.button[0].label == "Sign out \u2068Ana \\*b\\*\u2069"


def test_without_the_section_everyone_has_access_without_a_name(models: Path) -> None:
    app = opened(models, None)
    assert_no_crash(app)
    assert app.get("page_link")
    assert not [label for label in labels(app) if "Sign" in label]


@pytest.mark.parametrize(("emails", "enters"), [(["@example.org"], True), (["bo@example.org"], False)])
def test_the_list_of_those_who_may_enter(models: Path, emails: list[str], enters: bool) -> None:
    app = opened(models, {"auth": ONE, "access": {"emails": emails}}, ANA)
    assert_no_crash(app)
    assert bool(app.get("page_link")) == enters
    assert ("does not have access" in words(app)) != enters
    assert any(label.startswith("Sign out") for label in labels(app))


@pytest.mark.parametrize(
    ("user", "allowed", "enters"),
    [
        ({"email": "ana@example.org"}, None, True),
        ({}, None, True),
        ({"email": "Ana@Example.org"}, ["ana@example.org"], True),
        ({"email": "ana@example.org"}, "@example.org", True),
        ({"email": "ana@evil-example.org"}, ["@example.org"], False),
        ({"email": "ana@sub.example.org"}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": False}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": "False"}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": None}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": 0}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": "0"}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": "no"}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": []}, ["@example.org"], False),
        ({"email": "ana@example.org", "email_verified": "True"}, ["@example.org"], True),
        ({"email": "ana@example.org", "email_verified": 1}, ["@example.org"], True),
        ({"email": "ANA@EXAMPLE.ORG", "email_verified": True}, ["Ana@example.org"], True),
        ({"email": "stra\u00dfe@example.org"}, ["STRASSE@example.org"], True),
        ({"email": ""}, [""], False),
        ({}, ["@example.org"], False),
        ({"email": "ana@example.org"}, [], False),
    ],
)
def test_who_may_enter(user: dict[str, Any], allowed: Any, enters: bool) -> None:
    assert may_enter(user, allowed) == enters


@pytest.mark.parametrize(
    ("user", "name"),
    [
        (ANA, "Ana *b*"),
        ({**ANA, "name": "", "preferred_username": "ana"}, "ana"),
        ({"is_logged_in": True, "email": "ana@example.org"}, "ana@example.org"),
        ({"is_logged_in": True, "sub": "1\u202e2"}, "12"),
        ({"is_logged_in": False, "name": "Ana"}, None),
        ({}, None),
    ],
)
def test_the_name_of_a_reviewer(user: dict[str, Any], name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "user", user)
    assert sign_in.user_name() == name


def test_a_section_without_a_provider() -> None:
    with pytest.raises(SignInError, match="has no identity provider"):
        providers({"redirect_uri": "x", "cookie_secret": "y"})
    assert providers(ONE) == [None]
    assert providers({**ONE, "client_kwargs": {"prompt": "login"}}) == [None]
    assert providers(TWO) == ["entra", "okta"]


def test_a_missing_package_is_reported(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "is_authlib_installed", lambda: False)
    app = opened(models, {"auth": ONE}, {"is_logged_in": False})
    assert_no_crash(app)
    assert "needs the package Authlib" in app.error[0].value
    assert not app.get("page_link")


def test_secrets_that_cannot_be_read_give_no_access(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torn = tmp_path / "secrets.toml"
    torn.write_text("[auth\nclient_id =", encoding="utf-8")
    known = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: [str(torn)] if name == "secrets.files" else known(name))
    app = opened(models, None)
    assert_no_crash(app)
    assert "cannot be read, so access is denied to everyone" in app.error[0].value.replace("\\", "")
    assert not app.get("page_link")


@pytest.mark.usefixtures("authlib")
def test_a_section_that_is_none(models: Path) -> None:
    app = opened(models, {"auth": "yes"}, {"is_logged_in": False})
    assert_no_crash(app)
    assert "must be a section" in app.error[0].value.replace("\\", "")


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"sub": "42"}, "account '42' has no 'email' claim"),
        ({}, "account 'without a name' has no 'email' claim"),
        ({"email": "ana@example.org", "email_verified": None}, "(email_verified: None)"),
        ({"email": "ana@elsewhere.org"}, "'ana@elsewhere.org' is not in [access] emails"),
    ],
)
def test_the_log_says_why_somebody_was_refused(models: Path, user: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture) -> None:
    app = opened(models, {"auth": ONE, "access": {"emails": ["@example.org"]}}, {"is_logged_in": True, **user})
    assert "does not have access" in words(app)
    app.run()
    lines = [record.getMessage() for record in caplog.records if record.name == "app.sign_in"]
    assert len(lines) == 1, "once, however often the page is drawn"
    assert message in lines[0]


def test_no_token_of_the_provider_and_no_secret_is_logged_or_shown(models: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens = {"tokens": {"access": "an-access-token", "id": "an-id-token"}, "nonce": "a-nonce", "at_hash": "a-hash"}
    app = opened(models, {"auth": ONE, "access": {"emails": ["@example.org"]}}, {**ANA, "email": "eve@elsewhere.org", **tokens})
    for found in (caplog.text, words(app)):
        assert not re.search(r"an-access-token|an-id-token|a-nonce|a-hash", found)
        assert ONE["cookie_secret"] not in found
    assert "eve@elsewhere.org" in caplog.text
