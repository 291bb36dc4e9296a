"""Small LeRobot datasets, made here with pyarrow: clean ones of v2.0, v2.1 and v3.0, as lerobot lays them out
(formats: lerobot's datasets/utils.py and compute_stats.py). Videos are hand-made MP4 boxes without pictures."""
import base64, glob, json, math, os, pathlib, random, struct, sys, zlib
import harness

for wheel in sorted(glob.glob(os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~/.cache") + "/firstfault/pyarrow-*"))):
    sys.path.insert(0, wheel)
try:
    import numpy
    if int(numpy.__version__.split(".")[0]) < 2:
        sys.modules["numpy"] = None  # pyarrow goes without NumPy, but not with Debian's old one
except ImportError:
    pass
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:  # the wheel of ./dev setup is for the system's Python; without it these tests are skipped
    pa = pq = None

NAMES = ["shoulder.pos", "elbow.pos", "wrist.pos", "gripper.pos"]
FPS = 30
TASKS = ["pick the cube", "place the cube"]
CAMERA = "observation.images.top"
PICTURE = "observation.images.wrist"  # stored in Parquet, as PNG
HEIGHT, WIDTH = 6, 8
RECORDED = pathlib.Path(__file__).resolve().parents[1] / "dataset/recorded"


def rows(lengths, seed=0):
    """One dict a row, in order; action follows state by one step."""
    rng, out = random.Random(seed), []
    for episode, length in enumerate(lengths):
        state = [rng.uniform(-1, 1) for _ in NAMES]
        for frame in range(length):
            action = [s + rng.uniform(-0.05, 0.05) for s in state]
            out.append({"observation.state": state, "action": action, "timestamp": frame / FPS, "frame_index": frame, "episode_index": episode,
                        "index": len(out), "task_index": episode % len(TASKS)})
            state = action
    return out


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def moments(values):
    """mean, population std, min, max, count and quantiles of a list of vectors."""
    columns = list(zip(*[v if isinstance(v, list) else [v] for v in values]))
    columns = [[f32(x) for x in c] for c in columns]
    mean = [math.fsum(c) / len(c) for c in columns]
    quantile = lambda c, q: sorted(c)[min(len(c) - 1, int(q * len(c)))]
    return {"min": [min(c) for c in columns], "max": [max(c) for c in columns], "mean": mean,
            "std": [math.sqrt(math.fsum((x - m) ** 2 for x in c) / len(c)) for c, m in zip(columns, mean)], "count": [len(values)],
            **{name: [quantile(c, q) for c in columns] for name, q in (("q01", .01), ("q10", .1), ("q50", .5), ("q90", .9), ("q99", .99))}}


def stats(data):
    return {name: moments([r[name] for r in data]) for name in data[0]}


def png(rgb, width=WIDTH, height=HEIGHT):
    """`height` rows of `width` pixels, three bytes each."""
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(rgb[y * width * 3:(y + 1) * width * 3]) for y in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def jpegs():
    """JPEG files of HEIGHT x WIDTH pixels that Pillow wrote, each with the pixels that it reads again."""
    return [(base64.b64decode(e["file"]), e["pixels"]) for e in json.loads((pathlib.Path(__file__).parent / "jpeg_pictures.json").read_text())]


def pictures(data, seed):
    """A picture for each row: red about 180, green about 120, blue about 60, with noise."""
    rng = random.Random(seed + 1)
    return [[min(255, max(0, int(rng.gauss(base + 5 * r["episode_index"], 25)))) for _ in range(HEIGHT * WIDTH) for base in (180, 120, 60)] for r in data]


def picture_stats(frames, squares_in_8_bits=False):
    """By channel, of all frames (LeRobot looks at all of them up to 100)."""
    channels = [[v / 255 for f in frames for v in f[c::3]] for c in range(3)]
    mean = [math.fsum(c) / len(c) for c in channels]
    std = [math.sqrt(math.fsum((x - m) ** 2 for x in c) / len(c)) for c, m in zip(channels, mean)]
    if squares_in_8_bits:  # lerobot 0.4: uint8 ** 2 stays uint8
        squares = [math.fsum(v * v % 256 for f in frames for v in f[c::3]) / (len(frames) * HEIGHT * WIDTH) for c in range(3)]
        std = [math.sqrt(max(0, q - (255 * m) ** 2)) / 255 for q, m in zip(squares, mean)]
    nested = lambda values: [[[v]] for v in values]
    return {"min": nested([min(c) for c in channels]), "max": nested([max(c) for c in channels]), "mean": nested(mean), "std": nested(std), "count": [len(frames)]}


def features(video, image=False):
    vector = {"dtype": "float32", "shape": [len(NAMES)], "names": NAMES}
    one = lambda dtype: {"dtype": dtype, "shape": [1], "names": None}
    out = {"observation.state": vector, "action": vector, "timestamp": one("float32"), "frame_index": one("int64"), "episode_index": one("int64"),
           "index": one("int64"), "task_index": one("int64")}
    if video:
        out[CAMERA] = {"dtype": "video", "shape": [48, 64, 3], "names": ["height", "width", "channels"],
                       "info": {"video.fps": FPS, "video.codec": "h264", "video.height": 48, "video.width": 64, "has_audio": False}}
    if image:
        out[PICTURE] = {"dtype": "image", "shape": [HEIGHT, WIDTH, 3], "names": ["height", "width", "channels"]}
    return out


def table(data):
    vector = pa.list_(pa.float32())
    schema = pa.schema([(n, vector if n in ("observation.state", "action") else pa.float32() if n == "timestamp" else pa.struct([("bytes", pa.binary()), ("path", pa.string())]) if n == PICTURE else pa.int64()) for n in data[0]])
    return pa.table({n: [r[n] for r in data] for n in data[0]}, schema=schema)


def write_rows(path, data):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(data), path)


def box(kind, body):
    return struct.pack(">I", 8 + len(body)) + kind + body


def mp4(frames, fps=FPS, width=64, height=48, codec=b"avc1"):
    """A file with the boxes that describe `frames` pictures; the pictures are left out (nothing here decodes them)."""
    scale = 1000 * fps
    mdhd = box(b"mdhd", struct.pack(">IIIIIHH", 0, 0, 0, scale, frames * 1000, 0, 0))
    hdlr = box(b"hdlr", struct.pack(">II", 0, 0) + b"vide" + bytes(13))
    entry = box(codec, bytes(6) + struct.pack(">H", 1) + bytes(16) + struct.pack(">HH", width, height) + bytes(50))
    stbl = box(b"stbl", box(b"stsd", struct.pack(">II", 0, 1) + entry) + box(b"stts", struct.pack(">IIII", 0, 1, frames, 1000)) + box(b"stsz", struct.pack(">III", 0, 100, frames)))
    trak = box(b"trak", box(b"mdia", mdhd + hdlr + box(b"minf", stbl)))
    return box(b"ftyp", b"isom" + bytes(4)) + box(b"moov", box(b"mvhd", bytes(100)) + trak) + box(b"mdat", bytes(64))


def info(version, lengths, video, image=False):
    v3 = version == "v3.0"
    out = {"codebase_version": version, "robot_type": "test", "total_episodes": len(lengths), "total_frames": sum(lengths), "total_tasks": len(TASKS), "chunks_size": 1000, "fps": FPS, **({"data_files_size_in_mb": 100, "video_files_size_in_mb": 200} if v3 else {}),
           "splits": {"train": f"0:{len(lengths)}"},
           "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet" if v3 else "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
           "video_path": ("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4" if v3 else "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4") if video else None,
           "features": features(video, image)}
    if not v3:
        out.update(total_videos=len(lengths) if video else 0, total_chunks=1)
    return out


def episodes_table(entries):
    """v3.0 meta/episodes rows from dicts; statistics columns included."""
    columns = {}
    for e in entries:
        for key, value in e.items():
            columns.setdefault(key, []).append(value)
    types = lambda key: pa.list_(pa.string()) if key == "tasks" else pa.float64() if key.endswith("timestamp") else pa.int64() if not key.startswith("stats/") else \
        pa.list_(pa.int64()) if key.endswith("/count") else pa.list_(pa.list_(pa.list_(pa.float64()))) if "/observation.images" in key else pa.list_(pa.float64())
    return pa.table({k: pa.array(v, type=types(k)) for k, v in columns.items()})


def make(root, version="v3.0", lengths=(20, 25, 15, 30), video=False, seed=0, files=2, image=False):
    """Writes a clean dataset and returns its rows."""
    root, data = pathlib.Path(root), rows(lengths, seed)
    (root / "meta").mkdir(parents=True)
    (root / "meta/info.json").write_text(json.dumps(info(version, lengths, video, image), indent=4))
    frames = pictures(data, seed) if image else []
    stored = [{**r, PICTURE: {"bytes": png(f), "path": f"{r['frame_index']:06d}.png"}} for r, f in zip(data, frames)] if image else data
    rows_of = lambda e: [r for r in stored if r["episode_index"] == e]
    stats_of = lambda own: {**stats(own), **({PICTURE: picture_stats([frames[r["index"]] for r in own])} if image else {})}
    by_episode = [[r for r in data if r["episode_index"] == e] for e in range(len(lengths))]
    if version == "v3.0":
        entries, per_file = [], (len(lengths) + files - 1) // files
        start = 0
        for e, own in enumerate(by_episode):
            entry = {"episode_index": e, "tasks": [TASKS[e % len(TASKS)]], "length": len(own), "data/chunk_index": 0, "data/file_index": e // per_file,
                     "dataset_from_index": start, "dataset_to_index": start + len(own)}
            if video:
                entry.update({f"videos/{CAMERA}/chunk_index": 0, f"videos/{CAMERA}/file_index": 0, f"videos/{CAMERA}/from_timestamp": start / FPS, f"videos/{CAMERA}/to_timestamp": (start + len(own)) / FPS})
            for feature, values in stats_of(own).items():
                entry.update({f"stats/{feature}/{k}": v for k, v in values.items()})
            entries.append(entry)
            start += len(own)
        for f in range(files):
            write_rows(root / f"data/chunk-000/file-{f:03d}.parquet", [r for e in range(f * per_file, min(len(lengths), (f + 1) * per_file)) for r in rows_of(e)])
        (root / "meta/episodes/chunk-000").mkdir(parents=True)
        pq.write_table(episodes_table(entries), root / "meta/episodes/chunk-000/file-000.parquet")
        pq.write_table(pa.table({"task_index": pa.array(range(len(TASKS)), pa.int64()), "task": TASKS}), root / "meta/tasks.parquet")
        (root / "meta/stats.json").write_text(json.dumps(stats_of(data)))
        if video:
            path = root / f"videos/{CAMERA}/chunk-000/file-000.mp4"
            path.parent.mkdir(parents=True)
            path.write_bytes(mp4(sum(lengths)))
    else:
        for e, own in enumerate(by_episode):
            write_rows(root / f"data/chunk-000/episode_{e:06d}.parquet", rows_of(e))
            if video:
                path = root / f"videos/chunk-000/{CAMERA}/episode_{e:06d}.mp4"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(mp4(len(own)))
        line = lambda items: "".join(json.dumps(i) + "\n" for i in items)
        (root / "meta/episodes.jsonl").write_text(line({"episode_index": e, "tasks": [TASKS[e % len(TASKS)]], "length": len(own)} for e, own in enumerate(by_episode)))
        (root / "meta/tasks.jsonl").write_text(line({"task_index": i, "task": t} for i, t in enumerate(TASKS)))
        if version == "v2.1":
            (root / "meta/episodes_stats.jsonl").write_text(line({"episode_index": e, "stats": stats_of(own)} for e, own in enumerate(by_episode)))
        else:  # one file for the whole set, with four statistics each
            (root / "meta/stats.json").write_text(json.dumps({name: {k: v[k] for k in ("mean", "std", "max", "min")} for name, v in stats_of(data).items()}))
    return data


def run(*arguments, env=None, **options):
    """harness.run without ffmpeg: the videos made here are boxes around no pictures."""
    return harness.run(*arguments, env={"FIRSTFAULT_FFMPEG": "/nonexistent", **(env or {})}, **options)
