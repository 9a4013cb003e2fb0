"""Server of the live page: loopback interface only, protected by a token."""

from __future__ import annotations

import asyncio
import functools
import importlib.resources
import json
import re
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
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
from unlazy.report.policy import policy

#: Accepted host names; others are refused (protection against DNS rebinding).
HOSTS = ["127.0.0.1", "localhost"]
#: Addresses to which the page may connect: its own server.
CONNECT = "'self' ws://127.0.0.1:* ws://localhost:*"
#: Scripts of the page, in loading order.
SCRIPTS = ("drawing.js", "views.js", "player.js")


@functools.cache
def _part(name: str) -> str:
    folder = importlib.resources.files("unlazy.play").joinpath("page")
    return folder.joinpath(name).read_text(encoding="utf-8")


def _script() -> str:
    return "\n".join(_part(name) for name in SCRIPTS)


def page(recording: dict[str, Any] | None = None, *, opening: dict[str, Any] | None = None) -> str:
    """Return the page as one HTML file: live, or with a recording that needs no server."""
    parts = {
        "policy": policy([_script()], CONNECT if recording is None else ""),
        "style": _part("style.css"),
        "script": _script(),
        "recording": embedded(recording),
        "opening": embedded(opening),
        "version": unlazy.__version__,
    }
    # In one pass: a part may contain the name of another.
    return re.sub(r"@(\w+)@", lambda found: parts.get(found[1], found[0]), _part("page.html"))


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
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def show(request: Request) -> Response:
        if not valid(request.query_params.get("token")):
            return PlainTextResponse(
                "This page needs the token that `unlazy play` printed.", status_code=403
            )
        headers = {
            "Content-Security-Policy": policy([_script()], CONNECT) + "; frame-ancestors 'none'",
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
                session.submit(_command(await ws.receive_text()))
        except WebSocketDisconnect:
            pass
        except ValueError as error:  # not a message of the page
            await ws.close(code=1003, reason=str(error)[:100])
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


def _command(text: str) -> dict[str, Any]:
    """Return a message as a command; raise `ValueError` if it is not a JSON object."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"A message must be a JSON object: {error}") from None


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
