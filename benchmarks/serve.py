"""The live page: from a click to smoke, against the bare library calls, and twenty clients.

    python benchmarks/serve.py MODEL STORE [--seconds 60] [--clients 20] [--malformed 10000]

A server is started as a process. Ratios are taken within one run: click and library by turns.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from plumecast.app.server.fires import LiveFire
from plumecast.app.server.start import prepare, warm_up
from support.live_fuzz import malformed_requests

REPEATS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--malformed", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words = ["-m", "plumecast", "serve", given.model, "--data", given.store, "--port", "0"]
        server = subprocess.Popen(
            [sys.executable, *words, "--no-browser", "--folder", folder],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            address = re.search(r"http://[\d.:]+", server.stdout.readline())[0]
            if given.clients:
                clicks(address, given, folder)
                load(address, given.clients, given.seconds)
            malformed(address, given.malformed, server.pid)
        finally:
            server.terminate()
            server.wait(60)


def request(direction: float) -> dict:
    winds = {"surface": {"speed": 8, "from": direction}, "aloft": {"speed": 14, "from": direction}}
    return {"ignite": [[75_000, 60_000]], "weather": winds | {"hour": 12, "drought": "high"}}


def click(client: httpx.Client, direction: float) -> list[float]:
    """Seconds from the click to each frame's bytes in the client's hands."""
    start, times, k = time.perf_counter(), [], 0
    fire = client.post("/api/fires", json=request(direction)).json()["id"]
    with client.stream("GET", f"/api/fires/{fire}/events") as events:
        for line in events.iter_lines():
            if line == "event: frame":
                client.get(f"/api/fires/{fire}/frames/{k}").raise_for_status()
                times.append(time.perf_counter() - start)
                k += 1
    return times


def bare(page, direction: float) -> list[float]:
    """The same by the library: simulate, predict, no HTTP."""
    start, times = time.perf_counter(), []
    world, wanted = page.world, request(direction)["weather"]
    weather = world.weather({
        "surface": (8.0, direction), "aloft": (14.0, direction), "hour": 12.0,
        "drought": wanted["drought"],
    })  # fmt: skip
    fire = LiveFire(
        world.ignited([(75_000.0, 60_000.0)]), weather, page.models.get(None), world, {}
    )
    for frame in fire._make():
        fire.frames.append(frame)
        times.append(time.perf_counter() - start)
    return times


def clicks(address: str, given: argparse.Namespace, folder: str) -> None:
    page = prepare([given.model], given.store, Path(folder) / "own")
    warm_up(page)
    found: dict[str, list[list[float]]] = {"page": [], "library": []}
    with httpx.Client(base_url=address, timeout=120) as client:
        click(client, 0.0)
        bare(page, 0.0)
        for n in range(REPEATS):
            found["page"].append(click(client, 40.0 * n))
            found["library"].append(bare(page, 40.0 * n))
    print("| what | page | library | ratio | target |\n| --- | --- | --- | --- | --- |")
    first, steps, whole = {}, {}, {}
    for name, runs in found.items():
        first[name] = float(np.median([run[0] for run in runs]))
        steps[name] = float(np.median(np.concatenate([np.diff(run) for run in runs])))
        whole[name] = float(np.median([run[-1] for run in runs]))
    rows = (("click to first smoke", first, "≤ 500 ms"), ("each further frame", steps, "≤ 100 ms"),
            ("whole fire", whole, "ratio ≤ 1.3"))  # fmt: skip
    for what, times, target in rows:
        ratio = times["page"] / times["library"]
        print(f"| {what} | {1e3 * times['page']:.0f} ms | {1e3 * times['library']:.0f} ms | "
              f"{ratio:.2f} | {target} |")  # fmt: skip
    page.close()


def load(address: str, clients: int, seconds: float) -> None:
    """Mixed requests of many clients; errors are answers of 5xx and lost connections."""
    times: dict[str, list[float]] = {}
    errors, busy, lock = [], [0], threading.Lock()
    end = time.monotonic() + seconds

    def visit(number: int) -> None:
        draw = random.Random(number)
        with httpx.Client(base_url=address, timeout=120) as client:
            fire = None
            while time.monotonic() < end:
                kind = draw.choices(["fire", "frame", "state", "point", "store"], [1, 8, 4, 4, 2])[
                    0
                ]
                kind = "fire" if fire is None and kind in ("frame", "point") else kind
                start = time.perf_counter()
                try:
                    if kind == "fire":
                        body = request(draw.uniform(0, 360))
                        answer = client.post("/api/fires", json=body)
                        fire = answer.json()["id"] if answer.status_code == 201 else fire
                    else:
                        answer = client.get({
                            "frame": f"/api/fires/{fire}/frames/0", "state": "/api/state",
                            "point": f"/api/fires/{fire}/point?x=80000&y=60000",
                            "store": "/api/store/fires",
                        }[kind])  # fmt: skip
                except httpx.HTTPError as error:
                    with lock:
                        errors.append(repr(error))
                    continue
                with lock:
                    times.setdefault(kind, []).append(time.perf_counter() - start)
                    if answer.status_code >= 500:
                        errors.append(f"{kind} {answer.status_code}")
                    busy[0] += answer.status_code == 429
                    if answer.status_code == 404:
                        fire = None
                time.sleep(draw.uniform(0.0, 0.2))

    threads = [threading.Thread(target=visit, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = np.concatenate([np.array(values) for values in times.values()])
    print(f"\n{clients} clients, {seconds:g} s: {every.size} requests, {len(errors)} errors, "
          f"{busy[0]} told to wait; p50 {1e3 * np.median(every):.0f} ms, "
          f"p95 {1e3 * np.quantile(every, 0.95):.0f} ms")  # fmt: skip
    print({kind: f"p95 {1e3 * np.quantile(v, 0.95):.0f} ms" for kind, v in times.items()})
    print(errors[:5])


def malformed(address: str, count: int, process: int) -> None:
    """Malformed requests: the codes of the answers, and the memory before and after."""
    codes: dict[int, int] = {}
    with httpx.Client(base_url=address, timeout=120) as client:
        while (lit := client.post("/api/fires", json=request(0.0))).status_code == 429:
            time.sleep(1.0)  # fires of the clients before are still waiting
        fire = lit.json()["id"]
        client.get(f"/api/fires/{fire}/events")
        sizes, skipped = [], 0
        for number, item in enumerate(malformed_requests(count, seed=1, fire=fire)):
            if number % (count // 4) == 0:
                sizes.append(memory(process))
            try:
                code = client.request(**item).status_code
            except (httpx.InvalidURL, UnicodeEncodeError):  # the client itself refuses
                skipped += 1
                continue
            codes[code] = codes.get(code, 0) + 1
            if not 400 <= code < 500:
                print("not refused:", code, json.dumps(str(item))[:300])
        sizes.append(memory(process))
    print(f"\n{count} malformed requests ({skipped} not sent): {dict(sorted(codes.items()))}; "
          f"memory {[f'{size:.0f} MB' for size in sizes]}")  # fmt: skip


def memory(process: int) -> float:
    """Resident memory of a process, MB."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


if __name__ == "__main__":
    main()
