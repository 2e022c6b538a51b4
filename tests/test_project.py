"""What must hold of the repository as a whole: imports between packages, pins, links, the commands that the documents name."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from streamlit import config as streamlit_config

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. A module imports from the layers below its own, from its own package, and from nothing else of the engine.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors"}),
    frozenset({"config", "util"}),
    frozenset({"data", "model", "search"}),
    frozenset({"decoding", "reviews"}),
    frozenset({"evaluation"}),
    frozenset({"names"}),
    frozenset({"runs"}),
    frozenset({"importing", "training"}),
    frozenset({"analysis"}),
    frozenset({"explore", "pipeline"}),
    frozenset({"explanation", "exporting", "jobs"}),
    frozenset({"reporting"}),
    frozenset({"api"}),
    frozenset({"serving"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
LONGEST_FUNCTION = 70
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("models/*.md"), *ROOT.glob("benchmarks/*.md")])


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class SourceFacts:
    """What the tests ask of a file's code, from one look at it.

    Attributes:
        imports: absolute names of everything that it imports, at any depth; ``from a import b`` gives ``a.b`` as well as ``a``.
        public: functions and classes that it defines at its top.
        raw_html: lines that write HTML.
        long: functions of more than ``LONGEST_FUNCTION`` lines, with their number of lines.
    """

    imports: tuple[str, ...]
    public: frozenset[str]
    raw_html: tuple[int, ...]
    long: Mapping[str, int]


@cache
def facts(path: Path) -> SourceFacts:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    unsafe = [call.lineno for call in calls for keyword in call.keywords if keyword.arg in ("unsafe_allow_html", "unsafe_allow_javascript")]
    html = [call.lineno for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "html"]
    functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    return SourceFacts(
        tuple(imported(nodes, list(path.relative_to(ROOT).parent.parts))),
        frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")),
        (*unsafe, *html),
        {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION},
    )


def imported(nodes: Iterable[ast.AST], package: Sequence[str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parts, node.module or ""]).strip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def engine_part(module: str) -> str | None:
    """'engine.search.csls' -> 'search'; None for other packages and for names that are not modules of the engine."""
    parts = module.split(".")
    if parts[0] != "engine" or len(parts) < 2:
        return None
    home = ROOT / "engine" / parts[1]
    return parts[1] if home.is_dir() or home.with_suffix(".py").exists() else None


def own_part(path: Path) -> str:
    return path.relative_to(ROOT / "engine").parts[0].removesuffix(".py")


def tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listing.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def doubled_names() -> set[str]:
    """Public functions and classes of the engine that two modules or more define."""
    homes = Counter(name for path in python_files("engine") for name in facts(path).public)
    return {name for name, number in homes.items() if number > 1}


def test_no_public_name_is_defined_twice_but_for_those_of_a_list_that_may_only_shrink() -> None:
    found, listed = doubled_names(), (ROOT / "tests" / "doubled_names.txt").read_text(encoding="utf-8").split()
    assert not found - set(listed), "give it a name of its own, or use the one that exists"
    assert not set(listed) - found, "take it off the list"
    assert listed == sorted(listed)


def test_every_engine_module_has_a_layer() -> None:
    modules = {own_part(path) for path in python_files("engine")} - {"__init__"}
    assert modules <= set(LEVEL), f"add to LAYERS: {sorted(modules - set(LEVEL))}"


def test_the_document_lists_the_same_layers() -> None:
    """From the top down in the table; a module's layer must not be looked up in two places that differ."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| [^|]+ \|$", text[text.index("| layer |") : text.index("In the app,")], re.M)[2:]
    assert [frozenset(re.findall(r"`(\w+)`", row)) for row in rows] == list(LAYERS)


def by_file(folders: Iterable[str], wrong: Callable[[Path], object]) -> dict[str, object]:
    """What is wrong with each file of these folders; files without anything wrong are left out."""
    return {relative(path): found for path in python_files(*folders) if (found := wrong(path))}


def roots(path: Path) -> set[str]:
    return {module.split(".")[0] for module in facts(path).imports}


def test_engine_imports_point_downwards() -> None:
    def wrong(path: Path) -> list[str]:
        own = own_part(path)
        imported = {part for module in facts(path).imports if (part := engine_part(module))}
        level = LEVEL.get(own, len(LAYERS))
        return sorted(part for part in imported if part != own and LEVEL.get(part, len(LAYERS)) >= level)

    assert not by_file(["engine"], wrong), "imports of what is in the same layer or above it in LAYERS"


def test_the_engine_is_independent_of_the_app() -> None:
    assert not by_file(["engine"], lambda path: roots(path) & {"app", "streamlit", "plotly", "tests", "benchmarks"})


def test_the_app_uses_the_engine_and_itself_only() -> None:
    assert not by_file(["app"], lambda path: roots(path) & {"tests", "benchmarks", "torch", "numba", "faiss"})


def test_no_label_reaches_html() -> None:
    assert not by_file(["app"], lambda path: facts(path).raw_html), "raw HTML in these lines"


def test_functions_can_be_seen_whole() -> None:
    assert not by_file(["engine", "app"], lambda path: facts(path).long), f"longer than {LONGEST_FUNCTION} lines"


def test_what_these_tests_look_for_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine" / "made" / "up.py"
    path.parent.mkdir(parents=True)
    long = "".join(f"    x = {number}\n" for number in range(LONGEST_FUNCTION))
    code = f"from ..search import csls\n\n\ndef draw(box):\n    import app\n    box.html('x', unsafe_allow_html=True)\n{long}"
    path.write_text(code, encoding="utf-8")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    found = facts(path)
    assert set(found.imports) == {"engine.search", "engine.search.csls", "app"}
    assert (found.public, found.raw_html, found.long) == ({"draw"}, (6, 6), {"draw": LONGEST_FUNCTION + 3})


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.txt")), ids=relative)
def test_every_requirement_is_pinned(path: Path) -> None:
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    included = [line.removeprefix("-r ").strip() for line in lines if line.startswith("-r ")]
    assert all((ROOT / name).exists() for name in included)
    requirements = [line for line in lines if line and not line.startswith("-r ")]
    assert requirements
    loose = [line for line in requirements if not re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,-]+\])?==[0-9][A-Za-z0-9.!+]*(\s*;.*)?", line)]
    assert not loose


def test_cpu_and_gpu_requirements_differ_in_faiss_only() -> None:
    def pins(name: str) -> set[str]:
        return {line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}

    cpu, gpu = pins("requirements.txt"), pins("requirements-gpu.txt")
    assert {line.split("==")[0] for line in cpu ^ gpu} == {"faiss-cpu", "faiss-gpu"}


def test_everything_imported_is_required() -> None:
    files = ("requirements-common.txt", "requirements.txt", "requirements-dev.txt")
    lines = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    required = {name.lower() for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", lines, re.M)}
    distributions = importlib.metadata.packages_distributions()
    names = {module.split(".")[0] for path in python_files("engine", "app", "benchmarks", "docs") for module in facts(path).imports}
    foreign = {root: distributions[root] for root in names if root in distributions and root not in sys.stdlib_module_names}
    missing = {root for root, offered in foreign.items() if not {name.lower() for name in offered} & required}
    assert not missing - {"faiss"}, f"imported, but only installed by accident: {sorted(missing)}"


# Written in pieces so that this file passes its own test.
BANNED = [
    "py" + r"pi\.org",
    "pythonhosted" + r"\.org",
    "npm" + r"js\.(?:org|com)",
    r"(?<![\w.])/(?:home|root|Users)" + r"/\w",
    r"(?<![\w./~:-])/work" + r"/\w",
    "-----BEGIN " + "[A-Z ]*PRIVATE KEY",
]


def test_tracked_files_hold_nothing_private() -> None:
    pattern = re.compile("|".join(BANNED))
    found = []
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" not in data:
            found += [f"{relative(path)}: {match.group()}" for match in pattern.finditer(data.decode("utf-8", errors="replace"))]
    assert not found


def test_no_large_or_generated_file_is_tracked() -> None:
    names = {relative(path): path.stat().st_size for path in tracked_files()}
    assert not [name for name in names if name.endswith((".pyc", ".pkl", ".pickle", ".safetensors"))]
    assert not [name for name in names if name.startswith("models/") and name != "models/README.md"]
    assert not {name: size for name, size in names.items() if size > 5_000_000}


def code_in(path: Path) -> str:
    """Fenced blocks and inline code of a document."""
    text = path.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```.*?\n(.*?)```", text, re.S) + re.findall(r"(?<!`)`([^`\n]+)`", text))


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_make_targets_in_documents_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"(?:^|\s)make ([a-z-]+)", code_in(path), re.M))
    assert named <= targets


@cache
def subcommands() -> dict[str, set[str]]:
    """Subcommand -> its option strings, from the command line's own parser."""
    cli = importlib.import_module("engine.cli.main")
    return {name: set(options_of(parser)) for name, parser in actions_of(cli.build_parser()).items()}


def actions_of(parser: Any) -> dict[str, Any]:
    """Name -> parser of each subcommand of a command."""
    return next((action.choices for action in parser._actions if isinstance(action.choices, dict)), {})


def options_of(parser: Any) -> Iterator[str]:
    """Of the command and of all its subcommands."""
    yield from parser._option_string_actions
    for below in actions_of(parser).values():
        yield from options_of(below)


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_commands_in_documents_exist(path: Path) -> None:
    known = subcommands()
    for name, rest in re.findall(r"-m engine ([a-z_-]+)([^\n]*)", code_in(path)):
        assert name in known, f"{relative(path)} names 'python -m engine {name}'"
        options = set(re.findall(r"(?<=\s)--[a-z-]+", rest.split("#")[0]))
        assert options <= known[name], f"{relative(path)}: 'python -m engine {name}' has no {sorted(options - known[name])}"


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "Makefile", ROOT / "benchmarks" / "gpu.sh"], ids=relative)
def test_benchmarks_that_are_named_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"-m benchmarks\.([a-z_]+)([^`\n]*)", text if path.suffix != ".md" else code_in(path)):
        module = importlib.import_module(f"benchmarks.{name}")
        known = set(options_of(module.build_parser())) if hasattr(module, "build_parser") else None
        for option in set(re.findall(r"(?<=\s)\[?(--[a-z-]+)", rest.split("#")[0])):
            there = option in known if known is not None else f'"{option}"' in Path(str(module.__file__)).read_text(encoding="utf-8")
            assert there, f"{relative(path)}: 'python -m benchmarks.{name}' has no {option}"


def test_the_makefile_calls_commands_that_exist() -> None:
    known = subcommands()
    for name, rest in re.findall(r"-m engine ([a-z]+)([^;\n]*)", (ROOT / "Makefile").read_text(encoding="utf-8")):
        assert set(re.findall(r"--[a-z-]+", rest)) <= known[name]


def test_modules_that_make_runs_exist() -> None:
    modules = set(re.findall(r"\$\(PY\) -m ([a-z_.]+)", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert modules >= {"engine", "streamlit", "pytest"}
    assert not [module for module in modules if importlib.util.find_spec(module) is None]


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_in_documents_resolve(path: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    local = [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert not [target for target in local if not (path.parent / target).exists()]


def test_files_and_names_in_the_guide_to_extending_exist() -> None:
    """A file that is named exists, and a name in capitals or camel case is in the code."""
    page = ROOT / "docs" / "extending.md"
    text, new = code_in(page), set(re.findall(r"^`([\w./]+)` \(new\)$", page.read_text(encoding="utf-8"), re.M))
    code = "\n".join(path.read_text(encoding="utf-8") for path in python_files("engine", "app", "tests", "benchmarks"))
    names = set(re.findall(r"^[A-Za-z_][\w./]*$", text, re.M))
    files = {name for name in names if "/" in name and name not in new}
    homes = (ROOT, ROOT / "engine")
    assert not [name for name in files if not any((home / name).exists() for home in homes)]
    words = {part for name in names - files - new if not name.endswith((".md", ".py", "NAME")) for part in name.split(".")}
    assert not [word for word in words if not re.search(rf"\b{word}\b", code)]


def test_settings_in_documents_exist() -> None:
    from engine.config import split_key

    for path in DOCUMENTS:
        for key in re.findall(r"(?<![\w.])((?:data|encoder|loss|training|semi|literal|search)\.[a-z_]+)\b", code_in(path)):
            if not key.endswith((".py", ".md", ".txt", ".json")):
                split_key(key)


def test_streamlit_has_every_option() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    known = set(streamlit_config._config_options_template)

    def keys(table: dict[str, object], prefix: str = "") -> Iterator[str]:
        for name, value in table.items():
            yield from keys(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"]

    assert set(keys(settings)) <= known
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["enableCORS"] is True
    assert settings["server"]["enableXsrfProtection"] is True
    assert settings["client"]["showErrorDetails"] == "none"
    assert settings["runner"]["postScriptGC"] is False, "every click would walk over all that open runs hold"


def test_make_app_listens_on_this_machine_alone() -> None:
    """Other machines have access on request only; platforms and containers ask for it."""

    def started(*arguments: str, **environment: str) -> str:
        variables = {name: value for name, value in os.environ.items() if name not in ("STREAMLIT_SERVER_ADDRESS", "HOST")} | environment
        command = ["make", "-n", "app", "PREPARE=no", *arguments]
        lines = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True).stdout.splitlines()
        return next(line for line in lines if "streamlit run" in line)

    assert '--server.address "127.0.0.1"' in started()
    assert '--server.address "0.0.0.0"' in started("HOST=0.0.0.0")
    assert '--server.address "10.0.0.7"' in started(STREAMLIT_SERVER_ADDRESS="10.0.0.7")
    for name in ("Procfile", "Containerfile"):
        assert "--server.address 0.0.0.0" in (ROOT / name).read_text(encoding="utf-8")


def test_entry_points_name_the_app() -> None:
    procfile = (ROOT / "Procfile").read_text(encoding="utf-8")
    assert procfile.startswith("web: python -m streamlit run app/main.py")
    assert "$PORT" in procfile
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
