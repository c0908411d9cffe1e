"""The store on the page, trainings in processes of their own, and the learning curve."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from plumecast.app.server.page import STORE_LAYERS
from plumecast.scores.quantities import as_quantity
from plumecast.scores.reading import Reading
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.evaluate import evaluate_at
from support.live_page import events, lit, wind


def test_difference_is_predicted_minus_observed(client, page):
    fire = client.get("/api/store/fires").json()["fires"][0]
    fields = [
        np.frombuffer(client.get(f"/api/store/fires/{fire['id']}/1?layer={layer}").content, "<f4")
        for layer in STORE_LAYERS
    ]
    observed, predicted, difference = fields
    np.testing.assert_array_equal(difference, predicted - observed)
    snapshot = page.store.snapshots.sel(snapshot=page.store.snapshots.fire_id == fire["id"])
    mean = as_quantity(snapshot.smoke, "mean").isel(snapshot=1)
    np.testing.assert_array_equal(observed, mean.values.ravel())


def test_scores_are_of_unseen_fires(client, page, live_files):
    """Two of ten ignitions were not in training: six snapshots, scored as the library does."""
    answer = client.get("/api/store/scores?threshold=0.1").json()
    assert answer["snapshots"] == 6
    fires = page.store.snapshots
    unseen = fires.isel(snapshot=np.flatnonzero(fires.ignition_id.values >= "s0-i0008"))
    surrogate = load_surrogate(live_files[1])
    scored = {"live": (surrogate, Thresholds(1.0, 0.5))}
    reading = Reading("mean", thresholds=[0.1])
    expected = evaluate_at(scored, unseen, reading=reading).scores[0].exceedances[-1]
    for name in ("iou", "hit_rate", "false_alarm_ratio", "bias"):
        assert answer[name] == getattr(expected, name)
    assert (answer["roc"][0], answer["roc"][-1]) == ([0.0, 0.0], [1.0, 1.0])


def test_two_clients_light_fires_at_the_same_time(client):
    with ThreadPoolExecutor(2) as clients:
        east, west = clients.map(lambda way: lit(client, wind(way))[1], (90.0, 270.0))
    assert east[0][1]["centre"][0] < west[0][1]["centre"][0]


def test_a_training_adds_a_model_and_a_point_of_the_curve(client, page):
    """Meanwhile another client lights a fire, which does not wait for the training."""
    body = {"kind": "train", "preset": "paper-linear", "ignitions": 5}
    begun = client.post("/api/jobs", json=body)
    assert begun.status_code == 202
    lit(client, wind(270.0))
    assert client.get(f"/api/jobs/{begun.json()['id']}").json()["state"] != "done"
    *progress, (name, result) = events(client, f"/api/jobs/{begun.json()['id']}/events")
    assert name == "result", result
    assert {name for name, _ in progress} == {"progress"}
    assert set(result["baselines"]) == {"mean-field", "nearest-fire"}
    (point,) = client.get("/api/curve").json()["points"]
    assert point["ignitions"] == 5
    assert point["iou"] == result["scores"]["deployable_iou"]
    assert result["model"] in [model["id"] for model in client.get("/api/state").json()["models"]]
    assert len(list(page.folder.glob("*.plume"))) == 1  # a restart offers it again
    trained = set(page.models.get(result["model"]).surrogate.training["ignition_id"])
    assert trained.isdisjoint(page.store.split()[1])


def test_a_training_can_be_cancelled(client, page):
    before = list(page.folder.glob("*.plume"))
    begun = client.post("/api/jobs", json={"kind": "train", "preset": "recommended"}).json()["id"]
    job = page.jobs.kept.get(begun)
    while job.process is None or not job.process.is_alive():
        time.sleep(0.01)
    waiting = client.post("/api/jobs", json={"kind": "train"})
    assert waiting.status_code == 202
    assert client.post("/api/jobs", json={"kind": "train"}).status_code == 429  # one may wait
    client.delete(f"/api/jobs/{waiting.json()['id']}")
    assert client.delete(f"/api/jobs/{begun}").status_code == 204
    told = events(client, f"/api/jobs/{begun}/events")
    assert told[-1] == ("error", {"error": "the training was cancelled"})
    job.process.join(60.0)
    assert not job.process.is_alive()
    assert list(page.folder.glob("*.plume")) == before
