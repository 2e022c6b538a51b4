"""The settings of a training as a form: a widget for every option of the engine's config, which the address keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from app import components, state, text
from app.state import TrainAddress
from engine.config import SECTIONS, BaselineConfig, Option, RunConfig, section_options, unused_sections
from engine.explanation.summary import capital
from engine.training.baselines import BASELINES

COLUMNS = 3
SECTION_WORDS: Mapping[str, str] = {
    "data": "Data and split",
    "encoder": "Model",
    "loss": "Loss",
    "training": "Training",
    "semi": "Semi-supervised rounds",
    "literal": "Names",
    "values": "Attribute values",
    "baseline": "Baseline",
    "search": "Search",
}


METHOD = "baseline.method"
METHOD_WORDS: Mapping[str, str] = {"none": "Dual-AMN", **{name: f"{one.title} (baseline: {one.about})" for name, one in BASELINES.items()}}


def offered_sections(method: str) -> tuple[str, ...]:
    """The sections that a variant or a baseline looks at."""
    return tuple(name for name in SECTIONS if name not in unused_sections(method))


def assigned(settings: Sequence[str]) -> dict[str, str]:
    """``section.option`` -> value, the last one of each."""
    return {key.strip(): value for key, found, value in (text.partition("=") for text in settings) if found}


def asked_method(settings: Sequence[str]) -> str:
    """The baseline that takes the place of Dual-AMN; "none" for Dual-AMN itself, and for what is no baseline, which is reported later."""
    asked = assigned(settings).get(METHOD, "none")
    return asked if asked in METHOD_WORDS else "none"


def method_choice(address: TrainAddress) -> str:
    """What is trained: Dual-AMN, or a baseline in its place. Settings that both look at are kept."""
    method = asked_method(address.settings)

    def follow(chosen: str) -> None:
        kept = [f"{key}={value}" for key, value in assigned(address.settings).items() if key.partition(".")[0] in ("data", "search")]
        settings = kept if chosen == "none" else [f"{METHOD}={chosen}", *kept]
        state.set_parameters({state.SETTING: settings or None, "variant": None, "preset": None})

    components.select("Method", METHOD_WORDS, name=state.TRAIN_FORM, parts=("method",), value=method, on_choose=follow)
    if method != "none":
        (option,) = (option for option in section_options(BaselineConfig) if option.key == METHOD)
        st.caption(f"{capital(option.help)}.")
    return method


def advanced(address: TrainAddress, base: RunConfig) -> None:
    """The settings of the variant but for experts' ones; what a reader changes goes into the address. ``base``: their values if left alone."""
    chosen = assigned(address.settings)
    for name in offered_sections(base.method):
        st.markdown(f"**{SECTION_WORDS[name]}**")
        options = [option for option in section_options(SECTIONS[name]) if not option.expert and option.key != METHOD]
        for start in range(0, len(options), COLUMNS):
            for column, option in zip(st.columns(COLUMNS), options[start : start + COLUMNS], strict=False):
                with column:
                    _setting(option, getattr(getattr(base, name), option.name), chosen)
                    st.caption(text.plain(f"{option.help[:1].upper()}{option.help[1:]}.", 600))


def _setting(option: Option, default: object, chosen: Mapping[str, str]) -> None:
    given = chosen.get(option.key)
    key = state.widget_key(state.TRAIN_FORM, option.key, given, default)
    label, help = option.name.replace("_", " "), _help(option)

    def follow() -> None:
        entered = st.session_state[key]
        value = ("yes" if entered else "no") if isinstance(entered, bool) else str(entered).strip()
        left_alone = not value or value == _shown(default)
        kept = {**chosen, option.key: value}
        state.set_parameter(state.SETTING, [f"{name}={text}" for name, text in kept.items() if name != option.key or not left_alone] or None)

    if option.kind is bool:
        on = bool(default) if given is None else given.lower() in ("yes", "true", "on", "1")
        st.checkbox(label, value=on, key=key, on_change=follow, help=help)
    elif option.choices:
        now = given if given in option.choices else str(default)
        st.selectbox(label, option.choices, index=option.choices.index(now), key=key, on_change=follow, help=help)
    else:
        st.text_input(label, value=given or "", placeholder=_shown(default), key=key, on_change=follow, help=help, max_chars=400)


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "automatic" if default is None else str(default)


def _help(option: Option) -> str:
    return f"`{option.key}`: {text.plain(option.values, 200)}."
