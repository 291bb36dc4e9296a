#include "compute/torch_reduce.h"

#include <fmt/format.h>

#include "base/process.h"
#include "base/seconds.h"
#include "base/text.h"
#include "compute/child_words.h"
#include "python/python.h"

namespace ff::compute {
Result<Reduced> reduce_operator(const ReduceOptions& options) {
  python::Call call;
  call.interpreter = options.python;
  call.probe = "ops_reduce.py";
  Value spec = Value::object({{"name", options.name},
                              {"dtype", options.dtype},
                              {"device", options.device},
                              {"repeats", options.repeat},
                              {"limit_s", options.limit_s},
                              {"seconds", options.seconds}});
  call.arguments = {to_json(spec)};
  call.environment = options.environment;
  call.time_limit = milliseconds_of(options.seconds + 3 * options.limit_s + 180);
  auto answer = python::run(call);
  if (!answer) return std::unexpected(answer.error());
  Reduced out;
  bool answered = false;
  for (const auto& record : answer->records) {
    const auto event = record["event"].as_text();
    if (event == "holds") {
      answered = true;
      out.trials = static_cast<std::size_t>(record["trials"].as_int());
    } else if (event == "unavailable") {
      return fail(fmt::format("PyTorch has no such device: {}", record["detail"].as_text()), options.python,
                  "--device cpu tries the operator on the CPU");
    } else if (event == "reduced") {
      answered = out.failed = true;
      out.status = record["status"].as_text();
      out.detail = record["detail"].as_text();
      out.shapes = record["shapes"];
      out.dims = record["dims"];
      out.first_shapes = record["first_dims"];
      out.trials = static_cast<std::size_t>(record["trials"].as_int());
      out.script = record["script"].as_text();
      out.pytest = record["pytest"].as_text();
      out.bench = record["bench"].as_text();
    }
  }
  if (!answered)
    return fail(fmt::format("did not come to an end ({}): {}", answer->child.describe(), last_line(answer->child.err)), options.python,
                "--python names the interpreter that has PyTorch");
  return out;
}

void verify_script(Reduced& reduced, const std::string& python, const std::string& script, double limit_s) {
  ChildOptions child;
  child.argv = {python, script};
  child.time_limit = milliseconds_of(limit_s + 120);
  const auto result = run_child(child);
  reduced.script_fails = !result.ok();
  reduced.script_ended = result.describe();
  const std::string said = last_line(result.err);
  if (!said.empty()) reduced.script_ended += ", " + said;
}

Value reduced_value(const Reduced& reduced) {
  return Value::object({{"schema", "firstfault/ops-reduce/1"},
                        {"failed", reduced.failed},
                        {"status", reduced.status},
                        {"detail", reduced.detail},
                        {"shapes", reduced.shapes},
                        {"dims", reduced.dims},
                        {"first_dims", reduced.first_shapes},
                        {"trials", static_cast<unsigned long>(reduced.trials)},
                        {"script", reduced.script},
                        {"pytest", reduced.pytest},
                        {"bench", reduced.bench},
                        {"script_fails", reduced.script_fails},
                        {"script_ended", reduced.script_ended}});
}

}  // namespace ff::compute
