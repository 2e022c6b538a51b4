"""What does proxy matching change in a trained model, and does it help for the reason it was made for?

    python -m benchmarks.proxy_effect DATA RUN [--models DIR] [--out FILE]

The final embedding is final = h - (1 - eta) c with multi-hop part h, gate eta and mean proxy c (``engine.model.proxies``). With the weights
of a finished run the table compares it with h alone, and with h minus the mean of (1 - eta) c over all entities of both graphs: if the last
one does as well, proxy matching has learned a constant, and a constant is what CSLS removes already. Target to source, test entities.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.tables import markdown, print_report
from engine.config import RunConfig
from engine.data import AlignmentTask, load_task
from engine.model.proxies import proxy_parts
from engine.pipeline import stored_model
from engine.runs import Run, RunStore
from engine.search import normalise_rows
from engine.training.trainer import split_embeddings
from engine.util.paths import models_folder


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = build_parser().parse_args(arguments)
    return print_report(lambda: study(parsed), parsed.out)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy_effect", description="What proxy matching changes in a trained model.")
    parser.add_argument("data", type=Path, help="the folder that the run was trained on")
    parser.add_argument("run", help="a finished run with proxy matching")
    parser.add_argument("--models", type=Path, default=models_folder(), help="folder with runs")
    parser.add_argument("--out", type=Path, help="also write the table here")
    return parser


@torch.no_grad()
def study(parsed: argparse.Namespace) -> str:
    """Both tables, as Markdown."""
    run = RunStore(parsed.models).find(parsed.run)
    config = RunConfig.from_dict(run.manifest["config"])
    task = load_task(parsed.data, config.data, config.seed)
    hidden, correction, weights = taken_apart(run, task, config)
    return f"{sizes_table(hidden, correction, weights)}\n\n{accuracy_table(variants(hidden, correction), task, config.search.csls_k)}"


def taken_apart(run: Run, task: AlignmentTask, config: RunConfig) -> tuple[Tensor, Tensor, Tensor]:
    """(E, C, D) multi-hop part h, (E, C, D) what is subtracted of it, (E, C, P) attention to the proxies."""
    model = stored_model(run, task, config)
    hidden = model.multi_hop()
    channels = [proxy_parts(hidden[:, c], model.proxies[c], model.gate_weight[c], model.gate_bias[c]) for c in range(len(model.channels))]
    correction = torch.stack([(1 - parts.gate) * parts.proxy for parts in channels], dim=1)
    return hidden, correction, torch.stack([parts.attention for parts in channels], dim=1)


def variants(hidden: Tensor, correction: Tensor) -> Mapping[str, Tensor]:
    """Label -> (E, C D) embeddings to compare."""
    constant = correction.mean(0, keepdim=True)
    found = {"final": hidden - correction, "h minus the mean correction": hidden - constant, "h alone": hidden}
    return {name: vectors.flatten(1) for name, vectors in found.items()}


def sizes_table(hidden: Tensor, correction: Tensor, weights: Tensor) -> str:
    """How large the correction is, how much of it differs between entities, and how evenly the proxies are attended to; by channel."""
    rows = []
    for c in range(hidden.shape[1]):
        constant = correction[:, c].mean(0, keepdim=True)
        length = torch.linalg.vector_norm(correction[:, c], dim=-1).mean()
        relative = length / torch.linalg.vector_norm(hidden[:, c], dim=-1).mean()
        varying = torch.linalg.vector_norm(correction[:, c] - constant, dim=-1).mean() / length
        entropy = -(weights[:, c] * weights[:, c].log()).sum(-1).mean() / math.log(weights.shape[-1])
        rows.append([str(c), f"{relative:.3f}", f"{varying:.3f}", f"{entropy:.4f}", f"{weights[:, c].max() * weights.shape[-1]:.2f}"])
    header = (
        "channel",
        "length of the correction / of h",
        "part that varies",
        "entropy of attention / of even attention",
        "largest attention / even",
    )
    return markdown(header, rows)


def accuracy_table(found: Mapping[str, Tensor], task: AlignmentTask, k: int) -> str:
    """Hits@1 of the embeddings by plain cosine and by CSLS."""
    rows = []
    for name, vectors in found.items():
        source, target = (normalise_rows(part) for part in split_embeddings(vectors, task.source.num_entities))
        links = torch.as_tensor(task.test_links)
        cosine = target[links[:, 1]] @ source[links[:, 0]].T
        rows.append([name, f"{hits_at_1(cosine):.3f}", f"{hits_at_1(csls(cosine, k)):.3f}"])
    return markdown(("embedding", "Hits@1, cosine", "Hits@1, CSLS"), rows)


def csls(cosine: Tensor, k: int) -> Tensor:
    """2 cos - r - r of a dense matrix."""
    return 2 * cosine - cosine.topk(k, dim=1).values.mean(1, keepdim=True) - cosine.topk(k, dim=0).values.mean(0, keepdim=True)


def hits_at_1(scores: Tensor) -> float:
    """Share of rows whose best column is their own."""
    return float((scores.argmax(1) == torch.arange(len(scores))).float().mean())


if __name__ == "__main__":
    sys.exit(main())
