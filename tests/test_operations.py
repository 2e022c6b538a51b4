"""What the document on operations and the container say must be so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from streamlit import config as streamlit_config

from engine.util import paths, quotas

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Cells of the table whose first head is this."""
    lines = DOCUMENT[DOCUMENT.index(f"| {heading}") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_variables_of_the_document_are_those_that_the_engine_reads() -> None:
    read = set(re.findall(r'"(DUAL_AMN_[A-Z]+)"', (ROOT / "engine" / "util" / "paths.py").read_text(encoding="utf-8")))
    message = re.findall(r"^(DUAL_AMN_[A-Z]+) +(.*?)  +(.*)$", paths.__doc__ or "", re.M)
    assert {row[0] for row in rows("variable | what it names")} == read == {name for name, _, _ in message}


def test_the_quotas_of_the_document_are_those_that_the_engine_reads() -> None:
    read = set(re.findall(r'"(DUAL_AMN_[A-Z]+)"', (ROOT / "engine" / "util" / "quotas.py").read_text(encoding="utf-8")))
    message = re.findall(r"^(DUAL_AMN_[A-Z]+) +(.*?)  +(.*)$", quotas.__doc__ or "", re.M)
    assert {row[0] for row in rows("variable | what it limits")} == read == {name for name, _, _ in message}
    assert {row[2] for row in rows("variable | what it limits")} == {f"{quotas.STORAGE:g}", f"{quotas.QUEUE:g}"}


def test_the_servers_settings_are_what_the_document_says() -> None:
    kept = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    for variable, option, value, _ in rows("variable | setting"):
        assert variable == streamlit_config._config_options_template[option].env_var
        section, name = option.split(".")
        found = kept[section].get(name)
        found = ", ".join(found) if isinstance(found, list) else found
        assert value == ("not set" if found is None else str(found).lower() if isinstance(found, bool) else str(found))


def test_proxies_let_through_what_the_app_accepts() -> None:
    limit = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["server"]["maxUploadSize"]
    assert f"client_max_body_size {limit}m;" in DOCUMENT
    assert f"max_size {limit}MB" in DOCUMENT


def test_the_container_runs_without_a_user_of_its_own_with_pinned_packages_and_keeps_its_data_outside() -> None:
    assert re.search(r"^FROM python:3\.\d+-slim$", CONTAINER, re.M)
    assert CONTAINER.index("USER explorer") < CONTAINER.index("\nCMD")
    assert "/_stcore/health" in CONTAINER
    for name in re.findall(r"-r (\S+)", CONTAINER):
        assert (ROOT / name).is_file()
        assert name in CONTAINER[: CONTAINER.index("RUN python -m pip")]
    (volumes,) = re.findall(r"^VOLUME \[(.*)\]$", CONTAINER, re.M)
    for variable in ("DUAL_AMN_MODELS", "DUAL_AMN_DATA"):
        (folder,) = re.findall(rf"{variable}=(\S+)", CONTAINER)
        assert f'"{folder}"' in volumes
        assert folder in DOCUMENT


def test_the_container_starts_what_the_procfile_starts() -> None:
    (started,) = re.findall(r"^web: (.*)$", (ROOT / "Procfile").read_text(encoding="utf-8"), re.M)
    assert f"exec {started}" in CONTAINER.replace('\\"', '"')


@pytest.mark.parametrize("kept", ["app", "engine", "sample_data", "requirements*.txt", ".streamlit/config.toml"])
def test_the_container_gets_what_it_needs_and_no_secrets(kept: str) -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines.index("*") < lines.index(f"!{kept}")
    assert list(ROOT.glob(kept))
    assert not [line for line in lines if line.startswith("!") and ("secrets" in line or "models" in line)]
    assert ".streamlit/secrets.toml" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
