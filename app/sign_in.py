"""Signing in, where whoever runs the app has set it up: with Streamlit's own OpenID Connect, from ``[auth]`` in ``secrets.toml``.

Without that section everyone has access, without a name. docs/operations.md says how to set it up.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import streamlit as st
from streamlit.auth_util import is_authlib_installed

from app import text
from engine.errors import EngineError
from engine.reviews.decisions import same_author

SHARED = frozenset({"redirect_uri", "cookie_secret", "expose_tokens"})
"""Keys of ``[auth]`` besides providers and the settings of a single one."""
LOG = logging.getLogger(__name__)
REFUSED = "sign_in:refused"


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"})
"""Headers of requests that a proxy passes on for somebody else."""


class SignInError(EngineError):
    """Signing in is set up in a way that cannot work."""


def require() -> None:
    """Give access to those who have signed in and are allowed; everyone else sees how to sign in, and nothing else."""
    try:
        settings = _section("auth")
        if not settings:
            return
        if not st.user.get("is_logged_in", False):
            _ask(settings)
        elif not may_enter(st.user, _section("access").get("emails")):
            _refuse()
        else:
            return
    except SignInError as error:
        st.error(text.plain(str(error), 600), icon=":material/lock:")
    st.stop()


def user_name() -> str | None:
    """What someone is called: the identity provider's name for them, else their e-mail address; None without sign-in."""
    if not st.user.get("is_logged_in", False):
        return None
    named = (st.user.get(key) for key in ("name", "preferred_username", "email", "sub"))
    return next((text.clip(str(one), 80) for one in named if one), None)


def account() -> str | None:
    """What identifies a signed-in person: the e-mail address, or what the identity provider has in its place; None without sign-in."""
    if not st.user.get("is_logged_in", False):
        return None
    return next((str(st.user[key]) for key in ("email", "preferred_username", "sub") if st.user.get(key)), "")


def sign_out_button() -> None:
    """Who is signed in, and the way out; nothing without sign-in."""
    name = user_name()
    if name is not None:
        st.button(f"Sign out {text.plain(name, 40)}", on_click=st.logout, type="tertiary", icon=":material/logout:", key="sign_out")


def may_enter(user: Mapping[str, Any], allowed: Any) -> bool:
    """Whether someone is on the list of those who may enter.

    Args:
        user: what the identity provider says.
        allowed: e-mail addresses, and ``@example.org`` for all of a domain; None allows every account of the provider. An address that
            the provider does not call verified is no proof; of a provider that says nothing of it, as some do for accounts of their own, it is one.
    """
    if allowed is None:
        return True
    email = same_author(str(user.get("email") or ""))
    listed = [same_author(str(one)) for one in ([allowed] if isinstance(allowed, str) else allowed)]
    return is_verified(user) and "@" in email and any(email == one or (one.startswith("@") and email.endswith(one)) for one in listed)


def is_verified(user: Mapping[str, Any]) -> bool:
    """Whether the e-mail address counts as verified: the claim is absent or true. Anything else, such as null, 0 or "False", is no yes."""
    claim = user.get("email_verified", True)
    return claim is True or (isinstance(claim, str) and claim.strip().lower() == "true") or (claim == 1 and isinstance(claim, int))


def why_refused(user: Mapping[str, Any]) -> str:
    """For the log of whoever runs the app: what a refused token lacks."""
    account = f"account {str(user.get('sub') or user.get('preferred_username') or 'without a name')[:80]!r}"
    if not user.get("email"):
        return (
            f"sign-in refused: the token of {account} has no 'email' claim, and [access] emails lists addresses; "
            "request the scope 'email' from the identity provider (client_kwargs = {scope = \"openid profile email\"})."
        )
    if not is_verified(user):
        claim = repr(user["email_verified"])[:40]
        return f"sign-in refused: the provider does not call the address {str(user['email'])[:80]!r} verified (email_verified: {claim})."
    return f"sign-in refused: {str(user['email'])[:80]!r} is not in [access] emails."


def providers(settings: Mapping[str, Any]) -> Sequence[str | None]:
    """Names of the identity providers; None for one that has no name.

    Raises:
        SignInError: the section names none.
    """
    named = [name for name, value in settings.items() if isinstance(value, Mapping) and name != "client_kwargs"]
    found: list[str | None] = [None, *named] if "client_id" in settings else [*named]
    if not found:
        raise SignInError("[auth] in secrets.toml has no identity provider. Add client_id, client_secret and server_metadata_url.")
    return found


def may_delete() -> bool:
    """Whether whoever looks at the app may delete runs.

    With sign-in those on the list ``administrators`` of ``[access]``, and no one where there is no list; without it the user of the machine on
    which the app runs: it accepts connections from that machine alone, and no proxy forwards those of others.
    """
    if _section("auth"):
        listed = _section("access").get("administrators")
        return bool(st.user.get("is_logged_in", False)) and listed is not None and may_enter(st.user, listed)
    return at_this_machine(st.get_option("server.address"), st.context.headers)


def at_this_machine(listens_at: str | None, headers: Mapping[str, str]) -> bool:
    """Whether only somebody at this machine can have asked: the address that the app listens at, and what came with the request."""
    host = urlsplit(f"//{headers.get('Host') or 'localhost'}").hostname
    forwarded = any(name.lower() in FORWARDED for name in headers)
    return listens_at in LOOPBACK and host in LOOPBACK and not forwarded


def _ask(settings: Mapping[str, Any]) -> None:
    st.title("Dual-AMN Explorer", anchor=False)
    st.markdown("Please sign in.")
    if not is_authlib_installed():
        raise SignInError("Sign-in needs the package Authlib. Install requirements-sign-in.txt, then restart the app.")
    for provider in providers(settings):
        words = "Sign in" if provider is None else f"Sign in with {text.plain(provider, 40)}"
        st.button(words, on_click=st.login, args=(provider,), icon=":material/login:", key=f"sign_in_{provider}")


def _refuse() -> None:
    _log_refusal(why_refused(st.user))
    st.title("Dual-AMN Explorer", anchor=False)
    email = text.plain(str(st.user.get("email") or "this account"))
    st.error(f"{email} does not have access. Ask the administrator of this app, or sign in with another account.", icon=":material/lock:")
    sign_out_button()


def _log_refusal(words: str) -> None:
    """Once a session: the page is drawn again and again."""
    if st.session_state.get(REFUSED) != words:
        st.session_state[REFUSED] = words
        LOG.warning("%s", words)


def _section(name: str) -> Mapping[str, Any]:
    """A section of the secrets; empty where there are none.

    Raises:
        SignInError: a file of secrets is there and cannot be read: access is denied to all rather than granted to all.
    """
    if not st.secrets.load_if_toml_exists():
        if any(Path(path).is_file() for path in st.get_option("secrets.files")):
            raise SignInError(
                "secrets.toml cannot be read, so access is denied to everyone. Fix the file (the log shows where), then restart the app."
            )
        return {}
    found = st.secrets.get(name, {})
    if not isinstance(found, Mapping):
        raise SignInError(f"'{name}' in secrets.toml must be a section, [{name}].")
    return found
