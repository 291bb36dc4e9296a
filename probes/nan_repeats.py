"""The operators of a user's model that give other bits from the same inputs."""
import copy

from ff_probe import record
from nan_helpers import changed, tensors_in


def determinism(watch):
    """The first operators, forward or backward, whose results differ between two runs with the same inputs and random state."""
    torch = watch.torch
    from torch.utils._python_dispatch import TorchDispatchMode
    root, arguments, keywords = watch.first_root
    watch.quiet = True
    twin = copy.deepcopy(root)
    detach = lambda t: t.detach()  # noqa: E731
    arguments, keywords = changed(arguments, detach), changed(keywords, detach)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def fingerprint(tensor):
        flat = tensor.detach().reshape(-1).contiguous()
        return int(flat.view(bits[flat.element_size()]).to(torch.int64).sum()) if flat.numel() else 0

    class Trace(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            before = [fingerprint(t) for t in tensors_in((args, kwargs))]
            out = func(*args, **(kwargs or {}))
            if "empty" not in str(func):
                self.seen.append((str(func), before, [fingerprint(t) for t in tensors_in(out)]))
            return out

    traces = []
    for _ in range(3):
        torch.manual_seed(1234)
        state = copy.deepcopy(twin)
        with Trace() as trace:
            out = tensors_in(watch.original_call(state, *arguments, **keywords))
            out = [t for t in out if t.requires_grad]
            if out:
                watch.original_backward(out[0].float().sum())
        traces.append(trace.seen)
    different = []
    for other in traces[1:]:
        for a, b in zip(traces[0], other):
            if a[0] != b[0]:
                break
            if a[1] == b[1] and a[2] != b[2] and a[0] not in different:
                different.append(a[0])
    record(event="deterministic", operators=different, calls=len(traces[0]), runs=len(traces))
