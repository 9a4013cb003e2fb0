"""Server of the live page: loopback interface only, protected by a token."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
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

#: Accepted host names; others are refused (protection against DNS rebinding).
HOSTS = ["127.0.0.1", "localhost"]
#: Forbids loading external resources and connecting to other servers.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; connect-src 'self'"
)
#: Scripts of the page, in loading order.
SCRIPTS = ("drawing.js", "views.js", "player.js")


def page(recording: dict[str, Any] | None = None, *, opening: dict[str, Any] | None = None) -> str:
    """Return the page as one HTML file: live, or with a recording that needs no server."""
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
    """Return JSON that is safe inside a script element."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace(
        "<", "\\u003c"
    )


def application(
    presets: dict[str, Preset],
    token: str,
    opening: dict[str, Any] | None = None,
    store: Path | None = None,
) -> Starlette:
    """Return the web application. `opening`: initial preset and values of the page.

    `store` caches the errors of the baselines; without it they are recomputed on each visit.
    """
    sessions: set[Session] = set()

    def valid(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given, token)

    async def show(request: Request) -> Response:
        if not valid(request.query_params.get("token")):
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
        if not valid(request.query_params.get("token")):
            return PlainTextResponse("no token", status_code=403)
        return JSONResponse(
            {"sessions": len(sessions), "busy": any(session.busy for session in list(sessions))}
        )

    async def live(ws: WebSocket) -> None:
        # Pages of other origins can open sockets to this machine: require token and origin.
        origin = ws.headers.get("origin")
        if not valid(ws.query_params.get("token")) or (
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
        sender = asyncio.create_task(_send_all(ws, outbox))
        try:
            while True:
                command = json.loads(await ws.receive_text())
                if isinstance(command, dict):
                    session.submit(command)
        except (WebSocketDisconnect, ValueError):
            pass
        finally:
            session.stop(wait=False)
            sender.cancel()
            # In a thread of its own: a long segment must not delay the shutdown of the server.
            threading.Thread(target=finish, args=(session,), daemon=True).start()

    def finish(session: Session) -> None:
        session.stop()
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


async def _send_all(ws: WebSocket, outbox: asyncio.Queue[dict[str, Any]]) -> None:
    while True:
        await ws.send_text(json.dumps(await outbox.get(), separators=(",", ":"), allow_nan=False))


def free_port(wanted: int = 0) -> socket.socket:
    """Return a socket bound to the loopback interface, which reserves its port."""
    from unlazy.core.errors import BadInput

    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", wanted))
    except OSError as error:
        found.close()
        raise BadInput(
            f"Port {wanted} cannot be used ({error.strerror}). Omit --port to use a free port."
        ) from None
    return found


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """Serve in a background thread within the context; yield the address, host:port."""
    import uvicorn

    sock = free_port()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    sock.listen(64)  # early connections wait for the server
    thread.start()
    try:
        yield f"127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def serve(app: Starlette, sock: socket.socket) -> None:
    """Serve until interrupted (Ctrl-C)."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", ws_max_size=1 << 20, timeout_graceful_shutdown=2
    )
    with suppress(KeyboardInterrupt):  # raised again by uvicorn after its shutdown
        uvicorn.Server(config).run(sockets=[sock])
