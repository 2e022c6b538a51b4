"""One module a name encoder, one registry for all of them."""

from engine.names.encoders.base import NAME_ENCODERS, EncodedNames, EncoderKind, NameEncoder, get_name_encoder, register_encoder
from engine.names.encoders.ngrams import NgramEncoder
from engine.names.encoders.sentence import SentenceEncoder, Usem3Encoder
from engine.names.encoders.word_vectors import WordVectorEncoder

__all__ = [
    "NAME_ENCODERS",
    "EncodedNames",
    "EncoderKind",
    "NameEncoder",
    "NgramEncoder",
    "SentenceEncoder",
    "Usem3Encoder",
    "WordVectorEncoder",
    "get_name_encoder",
    "register_encoder",
]
