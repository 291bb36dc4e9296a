"""The group that compiles: ops_compile.py SPEC (see ops.py). torch.compile of a small graph, one Triton kernel, one extension."""
import faulthandler
import json
import os
import re
import sys
import tempfile
import time

from ff_probe import own_folder, record

EXTENSION_CPU = """
#include <torch/extension.h>
torch::Tensor twice_plus(torch::Tensor x, torch::Tensor y) { return x * 2 + y; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice_plus", &twice_plus); }
"""
EXTENSION_GPU = """
#include <torch/extension.h>
__global__ void kernel(const float* x, const float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] * 2.0f + y[i];
}
torch::Tensor twice_plus(torch::Tensor x, torch::Tensor y) {
  auto z = torch::empty_like(x);
  int n = (int)x.numel();
  kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), n);
  return z;
}
"""
DECLARATION = "torch::Tensor twice_plus(torch::Tensor x, torch::Tensor y);"
MISSING = ("Ninja is required", "C++ compiler", "InvalidCxxCompiler", "Failed to find C compiler", "not supported", "Not supported", "No module named",
           "requires triton", "Cannot find a working triton", "TritonMissing", "CUDA_HOME", "which: no", "Python.h", "No such file or directory: 'c++'",
           "command 'c++'", "Error checking compiler")


class Unsupported(Exception):
    pass


def inputs(torch, dtype, device, count=1000):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(count, generator=generator, dtype=torch.float64).to(dtype)
    y = torch.randn(count, generator=generator, dtype=torch.float64).to(dtype)
    return x.to(device), y.to(device)


def torch_compile(torch, dtype, device):
    if not hasattr(torch, "compile"):
        raise Unsupported("this version has no torch.compile")

    def graph(x, y):
        return torch.tanh(x * y + 1.0) * x

    x, y = inputs(torch, dtype, device)
    x.requires_grad_(True)
    out = torch.compile(graph)(x, y)
    out.sum().backward()
    ref = x.detach().double().cpu().requires_grad_(True)
    want = graph(ref, y.double().cpu())
    want.sum().backward()
    return [out.detach(), x.grad], [want.detach(), ref.grad], 8


def triton_kernel(torch, dtype, device):
    if device == "cpu":
        raise Unsupported("Triton needs a GPU")
    import importlib.util
    if importlib.util.find_spec("triton") is None:
        raise Unsupported("triton is not installed")
    import ops_triton
    x, y = inputs(torch, dtype, device)
    return [ops_triton.twice_plus(torch, x, y)], [x.double().cpu() * 2 + y.double().cpu()], 4


def cpp_extension(torch, dtype, device):
    from torch.utils import cpp_extension as ext
    home = getattr(ext, "ROCM_HOME", None) or getattr(ext, "CUDA_HOME", None)
    gpu = device != "cpu" and home is not None and os.path.exists(os.path.join(home, "bin"))
    x, y = inputs(torch, torch.float32 if gpu else dtype, device)
    folder = tempfile.mkdtemp(prefix="ff-extension-", dir=os.environ.get("FIRSTFAULT_BUILD"))
    if gpu:
        module = ext.load_inline("ff_extension_gpu", cpp_sources=[DECLARATION], cuda_sources=[EXTENSION_GPU], functions=["twice_plus"], build_directory=folder)
    else:
        module = ext.load_inline("ff_extension_cpu", cpp_sources=[EXTENSION_CPU], build_directory=folder)
    return [module.twice_plus(x, y)], [x.double().cpu() * 2 + y.double().cpu()], 4


def run(name, torch, dtype, device):
    from ops_engine import one_line
    out = {"status": "pass", "detail": "", "max_error": None, "mean_error": None, "p99_error": None, "bound": None, "time_ms": None, "variant": "base"}
    started = time.perf_counter()
    try:
        got, want, units = {"torch_compile": torch_compile, "triton_kernel": triton_kernel, "cpp_extension": cpp_extension}[name](torch, dtype, device)
        out["time_ms"] = (time.perf_counter() - started) * 1000
    except Unsupported as error:
        out.update(status="unsupported", detail=str(error))
        return out
    except Exception as error:  # noqa: BLE001
        text = str(error)
        missing = isinstance(error, (ImportError, NotImplementedError)) or any(part in text for part in MISSING)
        header = re.search(r"fatal error: (\S+): No such file", text)  # of Python, PyTorch or the toolkit: not installed
        out.update(status="unsupported" if missing or header else "fail", detail="%s is not installed" % header.group(1) if header else one_line(error))
        return out
    eps = float(torch.finfo(dtype).eps)
    every = []
    for g, w in zip(got, want):
        g = g.to("cpu", torch.float64)
        if not bool(torch.isfinite(g).all()):
            out.update(status="nan", detail="a result is not finite")
            return out
        every.append(((g - w).abs() / w.abs().clamp(min=0.25)).reshape(-1))
    every = torch.cat(every).sort()[0]
    out.update(max_error=float(every[-1]), mean_error=float(every.mean()), p99_error=float(every[int(0.99 * len(every))]), bound=units * eps)
    if out["max_error"] > out["bound"]:
        out.update(status="fail", detail="off by %.3g, %.3g allowed" % (out["max_error"], out["bound"]))
    return out


def main():
    spec = json.loads(sys.argv[1])
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(spec["start_limit_s"]), exit=True)
    from ops import open_device
    engine = open_device(spec["device"])
    if engine is None:
        return 3
    # Nothing of this is left behind, and no cache of another stack is read.
    with tempfile.TemporaryDirectory(prefix="compile-", dir=own_folder()) as folder:
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "inductor"), TRITON_CACHE_DIR=os.path.join(folder, "triton"), FIRSTFAULT_BUILD=folder)
        for name, dtype, *_ in spec["cases"]:
            record(event="start", name=name, dtype=dtype)
            faulthandler.dump_traceback_later(float(spec["limit_s"]), exit=True)
            if dtype != "float32" and name == "cpp_extension":
                result = {"status": "unsupported", "detail": "built once, for float32", "variant": "base"}
            else:
                result = run(name, engine.torch, engine.DTYPES[dtype], spec["device"])
            faulthandler.cancel_dump_traceback_later()
            record(event="result", name=name, family="compile", dtype=dtype, **result)
    record(event="end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
