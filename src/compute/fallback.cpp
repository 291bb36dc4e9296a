#include "compute/fallback.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/seconds.h"

namespace ff::compute {
namespace {

/// Ways of one kind for a type, as routes; the fastest that passes is taken.
std::vector<std::string> ways_on_device(const std::string& dtype) {
  if (dtype == "float64") return {"/float32"};
  if (dtype == "float32") return {"/float64"};
  return {"/float32", "/float64"};
}
std::vector<std::string> ways_by_cpu(const std::string& dtype) {
  if (dtype == "float32") return {"cpu/"};
  return {"cpu/", "cpu/float32"};
}

std::string base_name(const OperatorResult& result) { return result.name.substr(0, result.name.rfind('.')); }

/// The text in quotes of Python.
std::string quoted(std::string_view text) { return to_json(Value(text)); }

std::string or_none(const std::string& text) { return text.empty() ? "None" : quoted(text); }

}  // namespace

Result<FallbackPlan> plan_fallback(const OperatorRun& run, const std::string& python, const std::string& device, double seconds,
                                   const std::function<void(std::string_view)>& progress) {
  auto catalogue = torch_catalogue(python);
  if (!catalogue) return std::unexpected(catalogue.error());
  FallbackPlan plan;
  plan.device = device;
  plan.torch = run.device["torch"].as_text();
  std::vector<Reroute> failed;
  for (const auto& result : run.operators) {
    if (!is_fault(result.status)) continue;
    const std::string name = base_name(result);
    const auto at = std::ranges::find(*catalogue, name, &TorchOperator::name);
    const auto dtype = torch_dtype(result.dtype);
    if (at == catalogue->end() || !dtype || at->covers.empty() || at->covers.front() == "torch.autograd.Function.apply") {
      plan.left_out.push_back(fmt::format("{}: no single call of PyTorch can be replaced", result.name));
      continue;
    }
    failed.push_back({name, *dtype, std::string(status_name(result.status)), at->covers, "", "", result.time_ms, std::nullopt});
  }
  // All ways in one child (PyTorch's start costs more than they do): first those on the same device, then by way of the CPU for
  // what none of these helped, which is slower than any of them. A clock bounds it all; what it ends is said.
  const auto deadline = std::chrono::steady_clock::now() + milliseconds_of(seconds);
  const auto take = [&](const OperatorResult& result) {
    const auto at = result.name.find('@'), slash = result.name.find('/');
    if (result.status != OperatorStatus::pass || at == std::string::npos || slash == std::string::npos) return;
    for (auto& one : failed) {
      if (one.name + "." + short_dtype(one.dtype) != result.name.substr(0, at)) continue;
      if (one.routed_ms && result.time_ms && *result.time_ms >= *one.routed_ms) continue;
      one.to_device = result.name.substr(at + 1, slash - at - 1);
      one.to_dtype = result.name.substr(slash + 1);
      one.routed_ms = result.time_ms;
    }
  };
  for (const bool by_cpu : {false, true}) {
    if (by_cpu && device == "cpu") continue;
    TorchOptions options;
    options.python = python;
    options.device = device;
    options.repeat = 3;
    options.deadline = deadline;
    options.catalogue = *catalogue;
    for (const auto& one : failed)
      if (one.to_device.empty() && one.to_dtype.empty())
        for (const auto& way : by_cpu ? ways_by_cpu(one.dtype) : ways_on_device(one.dtype)) options.cases.push_back({one.name, "", one.dtype, way});
    if (options.cases.empty() || std::chrono::steady_clock::now() >= deadline) continue;
    auto tried = run_torch(options, progress);
    if (!tried) return std::unexpected(tried.error());
    for (const auto& result : tried->operators) take(result);
  }
  const bool over = std::chrono::steady_clock::now() >= deadline;
  for (auto& one : failed) {
    if (one.to_device.empty() && one.to_dtype.empty())
      plan.left_out.push_back(fmt::format("{}.{}: {}", one.name, short_dtype(one.dtype),
                                          over ? fmt::format("no other way passed within {:.0f} s (--seconds)", seconds) : "no other way passed"));
    else
      plan.routes.push_back(std::move(one));
  }
  return plan;
}

std::string fallback_module(const FallbackPlan& plan) {
  std::string out = fmt::format(
      "\"\"\"Reroutes operators that were found wrong on this device (PyTorch {}). Written by firstfault ops fallback.\n\n"
      "Import it after torch and before the first use of the operators; it says so once. Remove it when the operators are right again.\n\"\"\"\n"
      "import functools\nimport sys\n\nimport torch\nimport torch.nn.functional\n\nDEVICE = {}\n"
      "# what users call, type in which it is wrong, device and type through which it goes, what was wrong, times as long\nROUTES = [\n",
      plan.torch, quoted(plan.device));
  std::vector<std::string> written;  // sum and sum_all are one function to users
  for (const auto& one : plan.routes) {
    std::string covers;
    for (const auto& path : one.covers) covers += quoted(path) + ", ";
    if (std::ranges::find(written, covers + one.dtype) != written.end()) continue;
    written.push_back(covers + one.dtype);
    const std::string cost = one.plain_ms && one.routed_ms && *one.plain_ms > 0 ? fmt::format("{:.2f}", *one.routed_ms / *one.plain_ms) : "None";
    out += fmt::format("    (({}), {}, {}, {}, {}, {}),\n", covers, quoted(one.dtype), or_none(one.to_device), or_none(one.to_dtype),
                       quoted(one.status), cost);
  }
  out += "]\n";
  if (!plan.left_out.empty()) {
    out += "# Not rerouted:\n";
    for (const auto& text : plan.left_out) out += "#   " + text + "\n";
  }
  out += R"py(

def _each(value, change):
    """The value with every tensor in it changed."""
    if torch.is_tensor(value):
        return change(value)
    if isinstance(value, (list, tuple)):
        items = [_each(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _each(item, change) for key, item in value.items()}
    return value


def _rerouted(original, routes):
    @functools.wraps(original)
    def call(*args, **kwargs):
        found = []

        def look(tensor):
            if tensor.is_floating_point() and tensor.device.type == DEVICE and tensor.dtype in routes:
                found.append(tensor)
            return tensor

        _each(args, look)
        _each(kwargs, look)
        if not found:
            return original(*args, **kwargs)
        device, dtype = found[0].device, found[0].dtype
        to_device, to_dtype = routes[dtype]

        def there(tensor):
            return tensor.to(device=to_device or tensor.device, dtype=to_dtype if to_dtype and tensor.dtype == dtype else tensor.dtype)

        def back(tensor):
            return tensor.to(device=device, dtype=dtype if to_dtype and tensor.dtype == to_dtype else tensor.dtype)

        target = kwargs.pop("out", None)
        result = _each(original(*_each(args, there), **_each(kwargs, there)), back)
        return target.copy_(result) if torch.is_tensor(target) else result

    return call


def _owner(path):
    value = sys.modules["torch"]
    if path.startswith("torchvision"):
        value = sys.modules.get("torchvision")
    for part in path.split(".")[1:-1]:
        value = getattr(value, part, None)
    return value, path.split(".")[-1]


def _install():
    by_path = {}
    for covers, dtype, device, to_dtype, _, _ in ROUTES:
        for path in covers:
            by_path.setdefault(path, {})[getattr(torch, dtype)] = (device, getattr(torch, to_dtype) if to_dtype else None)
    for path, routes in by_path.items():
        owner, name = _owner(path)
        if owner is not None and hasattr(owner, name):
            setattr(owner, name, _rerouted(getattr(owner, name), routes))
    for covers, dtype, device, to_dtype, status, cost in ROUTES:
        print("firstfault fallback: %s in %s (%s) goes through %s%s" % (
            covers[0], dtype, status, " in ".join(filter(None, (device, to_dtype))), "" if cost is None else ", %.1f times as long" % cost), file=sys.stderr)


_install()
)py";
  return out;
}

Value fallback_value(const FallbackPlan& plan) {
  Value routes = Value::list();
  for (const auto& one : plan.routes)
    routes.push(Value::object({{"name", one.name},
                               {"dtype", short_dtype(one.dtype)},
                               {"status", one.status},
                               {"to_device", one.to_device.empty() ? Value() : Value(one.to_device)},
                               {"to_dtype", one.to_dtype.empty() ? Value() : Value(short_dtype(one.to_dtype))},
                               {"plain_ms", one.plain_ms ? Value(*one.plain_ms) : Value()},
                               {"routed_ms", one.routed_ms ? Value(*one.routed_ms) : Value()},
                               {"covers", Value::list_of(one.covers)}}));
  return Value::object(
      {{"schema", "firstfault/ops-fallback/1"}, {"device", plan.device}, {"routes", std::move(routes)}, {"left_out", Value::list_of(plan.left_out)}});
}

}  // namespace ff::compute
