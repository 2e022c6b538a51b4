"""Your own graphs: files come in, are looked at, corrected by their owner, and stored as a data set (docs/importing.md)."""

from engine.importing.corrections import NAMING, SEED_CHOICES, Corrections, SeedChoice
from engine.importing.expectation import Expectation, expectation
from engine.importing.glance import UnderstoodFile, UnderstoodTable, glance
from engine.importing.limits import LIMITS, Limits
from engine.importing.material import ROLE_WORDS, ROLES, Material, Role, SourceFile, check_given, folder_material, with_file
from engine.importing.preview import NameCandidate, Preview, UnderstoodGraph, preview, understand
from engine.importing.remedies import REMEDIES
from engine.importing.report import preview_to_dict, render_preview
from engine.importing.seeds import SeedPair, SeedSuggestions, suggest_seeds
from engine.importing.server_folders import Offered, find, offered
from engine.importing.staging import Brought, Staged, add, clean_up, correct, discard, find_staged, stage, stage_folder
from engine.importing.store import check_dataset_name, free_name, store, suggested_name, write

__all__ = [
    "LIMITS",
    "NAMING",
    "REMEDIES",
    "ROLES",
    "ROLE_WORDS",
    "SEED_CHOICES",
    "Brought",
    "Corrections",
    "Expectation",
    "Limits",
    "Material",
    "NameCandidate",
    "Offered",
    "Preview",
    "Role",
    "SeedChoice",
    "SeedPair",
    "SeedSuggestions",
    "SourceFile",
    "Staged",
    "UnderstoodFile",
    "UnderstoodGraph",
    "UnderstoodTable",
    "add",
    "check_dataset_name",
    "check_given",
    "clean_up",
    "correct",
    "discard",
    "expectation",
    "find",
    "find_staged",
    "folder_material",
    "free_name",
    "glance",
    "offered",
    "preview",
    "preview_to_dict",
    "render_preview",
    "stage",
    "stage_folder",
    "store",
    "suggest_seeds",
    "suggested_name",
    "understand",
    "with_file",
    "write",
]
