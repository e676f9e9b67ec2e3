"""Downloads from a server on this machine: checked, kept, and never half written."""

import hashlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hardmargin.datasets import DataUnavailableError
from hardmargin.datasets.download import fetch_file, forget_file

TEXT = b"1,2,a\n3,4,b\n" * 20_000
CHECKSUM = hashlib.sha256(TEXT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.path == "/slow":
            self.server.released.wait(5)
            return
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT[: len(TEXT) // 2] if self.path == "/short" else TEXT)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.released = [], threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("sha256", [CHECKSUM, None])
def test_a_file_is_downloaded_once(server, tmp_path, sha256):
    for _ in range(2):
        path = fetch_file(f"{server.url}/data/set.txt", tmp_path / "new", sha256=sha256)
        assert path.read_bytes() == TEXT
    assert server.asked == ["/data/set.txt"]
    assert names(path.parent) == ["set.txt", "set.txt.sha256"]


@pytest.mark.parametrize("sha256", [CHECKSUM, None])
@pytest.mark.parametrize("damaged", [TEXT[:1000], b"", TEXT[:-1] + b"x"])
def test_a_damaged_copy_is_downloaded_again(server, tmp_path, sha256, damaged):
    url = f"{server.url}/set.txt"
    fetch_file(url, tmp_path, sha256=sha256).write_bytes(damaged)
    assert fetch_file(url, tmp_path, sha256=sha256).read_bytes() == TEXT
    assert len(server.asked) == 2


def test_a_copy_without_a_checksum_is_not_trusted(server, tmp_path):
    (tmp_path / "set.txt").write_bytes(b"from elsewhere")
    assert fetch_file(f"{server.url}/set.txt", tmp_path).read_bytes() == TEXT


def test_the_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DataUnavailableError, match=f"has the sha256 {CHECKSUM}, not 00"):
        fetch_file(f"{server.url}/set.txt", tmp_path, sha256="00")
    assert names(tmp_path) == []


def test_an_answer_cut_short_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DataUnavailableError, match=r"cut short|cannot be downloaded"):
        fetch_file(f"{server.url}/short", tmp_path)
    assert names(tmp_path) == []


def test_a_failed_download_keeps_the_copy_that_was_there(server, tmp_path):
    (tmp_path / "missing").write_bytes(b"old")
    with pytest.raises(DataUnavailableError, match="cannot be downloaded"):
        fetch_file(f"{server.url}/missing", tmp_path)
    assert names(tmp_path) == ["missing"]


def test_a_file_of_unknown_length(server, tmp_path):
    assert fetch_file(f"{server.url}/endless", tmp_path).read_bytes() == TEXT


def test_a_server_that_does_not_answer(server, tmp_path):
    start = time.perf_counter()
    with pytest.raises(DataUnavailableError, match="timed out"):
        fetch_file(f"{server.url}/slow", tmp_path, timeout=0.1)
    assert time.perf_counter() - start < 4


def test_no_server(tmp_path):
    with pytest.raises(DataUnavailableError, match=r"http://127\.0\.0\.1:9/x cannot be downloaded"):
        fetch_file("http://127.0.0.1:9/x", tmp_path)


def test_without_a_network(server, tmp_path):
    url = f"{server.url}/set.txt"
    with pytest.raises(DataUnavailableError, match="has not been downloaded before"):
        fetch_file(url, tmp_path, download=False)
    fetch_file(url, tmp_path)
    assert fetch_file(url, tmp_path, download=False).read_bytes() == TEXT


def test_an_address_of_this_machine(tmp_path):
    (tmp_path / "set.txt").write_bytes(TEXT)
    path = fetch_file((tmp_path / "set.txt").as_uri(), tmp_path / "kept", sha256=CHECKSUM)
    assert path.read_bytes() == TEXT


def test_forgetting(server, tmp_path):
    forget_file(fetch_file(f"{server.url}/set.txt", tmp_path))
    assert names(tmp_path) == []
    forget_file(tmp_path / "set.txt")
