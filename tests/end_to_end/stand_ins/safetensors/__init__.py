"""A stand-in for safetensors.safe_open, float32 only; see torch beside it."""
import json, os, signal, struct
import torch

if os.environ.get("MODEL_LOAD_FAULT") == "no-safetensors":
    raise ModuleNotFoundError("No module named 'safetensors'", name="safetensors")


class safe_open:
    def __init__(self, path, framework, device):
        with open(path, "rb") as f:
            self.raw = f.read()
        self.size = struct.unpack("<Q", self.raw[:8])[0]
        self.header = json.loads(self.raw[8:8 + self.size])
        self.header.pop("__metadata__", None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def keys(self):
        names = list(self.header)
        return names[:-1] if torch.FAULT == "drop" else names

    def get_tensor(self, name):
        if torch.FAULT == "read-error":
            raise RuntimeError("Expected all tensors to be good")
        if torch.FAULT == "read-crash":
            os.kill(os.getpid(), signal.SIGBUS)
        if torch.FAULT == "read-killed":
            os.kill(os.getpid(), signal.SIGKILL)
        begin, end = self.header[name]["data_offsets"]
        data = bytearray(self.raw[8 + self.size + begin:8 + self.size + end])
        if torch.FAULT == "read-alters" and data:
            data[-1] ^= 0x40
        return torch.Tensor(data, self.header[name]["shape"])
