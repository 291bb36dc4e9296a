"""Looking closer at the one module that made something that is not finite: again, operator by operator or node by node, and in float64."""
import copy

from ff_probe import record
from nan_helpers import Call, Found, changed, describe, off_autocast, only_minus_infinity, short, tensors_in, version_of


class Closer:
    """The part of nan_watch.Watch that runs only when something was found."""

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
        if only_minus_infinity(self.torch, made) and bad_inputs and all(only_minus_infinity(self.torch, inputs[i]) for i in bad_inputs):
            self.quiet = False
            return  # a mask that is handed on
        bad_parameters = [name for name, p in module.named_parameters() if p.is_floating_point() and not self.finite(p)]
        what = {"stage": "forward", "module": self.name_of(module), "type": type(module).__name__, "inputs_finite": not bad_inputs and not bad_parameters,
                "dtype": short(made), "what": describe(self.torch, [made])}
        with self.as_called(call):
            if bad_parameters:
                what.update(verdict="parameters", operator="", detail=bad_parameters[0], what=describe(self.torch, [dict(module.named_parameters())[bad_parameters[0]]]))
            elif bad_inputs:
                what.update(verdict="inputs", operator="", detail="made outside of every module, or data", what=describe(self.torch, [inputs[i] for i in bad_inputs]))
            else:
                what.update(self.operators(module, call.arguments, call.keywords))
                if what.pop("masked", False) and only_minus_infinity(self.torch, made):
                    self.quiet = False
                    return  # a mask of minus infinity, put there on purpose
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
        watch, first, masked = self, [], []

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
                        masked.append(func)
                        break  # masks hold -inf on purpose
                    if str(func) in ("aten.masked_fill.Scalar", "aten.masked_fill_.Scalar", "aten.full.default", "aten.full_like.default", "aten.fill_.Scalar",
                                     "aten.where.self", "aten.scalar_tensor.default", "aten._to_copy.default") and not bool(torch.isnan(tensor).any()):
                        masked.append(func)
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
            return {"operator": "", "verdict": "unknown", "masked": bool(masked), "detail": "called again with the same inputs it is finite: not every call goes wrong"}
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
