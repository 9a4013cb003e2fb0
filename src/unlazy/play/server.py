"""The server of the live page: on the loopback alone, behind a token, one page and one socket."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import unlazy
from unlazy.play.scenario import Preset
from unlazy.play.session import Session

#: Names under which this machine may be asked: a foreign name that leads here is refused.
HOSTS = ["127.0.0.1", "localhost"]
#: The browser is told to load nothing from anywhere, and to talk to this server alone.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; connect-src 'self'"
)
#: Parts of the page, in their order.
SCRIPTS = ("drawing.js", "views.js", "player.js")


def page(recording: dict[str, Any] | None = None, *, opening: dict[str, Any] | None = None) -> str:
    """The page as one file: live, or with a recording that plays without a server."""
    folder = importlib.resources.files("unlazy.play").joinpath("page")

    def text(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    parts = {
        "style": text("style.css"),
        "script": "\n".join(text(name) for name in SCRIPTS),
        "recording": embedded(recording),
        "opening": embedded(opening),
        "version": unlazy.__version__,
    }
    html = text("page.html")
    for name, part in parts.items():
        html = html.replace(f"@{name}@", part)
    return html


def embedded(data: Any) -> str:
    """JSON that can stand in a script element: no text within can end it."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )


def application(
    presets: dict[str, Preset],
    token: str,
    opening: dict[str, Any] | None = None,
    store: Path | None = None,
) -> Starlette:
    """The application. `opening`: the preset and values with which the page starts.

    `store` keeps the errors of rivals; without one they are computed again on each visit.
    """
    sessions: set[Session] = set()

    def known(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given, token)

    async def show(request: Request) -> Response:
        if not known(request.query_params.get("token")):
            return PlainTextResponse(
                "This page needs the token that `unlazy play` printed.", status_code=403
            )
        headers = {
            "Content-Security-Policy": POLICY,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
        }
        start = {"presets": [preset.to_json() for preset in presets.values()], **(opening or {})}
        return HTMLResponse(page(opening=start), headers=headers)

    async def status(request: Request) -> Response:
        if not known(request.query_params.get("token")):
            return PlainTextResponse("no token", status_code=403)
        return JSONResponse(
            {"sessions": len(sessions), "busy": any(session.busy for session in sessions)}
        )

    async def live(ws: WebSocket) -> None:
        # A page from elsewhere may open sockets to this machine, but it knows no token, and
        # browsers say where it comes from.
        origin = ws.headers.get("origin")
        if not known(ws.query_params.get("token")) or (
            origin is not None and origin.partition("://")[2] != ws.headers.get("host")
        ):
            await ws.close(code=4403)
            return
        await ws.accept()
        loop, outbox = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()

        def send(message: dict[str, Any]) -> None:
            if not session.stopped.is_set():
                loop.call_soon_threadsafe(outbox.put_nowait, message)

        session = Session(presets, send, store)
        sessions.add(session)
        session.start()
        talking = asyncio.create_task(_talk(ws, outbox))
        try:
            while True:
                command = json.loads(await ws.receive_text())
                if isinstance(command, dict):
                    session.tell(command)
        except (WebSocketDisconnect, ValueError):
            pass
        finally:
            session.stop(wait=False)
            talking.cancel()
            await asyncio.to_thread(session.stop)
            sessions.discard(session)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        for session in list(sessions):
            session.stop(wait=False)

    routes = [Route("/", show), Route("/status", status), WebSocketRoute("/live", live)]
    return Starlette(
        routes=routes,
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
        lifespan=lifespan,
    )


async def _talk(ws: WebSocket, outbox: asyncio.Queue[dict[str, Any]]) -> None:
    while True:
        await ws.send_text(json.dumps(await outbox.get(), separators=(",", ":"), allow_nan=False))


def free_port(wanted: int = 0) -> socket.socket:
    """A socket on the loopback: bound, so that nobody takes its port before the server does."""
    from unlazy.core.errors import BadInput

    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", wanted))
    except OSError as error:
        found.close()
        raise BadInput(
            f"Port {wanted} cannot be used ({error.strerror}): leave --port out, and a free one "
            "is taken."
        ) from None
    return found


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve in a thread of its own for as long as the context lasts; gives the address, as host and
    port.
    """
    import uvicorn

    sock = free_port()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    sock.listen(64)  # who comes before the server waits for it
    thread.start()
    try:
        yield f"127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def serve(app: Starlette, sock: socket.socket) -> None:
    """Serve until interrupted."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", ws_max_size=1 << 20, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[sock])
