"""Names: where they come from, how they are compared, what they solve alone, how much they should count (paper section 6, literal variant)."""

from engine.names.encoders import NAME_ENCODERS, EncodedNames, NameEncoder, get_name_encoder, register_encoder
from engine.names.paths import absolute_paths, content_digest, named_paths
from engine.names.sources import NAME_ORIGINS, Names, gather_names, may_need_a_rule
from engine.names.synonyms import AllNames, all_names, encode_all, left_out_finding
from engine.names.value_similarity import ValueEvidence, name_attributes, value_evidence
from engine.names.values import unknown_attributes
from engine.names.weight import PAPER_WEIGHT, WEIGHTS, WeightChoice, choose_weight, leak_warning, name_similarity, name_tensors, require_valid_links

__all__ = [
    "NAME_ENCODERS",
    "NAME_ORIGINS",
    "PAPER_WEIGHT",
    "WEIGHTS",
    "AllNames",
    "EncodedNames",
    "NameEncoder",
    "Names",
    "ValueEvidence",
    "WeightChoice",
    "absolute_paths",
    "all_names",
    "choose_weight",
    "content_digest",
    "encode_all",
    "gather_names",
    "get_name_encoder",
    "leak_warning",
    "left_out_finding",
    "may_need_a_rule",
    "name_attributes",
    "name_similarity",
    "name_tensors",
    "named_paths",
    "register_encoder",
    "require_valid_links",
    "unknown_attributes",
    "value_evidence",
]
