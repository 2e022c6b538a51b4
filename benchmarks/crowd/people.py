"""What somebody does at the app: looks around on all pages, reviews, explains, exports, trains; in a session without a browser."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.pages import EXPLAIN, EXPORT, HOME, PAGES, REVIEW, TRAIN
from app.quick_search import LABEL
from app.reviewing import LEAST_SECONDS
from app.state import TrainAddress
from benchmarks.crowd.record import Answer, Look, Record, button_name
from benchmarks.crowd.tab import NoAnswerError, Place, Tab
from engine.reviews import Verdict

DECISIONS: Final = (4, 12)  # in a row
CHOICES: Final = (1, 4)  # on a page
VERDICTS: Final[Mapping[Verdict, float]] = {"accept": 0.6, "reject": 0.3, "skip": 0.1}
LABELS: Final[Mapping[Verdict, str]] = {"accept": "Accept", "reject": "Reject", "skip": "Skip"}
UNDONE: Final = 0.08  # share of decisions
NOT_FOR_A_CROWD: Final = ("Run to delete",)
SMALL: Final = ("training.epochs=8", "encoder.dim=32", "encoder.proxies=16")
TRAINED: Final = "europe"
QUEUES: Final = frozenset({"Uncertain", "Conflicts", "Second opinion"})
RESERVED: Final = "This pair is reserved for another reviewer now."
HEADING: Final = 6  # texts from the names of a pair on: badges, scores and identifiers among them
LETTERS: Final = "abcdefghiklmnoprstuw"


@dataclass(frozen=True)
class Habits:
    """How the crowd goes about it.

    Attributes:
        pause: seconds between an answer and the next click, at least and at most.
        until: seconds after the beginning when all of them stop.
        entities: labels to search for.
    """

    pause: tuple[float, float]
    until: float
    entities: Sequence[str]


class Person:
    """Somebody with one tab.

    Args:
        name: under which they review.
        run: that they begin with.
        trains: whether they also ask for trainings.
    """

    def __init__(self, name: str, run: str, base: str, record: Record, habits: Habits, draw: random.Random, *, trains: bool = False) -> None:
        self.name, self.run, self.record, self.habits, self.draw = name, run, record, habits, draw
        self._base, self._tab, self._page = base, Tab(base), ""
        self._look: Look | None = None
        self._activities: dict[Callable[[], Awaitable[None]], float] = {
            self.review: 4.0,
            self.look_around: 4.0,
            self.explain: 2.0,
            self.search: 1.0,
            self.export: 0.5,
            self.train: 3.0 if trains else 0.0,
        }

    async def live(self) -> None:
        """Do one thing after the other, until it is time to stop; whoever gets no answer opens the app again."""
        while self._is_time:
            self._tab = Tab(self._base)
            await self._pause()
            try:
                await self._visit()
            except (NoAnswerError, OSError) as error:
                self.record.problems.append(f"{self.name} on {self._page or 'home'}: {error}")
            finally:
                self.record.leave(self._look)
                await self._tab.close()

    async def _visit(self) -> None:
        await self.enter()
        while self._is_time:
            (activity,) = self.draw.choices(list(self._activities), list(self._activities.values()))
            await activity()

    @property
    def _is_time(self) -> bool:
        return self.record.now < self.habits.until

    async def _pause(self) -> None:
        await asyncio.sleep(self.draw.uniform(*self.habits.pause))

    # Going somewhere

    async def enter(self) -> None:
        """Open the app where a bookmark leads."""
        self._page = self.draw.choice([page.name for page in PAGES if page is not HOME])
        await self._note("page", self._tab.open(self._page, urlencode({"run": self.run})))

    async def go(self, page: str) -> None:
        """Follow the sidebar's link to a page."""
        links = [link for _, link in self._tab.parts("page_link") if (link.page or HOME.name) == page]
        if not links:
            self.record.problems.append(f"{self.name} on {self._page}: no link to {page}")
            return
        await self._follow(links[0])

    async def _follow(self, link: Any, query: str | None = None) -> None:
        self.record.leave(self._look)
        self._look, self._page = None, link.page or HOME.name
        await self._note("page", self._tab.follow(link.page_script_hash, link.query_string if query is None else query))
        await self._pause()

    async def _note(self, kind: str, doing: Awaitable[float]) -> None:
        """Do something, note how long it took and what the page says of errors."""
        seconds = await doing
        self.record.add(self._page, kind, seconds)
        self.record.problems += [f"{self.name} on {self._page} ({self._tab.query[:200]}): {problem}" for problem in self._tab.problems]
        self._tab.problems.clear()
        errors = [alert.body for _, alert in self._tab.parts("alert") if alert.format == Alert.ERROR]
        self.record.notes += [f"{self._page}: {body[:160]}" for body in errors]

    # Looking around

    async def look_around(self) -> None:
        """Some page, and some of its choices."""
        await self.go(self.draw.choice([page.name for page in PAGES if page is not REVIEW]))
        await self._choose_some()

    async def explain(self) -> None:
        """A pair that some page links to, and its tabs."""
        links = self._links(EXPLAIN.name, "source=")
        if not links:
            await self.go(EXPLAIN.name)
            links = self._links(EXPLAIN.name, "source=")
        if links:
            await self._follow(self.draw.choice(links))
        await self._choose_some()

    def _links(self, page: str, words: str) -> list[Any]:
        return [link for _, link in self._tab.parts("page_link", main=True) if link.page == page and words in link.query_string]

    async def search(self) -> None:
        """The search box, letter by letter, and the first result."""
        words = self.draw.choice(self.habits.entities) if self.habits.entities else self.draw.choice(LETTERS)
        for length in sorted({min(3, len(words)), len(words)}):
            boxes = [place for place, box in self._tab.parts("text_input") if box.label == LABEL]
            if not boxes:
                return
            box = dict(self._tab.parts("text_input"))[boxes[0]]
            await self._note("search", self._tab.use(boxes[0], WidgetState(id=box.id, string_value=words[:length])))
        await self._pause()
        results = [link for place, link in self._tab.parts("page_link") if place[0] == 1 and link.page == "entity" and "entity=" in link.query_string]
        if results:
            await self._follow(results[0])

    async def export(self) -> None:
        """Another format, and the file."""
        await self.go(EXPORT.name)
        await self._choose_some()
        if self._page != EXPORT.name:
            return
        buttons = [
            button for _, button in self._tab.parts("download_button", main=True) if button.label.startswith("Download") and not button.disabled
        ]
        files = [button for button in buttons if button.deferred_file_id and "report" not in button.label]
        if not files:
            return
        try:
            seconds, size = await self._tab.download(files[0].deferred_file_id)
        except OSError as error:
            self.record.problems.append(f"{self.name}: a download failed: {error}")
            return
        self.record.add(self._page, "download", seconds)
        self.record.downloads += 1
        if not size:
            self.record.problems.append(f"{self.name}: an empty file ({self._tab.query[:200]})")
        await self._pause()

    async def train(self) -> None:
        """Ask for a small training, and watch it for a while."""
        settings, seed = SMALL, self.draw.randrange(10**6)
        address = TrainAddress(data=TRAINED, seed=seed, settings=settings)
        links = [link for _, link in self._tab.parts("page_link") if link.page == TRAIN.name]
        if not links:
            return
        await self._follow(links[0], urlencode({**address.parameters(), "run": self.run}, doseq=True))
        starts = [(place, button) for place, button in self._tab.parts("button", main=True) if button.label.startswith("Start ")]
        if starts and not starts[0][1].disabled:
            place, button = starts[0]
            await self._note("training", self._tab.use(place, WidgetState(id=button.id, trigger_value=True)))
            self.record.trainings += 1
            for _ in range(3):
                await self._pause()

    async def _choose_some(self) -> None:
        for _ in range(self.draw.randint(*CHOICES)):
            possible = list(self._possible())
            if not possible or not self._is_time:
                return
            place, state = self.draw.choice(possible)
            await self._note("choice", self._tab.use(place, state))
            await self._pause()

    def _possible(self) -> list[tuple[Place, WidgetState]]:
        """What can be chosen on the page besides what is chosen."""
        found = []
        for place, group in self._tab.parts("button_group"):
            chosen = set(group.raw_values) if group.set_value else {group.options[index].content for index in group.default}
            for option in group.options:
                if option.content not in chosen:
                    state = WidgetState(id=group.id)
                    state.string_array_value.data.append(option.content)
                    found.append((place, state))
        for place, box in self._tab.parts("selectbox"):
            if not box.disabled and box.options and box.label not in NOT_FOR_A_CROWD:
                found.append((place, WidgetState(id=box.id, string_value=self.draw.choice(box.options))))
        for place, box in self._tab.parts("checkbox", main=True):
            if not box.disabled:
                found.append((place, WidgetState(id=box.id, bool_value=not (box.value if box.set_value else box.default))))
        for place, tabs in self._tab.parts("tab_container", main=True):
            labels = [tab.label for under, tab in self._tab.parts("tab") if under[:-1] == place]
            if labels and tabs.id:
                found.append((place, WidgetState(id=tabs.id, string_value=self.draw.choice(labels))))
        return found

    # Reviewing

    async def review(self) -> None:
        """Some decisions in a row."""
        links = [link for _, link in self._tab.parts("page_link") if link.page == REVIEW.name]
        if not links:
            return
        query = "&".join(filter(None, [links[0].query_string, urlencode({"reviewer": self.name})]))
        await self._follow(links[0], query)
        if self.draw.random() < 0.3:
            await self._another_queue()
        for _ in range(self.draw.randint(*DECISIONS)):
            if not self._is_time or not await self._decide():
                return

    async def _another_queue(self) -> None:
        queues = [
            (place, state)
            for place, state in self._possible()
            if any(word in state.string_array_value.data for word in ("Conflicts", "Uncertain", "Second opinion"))
        ]
        if queues:
            await self._note("choice", self._tab.use(*self.draw.choice(queues)))
        await self._pause()

    async def _decide(self) -> bool:
        """One pair; False where there is none to decide."""
        look = self._pair()
        if look is None:
            return False
        (verdict,) = self.draw.choices(list(VERDICTS), list(VERDICTS.values()))
        await asyncio.sleep(LEAST_SECONDS)  # a click that comes sooner is ignored
        await self._pause()
        place, button = next((place, one) for place, one in self._tab.parts("button", main=True) if one.label == LABELS[verdict])
        self.record.leave(look)
        await self._note("decision", self._tab.use(place, WidgetState(id=button.id, trigger_value=True)))
        if (now := self._pair(again=True)) is not None and now.name == look.name:
            self.record.problems.append(f"{self.name}: a decision was not taken: {look.words[:80]}")
            return True
        self.record.answers[self.name].append(Answer(look, verdict))
        if self.draw.random() < UNDONE:
            await self._undo()
        return True

    async def _undo(self) -> None:
        undo = [(place, one) for place, one in self._tab.parts("button", main=True) if one.label == "Undo"]
        if undo and self.record.answers[self.name]:
            await self._pause()
            self.record.leave(self._look)
            place, button = undo[0]
            await self._note("decision", self._tab.use(place, WidgetState(id=button.id, trigger_value=True)))
            self.record.answers[self.name].append(Answer(self.record.answers[self.name][-1].look, None))
            self._pair(again=True)

    def _pair(self, *, again: bool = False) -> Look | None:
        """The pair on the screen; noted once, and with ``again`` once more, after a click."""
        name = next((button_name(one.id) for _, one in self._tab.parts("button", main=True) if one.label == LABELS["accept"]), "")
        if not name or self._page != REVIEW.name:
            self._look = None
        elif again or self._look is None or self._look.name != name:
            self.record.leave(self._look)
            texts = [markdown.body for _, markdown in self._tab.parts("markdown", main=True)]
            start = next((number for number, body in enumerate(texts) if body.startswith("#####")), 0)
            words = "\n".join(texts[start : start + HEADING])
            self._look = self.record.look(self.name, name, words, announced=any(RESERVED in body for body in texts))
        return self._look
