"""The addresses of the service, and what each of them takes."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from engine import __version__
from engine.data.knowledge_graph import Side
from engine.errors import printable
from engine.explanation.removal import FORMS
from engine.reviews.decisions import LONGEST_AUTHOR, LONGEST_ID, LONGEST_NOTE, LONGEST_TOKEN, Verdict
from engine.runs.entities import LONGEST_QUERY
from engine.runs.view import Pool
from engine.serving import answers
from engine.serving.examples import EXAMPLES
from engine.serving.guards import Refused
from engine.serving.service import Answer, Service
from engine.util.json_text import json_text

MOST_MATCHES: Final = 1000
MOST_ENTITIES: Final = 100
"""New entities, or decisions, of one request."""
MOST_ROWS: Final = 1000
MOST_REMOVED: Final = 50

DatasetName = Annotated[str, Path(description="data set of the run: the part of its id before the slash")]
RunName = Annotated[str, Path(description="the part of the run's id behind the slash")]
EntityText = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, description="identifier, its last part, or label")]
SourceText = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, description="entity of the source graph: identifier, its last part, or label")]
TargetText = Annotated[str, Query(min_length=1, max_length=LONGEST_ID, description="entity of the target graph: identifier, its last part, or label")]
OfSide = Annotated[Side | None, Query(description="graph of the entity; default: both")]
OfPool = Annotated[Pool, Query(description="candidates: all entities, or only those of the test links")]
Top = Annotated[int, Query(ge=1, le=MOST_MATCHES, description="number of matches; fewer than the run stores per entity are answered fastest")]


class NewRecord(BaseModel):
    """An entity that the run has not seen, as in a file of ``match --new``."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=LONGEST_ID, description="identifier that the graph does not have")
    label: str = Field("", max_length=LONGEST_ID)
    names: list[str] = Field([], max_length=1000, description="further names")
    triples: list[tuple[str, str, str]] = Field([], max_length=10_000, description="head, relation, tail, as the graph names them")
    values: list[tuple[str, str]] = Field([], max_length=10_000, description="attribute, value")


class NewRecords(BaseModel):
    """Entities to match with frozen weights; they may have triples with each other."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLES["new entities"]})

    entities: list[NewRecord] = Field(min_length=1, max_length=MOST_ENTITIES)
    side: Side = Field("source", description="graph that they belong to")
    top: int = Field(5, ge=1, le=MOST_MATCHES, description="number of candidates of each")


class DecisionRecord(BaseModel):
    """A decision about a pair; entities by their exact identifiers."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(min_length=1, max_length=LONGEST_ID)
    target: str = Field(min_length=1, max_length=LONGEST_ID)
    verdict: Verdict
    note: str = Field("", max_length=LONGEST_NOTE)


class DecisionRecords(BaseModel):
    """Decisions that are stored together, all or none."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": EXAMPLES["decisions"]})

    author: str = Field(min_length=1, max_length=LONGEST_AUTHOR, description="name of the reviewer or program")
    decisions: list[DecisionRecord] = Field(min_length=1, max_length=MOST_ENTITIES)
    click: str = Field("", max_length=LONGEST_TOKEN, description="name of this request: sent again under the same name it has no second effect")


class ErrorDetail(BaseModel):
    """What is wrong."""

    code: str = Field(description="for programs; docs/serving.md lists them")
    message: str = Field(description="one sentence, the one that the command line prints")
    candidates: list[str] = Field([], description="entities that may be meant, where the message is about an entity")


class ErrorAnswer(BaseModel):
    """The answer to a request that cannot be carried out."""

    error: ErrorDetail


def documented(name: str) -> dict[int | str, dict[str, Any]]:
    """The answers of an address, for its description."""
    problems = {"401": "The token is missing or incorrect.", "404": "No such run or entity.", "422": "A value that cannot be used."}
    found: dict[int | str, dict[str, Any]] = {status: {"model": ErrorAnswer, "description": words} for status, words in problems.items()}
    return found | {200: {"description": "The answer.", "content": {"application/json": {"example": EXAMPLES[name]}}}}


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def as_json(value: Answer, status: int = 200) -> Response:
    """An answer; halves of characters that labels may hold, and UTF-8 cannot, become question marks."""
    return Response(json_text(value).encode("utf-8", "replace"), status, media_type="application/json")


router = APIRouter()
IN_RUN: Final = "/runs/{dataset}/{run}"


@router.get("/health", summary="State of the service", responses={200: {"content": {"application/json": {"example": EXAMPLES["health"]}}}})
async def get_health() -> Response:
    """Answers without a token, and while others compute."""
    return as_json({"status": "ok", "version": __version__})


@router.get("/runs", summary="List the runs", responses=documented("runs"))
async def get_runs(request: Request) -> Response:
    """All finished runs, newest first, with Hits@1 in the published direction; a run that has just finished appears after some seconds."""
    service = service_of(request)
    return as_json(await service.without_run(lambda: answers.runs_answer(service.runs)))


@router.get(IN_RUN, summary="Describe a run", responses=documented("run"))
async def get_run(request: Request, dataset: DatasetName, run: RunName) -> Response:
    """Graphs, links, variant and accuracy of a run."""
    return as_json(await service_of(request).quick(f"{dataset}/{run}", answers.run_answer))


@router.get(f"{IN_RUN}/metrics", summary="Accuracy of a run", responses=documented("metrics"))
async def get_metrics(request: Request, dataset: DatasetName, run: RunName) -> Response:
    """Hits@k, MRR and mean rank with intervals on the test links; the share of correct matches in the random sample that reviewers decided."""
    return as_json(await service_of(request).slow(f"{dataset}/{run}", answers.metrics_answer))


@router.get(f"{IN_RUN}/search", summary="Find entities", responses=documented("search"))
async def get_search(
    request: Request,
    dataset: DatasetName,
    run: RunName,
    text: Annotated[str, Query(min_length=1, max_length=LONGEST_QUERY, description="part of a label or identifier")],
    side: OfSide = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="number of entities")] = 20,
) -> Response:
    """Entities of both graphs whose label or identifier fits a text, best first."""
    return as_json(await service_of(request).quick(f"{dataset}/{run}", answers.search_answer, text, side, limit))


@router.get(f"{IN_RUN}/match", summary="Match an entity", responses=documented("match"))
async def get_match(
    request: Request, dataset: DatasetName, run: RunName, entity: EntityText, side: OfSide = None, top: Top = 5, pool: OfPool = "all"
) -> Response:
    """The best matches of an entity of either graph by CSLS, the first one with its probability."""
    return as_json(await service_of(request).quick(f"{dataset}/{run}", answers.match_answer, entity, side, top, pool))


@router.post(f"{IN_RUN}/match", summary="Match new entities", responses=documented("new matches"))
async def post_match(request: Request, dataset: DatasetName, run: RunName, body: NewRecords) -> Response:
    """The best matches of entities that the run has not seen. Nothing is trained or stored."""
    records = [one.model_dump() for one in body.entities]
    return as_json(await service_of(request).slow(f"{dataset}/{run}", answers.new_matches_answer, records, body.side, body.top))


@router.get(f"{IN_RUN}/pair", summary="Score a pair", responses=documented("pair"))
async def get_pair(request: Request, dataset: DatasetName, run: RunName, source: SourceText, target: TargetText, pool: OfPool = "all") -> Response:
    """Scores of a pair, its rank among all pairs of either entity, verdict and probability."""
    return as_json(await service_of(request).quick(f"{dataset}/{run}", answers.pair_answer, source, target, pool))


@router.get(f"{IN_RUN}/explain", summary="Explain a pair's score", responses=documented("explain"))
async def get_explain(
    request: Request,
    dataset: DatasetName,
    run: RunName,
    source: SourceText,
    target: TargetText,
    against: Annotated[str | None, Query(max_length=LONGEST_ID, description="candidate to compare with; default: the runner-up")] = None,
    remove: Annotated[
        list[str], Query(max_length=MOST_REMOVED, description=f"evidence to recompute the score without: {FORMS}; quote words with spaces")
    ] = [],  # noqa: B006 - FastAPI copies it
    side: Annotated[Side, Query(description="side of the pair whose candidates are compared")] = "source",
    top: Annotated[int, Query(ge=0, le=MOST_MATCHES, description="number of supporting and of opposing neighbour pairs")] = 20,
    pool: OfPool = "all",
) -> Response:
    """A score broken down by channel, layer and neighbour, as ``explain --json`` gives it (docs/explanation.md)."""
    words = [printable(one) for one in remove]
    return as_json(await service_of(request).slow(f"{dataset}/{run}", answers.explain_answer, source, target, against, words, pool, side, top))


@router.get(f"{IN_RUN}/reviews", summary="List the reviewers' decisions", responses=documented("reviews"))
async def get_reviews(
    request: Request,
    dataset: DatasetName,
    run: RunName,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="number of decisions")] = 100,
    offset: Annotated[int, Query(ge=0, le=2**31, description="decisions to leave out first")] = 0,
) -> Response:
    """The decisions on the run's data that count: the latest of each reviewer on each pair."""
    service = service_of(request)
    return as_json(await service.quick(f"{dataset}/{run}", answers.reviews_answer, service.reviews, limit, offset))


@router.post(f"{IN_RUN}/reviews", summary="Store decisions", responses=documented("reviews stored"))
async def post_reviews(request: Request, dataset: DatasetName, run: RunName, body: DecisionRecords) -> Response:
    """Store decisions about pairs, as the page Review does. Only where the service was started with --allow-reviews."""
    service = service_of(request)
    if not service.settings.allow_reviews:
        raise Refused(403, "read_only", "this service is read-only; start it with --allow-reviews to store decisions.")
    decisions = [one.model_dump() for one in body.decisions]
    stored = await service.slow(f"{dataset}/{run}", answers.decisions_answer, service.reviews, body.author, decisions, body.click)
    return as_json(stored)
