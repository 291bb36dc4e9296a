"""What the three searches of nan.py share: tensors inside of any value, one call of a module as it is remembered, words about tensors."""


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


def only_minus_infinity(torch, tensor):
    """Whether what is not finite is minus infinity alone, as masks hold it."""
    flat = tensor.detach().reshape(-1)
    return not bool(torch.isnan(flat).any()) and not bool((flat == float("inf")).any())


def off_autocast(torch):
    import contextlib
    stack = contextlib.ExitStack()
    for kind in ("cuda", "cpu"):
        try:
            stack.enter_context(torch.autocast(kind, enabled=False))
        except Exception:  # noqa: BLE001
            pass
    return stack
