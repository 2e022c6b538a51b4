"""The service put together: addresses, errors as JSON, and the description of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response

from engine import __version__
from engine.errors import (
    AmbiguousEntityError,
    ConfigError,
    DataError,
    EngineError,
    EntityError,
    EvidenceError,
    ReviewError,
    RunDamagedError,
    RunError,
    RunNotFoundError,
    RunVersionError,
    printable,
)
from engine.serving.guards import OPEN_PATHS, AsgiApplication, Guard, Refused
from engine.serving.reference import reference_page
from engine.serving.routes import as_json, router
from engine.serving.service import Service
from engine.serving.settings import TOKEN_VARIABLE, Settings
from engine.util.machine import as_machine_error, is_of_machine, is_out_of_memory
from engine.util.paths import without_folders
from engine.util.text import shorten

KINDS: Final[Mapping[type[EngineError], tuple[int, str]]] = {
    RunNotFoundError: (404, "run_not_found"),
    RunVersionError: (500, "run_too_new"),
    RunDamagedError: (500, "run_damaged"),
    RunError: (422, "run_unsuitable"),
    AmbiguousEntityError: (422, "entity_ambiguous"),
    EntityError: (404, "entity_not_found"),
    EvidenceError: (404, "evidence_not_found"),
    ConfigError: (422, "unusable_value"),
    DataError: (422, "unusable_record"),
    ReviewError: (422, "review_refused"),
}
"""Status and code by error: the first kind that an error is of counts."""
OTHER_CODES: Final = {400: "not_json", 404: "no_such_address", 405: "method_not_allowed"}
DESCRIPTION: Final = (
    "Runs of Dual-AMN Explorer for programs: matches, pairs, explanations, search, reviews and accuracy as JSON. Read-only unless started with "
    "--allow-reviews. An error is an object with a code and one sentence."
)


def guarded_application(settings: Settings) -> AsgiApplication:
    """The service behind its guard."""
    return Guard(application(Service(settings)), settings.token)


def application(service: Service) -> FastAPI:
    """The service without its guard."""

    @asynccontextmanager
    async def lifetime(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    # No pages of FastAPI's own: they load scripts from elsewhere. No redirects: their targets would come from the request's Host header.
    app = FastAPI(
        title="Dual-AMN Explorer",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifetime,
    )
    app.state.service = service
    app.include_router(router)
    app.add_exception_handler(EngineError, refusal_of_engine)
    app.add_exception_handler(Refused, refusal_of_guard)
    app.add_exception_handler(RequestValidationError, refusal_of_values)
    app.add_exception_handler(MemoryError, out_of_memory)
    app.add_exception_handler(Exception, defect)
    for status in OTHER_CODES:
        app.add_exception_handler(status, refusal_by_status)

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()))

    describe_token(app.openapi())  # after the last address, since each new one makes the description again
    return app


def describe_token(schema: dict[str, Any]) -> None:
    """Say in the description that requests bring a token, where the service was started with one; the guard is what looks at it."""
    schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": f"the content of {TOKEN_VARIABLE}"}}
    for path, methods in schema["paths"].items():
        for operation in methods.values() if path not in OPEN_PATHS else ():
            operation["security"] = [{"token": []}, {}]


def problem_answer(status: int, code: str, message: str, candidates: tuple[str, ...] = ()) -> Response:
    """An error as every answer gives it."""
    error: dict[str, Any] = {"code": code, "message": printable(message)}
    return as_json({"error": error | ({"candidates": list(candidates)} if candidates else {})}, status)


def refusal_of_engine(request: Request, error: Exception) -> Response:
    """A mistake of the user's, or a run that cannot be used; without folders of this machine."""
    status, code = next((found for kind, found in KINDS.items() if isinstance(error, kind)), (422, "refused"))
    models = request.app.state.service.settings.models
    places = [(str(form), "", "the models folder") for form in {models, models.absolute(), models.resolve()} if form.name]
    candidates = error.candidates if isinstance(error, EntityError) else ()
    words = without_folders(str(error), places)
    if is_of_machine(error):
        return problem_answer(503, "not_possible_now", words)
    return problem_answer(status, code, words, candidates)


def refusal_of_guard(request: Request, error: Exception) -> Response:
    found = error if isinstance(error, Refused) else Refused(500, "internal", "unexpected.")
    return problem_answer(found.status, found.code, found.message)


def refusal_of_values(request: Request, error: Exception) -> Response:
    """A parameter or a body that does not fit the description: the first thing that is wrong with it."""
    first: Mapping[str, Any] = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    if first.get("type") == "json_invalid":
        return problem_answer(400, "not_json", "the body is not JSON; send an object as /docs shows it.")
    where = ".".join(str(part) for part in first.get("loc", ())[1:]) or "the body"
    return problem_answer(
        422, "unusable_value", f"'{shorten(where)}': {shorten(str(first.get('msg', 'unusable')), 300)}; /docs lists the parameters."
    )


def refusal_by_status(request: Request, error: Exception) -> Response:
    """What FastAPI itself refuses."""
    status = int(getattr(error, "status_code", 400))
    words = {
        404: "there is no such address; /docs lists them.",
        405: "this address does not take this method; /docs lists the methods.",
    }
    return problem_answer(
        status, OTHER_CODES.get(status, "refused"), words.get(status, "the body cannot be read as JSON; /docs shows what is expected.")
    )


def out_of_memory(request: Request, error: Exception) -> Response:
    return problem_answer(503, "out_of_memory", "out of memory; try again, or use a larger machine.")


def defect(request: Request, error: Exception) -> Response:
    """Anything else; the traceback goes to the log."""
    if is_out_of_memory(error):
        return out_of_memory(request, error)
    if (machine := as_machine_error(error)) is not None:
        return refusal_of_engine(request, machine)
    return problem_answer(500, "internal", "an unexpected error occurred; the log of the service has the details.")
