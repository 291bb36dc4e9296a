#!/usr/bin/env python3
"""render check with a real MuJoCo through EGL, OSMesa and Xvfb, with real cameras, Vulkan, and videos with a real ffmpeg.

    FIRSTFAULT=build/dev/firstfault VENV/bin/python tests/long/rendering.py

Needs mujoco, gym-aloha, libegl-mesa0, libosmesa6, mesa-vulkan-drivers, xvfb, ffmpeg.
"""
import json, os, pathlib, shutil, subprocess, sys, tempfile

FIRSTFAULT = str(pathlib.Path(os.environ["FIRSTFAULT"]).resolve())


def check(*words, prefix=(), **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "VK_ICD_FILENAMES")} | environment
    done = subprocess.run([*prefix, FIRSTFAULT, *map(str, words), "--json"], capture_output=True, text=True, env=env)
    value = json.loads(done.stdout)
    checks = {c["id"].split(".")[1]: c for c in value["checks"]}
    print(" ".join(prefix), " ".join(f"{k}={v}" for k, v in environment.items()), words[0], words[1], "->", done.returncode)
    for c in checks.values():
        if c["status"] != "skip":
            print("   ", c["status"], c["id"], "-", c["summary"])
    return done.returncode, checks


python = ("render", "check", "--python", sys.prefix)
code, found = check(*python, "--env", "gym_aloha:gym_aloha/AlohaInsertion-v0", "--env-args", '{"obs_type": "pixels_agent_pos", "render_mode": "rgb_array"}', MUJOCO_GL="egl")
assert code == 0 and all(found[k]["status"] == "pass" for k in ("render-egl", "render-draws", "render-mujoco", "render-agrees", "render-cameras")), found
assert found["render-vulkan"]["status"] in ("pass", "warn") and found["render-vulkan"]["measured"]["devices"], found["render-vulkan"]
assert {p["name"] for p in found["render-cameras"]["measured"]["pictures"]} >= {"pixels.top", "render"}, found["render-cameras"]["measured"]
code, found = check(*python, MUJOCO_GL="osmesa")
assert code == 0 and found["render-mujoco"]["status"] == "pass", found
code, found = check(*python, MUJOCO_GL="glfw")
assert code == 1 and found["render-variables"]["causes"] == ["render.no-display"] and found["render-mujoco"]["causes"] == ["render.no-display"], found
code, found = check(*python, prefix=("xvfb-run", "-a"), MUJOCO_GL="glfw")
assert found["render-mujoco"]["status"] == "pass", found
code, found = check(*python, MUJOCO_GL="nonsense")
assert code == 1 and found["render-variables"]["status"] == "fail", found
code, found = check(*python, MUJOCO_GL="egl", MUJOCO_EGL_DEVICE_ID="7")
assert code == 1 and found["render-variables"]["status"] == "fail" and found["render-mujoco"]["status"] == "fail", found
code, found = check(*python, MUJOCO_GL="egl", VK_ICD_FILENAMES="/nonexistent.json")
assert found["render-vulkan"]["causes"] == ["render.vulkan-unavailable"], found["render-vulkan"]

with tempfile.TemporaryDirectory() as place:
    root = pathlib.Path(place)
    ffmpeg = ["ffmpeg", "-v", "error", "-y"]
    make = lambda name, source, *codec: subprocess.run([*ffmpeg, "-f", "lavfi", "-i", source, *codec, root / name], check=True)
    make("mpeg4.mp4", "testsrc=size=320x240:rate=10:duration=3", "-c:v", "mpeg4")
    make("yuv444.mp4", "testsrc=size=320x240:rate=10:duration=3", "-c:v", "libx264", "-pix_fmt", "yuv444p")
    make("black.mp4", "color=black:size=320x240:rate=10:duration=3", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart")
    make("frozen.mp4", "color=red:size=320x240:rate=10:duration=3,drawbox=c=blue:x=20:y=20:w=80:h=90:t=fill", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart")
    for name, check_id in (("mpeg4.mp4", "video-playable"), ("yuv444.mp4", "video-playable"), ("black.mp4", "video-moves"), ("frozen.mp4", "video-moves")):
        code, found = check("video", "check", root / name)
        assert found[check_id]["status"] in ("fail", "warn"), (name, found)
    for name in ("mpeg4.mp4", "yuv444.mp4"):
        subprocess.run([FIRSTFAULT, "video", "encode", root / name, "-o", root / ("good-" + name)], check=True)
        code, found = check("video", "check", root / ("good-" + name))
        assert code == 0 and {found[k]["status"] for k in ("video-whole", "video-playable", "video-moves")} == {"pass"}, (name, found)
        assert "decode" in found["video-whole"]["summary"], found["video-whole"]
    (root / "frames").mkdir()
    subprocess.run([*ffmpeg, "-f", "lavfi", "-i", "testsrc=size=321x241:rate=10:duration=2", root / "frames/%04d.png"], check=True)
    subprocess.run([FIRSTFAULT, "video", "encode", root / "frames", "-o", root / "frames.mp4", "--fps", "10"], check=True)
    code, found = check("video", "check", root / "frames.mp4")
    assert code == 0, found
    whole = (root / "good-mpeg4.mp4").read_bytes()
    (root / "cut.mp4").write_bytes(whole[: len(whole) * 2 // 3])
    code, found = check("video", "check", root / "cut.mp4")
    assert code == 1 and found["video-whole"]["status"] == "fail", found
print("rendering and video: all as expected")
