"""What the end-to-end tests share: running the program and validating its documents. Standard library, jsonschema."""
import json, os, pathlib, subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("FIRSTFAULT", str(ROOT / "build/dev/firstfault"))
SHARED = ROOT.parent / "shared"


def run(*arguments, input=None, env=None, cwd=None, timeout=60):
    """Runs firstfault; returns the completed process with text output."""
    merged = {**os.environ, **(env or {})}
    return subprocess.run([BINARY, *map(str, arguments)], input=input, env=merged, cwd=cwd, timeout=timeout,
                          capture_output=True, text=True, errors="replace")


def document(process):
    """The one JSON document on stdout, validated against docs/schema/<kind>.json."""
    value = json.loads(process.stdout)
    validate(value)
    return value


def validate(value):
    import jsonschema
    kind = value["schema"].split("/")[1]
    schema = json.loads((ROOT / "docs/schema" / f"{kind}.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(value)
