"""`plumecast serve` as a process: it answers on a free port, and ends with one line."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from support.live_page import wind
from support.snapshots import make_snapshots


@pytest.fixture
def served(tmp_path):
    """A server of a small store and a surrogate: its process and its address."""
    pytest.importorskip("uvicorn")
    import plumecast as pc

    fires = make_snapshots()
    store = pc.export_snapshots(fires, tmp_path / "fires.nc")
    model = pc.fit_surrogate(fires, "paper-linear").save(tmp_path / "smoke.plume")
    words = [sys.executable, "-m", "plumecast", "serve", model, "--data", store, "--port", "0"]
    process = subprocess.Popen(
        [*words, "--no-browser", "--folder", tmp_path / "live"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ.copy(),
    )  # fmt: skip
    watchdog = threading.Timer(300.0, process.kill)
    watchdog.start()
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    if found is None:
        process.kill()
        pytest.fail(f"{line!r} {process.stderr.read()}")
    yield process, found[0]
    process.kill()
    process.wait()
    watchdog.cancel()


def test_a_signal_ends_the_server_with_one_line(served):
    """Also while a client waits for events."""
    process, address = served
    with httpx.Client(base_url=address) as client:
        state = client.get("/api/state").json()
        assert state["store"]["fires"] == 12
        # The ground of these fires is not known: the page says so, and lighting one is refused.
        assert state["can_ignite"] is False
        refused = client.post("/api/fires", json=wind(0.0))
        assert refused.status_code == 422
        assert "--dem" in refused.json()["error"]
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.startswith("stopped: 0 trained models are kept in ")
    assert "Traceback" not in err


def test_a_taken_port_is_said_before_any_work(run, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run("serve", "--port", port, "--no-browser", "--folder", str(tmp_path / "live"))
    assert result.code == 2
    assert f"--port={port}" in result.err
    assert not (tmp_path / "live").exists()
