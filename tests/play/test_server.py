"""The server: loopback only, token required, no external resources."""

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from unlazy.cli.main import main
from unlazy.play.presets import PRESETS
from unlazy.play.server import application, embedded, free_port, page, served
from unlazy.play.session import Session

TOKEN = "right"


@pytest.fixture(scope="module")
def host():
    with served(
        application(PRESETS, TOKEN, {"preset": "glasgow2023", "values": {"d": "8"}})
    ) as found:
        yield found


def get(host, path, **headers):
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"http://{host}{path}", headers=headers)
        ) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_the_page_needs_the_token(host):
    assert (
        get(host, "/")[0]
        == get(host, "/?token=wrong")[0]
        == get(host, "/status?token=wrong")[0]
        == get(host, "/?token=%C3%A4")[0]
        == 403
    )
    status, headers, text = get(host, f"/?token={TOKEN}")
    assert status == 200 and "default-src 'none'" in headers["content-security-policy"]
    opening = json.loads(
        text.split('<script id="opening" type="application/json">')[1].split("</script>")[0]
    )
    assert opening["preset"] == "glasgow2023" and [
        each["id"] for each in opening["presets"]
    ] == list(PRESETS)


def test_other_host_names_are_refused(host):
    assert get(host, f"/?token={TOKEN}", Host="evil.example")[0] == 400


@pytest.mark.parametrize(
    ("address", "origin"),
    [("/live", None), ("/live?token=wrong", None), (f"/live?token={TOKEN}", "http://evil.example")],
)
def test_a_socket_needs_the_token_and_the_same_origin(host, address, origin):
    with pytest.raises(InvalidStatus, match="403"), connect(f"ws://{host}{address}", origin=origin):
        pass


def test_closing_the_socket_ends_the_session(host):
    with connect(f"ws://{host}/live?token={TOKEN}", origin=f"http://{host}") as ws:
        ws.send(json.dumps({"do": "try", "preset": "shi2022", "values": {"k": 4}, "field": "k"}))
        assert json.loads(ws.recv())["type"] == "refused"
        assert json.loads(get(host, f"/status?token={TOKEN}")[2])["sessions"] == 1
    while json.loads(get(host, f"/status?token={TOKEN}")[2]) != {"sessions": 0, "busy": False}:
        pass  # bounded by the time limit of the test


def test_a_long_training_segment_does_not_delay_the_shutdown(monkeypatch, capfd):
    released = threading.Event()
    stop = Session.stop

    def slow_stop(self, wait=True):
        stop(self, wait=False)
        if wait:
            released.wait(20)

    monkeypatch.setattr(Session, "stop", slow_stop)
    try:
        with (
            served(application(PRESETS, TOKEN)) as address,
            connect(f"ws://{address}/live?token={TOKEN}"),
        ):
            pass
    finally:
        released.set()
    assert capfd.readouterr().err == "", "the server waited for the segment"


@pytest.mark.parametrize("text", ["no JSON", "[]", "1e999", '{"do": "seen", "index": Infinity}'])
def test_a_message_that_is_no_json_object_ends_only_its_session(host, text):
    with connect(f"ws://{host}/live?token={TOKEN}") as ws:
        ws.send(text)
        with pytest.raises(ConnectionClosed, match="1003"):
            ws.recv()
    assert get(host, f"/?token={TOKEN}")[0] == 200


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"do": []},
        {"do": "seen"} | {"index": -1},
        {"do": "seen", "index": 1e300},
        {"do": "try", "preset": "shi2022", "values": {"k": []}},
        {"do": "try", "preset": "shi2022", "values": []},
        {"do": "change", "preset": ["shi2022"]},
    ],
)
def test_a_message_with_other_fields_is_refused(host, message):
    with connect(f"ws://{host}/live?token={TOKEN}") as ws:
        ws.send(json.dumps(message))
        answer = json.loads(ws.recv())
        assert answer["type"] == "refused" and "not a message of the page" in answer["message"]


def test_embedded_json_cannot_end_its_element():
    assert "</script>" not in embedded({"title": "</script><script>alert(1)</script>"})
    assert "@" not in page().split("<body>")[0].replace("@media", "")


def test_a_port_in_use_is_refused():
    taken = free_port()
    taken.listen()
    port = taken.getsockname()[1]
    found = CliRunner().invoke(main, ["play", "--port", str(port), "--no-browser"])
    taken.close()
    assert found.exit_code == 2 and f"Port {port} cannot be used" in found.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shi2023"], "Did you mean 'shi2022'"),
        (["shi2022", "--set", "k=4"], "odd"),
        (["shi2022", "--set", "k"], "NAME=VALUE"),
        (["nowhere.py:Task"], "no file"),
    ],
)
def test_invalid_arguments_are_refused_before_serving(words, message):
    found = CliRunner().invoke(main, ["play", *words, "--no-browser"])
    assert found.exit_code == 2 and message in found.output


#: A shell that starts the tests in the background has them ignore SIGINT; the script accepts it.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from unlazy.cli import main
main(["play", "--no-browser"])
"""


@pytest.mark.slow  # it starts a process that takes seconds, and minutes on a busy machine
def test_ctrl_c_ends_the_server_quietly():
    command = [sys.executable, "-c", INTERRUPTIBLE]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        try:
            address = server.stdout.readline().split()[-1]
            with urllib.request.urlopen(address, timeout=120) as answer:  # the server is up
                assert answer.status == 200
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=60)
        finally:
            server.kill()
    assert server.returncode == 0 and errors == ""
