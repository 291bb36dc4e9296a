#include "compute/nan_search.h"

#include <fmt/format.h>

#include "base/seconds.h"
#include "base/text.h"
#include "compute/child_words.h"
#include "python/python.h"

namespace ff::compute {
namespace {

Value or_null(const Value& value) { return value.is_object() ? value : Value(); }

}  // namespace

NanSearch read_nan_records(const std::vector<Value>& records) {
  NanSearch out;
  for (const auto& record : records) {
    const auto event = record["event"].as_text();
    if (event == "hello") out.hello = record;
    if (event == "found") out.found = record;
    if (event == "clean") out.clean = record;
    if (event == "plan") out.plan = record;
    if (event == "deterministic") out.deterministic = record;
    if (event == "time") out.script_s = record["script_s"].as_real();
    if (event == "not-done") out.not_done.push_back(fmt::format("{}: {}", record["what"].as_text(), record["detail"].as_text()));
  }
  return out;
}

Result<NanSearch> search_nan(const NanOptions& options) {
  python::Call call;
  call.interpreter = options.python;
  call.probe = "nan.py";
  call.arguments = {to_json(Value::object({{"script", options.script}, {"arguments", Value::list_of(options.arguments)}, {"plan", options.plan}}))};
  call.environment = options.environment;
  call.time_limit = milliseconds_of(options.time_limit_s);
  auto answer = python::run(call);
  if (!answer) return std::unexpected(answer.error());
  auto out = read_nan_records(answer->records);
  out.ended = answer->child.describe();
  out.output = answer->child.out;
  for (const auto& record : answer->records)
    if (record["event"].as_text() == "no-torch")
      return fail("has no PyTorch", options.python, "--python names the interpreter of the environment in which torch is installed");
  if (out.hello.is_null())
    return fail(fmt::format("PyTorch did not start ({}){}{}", out.ended, answer->child.err.empty() ? "" : ": ", last_line(answer->child.err)),
                options.python, "--python names the interpreter that has PyTorch");
  if (out.found.is_null() && out.clean.is_null())
    return fail(fmt::format("the script ended before the search did ({}): {}", out.ended, last_line(answer->child.err)), options.script,
                "firstfault isolate -- and firstfault explain are for crashes and hangs");
  return out;
}

std::string nan_sentence(const Value& found) {
  const auto module = found["module"].as_text(), op = found["operator"].as_text(), detail = found["detail"].as_text(), what = found["what"].as_text(),
             verdict = found["verdict"].as_text();
  const std::string name = module.empty() ? std::string("outside of every module") : fmt::format("{} ({})", module, found["type"].as_text());
  std::string out = fmt::format("{} pass {}: the first value that is not finite ", found["stage"].as_text() == "backward" ? "Backward" : "Forward",
                                found["stage"].as_text() == "backward" ? found["backward_steps"].as_int() : found["forward_steps"].as_int());
  // What came in is no fault of the module that met it first.
  if (verdict == "inputs") return out + fmt::format("is what {} was given ({}): {}.", name, what, detail);
  if (verdict == "parameters") return out + fmt::format("is a parameter of {}: {} ({}).", name, detail, what);
  out += fmt::format("appears {}{}", module.empty() ? "" : "in ", name);
  if (!op.empty()) out += fmt::format(", from {}", op);
  if (!what.empty()) out += fmt::format(" ({})", what);
  out += found["inputs_finite"].as_bool() ? "; its inputs were finite. " : "; some of its inputs were not finite either. ";
  if (verdict == "overflow")
    out += "Overflow: " + std::string(detail) + ".";
  else if (verdict == "wrong-operator")
    out += "Wrong operator: " + std::string(detail) + ".";
  else if (verdict == "arithmetic")
    out += "The model's own arithmetic: " + std::string(detail) + ".";
  else if (!detail.empty())
    out += std::string(detail) + ".";
  if (found["finite_in_wider"].kind() == Value::Kind::boolean)
    out += fmt::format(" In {} the module's result is {}.", found["wider"].as_text(),
                       found["finite_in_wider"].as_bool() ? "finite" : "not finite either");
  return out;
}

std::string nan_cause(const Value& found) {
  const auto verdict = found["verdict"].as_text();
  if (verdict == "overflow" && found["dtype"].as_text() == "float16") return "precision.half-overflow";
  if (verdict == "wrong-operator") return "precision.library-numerics";
  if (verdict == "parameters") return "model.nonfinite";
  if (verdict == "overflow" || verdict == "arithmetic") return "training.loss-nonfinite";
  return {};
}

Value nan_value(const NanSearch& search) {
  Value out = Value::object({{"schema", "firstfault/nan/1"}, {"torch", search.hello["torch"]}, {"finite", search.found.is_null()}});
  Value found;
  if (search.found.is_object()) {
    found = search.found;
    found.set("sentence", nan_sentence(search.found));
    const auto cause = nan_cause(search.found);
    found.set("cause", cause.empty() ? Value() : Value(cause));
  }
  out.set("found", found);
  out.set("clean", or_null(search.clean));
  out.set("plan", or_null(search.plan));
  out.set("deterministic", or_null(search.deterministic));
  out.set("not_done", Value::list_of(search.not_done));
  out.set("script_s", search.script_s);
  return out;
}

}  // namespace ff::compute
