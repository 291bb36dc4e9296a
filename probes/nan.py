"""Finds what first was not finite in a user's script: nan.py SPEC. SPEC: {"script", "arguments", "plan", "limit_steps"}.

The script runs as it would by itself. Every call of a torch.nn.Module is watched by one sum over its outputs, every backward pass by one sum over what
arrives at each module and one norm over each parameter's gradient; the device is waited for once a pass. When a value is not finite the script is
stopped and the culprit is looked at: the one module again, operator by operator and node by node, in its own type and in float64.

Records: hello, step counts, one "found" or "clean", "plan" (precision by module), "deterministic".
"""
import copy
import faulthandler
import json
import math
import os
import runpy
import sys
import time

from ff_probe import record

spec = json.loads(sys.argv[1]) if __name__ == "__main__" else {}


class Found(BaseException):
    """Stops the user's script; no `except Exception` of theirs catches it."""


def tensors_in(value, out=None, depth=0):
    import torch
    out = [] if out is None else out
    if torch.is_tensor(value):
        if value.is_floating_point():
            out.append(value)
    elif depth < 6:
        if isinstance(value, dict) or hasattr(value, "items") and hasattr(value, "keys"):
            for item in value.values():
                tensors_in(item, out, depth + 1)
        elif isinstance(value, (list, tuple)):
            for item in value:
                tensors_in(item, out, depth + 1)
        elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
            for item in vars(value).values():
                tensors_in(item, out, depth + 1)
    return out


def changed(value, change, depth=0):
    import torch
    if torch.is_tensor(value):
        return change(value)
    if depth < 6 and isinstance(value, dict):
        return type(value)((key, changed(item, change, depth + 1)) for key, item in value.items())
    if depth < 6 and isinstance(value, (list, tuple)):
        items = [changed(item, change, depth + 1) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


class Call:
    """One call of a module, from its begin until the backward pass that goes through it has been looked at."""
    __slots__ = ("module", "arguments", "keywords", "parent", "depth", "versions", "autocast", "nodes", "gradient")


class Output:
    """One tensor that was made, and the sum by which it is judged once the device is waited for."""
    __slots__ = ("call", "tensor", "version", "value")


def version_of(tensor):
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor has none
        return -1


class Watch:
    """Watches every call of a module and every backward pass, and waits for the device only once a pass.

    Forward: one sum over each output of a module. Backward: one sum over the gradient that arrives at each module's output, one norm over each
    parameter's gradient, one sum for each node between the loss and the outermost modules. What is not finite is looked at closer by running the
    one module again, node by node: that costs only the run that fails.
    """
    HELD = 64  # gradients that are held back for a closer look; without a second look they are let go

    def __init__(self, torch):
        self.torch, self.stack, self.calls, self.roots, self.names = torch, [], [], [], {}
        self.forward_calls = self.backward_calls = self.checks = 0
        self.first_root = None
        self.quiet = False
        self.recent = []
        self.pending = []      # outputs whose sums were not looked at
        self.gradients = []    # (call or node, sum) in the order in which they came
        self.bad_gradient = None
        self.released = 0
        self.roots_since = 0   # calls of outermost modules since the last backward pass
        self.stepped = {}      # outermost modules called since the last backward pass
        self.parameters = {}
        self.masked = 0
        self.scaler, self.unscaled, self.skipped, self.skipped_in_a_row = None, None, 0, 0
        self.original_call = torch.nn.Module.__call__
        self.original_backward = torch.autograd.backward
        self.halves = (torch.float16, torch.bfloat16)
        self.tensor = torch.Tensor
        try:
            torch.is_autocast_enabled("cpu")
            self.autocast_kinds = [(kind, lambda kind=kind: torch.is_autocast_enabled(kind), lambda kind=kind: torch.get_autocast_dtype(kind)) for kind in ("cuda", "cpu")]
        except TypeError:  # before 2.4
            self.autocast_kinds = [("cuda", torch.is_autocast_enabled, torch.get_autocast_gpu_dtype), ("cpu", torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype)]

    # ---- cheap questions

    def total(self, tensor):
        """A number that is finite when all elements are (half types are added in single precision)."""
        tensor = tensor.detach()
        return tensor.sum(dtype=self.torch.float32) if tensor.dtype in self.halves else tensor.sum()

    def finite(self, tensor):
        self.checks += 1
        if tensor.numel() == 0 or tensor.is_sparse or math.isfinite(float(self.total(tensor))):
            return True
        return bool(self.torch.isfinite(tensor.detach()).all())  # a sum may overflow by itself

    def not_finite(self, values):
        """Which of the numbers (on whatever device) are not finite; waits for each device once."""
        torch, groups, bad = self.torch, {}, []
        self.checks += len(values)
        for i, value in enumerate(values):
            groups.setdefault((value.device, value.dtype), []).append(i)
        asked = []
        for indices in groups.values():
            flags = ~torch.isfinite(torch.stack([values[i] for i in indices]))
            asked.append((indices, flags, flags.any()))
        for indices, flags, some in asked:
            if bool(some):
                bad += [indices[i] for i in flags.nonzero().reshape(-1).tolist()]
        return sorted(bad)

    # ---- hooks

    def install(self):
        watch = self

        def call(module, *arguments, **keywords):
            if watch.quiet:
                return watch.original_call(module, *arguments, **keywords)
            return watch.module_call(module, arguments, keywords)

        def backward(tensors, *arguments, **keywords):
            if watch.quiet:
                return watch.original_backward(tensors, *arguments, **keywords)
            return watch.backward(tensors, arguments, keywords)

        self.torch.nn.Module.__call__ = call
        self.torch.autograd.backward = backward
        self.watch_scalers()

    def watch_scalers(self):
        """A GradScaler multiplies the loss until gradients overflow, and skips that step: no fault."""
        classes = []
        for path in ("amp", "cuda.amp"):
            owner = self.torch
            for part in path.split("."):
                owner = getattr(owner, part, None)
            scaler = getattr(owner, "GradScaler", None)
            if scaler is not None and "scale" in vars(scaler) and scaler not in classes:
                classes.append(scaler)
        for scaler in classes:
            def scale(this, outputs, original=scaler.scale):
                scaled = original(this, outputs)
                if this.is_enabled():
                    self.scaler, self.unscaled = this, outputs
                return scaled
            scaler.scale = scale

    def autocast_now(self):
        return [(kind, dtype()) for kind, on, dtype in self.autocast_kinds if on()]

    def module_call(self, module, arguments, keywords):
        one = Call()
        one.module, one.arguments, one.keywords, one.depth = module, arguments, keywords, len(self.stack)
        one.gradient = None
        if self.stack:
            one.parent = self.stack[-1]
        else:
            one.parent = None
            self.begin_root(one)
        one.versions = [version_of(a) for a in arguments if isinstance(a, self.tensor)]
        one.autocast = self.autocast_now()
        self.stack.append(one)
        try:
            outputs = self.original_call(module, *arguments, **keywords)
        finally:
            self.stack.pop()
        found = [outputs] if isinstance(outputs, self.tensor) and outputs.is_floating_point() else tensors_in(outputs)
        hooked = False
        for tensor in found:
            if any(tensor is other for other in self.recent):
                continue  # a container hands on what its last part made
            self.recent.append(tensor)
            del self.recent[:-8]
            if not tensor.is_sparse and tensor.numel():
                self.note(one, tensor)
            if not hooked and tensor.requires_grad and tensor.grad_fn is not None:
                hooked = True
                tensor.register_hook(self.keeper(one))
        one.nodes = [t.grad_fn for t in found if t.grad_fn is not None]
        if one.nodes:
            self.calls.append(one)
        if len(self.pending) > 512 or (len(self.pending) > 64 or not self.stack) and not self.torch.is_grad_enabled():
            self.settle_forward()
        return outputs

    def begin_root(self, one):
        if self.torch.is_grad_enabled():
            self.forward_calls += 1
        self.roots.append(one.module)
        del self.roots[:-4]
        self.stepped[id(one.module)] = one.module
        self.roots_since += 1
        if self.roots_since > 256 or len(self.calls) > 20000:
            self.calls.clear()  # nobody calls backward
            self.roots_since = 0
        if self.first_root is None:
            self.first_root = (one.module, one.arguments, one.keywords)

    def note(self, call, tensor):
        output = Output()
        output.call, output.tensor, output.version, output.value = call, tensor, version_of(tensor), self.total(tensor)
        self.pending.append(output)

    def settle_forward(self):
        """One look at everything that modules have made since the last, in the order in which they ended."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        for i in self.not_finite([output.value for output in pending]):
            output = pending[i]
            if version_of(output.tensor) == output.version:
                if self.finite(output.tensor):
                    continue  # only the sum was too large
            elif not math.isnan(float(output.value)):
                continue  # changed since, and infinity may be the sum's own
            if output.call is not None:
                self.found_forward(output.call, output.tensor)
            elif self.unscaled is not None and all(self.finite(t) for t in tensors_in(self.unscaled)):
                continue  # the scale of the loss was too large: the scaler will see it
            else:
                self.found({"stage": "forward", "module": "", "operator": "the loss itself", "what": "loss", "inputs_finite": True, "verdict": "unknown",
                            "detail": "every module's output was finite; what is computed outside of modules was not"})

    def keeper(self, one):
        def keep(gradient):
            if self.quiet or gradient is None or gradient.is_sparse or not gradient.numel():
                return
            one.gradient = gradient
            self.gradients.append((one, self.total(gradient)))
            if len(self.gradients) - self.released > 2 * self.HELD:
                self.release()
        return keep

    def release(self):
        """Gradients of calls that were long ago are let go, unless one of them has to be looked at."""
        if self.bad_gradient is not None:
            return
        end = len(self.gradients) - self.HELD
        bad = self.not_finite([value for _, value in self.gradients[self.released:]])
        if bad:
            self.bad_gradient = self.released + bad[0]
            return
        for one, _ in self.gradients[self.released:end]:
            if isinstance(one, Call) and one.depth:
                one.gradient = None
        self.released = end

    def backward(self, tensors, arguments, keywords):
        torch = self.torch
        self.backward_calls += 1
        roots = [tensors] if torch.is_tensor(tensors) else list(tensors)
        for root in roots:
            if root.is_floating_point() and not root.is_sparse and root.numel():
                self.note(None, root)
        self.settle_forward()
        # Nodes outside of every module: from the loss to the outermost modules, and between those.
        borders = {node: one for one in self.calls for node in one.nodes}
        handles, seen, stack, leaves = [], set(), [r.grad_fn for r in roots if r.grad_fn is not None], []
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in borders:
                around = borders[node]
                if around.depth == 0:
                    stack.extend(t.grad_fn for t in tensors_in((around.arguments, around.keywords)) if t.grad_fn is not None)
                continue
            if hasattr(node, "variable"):
                leaves.append(node.variable)
            else:
                handles.append(node.register_hook(self.node_hook(node)))
            stack.extend(parent for parent, _ in node.next_functions if parent is not None)
        self.gradients, self.bad_gradient, self.released = [], None, 0
        try:
            self.original_backward(tensors, *arguments, **keywords)
        finally:
            for handle in handles:
                handle.remove()
        self.settle_backward(leaves)
        self.calls.clear()
        self.recent.clear()
        self.gradients, self.stepped, self.unscaled, self.roots_since = [], {}, None, 0

    def node_hook(self, node):
        def hook(grad_inputs, grad_outputs):
            with self.torch.no_grad():
                into = [self.total(g) for g in grad_inputs if g is not None and g.is_floating_point() and not g.is_sparse and g.numel()]
                if into:
                    self.gradients.append((node, into[0] if len(into) == 1 else sum(x.to(into[0].dtype) for x in into)))
        return hook

    def leaves_with_gradient(self, loose):
        seen, out = set(), []
        for key, module in self.stepped.items():
            kept = self.parameters.get(key)
            if kept is None or kept[0] is not module or self.backward_calls - kept[2] > 32:
                kept = self.parameters[key] = (module, list(module.parameters()), self.backward_calls)
            for leaf in kept[1]:
                if leaf.grad is not None and id(leaf) not in seen:
                    seen.add(id(leaf))
                    out.append(leaf)
        return out + [v for v in loose if v.grad is not None and id(v) not in seen]

    def settle_backward(self, loose):
        """One look at a whole backward pass: what arrived at the modules' outputs, and what arrived at the parameters."""
        torch = self.torch
        leaves = [v for v in self.leaves_with_gradient(loose) if v.grad.is_floating_point() and not v.grad.is_sparse and v.grad.numel()]
        norms = [None] * len(leaves)
        groups = {}
        for i, leaf in enumerate(leaves):
            groups.setdefault((leaf.grad.device, leaf.grad.dtype), []).append(i)
        with torch.no_grad():
            for indices in groups.values():
                grads = [leaves[i].grad.detach() for i in indices]
                try:
                    values = torch._foreach_norm(grads)
                except (AttributeError, RuntimeError, NotImplementedError):
                    values = [self.total(g) for g in grads]
                for i, value in zip(indices, values):
                    norms[i] = value
        first = 0 if self.bad_gradient is not None else self.released
        values = [value for _, value in self.gradients[first:]]
        bad = self.not_finite(values + norms)
        on_the_way = [first + i for i in bad if i < len(values)]
        bad_leaves = [leaves[i - len(values)] for i in bad if i >= len(values)]
        bad_leaves = [v for v in bad_leaves if not self.finite(v.grad)]
        if not bad_leaves:
            if on_the_way:
                self.masked += 1  # it was multiplied by a mask before it reached anything: harmless
            self.skipped_in_a_row = 0
            return
        what = self.made_backward(self.gradients[on_the_way[0]][0] if on_the_way else None, bad_leaves)
        if self.unscaled is not None:
            self.skipped += 1
            self.skipped_in_a_row += 1
            scale = float(self.scaler.get_scale())
            if what["verdict"] != "arithmetic" and scale > 1 and self.skipped_in_a_row <= 24:
                return  # the scaler skips this step and lowers its scale
            what["detail"] = (what["detail"] + ("; it does not come from the GradScaler's scale (%g)" % scale if scale > 1 else "; the GradScaler's scale is %g and cannot be lowered" % scale)).lstrip("; ")
        self.found(what)

    # ---- looking closer

    def name_of(self, module):
        for root in self.roots[::-1]:
            for name, other in root.named_modules():
                if other is module:
                    return name or type(root).__name__
        return type(module).__name__

    def found(self, what):
        self.quiet = True
        record(event="found", forward_steps=self.forward_calls, backward_steps=self.backward_calls, grad_scaler=self.scaler is not None, scaler_skips=self.skipped, **what)
        raise Found()

    def changed_since(self, call):
        return call.versions != [version_of(a) for a in call.arguments if isinstance(a, self.tensor)]

    def found_forward(self, call, made):
        self.quiet = True
        inputs = tensors_in((call.arguments, call.keywords))
        bad_inputs = [i for i, t in enumerate(inputs) if not self.finite(t)]
        if bad_inputs:
            # Every module before was right, so it was made between two of them: in the code of one that was still running.
            around = call.parent
            while around is not None:
                if all(self.finite(t) for t in tensors_in((around.arguments, around.keywords))):
                    call, bad_inputs = around, []
                    break
                around = around.parent
        module = call.module
        bad_parameters = [name for name, p in module.named_parameters() if p.is_floating_point() and not self.finite(p)]
        what = {"stage": "forward", "module": self.name_of(module), "type": type(module).__name__, "inputs_finite": not bad_inputs and not bad_parameters,
                "dtype": short(made), "what": describe(self.torch, [made])}
        with self.as_called(call):
            if bad_parameters:
                what.update(verdict="parameters", operator="", detail="its parameter %s is not finite" % bad_parameters[0])
            elif bad_inputs:
                what.update(verdict="inputs", operator="", detail="what it was given is not finite: made outside of modules, or data")
            else:
                what.update(self.operators(module, call.arguments, call.keywords))
                what.update(self.in_single(module, call.arguments, call.keywords))
        if what["verdict"] == "unknown" and self.changed_since(call):
            what["detail"] += "; its inputs were changed in place after the call"
        self.found(what)

    def as_called(self, call):
        """The autocast state that a call had."""
        import contextlib
        stack = contextlib.ExitStack()
        for kind, dtype in call.autocast:
            stack.enter_context(self.torch.autocast(kind, dtype=dtype))
        return stack

    def operators(self, module, arguments, keywords):
        """The same call again, every operator looked at."""
        torch = self.torch
        from torch.utils._python_dispatch import TorchDispatchMode
        watch, first = self, []

        class Look(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                if first or str(func).split(".")[0] != "aten":
                    return out
                for tensor in tensors_in(out):
                    if watch.finite(tensor):
                        continue
                    given = tensors_in((args, kwargs))
                    if str(func) in ("aten.empty.memory_format", "aten.empty_like.default", "aten.empty_strided.default", "aten.new_empty.default"):
                        break
                    if any("-inf" in describe(torch, [t]) or not watch.finite(t) for t in given) and not bool(torch.isnan(tensor).any()):
                        break  # masks hold -inf on purpose
                    if str(func) in ("aten.masked_fill.Scalar", "aten.masked_fill_.Scalar", "aten.full.default", "aten.full_like.default", "aten.fill_.Scalar",
                                     "aten.where.self", "aten.scalar_tensor.default", "aten._to_copy.default") and not bool(torch.isnan(tensor).any()):
                        break
                    first.append((func, args, kwargs or {}, all(watch.finite(t) for t in given)))
                    break
                return out

        try:
            with torch.no_grad(), Look():
                self.original_call(module, *arguments, **keywords)
        except Exception as error:  # noqa: BLE001: a module that cannot be called again
            return {"operator": "", "verdict": "unknown", "detail": "the module cannot be called again: %s" % str(error)[:200]}
        if not first:
            return {"operator": "", "verdict": "unknown", "detail": "called again with the same inputs it is finite: not every call goes wrong"}
        func, args, kwargs, finite = first[0]
        out = {"operator": str(func), "operator_inputs_finite": finite}
        dtype = next((t.dtype for t in tensors_in((args, kwargs))), torch.float32)
        try:
            to64 = lambda t: t.detach().cpu().double() if t.is_floating_point() else t.detach().cpu()  # noqa: E731
            kw = {k: (torch.float64 if isinstance(v, torch.dtype) and v.is_floating_point else torch.device("cpu") if isinstance(v, torch.device) else v)
                  for k, v in changed(kwargs, to64).items()}
            exact = tensors_in(func(*changed(args, to64), **kw))
            limit = float(torch.finfo(dtype).max)
            if not all(bool(torch.isfinite(t).all()) for t in exact):
                nan = any(bool(torch.isnan(t).any()) for t in exact)
                out.update(verdict="arithmetic", detail="not finite in float64 either: " + (
                    "zero by zero, a logarithm or root outside of its range, or a row with every place masked" if nan
                    else "too large for every precision, or a division by zero"))
            elif any(float(t.abs().max()) > limit for t in exact if t.numel()):
                out.update(verdict="overflow", detail="its result, %.3g, is above what %s holds (%.3g)" % (max(float(t.abs().max()) for t in exact if t.numel()), str(dtype)[6:], limit))
            else:
                out.update(verdict="wrong-operator", detail="in float64 the same inputs give at most %.6g, which %s holds" % (
                    max([float(t.abs().max()) for t in exact if t.numel()] or [0.0]), str(dtype)[6:]))
        except Exception as error:  # noqa: BLE001
            out.update(verdict="unknown", detail="float64 could not be tried: %s" % " ".join(str(error).split())[:200])
        return out

    def in_single(self, module, arguments, keywords):
        """Whether the whole module is finite in float32 (float64 where it runs in float32)."""
        torch = self.torch
        used = next((t.dtype for t in tensors_in((arguments, keywords))), torch.float32)
        wider = torch.float64 if used in (torch.float32, torch.float64) else torch.float32
        try:
            twin = copy.deepcopy(module).to(wider)
            change = lambda t: t.detach().to(wider) if t.is_floating_point() else t  # noqa: E731
            with torch.no_grad(), off_autocast(torch):
                out = tensors_in(self.original_call(twin, *changed(arguments, change), **changed(keywords, change)))
            return {"wider": str(wider)[6:], "finite_in_wider": all(bool(torch.isfinite(t).all()) for t in out)}
        except Exception as error:  # noqa: BLE001
            return {"wider": str(wider)[6:], "finite_in_wider": None, "wider_error": " ".join(str(error).split())[:200]}

    def made_backward(self, first, bad_leaves):
        """Which module and operator made the gradient that is not finite. `first`: the call whose output's gradient was the first that is not (or the
        node, outside of every module); None when only parameters' gradients are not."""
        self.quiet = True
        try:
            return self.made_backward_by(first, bad_leaves)
        finally:
            self.quiet = False

    def made_backward_by(self, first, bad_leaves):
        what = {"stage": "backward", "operator": "", "inputs_finite": True, "module": "", "verdict": "unknown", "detail": "outside of every module (the loss)"}
        if first is not None and not isinstance(first, Call):
            what["operator"] = first.name()
            return what
        if first is not None:
            made = set(first.nodes)
            ancestors, around = [], first.parent
            while around is not None:
                ancestors.append(around)
                around = around.parent
            takes = [c for c in self.calls if c is not first and c not in ancestors and
                     any(t.grad_fn in made for t in tensors_in((c.arguments, c.keywords)) if t.grad_fn is not None)]
            candidates = sorted(takes, key=lambda c: -c.depth) + ancestors
        else:
            owned = {id(v) for v in bad_leaves}
            candidates = [c for c in self.calls if any(id(p) in owned for p in c.module._parameters.values() if p is not None)]
            for one in list(candidates):  # the code around the owner may use its parameters too
                while one.parent is not None and one.parent not in candidates:
                    candidates.append(one.parent)
                    one = one.parent
            candidates.sort(key=lambda c: -c.depth)
        candidates += [c for c in self.calls if c.depth == 0 and c not in candidates]
        tried = None
        for call in candidates[:64]:
            if call.gradient is None or not self.finite(call.gradient):
                continue
            node = self.node_again(call)
            tried = tried or call
            if node is None:
                continue
            what.update(self.owner(call, node))
            return what
        if tried is not None:
            what.update(module=self.name_of(tried.module), type=type(tried.module).__name__, dtype=short(tried.arguments),
                        detail="called again with the same inputs and gradient every module on the way is finite: not every call goes wrong")
        elif bad_leaves:
            names = {id(p): name for root in self.roots for name, p in root.named_parameters()}
            what["detail"] = "the gradient of %s" % names.get(id(bad_leaves[0]), "a tensor outside of every module")
        return what

    def owner(self, call, node):
        inputs = tensors_in((call.arguments, call.keywords))
        out = {"operator": node, "module": self.name_of(call.module), "type": type(call.module).__name__, "dtype": short(call.arguments), "detail": "",
               "inputs_finite": all(self.finite(t) for t in inputs)}
        out.update(self.backward_again(call))
        return out

    def node_again(self, call):
        """The module once more, forward and backward, every node watched: the name of the first whose result is not finite."""
        torch = self.torch
        sums = []

        def hook_of(node):
            def hook(grad_inputs, grad_outputs):
                into = [self.total(g) for g in grad_inputs if g is not None and g.is_floating_point() and not g.is_sparse and g.numel()]
                sums.extend((node, value) for value in into)
            return hook

        try:
            change = lambda t: t.detach().requires_grad_(True) if t.is_floating_point() else t  # noqa: E731
            with torch.random.fork_rng(), torch.enable_grad(), self.as_called(call):
                twin = copy.deepcopy(call.module)
                arguments, keywords = changed(call.arguments, change), changed(call.keywords, change)
                out = [t for t in tensors_in(self.original_call(twin, *arguments, **keywords)) if t.requires_grad]
            seen, stack = set(), [out[0].grad_fn]
            while stack:
                node = stack.pop()
                if node is None or node in seen:
                    continue
                seen.add(node)
                if not hasattr(node, "variable"):
                    node.register_hook(hook_of(node))
                stack.extend(parent for parent, _ in node.next_functions)
            leaves = [t for t in tensors_in((arguments, keywords)) if t.requires_grad] + [p for p in twin.parameters() if p.requires_grad]
            torch.autograd.grad(out[0], leaves, call.gradient.to(out[0].dtype), allow_unused=True)
        except Exception:  # noqa: BLE001: a module that cannot be called again
            return None
        bad = self.not_finite([value for _, value in sums])
        return sums[bad[0]][0].name() if bad else None

    def backward_again(self, one):
        torch = self.torch
        used = next((t.dtype for t in tensors_in((one.arguments, one.keywords))), torch.float32)
        if one.autocast and used == torch.float32:
            used = one.autocast[0][1]
        try:
            twin = copy.deepcopy(one.module).cpu().double()
            change = lambda t: t.detach().cpu().double().requires_grad_(True) if t.is_floating_point() else t.detach().cpu()  # noqa: E731
            arguments, keywords = changed(one.arguments, change), changed(one.keywords, change)
            twin.zero_grad()
            with torch.random.fork_rng(), torch.enable_grad():
                out = [t for t in tensors_in(self.original_call(twin, *arguments, **keywords)) if t.requires_grad]
            given = one.gradient.detach().cpu().double() if one.gradient is not None else torch.ones_like(out[0])
            self.original_backward(out[0], given)
            grads = [t.grad for t in tensors_in((arguments, keywords)) + list(twin.parameters()) if t.grad is not None]
            limit = float(torch.finfo(used).max)
            if not all(bool(torch.isfinite(g).all()) for g in grads):
                return {"verdict": "arithmetic", "wider": "float64", "finite_in_wider": False,
                        "detail": "the gradient is not finite in float64 either: the derivative does not exist there (root of zero, norm of zero, division by zero)"}
            largest = max([float(g.abs().max()) for g in grads if g.numel()] or [0.0])
            if largest > limit:
                return {"verdict": "overflow", "wider": "float64", "finite_in_wider": True, "detail": "a gradient, %.3g, is above what %s holds (%.3g)" % (largest, str(used)[6:], limit)}
            return {"verdict": "wrong-operator" if used in (torch.float32, torch.float64) else "overflow-or-wrong", "wider": "float64", "finite_in_wider": True,
                    "detail": "in float64 the same module and gradient give at most %.6g, which %s holds" % (largest, str(used)[6:])}
        except Exception as error:  # noqa: BLE001
            return {"verdict": "unknown", "detail": "the module cannot be run again: %s" % " ".join(str(error).split())[:200]}


def short(value):
    found = tensors_in(value)
    return str(found[0].dtype)[6:] if found else ""


def describe(torch, found):
    for tensor in found:
        flat = tensor.detach().reshape(-1)
        nan, inf = int(torch.isnan(flat).sum()), int(torch.isinf(flat).sum())
        if nan or inf:
            sign = "-inf" if inf and bool((flat == -float("inf")).any()) else "inf"
            return "%d nan, %d %s of %d values, shape %s" % (nan, inf, sign, flat.numel(), list(tensor.shape))
    return "finite"


def off_autocast(torch):
    import contextlib
    stack = contextlib.ExitStack()
    for kind in ("cuda", "cpu"):
        try:
            stack.enter_context(torch.autocast(kind, enabled=False))
        except Exception:  # noqa: BLE001
            pass
    return stack


# ---- precision plan and nondeterminism ---------------------------------------------------------------------------------

def relative(torch, got, want):
    got, want = got.detach().double(), want.detach().double()
    if not bool(torch.isfinite(want).all()):
        return 0.0  # the module's inputs are bad, not its precision
    if not bool(torch.isfinite(got).all()):
        return float("inf")
    return float((got - want).norm() / want.norm().clamp(min=1e-30))


def precision_plan(watch):
    """Deviation and memory of each part in each precision, by running it on the inputs that it had in float32."""
    torch = watch.torch
    root, arguments, keywords = watch.first_root
    watch.quiet = True
    to32 = lambda t: t.detach().float() if t.is_floating_point() else t  # noqa: E731
    base = copy.deepcopy(root).float().eval()
    arguments, keywords = changed(arguments, to32), changed(keywords, to32)
    names = {module: name for name, module in base.named_modules()}
    parts, handles = {}, []
    types = {"bfloat16": torch.bfloat16, "float16": torch.float16}

    def look(module, args, out):
        if any(True for _ in module.children()):
            return
        for want in tensors_in(out)[:1]:
            row = parts.setdefault(names.get(module, "?"), {"type": type(module).__name__, "output_bytes": 0, "parameter_bytes": sum(p.numel() * 4 for p in module.parameters()),
                                                            "largest": 0.0, "bfloat16": 0.0, "float16": 0.0})
            row["output_bytes"] += want.numel() * 4
            row["largest"] = max(row["largest"], float(want.abs().max()) if want.numel() else 0.0)
            for name, dtype in types.items():
                try:
                    twin = copy.deepcopy(module).to(dtype)
                    twin._forward_hooks.clear()
                    got = tensors_in(watch.original_call(twin, *changed(args, lambda t: t.to(dtype) if t.is_floating_point() else t)))[0]
                    row[name] = max(row[name] or 0.0, relative(torch, got, want)) if row[name] is not None else None
                except Exception:  # noqa: BLE001: no such kernel
                    row[name] = None

    for module in base.modules():
        handles.append(module.register_forward_hook(look))
    with torch.no_grad(), off_autocast(torch):
        wanted = tensors_in(watch.original_call(base, *arguments, **keywords))
    for handle in handles:
        handle.remove()
    device = wanted[0].device.type if wanted else "cpu"
    whole = {"float32": {"deviation": 0.0, "parameter_bytes": sum(p.numel() * 4 for p in base.parameters()), "activation_bytes": sum(p["output_bytes"] for p in parts.values())}}
    for name, dtype in types.items():
        try:
            twin = copy.deepcopy(base).to(dtype)
            change = lambda t: t.to(dtype) if t.is_floating_point() else t  # noqa: E731
            with torch.no_grad():
                got = tensors_in(watch.original_call(twin, *changed(arguments, change), **changed(keywords, change)))
            whole[name] = {"deviation": max(relative(torch, g, w) for g, w in zip(got, wanted)), "parameter_bytes": whole["float32"]["parameter_bytes"] // 2,
                           "activation_bytes": whole["float32"]["activation_bytes"] // 2}
        except Exception as error:  # noqa: BLE001
            whole[name] = {"deviation": None, "error": " ".join(str(error).split())[:200]}
        try:
            with torch.no_grad(), torch.autocast(device, dtype=dtype):
                got = tensors_in(watch.original_call(base, *arguments, **keywords))
            whole["autocast " + name] = {"deviation": max(relative(torch, g, w) for g, w in zip(got, wanted)), "parameter_bytes": whole["float32"]["parameter_bytes"]}
        except Exception as error:  # noqa: BLE001
            whole["autocast " + name] = {"deviation": None, "error": " ".join(str(error).split())[:200]}
    keep = {}
    for name, dtype in types.items():
        known = sorted(p[name] for p in parts.values() if p[name] is not None and math.isfinite(p[name]))
        typical = known[len(known) // 2] if known else 0.0
        limit = max(8 * typical, 16 * float(torch.finfo(dtype).eps))
        keep[name] = [n for n, p in parts.items() if p[name] is not None and p[name] > limit]
    rows = [dict(p, module=n) for n, p in parts.items()]
    rows.sort(key=lambda p: -max(v for v in (p["bfloat16"] or 0.0, p["float16"] or 0.0)))
    record(event="plan", whole=whole, keep_in_float32=keep, modules=rows[:200], parts=len(rows))


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


def main():
    faulthandler.enable()
    started = time.perf_counter()
    try:
        import torch
    except ImportError as error:
        record(event="no-torch", detail=str(error))
        return 3
    record(event="hello", torch=torch.__version__, python=sys.version.split()[0], hip=getattr(torch.version, "hip", None), cuda=torch.version.cuda)
    watch = Watch(torch)
    watch.install()
    sys.argv = [spec["script"]] + list(spec.get("arguments", []))
    sys.path.insert(0, os.path.dirname(os.path.abspath(spec["script"])))
    begun = time.perf_counter()
    ended, code = "", 0
    try:
        try:
            runpy.run_path(spec["script"], run_name="__main__")
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
        except Exception as error:  # noqa: BLE001: the script's own failure is told, not ours
            import traceback
            traceback.print_exc()
            ended, code = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]), 1
        try:
            watch.settle_forward()  # what was made last and not yet looked at; a script may have ended because of it
        except RuntimeError as error:  # the device's context is gone
            ended = ended or "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300])
    except Found:
        ended = "found"
    except BaseException as error:  # noqa: BLE001: interrupted
        ended, code = type(error).__name__, 1
    seconds = time.perf_counter() - begun
    if ended != "found":
        record(event="clean", forward_steps=watch.forward_calls, backward_steps=watch.backward_calls, masked=watch.masked, scaler_skips=watch.skipped, raised=ended, exit_code=code, modules=watch.first_root is not None)
    record(event="time", script_s=seconds, start_s=begun - started, checks=watch.checks)
    if spec.get("plan") and watch.first_root is not None:
        for work in (precision_plan, determinism):
            try:
                work(watch)
            except Exception as error:  # noqa: BLE001
                record(event="not-done", what=work.__name__, detail="%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
