"""``python -m engine shard``: divide a data set for several processes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.cli.applicable import check_reading
from engine.cli.options import Commands, add_command, add_json, add_settings, print_json
from engine.data.library import starting_config
from engine.data.shards import ShardFolder
from engine.errors import printable
from engine.model.exchange import fetching
from engine.model.shard import ShardSizes, in_pieces
from engine.training.sharding import MEMORY, make_shards
from engine.util.text import size_text


def add_shard(commands: Commands, say: Callable[[str], None]) -> None:
    """``say``: where progress goes."""
    parser = add_command(
        commands,
        "shard",
        lambda parsed: shard(parsed, say),
        help="divide a data set for a training in several processes",
        description="Read a data set once and divide its entities into parts, so that each process of 'torchrun -m engine train DIR' reads its own "
        "part alone (docs/scaling.md). An interrupted division starts again from the beginning.",
    )
    parser.add_argument("data", metavar="DATA", type=Path, help="folder of the data set, or of shards that are to be divided otherwise")
    parser.add_argument("--parts", type=int, required=True, metavar="P", help="number of parts: of processes, or a multiple of it")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--force", action="store_true", help="replace an existing shard folder")
    parser.add_argument("--memory", type=int, default=MEMORY, metavar="MIB", help=f"memory that METIS may take (default {MEMORY})")
    parser.add_argument("--seed", type=int, default=0, help="random seed for the split if the data set has none (default 0)")
    parser.add_argument("--train-ratio", type=float, metavar="SHARE", help="share of the known links used for training, as in train")
    add_settings(parser, "setting of the section data, as in train")
    add_json(parser)


def shard(parsed: argparse.Namespace, say: Callable[[str], None]) -> int:
    check_reading(parsed, "shard")
    config = replace(starting_config(parsed.data), seed=parsed.seed).with_assignments(parsed.set)
    if parsed.train_ratio is not None:
        config = config.with_values({"data.train_ratio": parsed.train_ratio})
    made = make_shards(parsed.data, config, parsed.parts, parsed.out, force=parsed.force, memory=parsed.memory, say=say)
    if parsed.json:
        about = {"parts": made.manifest["parts"], "partition": made.manifest["partition"], "fetched": fetched(made)}
        print_json({"shards": str(made.path), **about})
        return 0
    print(printable(summary_line(made)))
    print(printable(f"next: torchrun --standalone --nproc-per-node {made.parts} -m engine train {made.path}"))
    return 0


def summary_line(made: ShardFolder) -> str:
    own, halo = (max(part[key] for part in made.manifest["parts"]) for key in ("own", "halo"))
    size = size_text(sum(file.stat().st_size for file in made.path.iterdir()))
    return f"{made.path}: {made.parts} parts of up to {own:,} entities, which fetch up to {halo:,} from others, {fetched(made)}; {size}"


def fetched(made: ShardFolder) -> str:
    """How as many processes as there are parts fetch others' entities."""
    return fetching(in_pieces([ShardSizes(**part) for part in made.manifest["parts"]]))
