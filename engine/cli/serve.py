"""``python -m engine serve``: runs over HTTP."""

from __future__ import annotations

import argparse
import sys

from engine.cli.options import Commands, add_command, add_models
from engine.errors import RunError, printable
from engine.serving.settings import TOKEN_VARIABLE, Settings, check_packages, token_of_environment


def add_serve(commands: Commands) -> None:
    parser = add_command(
        commands,
        "serve",
        serve,
        help="serve runs over HTTP, for programs",
        description="Answer match, pair, explain, search, reviews and metrics as JSON over HTTP, read-only. docs/serving.md describes the service; "
        f"the variable {TOKEN_VARIABLE} holds the token that requests must bring.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only); others need a token")
    parser.add_argument("--port", type=int, default=8600, help="port to listen on (default 8600; 0: any free port)")
    parser.add_argument("--allow-reviews", action="store_true", help="allow requests to store reviewers' decisions; needs a token")
    add_models(parser)


def serve(parsed: argparse.Namespace) -> int:
    settings = Settings(parsed.models, parsed.host, parsed.port, token_of_environment(), parsed.allow_reviews)
    check_packages()
    if not parsed.models.is_dir():
        raise RunError(f"the folder {parsed.models} does not exist; check --models.")
    from engine.serving.server import run_service  # needs packages that are optional

    run_service(settings, lambda text: print(printable(text), file=sys.stderr, flush=True))
    return 0
