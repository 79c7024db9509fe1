"""Two explanations compared: measures, their meaning in words, and a note on everything left out."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import excir, excir_here
from scipy import stats
from sklearn.metrics import ndcg_score

from excir_dask import compare, explain
from excir_dask.errors import LakeError, UsageError
from excir_dask.kernels.agreement import jaccard_chance
from excir_dask.render.terminal import cells

NAMES = [f"f{j:02d}" for j in range(20)]
GROUPS = {f"g{j}": NAMES[2 * j : 2 * j + 2] for j in range(10)}
COLUMNS = [
    "output",
    "kind",
    "k",
    "n",
    "jaccard",
    "jaccard_chance",
    "spearman",
    "kendall",
    "procrustes",
    "affine",
    "kl",
    "ndcg",
    "score_shift",
    "score_shift_name",
    "rank_shift",
    "rank_shift_name",
]


def frame(rows: int = 600, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(rng.standard_normal((rows, 20)), columns=NAMES)
    weights = np.linspace(-1, 1, 20)
    return made.assign(y=made[NAMES] @ weights + rng.standard_normal(rows), z=made["f03"] - made["f04"])


def run(data: pd.DataFrame, output: object = ("y", "z"), **options: object):
    outputs = list(output) if isinstance(output, tuple) else output
    return explain(data, output=outputs, **{"features": ["f*"], "groups": GROUPS, **options})


@pytest.fixture(scope="module")
def full():
    return run(frame())


@pytest.fixture(scope="module")
def light():
    return run(frame(), fraction=0.3, seed=4)


def test_the_table_has_a_row_per_output_and_kind(full, light):
    found = compare(full, light)
    assert found.table.columns.tolist() == COLUMNS
    assert list(zip(found.table["output"], found.table["kind"], strict=True)) == [
        ("y", "features"), ("y", "groups"), ("z", "features"), ("z", "groups"),
    ]  # fmt: skip
    assert found.table["n"].tolist() == [20, 10, 20, 10]
    assert found.table["k"].tolist() == [8, 8, 8, 8]
    assert not found.table.isna().any(axis=None)
    assert compare(full, light, k=10).table["k"].tolist() == [10, 5, 10, 5]


@pytest.mark.parametrize("rank_by", ["strength", "cir"])
def test_measures_are_those_of_plain_arithmetic(rank_by):
    a, b = run(frame(), "y", rank_by=rank_by), run(frame(seed=1), "y", rank_by=rank_by)
    row = compare(a, b).table.iloc[0]
    one, other = (e.features.set_index("feature").loc[NAMES] for e in (a, b))
    top = [set(e.top(8)["feature"]) for e in (a, b)]
    assert row["jaccard"] == len(top[0] & top[1]) / len(top[0] | top[1])
    assert row["jaccard_chance"] == jaccard_chance(20, 8)
    assert row["spearman"] == pytest.approx(stats.spearmanr(one[rank_by], other[rank_by]).statistic, abs=1e-12)
    assert row["kendall"] == pytest.approx(stats.kendalltau(one[rank_by], other[rank_by]).statistic, abs=1e-12)
    assert row["ndcg"] == pytest.approx(ndcg_score([one[rank_by]], [-other["rank"]], k=8), abs=1e-12)
    r = np.corrcoef(one["cir"], other["cir"])[0, 1]
    assert row["procrustes"] == pytest.approx(1 - abs(r), abs=1e-9)
    assert row["affine"] == pytest.approx(np.sqrt(1 - r**2), abs=1e-9)
    shift = (other["cir"] - one["cir"]).abs()
    assert (row["score_shift"], row["score_shift_name"]) == (pytest.approx(shift.max(), abs=1e-11), shift.idxmax())
    moved = (other["rank"] - one["rank"]).abs()
    assert row["rank_shift"] == moved.max()
    assert moved[row["rank_shift_name"]] == moved.max()


@pytest.mark.parametrize("rank_by", ["strength", "cir"])
def test_an_explanation_agrees_with_itself_perfectly(rank_by):
    data = frame().assign(f05=1.0, f06=1.0, f08=lambda made: made["f07"])
    e = run(data, rank_by=rank_by)
    table = compare(e, e).table
    assert (table[["jaccard", "spearman", "kendall", "ndcg"]] == 1).all(axis=None)
    assert (table[["procrustes", "affine", "kl", "score_shift", "rank_shift"]] == 0).all(axis=None)
    assert (table[["score_shift_name", "rank_shift_name"]] == "").all(axis=None)
    found = compare(e, e)
    assert found.settings == {}
    assert "all are in the same order; no score differs" in " ".join(str(found).split())


@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 6), constant=st.booleans())
@settings(max_examples=20)
def test_few_features_and_constants_give_numbers(seed, d, constant):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.integers(0, 3, (12, d)).astype(float), columns=NAMES[:d]).assign(y=rng.random(12))
    if constant:
        data["f00"] = 0.0
    a, b = explain(data, output="y"), explain(data.head(9), output="y")
    one, other = compare(a, b), compare(b, a)
    assert not one.table.isna().any(axis=None)
    assert one.table["k"].tolist() == [max(d // 2, 1)]
    same = ["jaccard", "jaccard_chance", "spearman", "kendall", "score_shift", "rank_shift"]
    np.testing.assert_allclose(one.table[same].to_numpy(float), other.table[same].to_numpy(float), atol=1e-12)
    json.dumps(one.to_dict(), allow_nan=False)
    assert str(one)


def test_names_of_only_one_side_are_noted_and_the_rest_is_compared_by_ranks_among_themselves(full):
    part = run(frame(), "y", features=["!z", "!f19", "!f00"], groups={"g1": NAMES[2:4], "g2": ["f04"], "new": ["f05"]})
    found = compare(full, part)
    assert found.only_in_a["outputs"] == ["z"]
    assert sorted(found.only_in_a["features"]) == ["f00", "f19"]
    assert sorted(found.only_in_a["groups"]) == ["g0", *(f"g{j}" for j in range(3, 10))]
    assert found.only_in_b == {"outputs": [], "features": [], "groups": ["new"]}
    assert found.regrouped == ["g2"]
    assert found.table["n"].tolist() == [18, 2]
    assert found.table["jaccard"][0] == 1.0
    assert found.table["rank_shift"][0] == 0, "features that B lacks must not shift the others"
    assert sorted(found.features["rank_a"]) == list(range(1, 19))
    text = str(found)
    assert "note: 1 output only in A, not compared: z" in text
    assert "note: 2 features only in A, not compared: " in text
    assert "note: 8 groups only in A" in text
    assert "note: 1 group only in B, not compared: new" in text
    assert "note: groups whose members differ in A and B: g2" in text
    assert "k is 1, because a top 8 of 2 would be all of them" in " ".join(text.split())


def test_explanations_with_nothing_in_common_are_an_error(full):
    with pytest.raises(UsageError, match="no output in common: y, z in a, w in b; explain both"):
        compare(full, run(frame().rename(columns={"y": "w"}), "w"))
    other = explain(frame().rename(columns=lambda name: name.replace("f", "h")), output="y", features=["h*"])
    with pytest.raises(UsageError, match=r"no feature in common: .*\(20 in all\) in a, h"):
        compare(full, other)


@pytest.mark.parametrize("k", [0, -1, 2.5, "8"])
def test_a_top_without_size_is_an_error(full, k):
    with pytest.raises(UsageError, match="at least 1"):
        compare(full, full, k=k)


def test_other_things_than_explanations_are_an_error(full, tmp_path):
    with pytest.raises(UsageError, match="b is a DataFrame; give an Explanation or the folder"):
        compare(full, full.features)
    with pytest.raises(LakeError, match="not a saved explanation"):
        compare(full, tmp_path)


def test_settings_that_differ_are_listed(full, light):
    found = compare(full, light)
    assert found.settings == {"fraction": (1.0, 0.3), "rows": (600, light.facts.rows.used), "seed": (0, 4)}
    other = run(frame(), {"y": "z"}, centering="median", rank_by="cir", weights=None)
    found = compare(full, other)
    assert found.settings == {
        "centering": ("midhinge", "median"),
        "rank_by": ("strength", "cir"),
        "columns": ({"y": "y"}, {"y": "z"}),
    }
    text = str(found)
    assert "centering: midhinge in A, median in B." in text
    for name in ("centering", "rank_by", "columns"):
        assert f"note: {name} differs: " in text


def test_models_and_lakes_that_differ_are_listed(tmp_path):
    def model(rows: pd.DataFrame) -> np.ndarray:
        return rows["f01"].to_numpy()

    def other(rows: pd.DataFrame) -> np.ndarray:
        return rows["f02"].to_numpy()

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        frame(seed=0 if name == "one" else 1)[NAMES].to_parquet(tmp_path / name / "part.parquet")
    a = explain(tmp_path / "one", model=model)
    b = explain(tmp_path / "two", model=other)
    found = compare(a, b).settings
    assert set(found) == {"model", "lake"}
    assert found["model"][0] != found["model"][1]
    assert [str(tmp_path / name) in found["lake"][i] for i, name in enumerate(("one", "two"))] == [True, True]
    (tmp_path / "one").rename(tmp_path / "moved")
    assert "lake" not in compare(a, explain(tmp_path / "moved", model=model)).settings


def test_shifts_are_measured_by_both_errors(full, light):
    found = compare(full, light)
    table = found.shifts("y", n=5)
    assert table.columns.tolist() == [
        "output", "feature", "cir_a", "cir_b", "shift", "stderr", "beyond", "rank_a", "rank_b",
    ]  # fmt: skip
    assert len(table) == 5
    assert table["shift"].abs().is_monotonic_decreasing
    assert len(found.shifts(n=1000)) == 40
    one, other = (e.of("y").set_index("feature") for e in (full, light))
    for row in table.to_dict("records"):
        name = row["feature"]
        assert row["shift"] == other["cir"][name] - one["cir"][name]
        assert row["stderr"] == pytest.approx(np.hypot(one["stderr"][name], other["stderr"][name]))
        assert row["beyond"] == (abs(row["shift"]) > 2 * row["stderr"])
        assert (row["rank_a"], row["rank_b"]) == (one["rank"][name], other["rank"][name])
    with pytest.raises(UsageError, match="output 'yy' was not compared; did you mean 'y'"):
        found.shifts("yy")


def test_independent_samples_of_one_lake_rarely_shift_beyond_their_errors():
    a, b = run(frame(4000, seed=1), "y"), run(frame(4000, seed=2), "y")
    assert compare(a, b).features["beyond"].mean() <= 0.2


def test_a_mirrored_output_is_not_called_the_same(full):
    data = frame()
    found = compare(full, run(data.assign(y=-data["y"])))
    row = found.table.iloc[0]
    assert (row["jaccard"], row["spearman"]) == (1.0, 1.0)
    assert row["score_shift"] > 0.3
    assert "features changed direction: " in " ".join(str(found).split())


def test_text_stays_in_line_and_html_is_escaped():
    data = frame()[["f00", "f01", "y"]].rename(columns={"f00": "温度センサー" * 9, "f01": "<b>bold</b>"})
    a, b = explain(data, output={"<i>": "y"}), explain(data.head(300), output={"<i>": "y"})
    found = compare(a, b)
    lines = str(found).splitlines()
    assert max(map(cells, lines)) <= 100
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["feature"])
    assert len({cells(line) for line in lines[start : start + 3]}) == 1
    html = found._repr_html_()
    assert "<b>bold" not in html
    assert "<i>" not in html
    assert "&lt;b&gt;bold" in html
    assert repr(found) == str(found)


def test_saved_explanations_compare_as_the_ones_in_memory(full, light, tmp_path):
    a, b = full.save(tmp_path / "a", report=False), light.save(tmp_path / "b", report=False)
    one, other = compare(full, light), compare(str(a), b)
    assert (one.names, other.names) == (("a", "b"), (str(a), str(b)))
    pd.testing.assert_frame_equal(one.table, other.table)
    assert {**one.to_dict(), "a": 0, "b": 0} == {**other.to_dict(), "a": 0, "b": 0}
    assert str(one).split("\n", 1)[1] == str(other).split("\n", 1)[1]


def test_explanations_without_groups_have_no_rows_for_groups(full, tmp_path):
    bare = run(frame(), groups=None)
    assert compare(bare, full).table["kind"].tolist() == ["features", "features"]
    folder = bare.save(tmp_path / "bare", report=False)
    assert compare(folder, folder).table["kind"].tolist() == ["features", "features"]
    assert compare(full, folder).only_in_a["groups"]


def test_the_command_prints_the_agreement(full, light, tmp_path):
    a, b = full.save(tmp_path / "a", report=False), light.save(tmp_path / "b", report=False)
    done = excir("compare", a, b, "--top", 3)
    assert done.returncode == 0, done.stderr
    found = compare(a, b)
    assert done.stdout.splitlines()[:8] == str(found).splitlines()[:8]
    assert done.stdout.count("f") < str(found).count("f")
    done = excir_here("compare", a, b, "--json", "--k", 5, "--top", 3)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    content = json.loads(line)
    assert content == json.loads(json.dumps(compare(a, b, k=5).to_dict(3)))
    assert [row["k"] for row in content["agreement"]] == [5, 5, 5, 5]
    assert len(content["shifts"]) == 3
    assert list(content["agreement"][0]) == COLUMNS


@pytest.fixture(scope="module")
def saved(full, tmp_path_factory) -> Path:
    """A folder with two results that have no output in common."""
    folder = tmp_path_factory.mktemp("saved")
    full.save(folder / "a", report=False)
    run(frame().rename(columns={"y": "w"}), "w").save(folder / "other", report=False)
    return folder


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["a"], 2, "Missing argument 'B'"),
        (["a", "other"], 2, "no output in common: y, z in a, w in b"),
        (["a", "nowhere"], 3, "nowhere is not a saved explanation"),
        (["a", "."], 3, "is not a saved explanation"),
        (["a", "a", "--k", "0"], 2, "--k"),
        (["a", "a", "--top", "0"], 2, "--top"),
    ],
)
def test_errors_are_one_clear_line_and_an_exit_code(saved, arguments, code, message):
    done = excir_here("compare", *arguments, cwd=saved)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_teaches():
    done = excir_here("compare", "--help")
    assert done.returncode == 0
    assert "excir compare full/ sample/" in done.stdout
