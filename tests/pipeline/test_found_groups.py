"""Groups of a run: found by correlation, by prefix, from a file, and from vectors and categories."""

import json

import dask
import numpy as np
import pandas as pd
import pytest
from oracle import write_lake

from excir_dask import Explanation, explain
from excir_dask.errors import UsageError
from excir_dask.results.group_files import read_groups

BLOCKS, SIZE, WIDTH, ROWS = 8, 5, 120, 4000


def planted(seed: int = 0) -> tuple[pd.DataFrame, list[set[str]]]:
    """Blocks of 5 columns with correlations of 0.95 among 120 columns, scattered; some are turned around."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((ROWS, WIDTH))
    places = rng.permutation(WIDTH)[: BLOCKS * SIZE].reshape(BLOCKS, SIZE)
    for block in places:
        common = rng.standard_normal(ROWS)
        matrix[:, block] = np.sqrt(0.95) * common[:, None] + np.sqrt(0.05) * matrix[:, block]
        matrix[:, block[0]] *= -1
    frame = pd.DataFrame(matrix, columns=[f"c{i}" for i in range(WIDTH)])
    frame["pred"] = frame["c3"] + rng.standard_normal(ROWS)
    return frame, [{f"c{i}" for i in block} for block in places]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    frame, blocks = planted()
    return write_lake(tmp_path_factory.mktemp("planted") / "lake", frame, 5, 350), blocks


def groups_of(explanation: Explanation) -> dict[str, list[str]]:
    return dict(zip(explanation.groups["group"], explanation.groups["members"], strict=True))


def test_planted_blocks_are_found_exactly_whatever_the_slices_and_threads(lake):
    path, blocks = lake
    texts = []
    for budget, threads in (("1MiB", 1), ("1MiB", 3), ("128MiB", 2), ("3MiB", 2)):
        with dask.config.set(num_workers=threads):
            found = groups_of(explain(path, output="pred", groups="correlation", budget=budget))
        assert sorted(map(sorted, found.values())) == sorted(map(sorted, blocks))
        texts.append(json.dumps(found, sort_keys=True))
    assert len(set(texts)) == 1


@pytest.mark.cluster
def test_planted_blocks_are_found_exactly_on_a_cluster(lake, two_workers):
    path, _ = lake
    here = explain(path, output="pred", group_correlated=0.9, budget="2MiB")
    there = explain(path, output="pred", group_correlated=0.9, budget="2MiB", scheduler=two_workers)
    assert there.to_json() == here.to_json()


def test_found_groups_are_named_after_their_strongest_member_and_saved_for_a_later_run(lake, tmp_path):
    path, _ = lake
    first = explain(path, output="pred", group_correlated=0.9)
    strength = first.features.set_index("feature")["strength"]
    for name, members in groups_of(first).items():
        strongest, _, others = name.rpartition("+")
        assert strength[strongest] == strength[members].max()
        assert int(others) == len(members) - 1
    saved = first.save(tmp_path / "out")
    assert read_groups(saved / "groups.yaml") == groups_of(first)
    again = explain(path, output="pred", groups=saved / "groups.yaml")
    pd.testing.assert_frame_equal(again.groups, first.groups)


def test_correlations_of_a_sample_are_those_of_the_same_rows_in_a_frame(lake):
    path, blocks = lake
    small = explain(path, output="pred", group_correlated=0.9, group_rows=400, fraction=0.5)
    assert sorted(map(sorted, groups_of(small).values())) == sorted(map(sorted, blocks))
    assert small.facts.settings.group_rows == 400


def test_dask_frames_have_found_groups_too(lake):
    import dask.dataframe as dd

    frame, blocks = planted()
    found = groups_of(explain(dd.from_pandas(frame, npartitions=3), output="pred", groups="correlation"))
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, blocks))


def test_groups_of_several_sources_come_together(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((300, 4)), columns=["door_1", "door_2", "seat_1", "x"])
    frame["copy"] = frame["x"] * 3
    frame["pred"] = frame["x"] + rng.standard_normal(300)
    found = groups_of(
        explain(frame, output="pred", groups={"mine": ["x", "door_1"]}, group_prefix="_", group_correlated=0.8)
    )
    assert found == {"mine": ["x", "door_1"], "door": ["door_1", "door_2"], "x+1": ["x", "copy"]}
    with pytest.raises(UsageError, match="'door' comes from"):
        explain(frame, output="pred", groups={"door": ["x"]}, group_prefix="_")


def test_groups_from_a_file(tmp_path):
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)[::-1], "pred": np.arange(9.0)})
    (tmp_path / "groups.json").write_text('{"both": ["a", "b"]}')
    found = explain(frame, output="pred", groups=tmp_path / "groups.json").groups
    assert found["flag"][0] == "members cancel"
    (tmp_path / "groups.yaml").write_text("both: [a, c]\n")
    with pytest.raises(UsageError, match="group 'both' names 'c'"):
        explain(frame, output="pred", groups=str(tmp_path / "groups.yaml"))


@pytest.mark.parametrize("threshold", [0.0, -0.5, 1.5, float("nan")])
def test_a_threshold_that_cannot_be_a_correlation_is_refused_before_reading(threshold):
    with pytest.raises(UsageError):
        explain(planted()[0], output="pred", group_correlated=threshold)


def test_many_columns_are_told_what_finding_groups_costs(lake, monkeypatch, caplog):
    monkeypatch.setattr("excir_dask.pipeline.groups._MANY", 100)
    explain(lake[0], output="pred", group_correlated=0.9, group_rows=100)
    assert f"{WIDTH} columns" in caplog.text
    assert "iB on the client" in caplog.text


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((rows, 4)), columns=list("abcd"))


def test_the_sample_for_groups_is_as_large_as_the_rows_allow(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.standard_normal((100_000, 20)), columns=[f"x{i}" for i in range(20)])
    frame["pred"] = np.where(rng.random(100_000) < 0.004, rng.standard_normal(100_000), np.nan)
    lake = write_lake(tmp_path / "lake", frame, 4)
    assert explain(lake, output="pred", group_correlated=0.3).groups.empty
    assert explain(frame, output="pred", group_correlated=0.3).groups.empty


def test_found_groups_do_not_replace_given_ones():
    frame = table().assign(e=lambda f: f["a"] * 2, pred=lambda f: f["a"])
    given = {"a": ["b"], "e": ["c"], "a (correlated)": ["d"], "e (correlated)": ["d"]}
    found = explain(frame, output="pred", groups=given, group_correlated=0.9).groups.set_index("group")["members"]
    assert {name: found[name] for name in given} == given
    assert ["a", "e"] in list(found)


def test_too_many_rows_for_groups_are_refused_before_reading():
    with pytest.raises(UsageError, match="group_rows is 400,000"):
        explain(table().assign(pred=1.0), output="pred", group_correlated=0.9, group_rows=400_000)
