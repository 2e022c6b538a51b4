"""Every key of the address and of the session, in one place; what an address says is checked here before anything else sees it.

A page's address is a frozen dataclass: a field is a parameter, its annotation says which values are allowed, its default is left out of the address.
Understood are ``str``, ``int``, ``float``, ``bool``, ``Literal`` and ``tuple`` of texts or literals (a repeated parameter), each with or without
``None``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, Final, Literal, Self, Union, get_args, get_origin, get_type_hints

import streamlit as st

from engine.analysis.relations import Band
from engine.config import Preset, Variant
from engine.data.knowledge_graph import Side
from engine.errors import EngineError, printable
from engine.explore.alignment import PairOrder
from engine.explore.changes import Cause, Change
from engine.explore.proxies import Channel
from engine.exporting import Canonical, Part, Predicate
from engine.runs.entities import Entity
from engine.runs.verdicts import Known
from engine.runs.view import Pool

Direction = Literal["forward", "inverse"]
Rate = Literal["hits@1", "hits@10", "mrr"]
Flip = Literal["gained", "lost"]
Hops = Literal["1", "2"]
Drawn = Literal["10", "20", "40"]
Listed = Literal["drawn", "source", "target"]
ProxyUse = Literal["nearest", "attention"]
Come = Literal["upload", "archive", "server"]
Shown = Literal["misses", "hits", "all"]
ReviewKind = Literal["uncertain", "conflicts", "hierarchy", "sure", "second", "again", "sample", "decided"]
CompareTab = Literal["summary", "changed", "degree", "relation", "settings"]
DegreeTab = Literal["chart", "entities"]
DataSetTab = Literal["overview", "degrees", "samples", "detail"]
RelationsTab = Literal["importance", "counterparts", "examples"]
RelationsView = Literal["list", "chart", "all", "correspondences", "attributes"]
ProxiesTab = Literal["pair", "agreement", "divergence", "usage", "nearest", "cosine"]
Decided = Literal["all", "accept", "reject", "skip", "disputed", "again"]
ExplainTab = Literal["overview", "score", "evidence", "what-if", "alternatives", "other-runs"]
EvidenceShown = Literal["supporting", "opposing", "aligned", "graph"]

# Parameters of an address that are changed one by one
RUN: Final = "run"
BUCKET: Final = "bucket"
RELATION: Final = "relation"
SEARCHED: Final = "search"
MATCH: Final = "match"
POOL: Final = "pool"
EXPAND: Final = "expand"
LISTED: Final = "listed"
PROXY: Final = "proxy"
SETTING: Final = "set"
JOB: Final = "job"
REVIEWER: Final = "reviewer"
THRESHOLD: Final = "threshold"
AUTHOR: Final = "author"
STAGING: Final = "staging"
STORED: Final = "stored"
TAB: Final = "tab"
VIEW: Final = "view"
DIFFERENCES: Final = "differences"

# Which part of a run's metrics is about queries of which graph
DIRECTION_OF: Final[Mapping[Side, str]] = {"source": "source_to_target", "target": "target_to_source"}

# Keys of the session
DATA_CHOICE: Final = "data_choice"
RUN_CHOICE: Final = "run_choice"
FOCUS: Final = "focus"
CHOICE: Final = "choice"
SEARCH: Final = "search"
SEARCH_SIDE: Final = "search_side"
MATCH_TABLE: Final = "match_table"
FACING_FIGURE: Final = "facing_figure"
EXPAND_BUTTON: Final = "expand_button"
NEIGHBOUR_TABLE: Final = "neighbour_table"
RELATION_SEARCH: Final = "relation_search"
RELATION_BARS: Final = "relation_bars"
RELATION_TABLE: Final = "relation_table"
PROXY_CHOICE: Final = "proxy_choice"
RUN_TABLE: Final = "run_table"
PAIR_TABLE: Final = "pair_table"
EVIDENCE_TABLE: Final = "evidence_table"
EXPLAIN_BUTTON: Final = "explain_button"
SEEN: Final = "seen"
TABLE: Final = "table"
PAIR_FIGURE: Final = "pair_figure"
ENTITY_TABLE: Final = "entity_table"
TABS: Final = "tabs"
CLOSE_PAIR: Final = "close_pair"
DELETE_BUTTON: Final = "delete_button"
DELETING: Final = "deleting"
DOWNLOAD: Final = "download"
DEGREE_FIGURE: Final = "degree_figure"
QUERY_LIST: Final = "query_list"
CLEAR: Final = "clear"
OLD_RUN: Final = "old"
START: Final = "start"
CHANGE_TABLE: Final = "change_table"
TRAIN_FORM: Final = "train_form"
JOB_BUTTON: Final = "job_button"
UPLOAD: Final = "upload"
IMPORT_BUTTON: Final = "import_button"
SEED_TABLE: Final = "seed_table"
PICTURE_FORMAT: Final = "picture_format"
MORE_COLUMNS: Final = "more_columns"
PREVIEW: Final = "preview"
REVIEWER_NAME: Final = "reviewer_name"
REVIEW_NOTE: Final = "review_note"
REVIEW_BUTTON: Final = "review_button"
REVIEW_TABLE: Final = "review_table"
REVIEW_FILTER: Final = "review_filter"
REVIEW_DETAILS: Final = "review_details"
AS_TABLE: Final = "as_table"
ADVANCED: Final = "advanced"
REVIEW_CLICK: Final = "review_click"
QUICK_SEARCH: Final = "quick_search"
RECENT: Final = "recent"
COPIED: Final = "copied"
SHARE: Final = "share"
BROWSER: Final = "browser"
OPEN_PAIR: Final = "open_pair"
TOUR: Final = "tour"

MOST_RUNS: Final = 4
LONGEST_PARAMETER: Final = 20_000
_NAMES: Final = {"runs": RUN, "settings": SETTING}  # where a parameter is called differently from its field


class AddressError(EngineError):
    """The address asks for something that can never make sense."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


@dataclass(frozen=True)
class Address:
    """What the address asks for; checked for its form, not yet against a run.

    Attributes:
        runs: ``dataset/run_id``, the main one first; pages of one run show the first and carry the others along.
    """

    runs: tuple[str, ...] = ()

    @classmethod
    def read(cls) -> Self:
        """The current address.

        Raises:
            AddressError: a parameter has a value that can never make sense.
        """
        hints = get_type_hints(cls)
        given = {field.name: _parsed(_NAMES.get(field.name, field.name), hints[field.name]) for field in fields(cls)}
        address = cls(**{name: value for name, value in given.items() if value is not None})
        if len(address.runs) > MOST_RUNS:
            raise AddressError(f"This link selects {len(address.runs)} runs; at most {MOST_RUNS} can be shown together.")
        return address

    def parameters(self) -> dict[str, str | list[str]]:
        """As query parameters; defaults are left out."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {_NAMES.get(name, name): _written(value) for name, (value, default) in values.items() if value != default and value not in (None, ())}


@dataclass(frozen=True)
class EntityAddress(Address):
    """An entity, perhaps with a chosen match of the other graph.

    Attributes:
        hops, drawn: how far the figure looks, and at how many neighbours a side.
        layer, channel: whose attention the figure shows; None: the mean over all.
        expand: neighbours whose own neighbourhoods are shown below, as ``source:URI`` or ``target:URI``.
        listed: the neighbours that are drawn, or all of one of the two, as a table.
    """

    side: Side | None = None
    entity: str | None = None
    match: str | None = None
    pool: Pool = "all"
    hops: Hops = "1"
    drawn: Drawn = "20"
    layer: int | None = None
    channel: Channel | None = None
    expand: tuple[str, ...] = ()
    listed: Listed = "drawn"


@dataclass(frozen=True)
class PairFilterAddress(Address):
    """Filters of pairs; ``side`` is whose best matches are meant."""

    side: Side = "source"
    search: str | None = None
    known: tuple[Known, ...] = ()
    relation: str | None = None
    probability_from: float | None = None
    probability_to: float | None = None
    csls_from: float | None = None
    csls_to: float | None = None
    margin_from: float | None = None
    margin_to: float | None = None
    degree_from: int | None = None
    degree_to: int | None = None
    conflicts: bool = False
    contradictions: bool = False
    added: bool = False


@dataclass(frozen=True)
class PairsAddress(PairFilterAddress):
    """The table of pairs: its filters, order and page, and whether all columns are shown."""

    order: PairOrder = "doubt"
    reverse: bool = False
    page: int = 1
    wide: bool = False


@dataclass(frozen=True)
class ExportAddress(PairFilterAddress):
    """What to export of the pairs that pass the filters, and as what.

    Attributes:
        decoder: None: one-to-one where the data allows it.
        least: probability that a pair must have, known links and accepted pairs aside.
        seeds: whether seed links go along.
        links: whether known links take the place of predictions that contradict them; None: unless the filters ask for such predictions.
        predicate: None: what the format says by itself.
        canonical: whose identifier a folded entity gets in the merged formats.
    """

    part: Part = "all"
    decoder: str | None = None
    least: float | None = None
    seeds: bool = True
    links: bool | None = None
    format: str = "csv"
    predicate: Predicate | None = None
    canonical: Canonical = "source"


@dataclass(frozen=True)
class RelationsAddress(Address):
    """Which of the importances to rank, of which relations, and the relation that is looked at, which is of the graph ``side``.

    Attributes:
        graph: None for both.
        least: triples that a relation must have to be listed.
        view: the part of the page; ``tab``: the part of what it shows of one relation.
    """

    layer: int | None = None
    channel: Channel = "entity"
    direction: Direction = "forward"
    side: Side | None = None
    relation: str | None = None
    graph: Side | None = None
    band: Band | None = None
    least: int = 1
    search: str | None = None
    view: RelationsView = "list"
    tab: RelationsTab = "importance"


@dataclass(frozen=True)
class ProxiesAddress(Address):
    """A channel, in it a proxy or a pair of entities, and how the use of proxies is measured.

    Attributes:
        tab: None: the one of what the address asks for, else the first.
    """

    channel: Channel = "entity"
    proxy: int | None = None
    source: str | None = None
    target: str | None = None
    use: ProxyUse = "nearest"
    tab: ProxiesTab | None = None


@dataclass(frozen=True)
class ExplainAddress(Address):
    """A pair: any entity of each graph; of one alone, with its best match.

    Attributes:
        pool: the candidates that ranks and hubness are of.
        side: the graph of the entity from which the pair is looked at: its candidates compete, and its decision is what may flip.
        tab: the part of the page; None: as the rest of the address suggests.
        evidence: which pairs of neighbours the tab Evidence lists, or the graph.
        against: a rival of either graph; None for the runner-up of the entity of ``side``.
        without: removed neighbours, ``side:URI`` each; ``side:URI → RELATION`` for one of several triples, ``value:ATTRIBUTE=VALUE`` for values.
    """

    source: str | None = None
    target: str | None = None
    pool: Pool = "all"
    side: Side = "source"
    tab: ExplainTab | None = None
    evidence: EvidenceShown = "supporting"
    against: str | None = None
    without: tuple[str, ...] = ()

    @property
    def suggested_tab(self) -> ExplainTab:
        """The tab to open where the address names none: what the other parameters are about, so that older links show what they always showed."""
        return "what-if" if self.without else "alternatives" if self.against else "overview"


@dataclass(frozen=True)
class ReviewAddress(Address):
    """Which queue, of which reviewer; or one certain pair.

    Attributes:
        reviewer: the name that was entered; of no matter to whoever is signed in.
        known: include pairs that known links decide.
        threshold: least probability (of runs without any, least CSLS margin) of what is accepted in bulk; None for the usual one.
        relation: that the source has; degree_from, degree_to: its number of triples. Neither restricts the random sample.
        source, target: a pair to decide, whatever the queue says.
        author, decided: filters of the table of decisions.
    """

    kind: ReviewKind = "uncertain"
    reviewer: str | None = None
    known: bool = False
    threshold: float | None = None
    relation: str | None = None
    degree_from: int | None = None
    degree_to: int | None = None
    source: str | None = None
    target: str | None = None
    author: str | None = None
    decided: Decided = "all"


@dataclass(frozen=True)
class DegreeAddress(Address):
    """What to measure, of which graph's queries, and the bucket that is looked at; ``search`` is in the list of its entities.

    Attributes:
        tab: None: the entities where the address has a choice among them, else the chart.
    """

    side: Side = "target"
    rate: Rate = "hits@1"
    bucket: str | None = None
    show: Shown = "misses"
    search: str | None = None
    tab: DegreeTab | None = None


@dataclass(frozen=True)
class CompareAddress(Address):
    """The reference run that the main run is compared with, the decoder of both, and which changed predictions to list.

    Attributes:
        against: the reference run, one of the other runs; None for the first of them.
        differences: only the settings that differ.
        tab: None: the changed predictions where the address has a choice among them, else the summary.
    """

    side: Side = "target"
    decoder: str = "csls"
    against: str | None = None
    flip: Flip = "gained"
    bucket: str | None = None
    relation: str | None = None
    search: str | None = None
    differences: bool = True
    tab: CompareTab | None = None


@dataclass(frozen=True)
class ChangesAddress(Address):
    """What changed between the run and an older one, and which rows to list.

    Attributes:
        old: the older run; None: the one that the run was updated from, else the newest other one of the same data.
        least: minimum probability of a match; None for the usual one.
        change: none: all but what was kept.
        cause: reasons; none: all.
    """

    side: Side = "source"
    old: str | None = None
    least: float | None = None
    change: tuple[Change, ...] = ()
    cause: tuple[Cause, ...] = ()
    search: str | None = None
    page: int = 1


@dataclass(frozen=True)
class DataSetAddress(Address):
    """The graph that is looked at closely, and in it a relation.

    Attributes:
        tab: None: one graph in detail where the address has a choice there, else the overview.
    """

    side: Side = "source"
    relation: str | None = None
    search: str | None = None
    tab: DataSetTab | None = None


@dataclass(frozen=True)
class TrainAddress(Address):
    """A training to be asked for, and the job that is watched.

    Attributes:
        data: name of a data set of the library.
        variant: None for the one to begin with on this data.
        preset: settings that belong together, before any others.
        settings: ``section.option=value``, as on the command line; of those that are not left as they are.
        reviews: with what reviewers decided of the data.
        job: id of a job of the queue.
        start: the run whose training is continued on this data, a new version of its own; None for a training from the start.
    """

    data: str | None = None
    variant: Variant | None = None
    seed: int = 0
    preset: Preset = "full"
    settings: tuple[str, ...] = ()
    reviews: bool = False
    job: str | None = None
    start: str | None = None


@dataclass(frozen=True)
class ImportAddress(Address):
    """Which step an import is at: how the files come, then the token of the uploaded files, then the data set made of them."""

    come: Come = "upload"
    staging: str | None = None
    stored: str | None = None


@dataclass(frozen=True)
class Focus:
    """The entity or the pair that a page is about, which other pages can be about, too.

    Attributes:
        side: whose entity was asked for; None where the address leaves it open, and only ``entity`` is known.
        entity, match: as of :class:`EntityAddress`.
    """

    side: Side | None
    entity: str
    match: str | None = None
    pool: Pool = "all"

    def address(self, kind: type[Address], runs: Sequence[str]) -> Address:
        """A page's address about this; where the page is not about one entity or pair, with the runs alone."""
        if kind is EntityAddress:
            return EntityAddress(tuple(runs), self.side, self.entity, self.match, self.pool)
        if self.side is None or not shows_focus(kind):
            return Address(tuple(runs))
        source, target = (self.entity, self.match) if self.side == "source" else (self.match, self.entity)
        if kind is ExplainAddress:
            return ExplainAddress(tuple(runs), source=source, target=target, pool=self.pool)
        return ProxiesAddress(tuple(runs), source=source, target=target)


def shows_focus(kind: type[Address]) -> bool:
    """Whether a page of this address is about one entity or pair. Review is not: it asks about pairs in an order of its own."""
    return kind in (EntityAddress, ExplainAddress, ProxiesAddress)


def asked_focus() -> Focus | None:
    """The entity or pair that the address names, whichever page it is of; whether there is such an entity is not checked.

    Raises:
        AddressError: longer than any identifier.
    """

    def last(name: str) -> str | None:
        return next(reversed(_texts(name)), None)

    pool: Pool = "test" if last(POOL) == "test" else "all"
    if (entity := last("entity")) is not None:
        side: Side | None = {"source": "source", "target": "target"}.get(last("side") or "")  # type: ignore[assignment]
        return Focus(side, entity, last(MATCH), pool)
    source, target = last("source"), last("target")
    if source is not None:
        return Focus("source", source, target, pool)
    return None if target is None else Focus("target", target, None, pool)


def entity_address(runs: Sequence[str], entity: Entity, match: Entity | None = None, pool: Pool = "all") -> EntityAddress:
    """The address of an entity's page."""
    return EntityAddress(tuple(runs), entity.side, entity.uri, None if match is None else match.uri, pool)


def asked_runs() -> tuple[str, ...]:
    """The runs that the address names, each once; whether there are such runs is not checked.

    Raises:
        AddressError: longer than any name.
    """
    return _texts(RUN)


def show_address(address: Address) -> None:
    """Make the browser's address bar say what the page shows; a link to the page that is open already changes the page but not the bar."""
    st.query_params.from_dict(address.parameters())


def show_parameters(parameters: Mapping[str, str | Iterable[str]]) -> None:
    """Replace the whole address, from a widget's callback."""
    st.query_params.from_dict({name: value if isinstance(value, str) else list(value) for name, value in parameters.items()})


def set_parameter(name: str, value: str | Sequence[str] | None) -> None:
    """Change one parameter of the address; None removes it."""
    if value is None:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = value if isinstance(value, str) else list(value)


def set_parameters(changes: Mapping[str, str | Sequence[str] | None]) -> None:
    """Change several parameters at once, in one step of the browser's history; None removes one."""
    now = {name: st.query_params.get_all(name) for name in st.query_params}
    wanted = now | {name: [] if value is None else [value] if isinstance(value, str) else list(value) for name, value in changes.items()}
    kept = {name: values for name, values in wanted.items() if values}
    if kept != now:
        st.query_params.from_dict(kept)


def widget_key(name: str, *parts: object) -> str:
    """A session key that belongs to some content: other content, another widget with its own state."""
    return f"{name}:{blake2b(repr(parts).encode(), digest_size=8).hexdigest()}"


def _written(value: Any) -> str | list[str]:
    if isinstance(value, tuple):
        return [str(one) for one in value]
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _texts(name: str, *, exact: bool = False) -> tuple[str, ...]:
    """All values of a repeated parameter, each once, in their order; ``exact``: as they are, as identifiers may end in a blank, else stripped."""
    given = st.query_params.get_all(name)
    values = [value for value in given if value.strip()] if exact else [value.strip() for value in given]
    for value in values:
        if len(value) > LONGEST_PARAMETER:
            raise AddressError(f"This link's '{name}' is {len(value):,} characters long, which is longer than any identifier.")
    return tuple(dict.fromkeys(value for value in values if value))


def _parsed(name: str, hint: Any) -> Any:
    """A parameter in the type of its annotation; None where the address does not have it."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(one for one in get_args(hint) if one is not types.NoneType)
    texts = _texts(name, exact=name != RUN and str in (hint, *get_args(hint)))
    if get_origin(hint) is tuple:
        return tuple(_value(name, get_args(hint)[0], text) for text in texts)
    return _value(name, hint, texts[-1]) if texts else None


def _value(name: str, hint: Any, text: str) -> Any:
    allowed = get_args(hint) if get_origin(hint) is Literal else ("yes", "no") if hint is bool else ()
    if allowed:
        if text not in allowed:
            raise AddressError(f"This link has {name}={text[:40]}, which is not a valid value. Expected {_listed(allowed)}.")
        return text == "yes" if hint is bool else text
    if hint is str:
        return text
    try:
        number = hint(text)
        sensible = math.isfinite(number)
    except (ValueError, OverflowError):
        sensible = False
    if not sensible:
        raise AddressError(f"This link has {name}={text[:40]}. Expected a {'whole number' if hint is int else 'number'}.")
    return number


def _listed(words: Sequence[str]) -> str:
    quoted = [f"'{word}'" for word in words]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
