"""A session of the app without a browser: what a tab sends and receives over the WebSocket, and what it shows by then."""

from __future__ import annotations

import asyncio
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Block_pb2 import Block
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

PATIENCE: Final = 60.0
"""Seconds after which an answer counts as one that never came."""
ENDED: Final = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY, ForwardMsg.FINISHED_WITH_COMPILE_ERROR)
Place = tuple[int, ...]


class NoAnswerError(Exception):
    """The server did not end what it was asked for, or closed the connection."""


@dataclass(frozen=True)
class Shown:
    """Something on the page.

    Attributes:
        part: an element or a container.
        fragment: the part of the page that is drawn again alone, "" for the whole page.
        run: of the script that drew it.
    """

    part: Element | Block
    fragment: str
    run: str


class Tab:
    """One tab. It does what a browser does: it keeps the address, draws parts of the page again, and asks again where a page asks for that.

    Args:
        base: address of the app, "http://127.0.0.1:8501".

    Attributes:
        query: of the address bar.
        page: the name of the page's script, as the server has it.
        problems: exceptions that the page showed, and compilation errors; whoever reads them empties the list.
    """

    def __init__(self, base: str) -> None:
        self.base, self.query, self.page = base, "", ""
        self.problems: list[str] = []
        self._shown: dict[Place, Shown] = {}
        self._run = ""
        self._fragments: frozenset[str] = frozenset()
        self._ended = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._replies: dict[str, asyncio.Future[Any]] = {}
        self._again: dict[str, asyncio.Task[None]] = {}
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    # Asking

    async def open(self, page: str, query: str) -> float:
        """Open the app at an address; returns the seconds until the page is there.

        Raises:
            NoAnswerError: it never is.
        """
        address = f"{self.base.replace('http', 'ws', 1)}/_stcore/stream"
        began = time.perf_counter()
        self._socket = await connect(address, subprotocols=[Subprotocol("streamlit"), Subprotocol("crowd")], max_size=None, open_timeout=PATIENCE)
        self._reader = asyncio.create_task(self._read(self._socket))
        self.query = query
        message = BackMsg()
        message.rerun_script.query_string, message.rerun_script.page_name = query, page
        await self._ask(message)
        return time.perf_counter() - began

    async def follow(self, page: str, query: str) -> float:
        """Follow a link to a page of the app; ``page`` as the link has it."""
        self.query = query
        message = BackMsg()
        message.rerun_script.query_string, message.rerun_script.page_script_hash = query, page
        return await self._timed(message)

    async def use(self, place: Place, state: WidgetState) -> float:
        """Use a widget; returns the seconds until the page has followed."""
        message = self._rerun(self._shown[place].fragment)
        message.rerun_script.widget_states.widgets.append(state)
        return await self._timed(message)

    def _rerun(self, fragment: str) -> BackMsg:
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_script_hash, asked.fragment_id = self.query, self.page, fragment
        return message

    async def _timed(self, message: BackMsg) -> float:
        began = time.perf_counter()
        await self._ask(message)
        return time.perf_counter() - began

    async def _ask(self, message: BackMsg) -> None:
        async with self._one_at_a_time:
            self._ended.clear()
            await self._send(message)
            await self._until(self._ended.wait())

    async def _send(self, message: BackMsg) -> None:
        assert self._socket is not None
        try:
            await self._socket.send(message.SerializeToString())
        except ConnectionClosed as error:
            raise NoAnswerError(f"the connection was closed ({error})") from None

    async def _until(self, answer: Any) -> Any:
        """An answer, unless the connection ends first."""
        assert self._reader is not None
        waiting = asyncio.ensure_future(answer)
        done, _ = await asyncio.wait({waiting, self._reader}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if waiting in done:
            return waiting.result()
        waiting.cancel()
        raise NoAnswerError("the connection was closed" if done else f"no answer within {PATIENCE:.0f} s")

    async def download(self, file: str) -> tuple[float, int]:
        """Have a file made and fetch it; returns seconds and bytes. ``file``: as a download button names it.

        Raises:
            NoAnswerError: it is not made.
            OSError: it cannot be fetched.
        """
        began = time.perf_counter()
        message, name = BackMsg(), uuid.uuid4().hex
        asked = message.backend_operation_request
        asked.request_id, asked.session_id, asked.deferred_file.file_id = name, self._session, file
        self._replies[name] = asyncio.get_running_loop().create_future()
        await self._send(message)
        reply = await self._until(self._replies[name])
        if reply.error_msg:
            raise NoAnswerError(f"no file: {reply.error_msg}")
        size = await asyncio.to_thread(_fetched, f"{self.base}{reply.deferred_file.url}")
        return time.perf_counter() - began, size

    async def close(self) -> None:
        """Close the tab."""
        self._stop_again()
        if self._socket is not None:
            await self._socket.close()
        if self._reader is not None:
            with suppress(asyncio.CancelledError):
                await self._reader

    # What is shown

    def parts(self, kind: str, *, main: bool = False) -> Iterator[tuple[Place, Any]]:
        """The elements or containers of a kind with their places, in the order of the page; ``main``: those outside of the sidebar."""
        for place, shown in sorted(self._shown.items()):
            if shown.part.WhichOneof("type") == kind and not (main and place[0] == 1):
                yield place, getattr(shown.part, kind)

    # Receiving

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                message = ForwardMsg()
                message.ParseFromString(cast("bytes", data))
                self._take(message)
        except ConnectionClosed:
            return

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "delta":
            self._draw(message)
        elif kind == "new_session":
            self._begin(message)
        elif kind == "script_finished":
            if message.script_finished in ENDED:
                self._clear()
                self._ended.set()
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "session_event" and message.session_event.HasField("script_compilation_exception"):
            self.problems.append(f"compilation: {message.session_event.script_compilation_exception.message}")
        elif kind == "auto_rerun":
            self._repeat(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "stop_auto_rerun":
            self._stop_again(*message.stop_auto_rerun.fragment_ids)
        elif kind == "backend_operation_response":
            reply = message.backend_operation_response
            if (waiting := self._replies.pop(reply.request_id, None)) is not None and not waiting.done():
                waiting.set_result(reply)

    def _begin(self, message: ForwardMsg) -> None:
        begun = message.new_session
        self._run, self._fragments = message.metadata.run.script_run_id, frozenset(message.metadata.run.fragment_ids)
        self._session = begun.initialize.session_id or self._session
        if not self._fragments:
            self.page = begun.page_script_hash
            self._stop_again()

    _session = ""

    def _draw(self, message: ForwardMsg) -> None:
        delta, place = message.delta, tuple(message.metadata.delta_path)
        kind = delta.WhichOneof("type")
        if kind == "new_element":
            self._shown[place] = Shown(delta.new_element, delta.fragment_id, self._run)
            if delta.new_element.WhichOneof("type") == "exception":
                found = delta.new_element.exception
                self.problems.append(f"exception: {found.type} {found.message}"[:400])
        elif kind == "add_block":
            self._shown[place] = Shown(delta.add_block, delta.fragment_id, self._run)

    def _clear(self) -> None:
        """At the end of a script: what it has not drawn again is gone."""
        whole = not self._fragments
        gone = [place for place, one in self._shown.items() if one.run != self._run and (whole or one.fragment in self._fragments)]
        for place in gone:
            del self._shown[place]

    # What a page asks for by itself

    def _repeat(self, fragment: str, seconds: float) -> None:
        if fragment not in self._again or self._again[fragment].done():
            self._again[fragment] = asyncio.create_task(self._every(fragment, seconds))

    async def _every(self, fragment: str, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            message = self._rerun(fragment)
            message.rerun_script.is_auto_rerun = True
            with suppress(NoAnswerError):
                await self._ask(message)

    def _stop_again(self, *fragments: str) -> None:
        """Of these fragments, or of all."""
        for fragment in fragments or tuple(self._again):
            if (task := self._again.pop(fragment, None)) is not None and task is not asyncio.current_task():
                task.cancel()


def _fetched(address: str) -> int:
    with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
        return len(answer.read())
