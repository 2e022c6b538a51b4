"""What commands share: options, options that hold for both graphs or for each of them, and results as JSON."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from engine.api import MODELS, default_models
from engine.data.knowledge_graph import SIDES, Side
from engine.errors import ConfigError
from engine.evaluation.metrics import Pool
from engine.util.json_text import json_text

Commands = Any  # argparse's action class has no public name


def add_command(commands: Commands, name: str, run: Callable[[argparse.Namespace], int], *, help: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command, which ``run`` carries out; returns the exit code."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=description)
    parser.set_defaults(command=run)
    return parser


class Once(argparse.Action):
    """An option that must not be given twice: the second one would silently replace the first."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest, None) is not None:
            parser.error(f"{option_string} is given twice; give one file")
        setattr(namespace, self.dest, values)


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run id, as listed by 'runs' (DATASET/RUN if the id alone is not unique)")


def add_models(parser: argparse.ArgumentParser) -> None:
    default = default_models()
    parser.add_argument("--models", type=Path, default=default, metavar="DIR", help=f"folder with the runs (default {default})")


def models_option(models: Path) -> str:
    """What a command needs to be repeated about this folder: `` --models DIR``, or nothing where it is the usual one."""
    return "" if models == Path(MODELS) else f" --models {shlex.quote(str(models))}"


def add_settings(parser: argparse.ArgumentParser, words: str) -> None:
    """``--set``; ``words``: which settings these are."""
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.OPTION=VALUE", help=f"{words}; may be repeated")


def add_fresh(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fresh", action="store_true", help="train again even if this run exists; the earlier run is kept")


def add_reviews_file(parser: argparse.ArgumentParser, words: str, end: str) -> None:
    """``--with-reviews``; ``words`` and ``end``: how its help begins and ends."""
    where = "those of --models, of another database, or of a run's reviews.parquet"
    parser.add_argument("--with-reviews", type=Path, nargs="?", const=Path(), metavar="FILE", help=f"{words}: {where} ({end})")


def add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pool", choices=get_args(Pool), default="all", help="candidates: all entities (default), or only those of the test links")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as one line of JSON, last")


def probability_or_suggested(text: str) -> float | Literal["suggested"]:
    """A number, or the word "suggested"."""
    if text == "suggested":
        return "suggested"
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, or 'suggested'; got '{text}'") from None


def by_side(option: str, texts: Sequence[str], example: str) -> dict[Side | None, str]:
    """What an option that may be repeated says: a value by graph, or one for both (None).

    Args:
        option: its name, for the message.
        texts: what was given, one after the other.
        example: a value, for the message.

    Raises:
        ConfigError: several values for one graph, or one for both and another one.
    """
    found: dict[Side | None, str] = {}
    for text in texts:
        prefix, equals, value = text.partition("=")
        side = next((side for side in SIDES if equals and side == prefix), None)
        if side in found or (found and None in (side, *found)):
            raise ConfigError(f"{option} takes one {example} for both graphs, or one for each: {option} source={example} {option} target={example}.")
        found[side] = text if side is None else value
    return found


def print_json(value: Any) -> None:
    """A result as one line.

    Raises:
        RunDamagedError: a number in it is not finite, which JSON cannot say.
    """
    print(json_text(value))
