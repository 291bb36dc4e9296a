"""Collectives over two processes: ops_distributed.py SPEC (see ops.py). gloo on the CPU, nccl (RCCL) on two GPUs.

The first process starts one process a rank and watches them; ranks meet through a file. Both ranks compare what they hold with
what must be there; rank 0 records the verdict of both. One rank's death or a time-out ends the group: whoever runs this goes on
after the operator.
"""
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time

from ff_probe import own_folder, record

WORLD = 2


def worker(spec, rank, meeting):
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(spec["start_limit_s"]), exit=True)
    import datetime
    import torch
    import torch.distributed as dist
    import ops
    from ops_engine import UNSUPPORTED, BROKEN, one_line
    device = spec["device"]
    backend = "gloo"
    if device != "cpu":
        device, backend = "cuda:%d" % rank, "nccl"
        torch.cuda.set_device(rank)
    limit = float(spec["limit_s"])
    store = dist.FileStore(meeting, WORLD)
    dist.init_process_group(backend, store=store, rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=limit))
    notes = dist.PrefixStore("verdicts", store)
    if rank == 0:
        record(event="hello", backend=backend, **ops.describe(torch, spec["device"]))
    for number, (name, dtype_name, *_) in enumerate(spec["cases"]):
        if rank == 0:
            record(event="start", name=name, dtype=dtype_name)
        faulthandler.dump_traceback_later(limit, exit=True)
        dtype = getattr(torch, dtype_name)
        status, detail, times, worst = "pass", "", [], 0.0
        try:
            before = None
            for _ in range(max(int(spec["repeats"]), 1)):
                started = time.perf_counter()
                got, want = COLLECTIVES[name](torch, dist, rank, dtype, device)
                if device != "cpu":
                    torch.cuda.synchronize()
                times.append((time.perf_counter() - started) * 1000)
                for g, w in zip(got, want):
                    error = (g.to("cpu", torch.float64) - w.to("cpu", torch.float64)).abs()
                    if not bool(torch.isfinite(error).all()):
                        status, detail = "nan", "rank %d holds numbers that are not finite" % rank
                    elif error.numel():
                        worst = max(worst, float((error / w.to("cpu", torch.float64).abs().clamp(min=1)).max()))
                flat = [g.clone() for g in got]
                if before is not None and status == "pass" and not all(torch.equal(a, b) for a, b in zip(flat, before)):
                    status, detail = "nondeterministic", "rank %d holds other bits after a repeat" % rank
                before = flat
        except Exception as error:  # noqa: BLE001
            text = str(error)
            missing = isinstance(error, (NotImplementedError, AttributeError)) or any(p in text for p in UNSUPPORTED + ("Invalid scalar type", "unsupported"))
            status = "unsupported" if missing and not any(p in text for p in BROKEN) else "fail"
            detail = one_line(error)
        # Sums of small whole numbers are exact in every type; ddp_step averages and multiplies.
        bound = 8 * float(torch.finfo(dtype).eps) if name == "ddp_step" else float(torch.finfo(dtype).eps)
        if status == "pass" and worst > bound:
            status, detail = "fail", "rank %d is off by %.3g, %.3g allowed" % (rank, worst, bound)
        notes.set("%d/%d" % (number, rank), json.dumps([status, detail]))
        if rank == 0:
            other = json.loads(notes.get("%d/1" % number))
            if status == "pass":
                status, detail = other
            ordered = sorted(times[1:] or times)
            figures = {} if status == "unsupported" else {"max_error": worst, "mean_error": worst, "p99_error": worst, "bound": bound}
            record(event="result", name=name, family="distributed", dtype=dtype_name, status=status, detail=detail, variant="base",
                   time_ms=ordered[len(ordered) // 2] if ordered else None, **figures)
        else:
            notes.get("%d/0" % number)
        faulthandler.cancel_dump_traceback_later()
    if rank == 0:
        record(event="end")
    sys.stdout.flush()
    os._exit(0)  # destroy_process_group of some versions waits for peers that are gone


def whole(torch, rank, dtype, device, count=257):
    """Whole numbers, small enough that their sums are exact in bfloat16."""
    return ((torch.arange(count) * 7 + rank * 3) % 31 - 15).to(dtype).to(device)


def all_reduce(torch, dist, rank, dtype, device, kind):
    x = whole(torch, rank, dtype, device)
    parts = torch.stack([whole(torch, r, torch.float64, "cpu") for r in range(WORLD)])
    dist.all_reduce(x, op=getattr(dist.ReduceOp, kind))
    return [x], [parts.sum(0) if kind == "SUM" else parts.max(0)[0]]


def broadcast(torch, dist, rank, dtype, device):
    x = whole(torch, rank, dtype, device)
    dist.broadcast(x, 1)
    return [x], [whole(torch, 1, torch.float64, "cpu")]


def reduce(torch, dist, rank, dtype, device):
    x = whole(torch, rank, dtype, device)
    dist.reduce(x, 0)
    if rank != 0:
        return [], []
    return [x], [sum(whole(torch, r, torch.float64, "cpu") for r in range(WORLD))]


def all_gather(torch, dist, rank, dtype, device):
    x = whole(torch, rank, dtype, device)
    out = [torch.zeros_like(x) for _ in range(WORLD)]
    dist.all_gather(out, x)
    return out, [whole(torch, r, torch.float64, "cpu") for r in range(WORLD)]


def reduce_scatter(torch, dist, rank, dtype, device):
    parts = [whole(torch, rank + 5 * p, dtype, device) for p in range(WORLD)]
    out = torch.zeros_like(parts[0])
    dist.reduce_scatter(out, parts)
    return [out], [sum(whole(torch, r + 5 * rank, torch.float64, "cpu") for r in range(WORLD))]


def all_to_all(torch, dist, rank, dtype, device):
    parts = [whole(torch, rank + 5 * p, dtype, device) for p in range(WORLD)]
    out = [torch.zeros_like(p) for p in parts]
    dist.all_to_all(out, parts)
    return out, [whole(torch, r + 5 * rank, torch.float64, "cpu") for r in range(WORLD)]


def send_recv(torch, dist, rank, dtype, device):
    x = whole(torch, rank, dtype, device)
    if rank == 0:
        dist.send(x, 1)
        return [], []
    y = torch.zeros_like(x)
    dist.recv(y, 0)
    return [y], [whole(torch, 0, torch.float64, "cpu")]


def barrier(torch, dist, rank, dtype, device):
    if device == "cpu":
        dist.barrier()
    else:
        dist.barrier(device_ids=[rank])
    return [], []


def ddp_step(torch, dist, rank, dtype, device):
    """One optimiser step of DistributedDataParallel against the mean of both ranks' gradients, by hand."""
    model = torch.nn.Linear(4, 3, bias=False).to(device=device, dtype=dtype)
    with torch.no_grad():
        model.weight.copy_((torch.arange(12).reshape(3, 4) % 5 - 2).to(dtype))
    start = model.weight.detach().to("cpu", torch.float64).clone()  # float64 on the CPU would be the weight itself
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=None if device == "cpu" else [rank])
    x = whole(torch, rank, dtype, device, 8).reshape(2, 4)
    wrapped(x).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.25).step()
    mean = sum(whole(torch, r, torch.float64, "cpu", 8).reshape(2, 4).sum(0) for r in range(WORLD)) / WORLD
    return [model.weight.detach()], [start - 0.25 * mean.expand(3, 4)]


COLLECTIVES = {"all_reduce_sum": lambda *a: all_reduce(*a, kind="SUM"), "all_reduce_max": lambda *a: all_reduce(*a, kind="MAX"), "broadcast": broadcast,
               "reduce": reduce, "all_gather": all_gather, "reduce_scatter": reduce_scatter, "all_to_all": all_to_all, "send_recv": send_recv,
               "barrier": barrier, "ddp_step": ddp_step}


def refuse(spec, hello, why):
    record(event="hello", **hello)
    for name, dtype, *_ in spec["cases"]:
        record(event="result", name=name, family="distributed", dtype=dtype, status="unsupported", detail=why, variant="base")
    record(event="end")
    return 0


def main():
    spec = json.loads(sys.argv[1])
    if len(sys.argv) > 2:
        return worker(spec, int(sys.argv[2]), sys.argv[3])
    import torch
    import ops
    import torch.distributed as dist
    if not dist.is_available():
        return refuse(spec, ops.describe(torch, "cpu"), "this build has no torch.distributed")
    if spec["device"] != "cpu":
        if not torch.cuda.is_available():
            record(event="unavailable", detail="torch.cuda.is_available() is False")
            return 3
        if torch.cuda.device_count() < WORLD:
            return refuse(spec, ops.describe(torch, spec["device"]), "needs two GPUs, here is one")
        if not dist.is_nccl_available():
            return refuse(spec, ops.describe(torch, spec["device"]), "this build has no NCCL or RCCL")
    elif not getattr(dist, "is_gloo_available", lambda: True)():
        return refuse(spec, ops.describe(torch, "cpu"), "this build has no gloo")
    with tempfile.TemporaryDirectory(prefix="ranks-", dir=own_folder()) as folder:
        meeting = os.path.join(folder, "store")
        ranks = [subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), sys.argv[1], str(rank), meeting]) for rank in range(WORLD)]
        while any(rank.poll() is None for rank in ranks):
            if any(rank.poll() not in (None, 0) for rank in ranks):  # one died: the other would wait for it
                time.sleep(1.0)
                break
            time.sleep(0.02)
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
            rank.wait()
        bad = [rank.returncode for rank in ranks if rank.returncode not in (0, -9)]
        if bad and bad[0] < 0:
            os.kill(os.getpid(), -bad[0])  # the group ended as its rank did
        return bad[0] if bad else 0


if __name__ == "__main__":
    sys.exit(main())
