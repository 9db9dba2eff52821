"""What a pairing runs outside of the agent: the command of a paired box's key, in real shells, and the
process that sends the offer."""

from __future__ import annotations

import http.server
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.backups.pairing import pair_box, receivers
from appliance.backups.remote.instructions import SCRIPT
from appliance.system import paths

ROOT = Path(__file__).parents[3]
GATE = ROOT / "deploy/ssh/receive-copies"
PEER = f"/opt/larder/app/{SCRIPT.relative_to(ROOT)}"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


# --- receive-copies -------------------------------------------------------------------------------------------------
@pytest.fixture(params=SHELLS)
def gate(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The script in a shell, with its two places moved to where the test may write."""
    text = GATE.read_text()
    assert str(paths.RECEIVE) in text and PEER in text
    (tmp_path / "peer").write_text('printf "%s|%s" "$*" "$SSH_ORIGINAL_COMMAND"\n')
    (tmp_path / "gate").write_text(
        text.replace(str(paths.RECEIVE), str(tmp_path)).replace(PEER, str(tmp_path / "peer"))
    )
    (tmp_path / "0badcafe.json").write_text("{}")
    shell = {"bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}.get(request.param, [request.param])
    return [*shell, str(tmp_path / "gate")]


def run(gate: list[str], *words: str, asked: str = "list") -> tuple[int, str]:
    environment = {"PATH": "/usr/bin:/bin", "SSH_ORIGINAL_COMMAND": asked}
    done = subprocess.run([*gate, *words], env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_paired_box_reaches_the_script_for_its_folder(gate):
    assert run(gate, "0badcafe", "safe/backups/attic") == (0, "safe/backups/attic|list")
    assert run(gate, "0badcafe", "safe/backups/attic", asked="x; id $(id)") == (0, "safe/backups/attic|x; id $(id)")


def test_each_visit_is_noted_where_that_is_possible(gate, tmp_path):
    assert run(gate, "0badcafe", "safe/backups/attic")[0] == 0  # nothing depends on it
    (tmp_path / receivers.VISITS).mkdir()
    run(gate, "1badcafe", "safe/backups/attic")
    assert list((tmp_path / receivers.VISITS).iterdir()) == []
    run(gate, "0badcafe", "safe/backups/attic")
    assert [one.name for one in (tmp_path / receivers.VISITS).iterdir()] == ["0badcafe"]


@pytest.mark.parametrize(
    "words", [("1badcafe", "safe/backups/attic"), ("0badcafe",), (), ("0badcafe", "a", "b"), ("", "a")]
)
def test_box_that_was_removed_reaches_nothing(gate, words):
    status, said = run(gate, *words)
    assert status == 64 and "this pairing was removed" in said


def test_installer_puts_it_where_the_keys_name_it():
    assert f'put 755 "$here/deploy/ssh/receive-copies" {receivers.GATE}' in (ROOT / "deploy/install").read_text()
    user = next(
        line
        for line in (ROOT / "deploy/systemd/larder.sysusers").read_text().splitlines()
        if line.startswith(f"u {receivers.USER} ")
    )
    assert user.endswith(f"{paths.RECEIVE} /bin/sh")
    folder = f"{paths.RECEIVE}/{receivers.VISITS}"
    installer = (ROOT / "deploy/install").read_text()
    assert f"\n    visits {paths.RECEIVE}\n" in installer
    assert f'install -d -o {receivers.USER} -g {receivers.USER} -m 755 "$1/{receivers.VISITS}"' in installer
    assert folder in GATE.read_text()


# --- the process that sends the offer -------------------------------------------------------------------------------
class Answers(http.server.BaseHTTPRequestHandler):
    """Another Larder that answers as its path says."""

    asked: list[tuple[str, bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, body))
        self.send_response({"/moved": 302, "/refused": 403}.get(self.path, 200))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"x" * 1_000_000 if self.path == "/endless" else b"answer")

    def log_message(self, *_words: object) -> None: ...


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a web server with a certificate that it made itself."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-subj",
            "/CN=box",
            "-keyout",
            str(folder / "key"),
            "-out",
            str(folder / "crt"),
        ],
        check=True,
        capture_output=True,
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def post(port: int, path: str = pair_box.PATH, *, host: str = "127.0.0.1") -> tuple[int, bytes, str]:
    argv = [sys.executable, "-m", pair_box.POSTER, host, str(port), path]
    done = subprocess.run(argv, input=b"offer", capture_output=True, timeout=60, check=False, cwd=ROOT)
    return done.returncode, done.stdout, done.stderr.decode()


def test_offer_is_sent_and_the_answer_printed_with_its_status(port):
    assert post(port) == (0, b"200\nanswer", "")
    assert Answers.asked[-1] == ("/backups/pair/", b"offer")


def test_refusal_is_printed_and_no_other_address_is_followed(port):
    assert post(port, "/refused")[:2] == (0, b"403\nanswer")
    assert post(port, "/moved")[:2] == (0, b"302\nanswer")
    assert "/elsewhere" not in {path for path, _body in Answers.asked}


def test_answer_without_end_is_cut(port):
    status, out, _said = post(port, "/endless")
    assert status == 0 and len(out) < 5000


def test_nobody_there_is_said():
    status, out, said = post(1)
    assert (status, out) == (1, b"") and "refused" in said.lower()
    assert post(443, host="nobody.invalid")[2] == "unknown name\n"
