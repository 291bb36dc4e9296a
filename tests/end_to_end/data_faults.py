"""Faults of datasets: each kind puts one into a clean set at a random place; the table names the cause that is to be found."""
import json, shutil

import datasets
from datasets import CAMERA, FPS, PICTURE, mp4, write_rows

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123456\n"


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def edit_rows(root, rng, change):
    """Lets `change` alter the rows of one data file and writes it back."""
    path = rng.choice(sorted((root / "data").rglob("*.parquet")))
    data = datasets.pq.read_table(path).to_pylist()
    change(data)
    write_rows(path, data)


def edit_episodes(root, change):
    path = root / "meta/episodes/chunk-000/file-000.parquet"
    entries = datasets.pq.read_table(path).to_pylist()
    change(entries)
    datasets.pq.write_table(datasets.episodes_table(entries), path)


def inner(data, rng):
    """A row that is neither first nor last of its episode, nor next to its ends."""
    return rng.choice([i for i in range(2, len(data) - 2) if data[i - 2]["episode_index"] == data[i + 2]["episode_index"]])


def swap_rows(root, rng):
    def change(d):
        i = inner(d, rng)
        d[i], d[i + 1] = d[i + 1], d[i]
    edit_rows(root, rng, change)


def set_value(name, value):
    def change(root, rng):
        def one(d):
            i = inner(d, rng)
            if isinstance(d[i][name], list):
                d[i][name][rng.randrange(len(d[i][name]))] = value
            else:
                d[i][name] = value
        edit_rows(root, rng, one)
    return change


def drop_row(root, rng):
    edit_rows(root, rng, lambda d: d.pop(inner(d, rng)))


def double_row(root, rng):
    def change(d):
        i = inner(d, rng)
        d.insert(i, dict(d[i]))
    edit_rows(root, rng, change)


def each_row(change):
    def all_files(root, rng):
        for path in sorted((root / "data").rglob("*.parquet")):
            data = datasets.pq.read_table(path).to_pylist()
            for r in data:
                change(r)
            write_rows(path, data)
    return all_files


def shift_index(root, rng):
    path = sorted((root / "data").rglob("*.parquet"))[-1]
    data = datasets.pq.read_table(path).to_pylist()
    for i, r in enumerate(data):
        r["index"] = i  # starts again, as in a part that was merged without renumbering
    write_rows(path, data)


def index_off_by_one(root, rng):
    edit_rows(root, rng, lambda d: [r.update(index=r["index"] + 1) for r in d[inner(d, rng):]])


def shuffle_file(root, rng):
    edit_rows(root, rng, rng.shuffle)


def jitter(root, rng):
    def change(d):
        d[inner(d, rng)]["timestamp"] += 0.4 / FPS
    edit_rows(root, rng, change)


def edit_info(change):
    return lambda root, rng: edit_json(root / "meta/info.json", change)


def edit_stats(name, statistic, factor):
    return lambda root, rng: edit_json(root / "meta/stats.json", lambda s: s[name][statistic].__setitem__(rng.randrange(len(s[name][statistic])), s[name][statistic][0] * factor + 0.5))


def replace(pattern, content):
    def change(root, rng):
        path = rng.choice(sorted(root.glob(pattern)))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return change


def truncate(pattern):
    def change(root, rng):
        path = rng.choice(sorted(root.glob(pattern)))
        content = path.read_bytes()
        path.write_bytes(content[:rng.randrange(16, len(content) - 1)])
    return change


def remove(pattern):
    return lambda root, rng: rng.choice(sorted(root.glob(pattern))).unlink()


def column(add):
    def change(root, rng):
        path = rng.choice(sorted((root / "data").rglob("*.parquet")))
        t = datasets.pq.read_table(path)
        t = t.append_column("extra", datasets.pa.array([1.0] * t.num_rows)) if add else t.drop_columns(["observation.state"])
        datasets.pq.write_table(t, path)
    return change


def episode(change):
    return lambda root, rng: edit_episodes(root, lambda entries: change(entries, rng.randrange(1, len(entries))))


def swap_tasks(root, rng):
    pa, pq = datasets.pa, datasets.pq
    pq.write_table(pa.table({"task_index": pa.array([1, 0], pa.int64()), "task": datasets.TASKS[::-1]}), root / "meta/tasks.parquet")


def extra_file(root, rng):
    shutil.copy(rng.choice(sorted((root / "data").rglob("*.parquet"))), root / f"data/chunk-000/file-{rng.randrange(50, 90):03d}.parquet")


def overlap(entries, i):
    entries[i][f"videos/{CAMERA}/from_timestamp"] -= 3 / FPS


def jsonl(name, change):
    def edit(root, rng):
        path = root / "meta" / name
        items = path.read_text().splitlines()
        path.write_text("\n".join(change(items, rng)) + "\n")
    return edit


def limit(name, pattern, share):
    """A limit of info.json that the files do not keep: `share` of what the largest has."""
    def edit(root, rng):
        largest = max(p.stat().st_size for p in root.glob(pattern)) / 2**20
        edit_json(root / "meta/info.json", lambda i: i.update({name: largest * rng.uniform(*share)}))
    return edit


def no_limit(root, rng):
    name = rng.choice(["data_files_size_in_mb", "video_files_size_in_mb"])
    edit_json(root / "meta/info.json", lambda i: i.update({name: rng.choice([0, -100, "100", None, 0.0, [100], True])}))


V3, V21, V20 = ({"version": v} for v in ("v3.0", "v2.1", "v2.0"))
VIDEO3, VIDEO21 = {"version": "v3.0", "video": True}, {"version": "v2.1", "video": True}
# name: (dataset, mutation, cause that must be named)
KINDS = {
    "two rows swapped": (V3, swap_rows, "data.row-order"),
    "two rows swapped, v2.1": (V21, swap_rows, "data.row-order"),
    "a file shuffled": (V3, shuffle_file, "data.row-order"),
    "index starts again": (V3, shift_index, "data.global-index"),
    "index off by one": (V3, index_off_by_one, "data.global-index"),
    "index off by one, v2.1": (V21, index_off_by_one, "data.global-index"),
    "a frame lost": (V3, drop_row, "data.frame-gap"),
    "a frame lost, v2.1": (V21, drop_row, "data.frame-gap"),
    "a frame twice": (V3, double_row, "data.frame-gap"),
    "time starts late": (V3, each_row(lambda r: r.update(timestamp=r["timestamp"] + 2.0)), "data.timestamps"),
    "time of another rate": (V3, each_row(lambda r: r.update(timestamp=r["frame_index"] / 25)), "data.timestamps"),
    "time of another rate, v2.1": (V21, each_row(lambda r: r.update(timestamp=r["frame_index"] / 25)), "data.timestamps"),
    "time drifts": (V3, each_row(lambda r: r.update(timestamp=r["timestamp"] * 1.001)), "data.timestamps"),
    "time jitters": (V3, jitter, "data.timestamps"),
    "NaN in an action": (V3, set_value("action", float("nan")), "data.nonfinite"),
    "infinity in a state": (V3, set_value("observation.state", float("inf")), "data.nonfinite"),
    "NaN in an action, v2.1": (V21, set_value("action", float("nan")), "data.nonfinite"),
    "mean of the action": (V3, edit_stats("action", "mean", 1.0), "data.statistics"),
    "std of the action": (V3, edit_stats("action", "std", 3.0), "data.statistics"),
    "min of the state": (V3, edit_stats("observation.state", "min", 2.0), "data.statistics"),
    "max of the state": (V3, edit_stats("observation.state", "max", 2.0), "data.statistics"),
    "count of the action": (V3, edit_stats("action", "count", 0.5), "data.statistics"),
    "99 % quantile of the action": (V3, edit_stats("action", "q99", 2.0), "data.statistics"),
    "no statistics of the action": (V3, lambda root, rng: edit_json(root / "meta/stats.json", lambda s: s.pop("action")), "data.statistics"),
    "NaN among the statistics": (V3, lambda root, rng: edit_json(root / "meta/stats.json", lambda s: s["action"]["std"].__setitem__(0, None)), "data.statistics"),
    "an episode without statistics, v2.1": (V21, jsonl("episodes_stats.jsonl", lambda l, rng: l[:-1]), "data.statistics"),
    "statistics of another episode, v2.1": (V21, jsonl("episodes_stats.jsonl", lambda l, rng: [json.dumps({**json.loads(l[0]), "stats": json.loads(l[1])["stats"]})] + l[1:]), "data.statistics"),
    "total_frames": (V3, edit_info(lambda i: i.update(total_frames=i["total_frames"] + 1)), "data.metadata-mismatch"),
    "total_episodes": (V3, edit_info(lambda i: i.update(total_episodes=i["total_episodes"] - 1)), "data.metadata-mismatch"),
    "total_tasks": (V3, edit_info(lambda i: i.update(total_tasks=7)), "data.metadata-mismatch"),
    "no fps": (V3, edit_info(lambda i: i.pop("fps")), "data.metadata-mismatch"),
    "shape of the action": (V3, edit_info(lambda i: i["features"]["action"].update(shape=[5])), "data.metadata-mismatch"),
    "a shape that no row has": (V3, edit_info(lambda i: i["features"]["action"].update(shape=[2**40], names=None)), "data.metadata-mismatch"),
    "a dtype that does not exist": (V3, edit_info(lambda i: i["features"]["action"].update(dtype="complex")), "data.metadata-mismatch"),
    "length of an episode": (V3, episode(lambda e, i: e[i].update(length=e[i]["length"] + 1)), "data.metadata-mismatch"),
    "length of an episode, v2.1": (V21, jsonl("episodes.jsonl", lambda l, rng: [json.dumps({**json.loads(x), "length": json.loads(x)["length"] + (i == 1)}) for i, x in enumerate(l)]), "data.metadata-mismatch"),
    "start of an episode": (V3, episode(lambda e, i: e[i].update(dataset_from_index=e[i]["dataset_from_index"] - 2)), "data.metadata-mismatch"),
    "number of an episode": (V3, episode(lambda e, i: e[i].update(episode_index=99)), "data.metadata-mismatch"),
    "a broken line, v2.1": (V21, jsonl("episodes.jsonl", lambda l, rng: [l[0][:-3]] + l[1:]), "data.metadata-mismatch"),
    "an unknown task": (V3, set_value("task_index", 9), "data.metadata-mismatch"),
    "a negative task": (V3, set_value("task_index", -1), "data.metadata-mismatch"),
    "tasks in another order": (V3, swap_tasks, "data.metadata-mismatch"),
    "a column too many": (V3, column(True), "data.metadata-mismatch"),
    "a column missing": (V3, column(False), "data.metadata-mismatch"),
    "data are a pointer": (V3, replace("data/*/*.parquet", LFS), "data.lfs-pointer"),
    "metadata are a pointer": (V3, replace("meta/tasks.parquet", LFS), "data.lfs-pointer"),
    "metadata are a pointer, v2.1": (V21, replace("meta/*.jsonl", LFS), "data.lfs-pointer"),
    "info.json is a pointer": (V3, replace("meta/info.json", LFS), "data.lfs-pointer"),
    "a truncated file": (V3, truncate("data/*/*.parquet"), "data.truncated"),
    "a truncated file, v2.1": (V21, truncate("data/*/*.parquet"), "data.truncated"),
    "an empty file": (V3, replace("data/*/*.parquet", b""), "data.truncated"),
    "an error page": (V3, replace("data/*/*.parquet", "<!DOCTYPE html><html>404</html>"), "data.truncated"),
    "a data file missing": (V3, remove("data/*/*.parquet"), "data.layout"),
    "a data file missing, v2.1": (V21, remove("data/*/*.parquet"), "data.layout"),
    "a data file too many": (V3, extra_file, "data.layout"),
    "the task list missing": (V3, remove("meta/tasks.parquet"), "data.layout"),
    "info.json missing": (V3, remove("meta/info.json"), "data.layout"),
    "a future format": (V3, edit_info(lambda i: i.update(codebase_version="v4.0")), "data.format-version"),
    "an old format": (V3, edit_info(lambda i: i.update(codebase_version="v1.6")), "data.format-version"),
    "a video missing": (VIDEO3, remove("videos/*/*/*.mp4"), "data.video-missing"),
    "a video missing, v2.1": (VIDEO21, remove("videos/*/*/*.mp4"), "data.video-missing"),
    "a video is a pointer": (VIDEO21, replace("videos/*/*/*.mp4", LFS), "data.lfs-pointer"),
    "a video cut off": (VIDEO3, truncate("videos/*/*/*.mp4"), "data.video-undecodable"),
    "no video at all": (VIDEO21, replace("videos/*/*/*.mp4", b"RIFF" + bytes(100)), "data.video-undecodable"),
    "a video one frame short": (VIDEO3, replace("videos/*/*/*.mp4", mp4(89)), "data.video-misaligned"),
    "a video one frame short, v2.1": (VIDEO21, replace("videos/*/*/*000002.mp4", mp4(14)), "data.video-misaligned"),
    "a video of another rate": (VIDEO3, replace("videos/*/*/*.mp4", mp4(90, fps=25)), "data.video-misaligned"),
    "a video of another size": (VIDEO3, replace("videos/*/*/*.mp4", mp4(90, width=32)), "data.video-misaligned"),
    "two rows swapped, v2.0": (V20, swap_rows, "data.row-order"),
    "a frame lost, v2.0": (V20, drop_row, "data.frame-gap"),
    "std of the action, v2.0": (V20, edit_stats("action", "std", 3.0), "data.statistics"),
    "data files beyond their limit": (V3, limit("data_files_size_in_mb", "data/*/*.parquet", (0.05, 0.6)), "data.metadata-mismatch"),
    "videos beyond their limit": (VIDEO3, limit("video_files_size_in_mb", "videos/*/*/*.mp4", (0.05, 0.6)), "data.metadata-mismatch"),
    "a limit of size that is none": (VIDEO3, no_limit, "data.metadata-mismatch"),
    "no limit of size": (V3, edit_info(lambda i: i.pop("data_files_size_in_mb", None)), "data.metadata-mismatch"),
    "more files in a folder than it holds": (V3, edit_info(lambda i: i.update(chunks_size=1)), "data.layout"),
    "windows that overlap": (VIDEO3, episode(overlap), "data.video-misaligned"),
}


def edit_all(root, change):
    """Lets `change` alter all rows of the dataset at once."""
    paths = sorted((root / "data").rglob("*.parquet"))
    parts = [datasets.pq.read_table(p).to_pylist() for p in paths]
    change([r for part in parts for r in part])
    for path, part in zip(paths, parts):
        write_rows(path, part)


def edit_value(name, change):
    """Replaces one dimension of a feature in the rows of one episode by what `change` makes of its series."""
    def all_rows(root, rng):
        def one(rows):
            episode, k = rng.randrange(3), rng.randrange(3)
            own = [r for r in rows if r["episode_index"] == episode]
            for r, v in zip(own, change([r[name][k] for r in own], rng)):
                r[name][k] = v
        edit_all(root, one)
    return all_rows


def spike(series, rng):
    i = rng.randrange(2, len(series) - 2)
    return series[:i] + [series[i] + 3 * (max(series) - min(series))] + series[i + 1:]


def wrap(series, rng):
    i = rng.randrange(len(series) // 4, 3 * len(series) // 4)
    return series[:i] + [v - 6.2832 for v in series[i:]]


def freeze(root, rng):
    def change(rows):
        own = [r for r in rows if r["episode_index"] == 1]
        i = rng.randrange(5, len(own) - 60)
        for r in own[i:i + 45]:
            r["observation.state"] = own[i]["observation.state"]
    edit_all(root, change)


def copy_episode(root, rng):
    def change(rows):
        own = {e: [r for r in rows if r["episode_index"] == e] for e in (0, 2)}
        for a, b in zip(own[0], own[2]):
            b["observation.state"], b["action"] = a["observation.state"], a["action"]
    edit_all(root, change)


def clip(root, rng):
    k = rng.randrange(3)
    def change(rows):
        limit = sorted(r["action"][k] for r in rows)[len(rows) // 3]
        for r in rows:
            r["action"][k] = min(r["action"][k], limit)
    edit_all(root, change)


def picture_stats(change, whole=None):
    """Lets `change` alter the statistics {name: [r, g, b]} of the pictures of one of the episodes that are looked at, or of all episodes."""
    def edit(root, rng):
        def one(entry):
            flat = {k: [c[0][0] for c in entry[k]] for k in ("min", "max", "mean", "std")}
            change(flat, rng)
            entry.update({k: [[[v]] for v in flat[k]] if not isinstance(flat[k], tuple) else list(flat[k]) for k in flat})

        def apply(entries, get, put):
            for i in [rng.choice([0, len(entries) // 2, len(entries) - 1])] if whole is None else range(len(entries)):
                entry = get(entries[i])
                one(entry)
                put(entries[i], entry)
        lines = root / "meta/episodes_stats.jsonl"
        if lines.exists():
            entries = [json.loads(l) for l in lines.read_text().splitlines()]
            apply(entries, lambda e: e["stats"][PICTURE], lambda e, v: e["stats"].__setitem__(PICTURE, v))
            lines.write_text("".join(json.dumps(e) + "\n" for e in entries))
        else:
            edit_episodes(root, lambda entries: apply(entries, lambda e: {k: e[f"stats/{PICTURE}/{k}"] for k in ("min", "max", "mean", "std")},
                                                      lambda e, v: e.update({f"stats/{PICTURE}/{k}": x for k, x in v.items()})))
    return edit


def set_channel(name, change):
    def edit(stats, rng):
        c = rng.randrange(3)
        stats[name][c] = change(stats[name][c])
    return edit


def scale_all(by):
    return lambda stats, rng: stats.update({k: [by * v for v in values] for k, values in stats.items()})


def spoil_picture(root, rng):
    """The statistics stay; the pictures of one episode that is looked at become others."""
    episode = rng.choice([0, 2, 3])

    def change(rows):
        for r in rows:
            if r["episode_index"] == episode:
                r[PICTURE]["bytes"] = datasets.png([rng.randrange(256) for _ in range(datasets.HEIGHT * datasets.WIDTH * 3)])
    edit_all(root, change)


def one_picture(change):
    """`change` alters the bytes of the picture of some row."""
    def edit(root, rng):
        def rows(d):
            cell = rng.choice(d)[PICTURE]
            cell["bytes"] = change(cell["bytes"], rng)
        edit_rows(root, rng, rows)
    return edit


def whole_stats(change):
    """The statistics of v2.0's pictures."""
    def edit(root, rng):
        def stats(s):
            flat = {k: [c[0][0] for c in v] for k, v in s[PICTURE].items()}
            change(flat, rng)
            s[PICTURE] = {k: [[[v]] for v in values] for k, values in flat.items()}
        edit_json(root / "meta/stats.json", stats)
    return edit


def idle(root, rng):
    """The action of one episode stays what it is for most of it."""
    def change(rows):
        episode = rng.randrange(8)
        own = [r for r in rows if r["episode_index"] == episode]
        i = rng.randrange(1, 20)
        for r in own[i:i + 90]:
            r["action"] = own[i]["action"]
    edit_all(root, change)


def elsewhere(name, following):
    """A joint has another zero in one episode, or from one on."""
    def edit(root, rng):
        episode, k, by = rng.randrange(4, 9), rng.randrange(4), rng.choice([-30, 30])
        edit_all(root, lambda rows: [r[name].__setitem__(k, r[name][k] + by) for r in rows if r["episode_index"] == episode or (following and r["episode_index"] > episode)])
    return edit


LONG = {"version": "v3.0", "lengths": [120, 130, 120]}
EIGHT, TWELVE = {"version": "v3.0", "lengths": [120] * 8}, {"version": "v3.0", "lengths": [40] * 12}
ONE_SHORT, ONE_LONG = {"version": "v3.0", "lengths": [120] * 5 + [7, 120]}, {"version": "v2.1", "lengths": [40, 45, 500, 42, 38]}
IMAGE3, IMAGE21, IMAGE20 = ({"version": v, "image": True} for v in ("v3.0", "v2.1", "v2.0"))
# Statistics of pictures that are stored in Parquet.
PICTURE_KINDS = {
    "mean of the pictures": (IMAGE3, picture_stats(set_channel("mean", lambda v: v + 0.05), whole=True), "data.statistics"),
    "mean of the pictures, v2.1": (IMAGE21, picture_stats(set_channel("mean", lambda v: v - 0.05)), "data.statistics"),
    "std of the pictures": (IMAGE3, picture_stats(set_channel("std", lambda v: v / 2)), "data.statistics"),
    "minimum of the pictures": (IMAGE21, picture_stats(set_channel("min", lambda v: v + 0.1)), "data.statistics"),
    "maximum of the pictures": (IMAGE3, picture_stats(set_channel("max", lambda v: v - 0.1)), "data.statistics"),
    "pictures counted to 255": (IMAGE3, picture_stats(scale_all(255)), "data.statistics"),
    "a std that cannot be": (IMAGE21, picture_stats(set_channel("std", lambda v: 0.9)), "data.statistics"),
    "red and blue exchanged": (IMAGE3, picture_stats(lambda stats, rng: [values.reverse() for values in stats.values()]), "data.statistics"),
    "statistics of pictures in another layout": (IMAGE21, picture_stats(lambda stats, rng: stats.update(mean=tuple(stats["mean"]))), "data.statistics"),
    "stats.json of other pictures": (IMAGE3, lambda root, rng: edit_json(root / "meta/stats.json", lambda s: s[PICTURE]["mean"][rng.randrange(3)][0].__setitem__(0, 0.9)), "data.statistics"),
    "other pictures": (IMAGE3, spoil_picture, "data.statistics"),
    "mean of the pictures, v2.0": (IMAGE20, whole_stats(set_channel("mean", lambda v: v + 0.05)), "data.statistics"),
    "std of the pictures, v2.0": (IMAGE20, whole_stats(set_channel("std", lambda v: v / 2)), "data.statistics"),
    "red and blue exchanged, v2.0": (IMAGE20, whole_stats(lambda stats, rng: [values.reverse() for values in stats.values()]), "data.statistics"),
    "a picture cut off": (IMAGE3, one_picture(lambda b, rng: b[:rng.randrange(8, len(b) - 1)]), "data.picture-undecodable"),
    "a picture cut off, v2.1": (IMAGE21, one_picture(lambda b, rng: b[:rng.randrange(8, len(b) - 1)]), "data.picture-undecodable"),
    "no picture in a cell": (IMAGE3, one_picture(lambda b, rng: rng.choice([b"", None, LFS.encode(), b"<!DOCTYPE html>"])), "data.picture-undecodable"),
    "a picture of another size": (IMAGE3, one_picture(lambda b, rng: datasets.png([9] * (3 * (datasets.WIDTH + 1) * datasets.HEIGHT), width=datasets.WIDTH + 1)), "data.metadata-mismatch"),
}
# Values that are what they are: found and named, never changed by --fix.
VALUE_KINDS = {
    "a state that spikes": (LONG, edit_value("observation.state", spike), "data.bounds"),
    "an action that spikes": (LONG, edit_value("action", spike), "data.bounds"),
    "an encoder that wraps": (LONG, edit_value("observation.state", wrap), "data.bounds"),
    "a state that freezes": (LONG, freeze, "data.frame-gap"),
    "an episode twice": (LONG, copy_episode, "data.frame-gap"),
    "an action that is clipped": (LONG, clip, "data.bounds"),
    "actions in degrees": (LONG, each_row(lambda r: r.update(action=[v * 57.29578 for v in r["action"]])), "data.bounds"),
    "actions in degrees, joints without names": (LONG, lambda root, rng: (edit_info(lambda i: [i["features"][n].update(names=None) for n in ("action", "observation.state")])(root, rng), each_row(lambda r: r.update(action=[v * 57.29578 for v in r["action"]]))(root, rng)), "data.bounds"),
    "a gripper in per cent": (LONG, each_row(lambda r: r.update(action=r["action"][:3] + [100 * r["action"][3]])), "data.bounds"),
    "an idle episode": (EIGHT, idle, "data.episode-unlike"),
    "an episode that was broken off": (ONE_SHORT, lambda root, rng: None, "data.episode-unlike"),
    "an episode that was not ended, v2.1": (ONE_LONG, lambda root, rng: None, "data.episode-unlike"),
    "one episode with another zero": (TWELVE, elsewhere("observation.state", False), "data.episode-unlike"),
    "another zero from one episode on": (TWELVE, elsewhere("action", True), "data.episode-unlike"),
    "a video that no browser plays": (VIDEO3, replace("videos/*/*/*.mp4", mp4(90, codec=b"mp4v")), "render.video-encode"),
    "values outside the declared bounds": (LONG, edit_info(lambda i: i["features"]["action"].update(min=[-9, -9, -9, -9], max=[9, 9, 9, -5])), "data.bounds"),
}
