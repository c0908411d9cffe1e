"""Splits: seeded, whole groups only, near the asked shares, and never empty."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.data.split import PAPER_FRACTIONS, Split, group_rows, split_by_fire
from support.snapshots import make_snapshots, select_fire

PARTS = ("train", "validation", "test")
seeds = st.integers(0, 2**32 - 1)


def labelled(groups: list[str]) -> xr.Dataset:
    """Snapshots that hold nothing but what groups them and a number of their own."""
    rows = ("snapshot", np.arange(len(groups)))
    return xr.Dataset({"row": rows}, {"ignition_id": ("snapshot", np.asarray(groups))})


def groups_of(split: Split, by: str = "ignition_id") -> dict[str, set[str]]:
    return {part: set(getattr(split, part)[by].values.tolist()) for part in PARTS}


def rows_of(split: Split) -> dict[str, set[int]]:
    return {part: set(getattr(split, part).row.values.tolist()) for part in PARTS}


@given(
    groups=st.lists(st.sampled_from("abcdefghijklmnop"), min_size=3).filter(
        lambda names: len(set(names)) >= 3
    ),
    seed=seeds,
)
def test_parts_share_no_group_and_cover_every_snapshot_in_any_order(groups, seed):
    data = labelled(groups)
    split = split_by_fire(data, seed=seed)
    train, validation, test = groups_of(split).values()
    assert not (train & validation)
    assert not (train & test)
    assert not (validation & test)
    rows = rows_of(split)
    assert all(rows.values()), "no part is empty"
    assert sorted(row for part in rows.values() for row in part) == list(range(len(groups)))
    shuffled = data.isel(snapshot=np.random.default_rng(seed).permutation(len(groups)))
    assert rows_of(split_by_fire(shuffled, seed=seed)) == rows


def test_same_seed_gives_the_same_split_and_others_reach_every_ignition(snapshots):
    first, again = (split_by_fire(snapshots, seed=3) for _ in range(2))
    for part in PARTS:
        xr.testing.assert_identical(getattr(first, part), getattr(again, part))
    trained = [groups_of(split_by_fire(snapshots, seed=seed))["train"] for seed in range(30)]
    assert set.union(*trained) == set(snapshots.ignition_id.values.tolist())


@pytest.mark.parametrize("fractions", [PAPER_FRACTIONS, (0.6, 0.2, 0.2), (0.1, 0.1, 0.8)])
def test_shares_are_near_the_fractions_when_there_are_many_groups(fractions):
    counts = np.random.default_rng(0).integers(1, 12, size=400)
    data = labelled(np.repeat([f"i{k}" for k in range(400)], counts).tolist())
    split = split_by_fire(data, fractions, seed=5)
    shares = [getattr(split, part).sizes["snapshot"] / counts.sum() for part in PARTS]
    # Both cuts fall on the group border nearest to them: at most half of the largest group away.
    np.testing.assert_allclose(shares, fractions, atol=counts.max() / counts.sum())


def test_weathers_of_an_ignition_stay_together_unless_split_by_fire(snapshots):
    split = split_by_fire(snapshots)
    assert (split.by, split.seed, split.fractions) == ("ignition_id", 0, (0.45, 0.10, 0.45))
    sizes = {part: len(names) for part, names in groups_of(split).items()}
    assert sizes == {"train": 3, "validation": 1, "test": 2}
    for names in groups_of(split, by="fire_id").values():
        ignitions = {name.rsplit("-", 1)[0] for name in names}
        assert names == {f"{name}-{drought}" for name in ignitions for drought in ("low", "high")}
    split = split_by_fire(snapshots, by="fire_id", seed=0)
    train, validation, test = groups_of(split, by="fire_id").values()
    assert not train & (validation | test)
    assert len(train) + len(validation) + len(test) == 12
    assert groups_of(split)["train"] & groups_of(split)["test"], "the looser reading leaks"


def test_three_groups_make_three_parts():
    split = split_by_fire(labelled(["a"] * 50 + ["b"] + ["c"] * 2))
    assert [len(names) for names in groups_of(split).values()] == [1, 1, 1]


def three_shares(fractions: tuple[float, ...]):
    return {"fractions": fractions}, r"fractions=.* must be three positive shares of 1"


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        *map(three_shares, [(0.5, 0.5), (0.5, 0.5, 0.5), (1.0, 0.0, 0.0), (0.6, -0.1, 0.5), ()]),
        three_shares((np.nan, 0.5, 0.5)),
        ({"by": "season"}, "coordinate 'season' is missing"),
        ({"by": "smoke"}, "'smoke' .* labels no snapshots"),
        ({"by": "x"}, "'x' .* labels no snapshots"),
    ],
)
def test_splits_that_cannot_be_are_refused(snapshots, choices, said):
    with pytest.raises(PlumecastError, match=said):
        split_by_fire(snapshots, **choices)


@pytest.mark.parametrize("fires", [2, 4])
def test_fewer_than_three_groups_are_refused_with_their_number(fires):
    with pytest.raises(PlumecastError, match=rf"^{fires // 2} group\(s\) by ignition_id cannot"):
        split_by_fire(make_snapshots(fires=fires))


def test_a_split_by_hand_is_checked(snapshots, split):
    low, high = (select_fire(snapshots, f"fire-00-{drought}") for drought in ("low", "high"))
    rest = snapshots.isel(snapshot=slice(8, None))
    message = "ignition_id 'ignition-00' is in both the train and the test part"
    with pytest.raises(PlumecastError, match=message):
        Split(train=low, validation=rest, test=high)
    assert Split(train=low, validation=rest, test=high, by="fire_id").train.sizes["snapshot"] == 4
    parts = {part: getattr(split, part) for part in PARTS}
    for part, data in parts.items():
        with pytest.raises(PlumecastError, match=f"the {part} part of the split is empty; add f"):
            Split(**parts | {part: data.isel(snapshot=slice(0, 0))})
    with pytest.raises(PlumecastError, match="coordinate 'ignition_id' is missing"):
        Split(**{part: data.drop_vars("ignition_id") for part, data in parts.items()})


@given(labels=st.lists(st.sampled_from("abcde"), min_size=1, max_size=30))
def test_group_rows_cover_every_row_once_and_share_a_label(labels):
    groups = group_rows(np.asarray(labels))
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(labels)))
    assert [{labels[row] for row in rows} for rows in groups] == [{n} for n in sorted(set(labels))]
