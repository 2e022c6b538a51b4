"""Settings of the form kind:argument: one parser for whoever uses, guards, moves and identifies what they name."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.config import LiteralConfig, RunConfig, Variant, section_options
from engine.data import AlignmentTask, load_task
from engine.errors import ConfigError
from engine.jobs import absolute
from engine.names import NAME_ENCODERS, NAME_ORIGINS, absolute_paths, content_digest, named_paths, register_encoder
from engine.names.encoders.word_vectors import vector_files
from engine.names.paths import KEYS
from engine.pipeline import make_run_id
from engine.pipeline.identity import NAMES_RULE, names_identity
from tests.names.tasks import cities

HALVES = ("fr.vec", "en.vec", "a,b.vec", "folder/x,y.vec")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in HALVES:
        (tmp_path / name).write_text(f"word 1 0\n{name} 0 1\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("argument", [*HALVES, *(f"{one},{other}" for one in HALVES for other in HALVES), "missing.vec"])
def test_what_is_opened_is_what_is_named(files: Path, argument: str) -> None:
    named = named_paths(LiteralConfig(encoder=f"vectors:{argument}"))["literal.encoder"]
    if argument == "missing.vec":
        assert named == (argument,)
        return
    assert named == tuple(map(str, vector_files(argument)))
    whole = absolute_paths(LiteralConfig(encoder=f"vectors:{argument}"))["literal.encoder"]
    assert vector_files(whole.removeprefix("vectors:")) == tuple(path.resolve() for path in vector_files(argument))


@pytest.mark.parametrize("encoder", ["vectors:fr.vec", "vectors:fr.vec,en.vec", "vectors:en.vec,fr.vec", "vectors:en.vec,a,b.vec", "sentence:folder"])
def test_a_changed_file_makes_another_run_whichever_it_is(files: Path, encoder: str) -> None:
    config = RunConfig(variant="literal", literal=LiteralConfig(encoder=encoder))
    before, task = make_run_id(cities(), config), cities()
    for path in named_paths(config.literal)["literal.encoder"]:
        changed = Path(path) if Path(path).is_file() else Path(path) / "x,y.vec"
        kept = changed.read_bytes()
        changed.write_bytes(kept + b"more 1 1\n")
        assert make_run_id(task, config) != before
        changed.write_bytes(kept)
        assert make_run_id(task, config) == before


def test_one_file_keeps_the_identity_that_it_always_had(files: Path) -> None:
    expected = hashlib.sha256((files / "fr.vec").read_bytes()).hexdigest()
    assert content_digest(LiteralConfig(encoder="vectors:fr.vec")) == expected
    assert content_digest(LiteralConfig(names="file:en.vec", encoder="vectors:fr.vec")).split()[1] == expected
    assert content_digest(LiteralConfig()) == content_digest(LiteralConfig(names="uri", encoder="sentence:some/model")) == ""


def test_names_of_models_are_no_paths(files: Path) -> None:
    assert absolute_paths(LiteralConfig(encoder="sentence:some/model")) == {}
    assert absolute_paths(LiteralConfig(encoder="sentence:folder")) == {"literal.encoder": f"sentence:{files / 'folder'}"}
    with pytest.raises(ConfigError, match=r"literal\.names names a file that cannot exist"):
        absolute_paths(LiteralConfig(names="file:\0"))


def test_each_kind_with_an_argument_declares_what_of_it_is_a_path() -> None:
    """Attributes are no paths; every other argument is checked by the guard."""
    kinds = {f"encoder {name}": kind.paths for name, kind in NAME_ENCODERS.items() if kind.argument}
    kinds |= {f"names {name}": origin.paths for name, origin in NAME_ORIGINS.items() if origin.takes_argument and name != "attribute"}
    assert {name for name, paths in kinds.items() if not paths("some/thing")} == set()
    with pytest.raises(ValueError, match="declare which paths"):
        register_encoder("new", "of a file", "FILE")


def test_every_text_setting_of_a_literal_run_is_parsed() -> None:
    """A new setting of this form is guarded, moved and identified like the others."""
    assert {option.key for option in section_options(LiteralConfig) if option.kind is str} == set(KEYS)


def test_settings_that_do_not_exist_name_nothing() -> None:
    config = replace(LiteralConfig(), names="somewhere:/etc/passwd", encoder="nothing:/etc/passwd,/etc/hosts")
    assert list(named_paths(config).values()) == [(), ()]
    assert content_digest(config) == ""


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("names", "file:en.vec"),
        ("names_source", "file:en.vec"),
        ("names_target", "file:en.vec"),
        ("encoder", "vectors:fr.vec"),
        ("encoder", "vectors:fr.vec,en.vec"),
        ("encoder", "sentence:folder"),
    ],
)
def test_one_file_is_one_identity_however_it_is_written(files: Path, option: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, _, argument = value.partition(":")
    task, plain = cities(), RunConfig(variant="literal")
    (files / "elsewhere").mkdir()
    (files / "link").symlink_to(files)

    def run_id(folder: str) -> str:
        return make_run_id(task, plain.with_values({f"literal.{option}": f"{kind}:{','.join(f'{folder}{one}' for one in argument.split(','))}"}))

    expected = run_id("")
    assert run_id("./") == run_id(f"{files}/") == run_id("link/") == run_id("elsewhere/../") == expected
    assert make_run_id(task, absolute(plain.with_values({f"literal.{option}": value}))) == expected, "as the queue writes it"
    monkeypatch.chdir(files / "elsewhere")
    assert run_id("../") == expected
    assert expected != make_run_id(task, plain)


def test_a_large_file_is_read_once_until_it_changes(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = hashlib.file_digest

    def counted(file: Any, digest: str) -> Any:
        read.append(file.name)
        return whole(file, digest)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    config = LiteralConfig(names="file:en.vec", encoder="vectors:fr.vec")
    first = content_digest(config)
    assert content_digest(config) == first
    assert len(read) == 2
    kept = os.stat("fr.vec")
    text = Path("fr.vec").read_text(encoding="utf-8")
    Path("fr.vec").write_text(text.replace("1 0", "0 1"), encoding="utf-8")  # as long as before, and as old
    os.utime("fr.vec", ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert content_digest(config) != first
    assert len(read) == 3


def test_the_rule_that_picks_a_name_is_part_of_the_identity_where_it_decides() -> None:
    """And nowhere else: runs whose names it cannot change keep their ids."""

    def known(task: AlignmentTask, variant: Variant = "literal", **literal: str) -> bool:
        config = RunConfig(variant=variant, literal=LiteralConfig(**literal))
        return NAMES_RULE in names_identity(task, config)

    one, several = cities(), replace(cities(), several_names=frozenset({"", "alias", "http://x/alias"}))
    assert not known(one)
    assert known(several)
    assert not known(several, "semi")
    assert not known(several, names="uri")
    assert known(several, names="attribute:alias")
    assert known(several, names="attribute:http://x/alias")
    assert not known(several, names="attribute:motto")
    assert known(several, names="uri", names_target="labels")
    assert not known(several, names="labels", names_source="uri", names_target="uri")
    assert known(one, names="file:of-names"), "whether a file names an entity twice is not known before it is read"
    assert make_run_id(one, RunConfig(variant="literal")) != make_run_id(several, RunConfig(variant="literal"))
    assert make_run_id(one, RunConfig(variant="semi")) == make_run_id(several, RunConfig(variant="semi"))


def test_sample_data_has_one_name_an_entity() -> None:
    for name in ("world", "europe"):
        assert "" not in load_task(Path(__file__).resolve().parents[2] / "sample_data" / name).several_names
