#include "compute/torch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "base/seconds.h"
#include "base/text.h"
#include "compute/child_words.h"
#include "python/python.h"

namespace ff::compute {
namespace {

using std::chrono::milliseconds;

std::string kernel_log() {
  ChildOptions child;
  child.argv = {"dmesg"};
  child.time_limit = milliseconds(3000);
  const auto result = run_child(child);
  return result.ok() ? result.out : std::string();
}

/// What the kernel said since `before` was read.
std::string news(std::string_view before, const std::string& after) {
  std::string_view last;
  for (const auto line : lines(before))
    if (!line.empty()) last = line;
  if (last.empty()) return after;
  const auto at = after.rfind(last);
  if (at == std::string::npos) return after;
  const auto end = after.find('\n', at);
  return end == std::string::npos ? std::string() : after.substr(end + 1);
}

struct Group {
  std::string family, probe;
  std::vector<TorchCase> cases;
};

class Runner {
 public:
  Runner(const TorchOptions& options, const std::function<void(std::string_view)>& progress) : options_(options), progress_(progress) {}

  Result<void> run(const Group& group, OperatorRun& out) {
    auto left = group.cases;
    while (!left.empty() && !over()) {
      progress_(fmt::format("{}: {} of {}", group.family, group.cases.size() - left.size() + 1, group.cases.size()));
      const std::string log = options_.evidence.empty() ? std::string() : kernel_log();
      auto answer = python::run(call_for(group, left));
      if (!answer) return std::unexpected(answer.error());
      auto records = read_torch_records(answer->records);
      if (!records.hello.is_null()) out.device = device_of(records.hello);
      if (asked_to_end() != 0) {  // the operator that ran was ended from outside: nothing is said about it
        out.operators.insert(out.operators.end(), records.results.begin(), records.results.end());
        return {};
      }
      if (!records.unavailable.empty())
        return fail("PyTorch has no such device: " + records.unavailable, options_.python,
                    "firstfault check says what is missing; --device cpu tries the operators on the CPU");
      if (records.hello.is_null() && over()) return {};
      if (records.hello.is_null()) return not_started(answer->child);
      for (auto& result : records.results) out.operators.push_back(std::move(result));
      std::erase_if(left, [&](const TorchCase& one) { return std::ranges::find(records.finished, one) != records.finished.end(); });
      if (records.ended) {
        // A child that reached its end and still has cases did not know them.
        for (const auto& one : left) out.operators.push_back(lost(one, OperatorStatus::unsupported, "the probe does not know this operator"));
        return {};
      }
      if (left.empty() || over()) return {};  // it died after the last operator, at exit: the operators are right
      const TorchCase culprit = culprit_of(records, left);
      out.operators.push_back(verdict(culprit, records, answer->child, log));
      std::erase(left, culprit);
    }
    return {};
  }

 private:
  [[nodiscard]] bool over() const { return options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline; }

  [[nodiscard]] python::Call call_for(const Group& group, const std::vector<TorchCase>& cases) const {
    Value list = Value::list();
    for (const auto& one : cases) list.push(Value::list({one.name, one.dtype, one.route}));
    const double limit = group.family == "compile" ? std::max(options_.time_limit_s, 120.0) : options_.time_limit_s;
    Value spec = Value::object(
        {{"device", options_.device}, {"repeats", options_.repeat}, {"limit_s", limit}, {"start_limit_s", 180}, {"cases", std::move(list)}});
    python::Call call;
    call.interpreter = options_.python;
    call.probe = group.probe;
    call.arguments = {to_json(spec)};
    call.environment = options_.environment;
    // Idle threads of other processes must not be outrun by ours that spin; a value that the user set stays.
    if (std::getenv("OMP_WAIT_POLICY") == nullptr) call.environment.emplace_back("OMP_WAIT_POLICY=PASSIVE");
    // The probe ends itself at an operator's limit (with the stacks of all its threads); this one is for a process that cannot.
    call.time_limit = milliseconds_of(200 + limit * 2 + 5 * static_cast<double>(cases.size()));
    if (options_.deadline)
      call.time_limit = std::clamp(std::chrono::duration_cast<milliseconds>(*options_.deadline - std::chrono::steady_clock::now()), milliseconds(1),
                                   call.time_limit);
    return call;
  }

  [[nodiscard]] static Value device_of(const Value& hello) {
    Value out = Value::object();
    const bool gpu = hello["name"].is_text();
    out.set("name", gpu ? hello["name"] : Value("CPU"));
    out.set("target", gpu ? hello["target"] : Value(fmt::format("{} threads", hello["threads"].as_int())));
    for (const char* key : {"api", "torch", "python", "hip", "cuda", "devices", "threads", "backend"})
      if (const Value* value = hello.find(key); value != nullptr && !value->is_null()) out.set(key, *value);
    return out;
  }

  [[nodiscard]] std::unexpected<Error> not_started(const ChildResult& child) const {
    const std::string said = last_line(child.err);
    if (child.start_errno != 0)
      return fail(fmt::format("is {}", child.describe()), options_.python, "--python names the interpreter that has PyTorch");
    if (contains(child.err, "No module named 'torch'"))
      return fail("has no PyTorch", options_.python, "--python names the interpreter of the environment in which torch is installed");
    return fail(fmt::format("PyTorch did not start ({}){}{}", child.describe(), said.empty() ? "" : ": ", said), options_.python,
                "firstfault libs and firstfault explain on what it printed say why");
  }

  [[nodiscard]] static TorchCase culprit_of(const TorchRecords& records, const std::vector<TorchCase>& left) {
    if (records.unfinished)
      for (const auto& one : left)
        if (one.name == records.unfinished->name && one.dtype == records.unfinished->dtype && one.route == records.unfinished->route) return one;
    return left.front();
  }

  [[nodiscard]] OperatorResult lost(const TorchCase& one, OperatorStatus status, std::string detail) const {
    OperatorResult out;
    out.dtype = short_dtype(one.dtype);
    out.name = one.name + "." + out.dtype + (one.route.empty() ? "" : "@" + one.route);
    out.family = one.family;
    out.layer = "torch";
    out.status = status;
    out.detail = std::move(detail);
    return out;
  }

  [[nodiscard]] OperatorResult verdict(const TorchCase& one, const TorchRecords& records, const ChildResult& child, const std::string& log) const {
    const bool limit = contains(child.err, "Timeout (") || child.timed_out || child.abandoned;
    std::string detail;
    if (!records.unfinished)
      detail = "between two operators: ";
    else if (!records.unfinished_variant.empty() && records.unfinished_variant != "base")
      detail = fmt::format("({} inputs) ", records.unfinished_variant);
    if (limit)
      detail += fmt::format("did not end within {:.0f} s{}", options_.time_limit_s, child.abandoned ? ", and its process cannot be killed" : "");
    else if (!records.dead.empty())
      detail += records.dead;
    else
      detail += fmt::format("{}{}{}", child.describe(), telling_line(child.err).empty() ? "" : ": ", telling_line(child.err));
    auto out = lost(one, limit ? OperatorStatus::hang : OperatorStatus::crash, detail);
    if (!options_.evidence.empty()) keep(out.name, child, log);
    return out;
  }

  /// stderr and the kernel's new lines, in files that `firstfault explain` reads.
  void keep(const std::string& name, const ChildResult& child, const std::string& log) const {
    std::error_code error;
    std::filesystem::create_directories(options_.evidence, error);
    const std::filesystem::path base = std::filesystem::path(options_.evidence) / name;
    (void)write_file(base.string() + ".stderr.txt", child.err + "\n" + child.describe() + "\n");
    const std::string said = news(log, kernel_log());
    if (!trim(said).empty()) (void)write_file(base.string() + ".dmesg.txt", said);
  }

  const TorchOptions& options_;
  const std::function<void(std::string_view)>& progress_;
};

bool wanted(const std::vector<std::string>& list, std::string_view name) { return list.empty() || std::ranges::find(list, name) != list.end(); }

}  // namespace

Result<std::vector<TorchOperator>> torch_catalogue(const std::string& python) {
  python::Call call;
  call.interpreter = python;
  call.probe = "ops_list.py";
  auto answer = python::run(call);
  if (!answer) return std::unexpected(answer.error());
  if (!answer->child.ok())
    return fail(
        fmt::format("could not be run: {}{}{}", answer->child.describe(), answer->child.err.empty() ? "" : ": ", last_line(answer->child.err)),
        python, "--python names the interpreter that has PyTorch");
  std::vector<TorchOperator> out;
  for (const auto& record : answer->records) {
    TorchOperator one{std::string(record["name"].as_text()), std::string(record["family"].as_text()), std::string(record["probe"].as_text()), {}};
    for (const auto& item : record["covers"].items()) one.covers.emplace_back(item.as_text());
    out.push_back(std::move(one));
  }
  return out;
}

Result<OperatorRun> run_torch(const TorchOptions& options, const std::function<void(std::string_view)>& progress) {
  auto asked = options.catalogue.empty() ? torch_catalogue(options.python) : Result<std::vector<TorchOperator>>(options.catalogue);
  if (!asked) return std::unexpected(asked.error());
  const auto& catalogue = *asked;
  const std::vector<std::string> dtypes = options.dtypes.empty() ? std::vector<std::string>{"float32", "float16", "bfloat16"} : options.dtypes;
  std::vector<Group> groups;
  for (const auto family : torch_families()) {
    if (!wanted(options.families, family)) continue;
    Group group{std::string(family), "", {}};
    for (const auto& one : catalogue) {
      if (one.family != family) continue;
      group.probe = one.probe;
      if (!options.cases.empty()) {
        for (const auto& chosen : options.cases)
          if (chosen.name == one.name) group.cases.push_back({one.name, one.family, chosen.dtype, chosen.route});
        continue;
      }
      if (!options.names.empty() && std::ranges::none_of(options.names, [&](const std::string& name) { return one.name.starts_with(name); }))
        continue;
      for (const auto& dtype : dtypes) group.cases.push_back({one.name, one.family, dtype});
    }
    if (group.cases.empty()) continue;
    // Chosen cases share a start of PyTorch with others of their probe.
    if (!options.cases.empty() && !groups.empty() && groups.back().probe == group.probe)
      groups.back().cases.insert(groups.back().cases.end(), group.cases.begin(), group.cases.end());
    else
      groups.push_back(std::move(group));
  }
  if (groups.empty()) return usage_error("no operator has such a name", join(options.names, ", "), "firstfault ops run --torch --all lists them");
  OperatorRun out;
  out.layer = "torch";
  out.repeat = options.repeat;
  Runner runner(options, progress);
  for (const auto& group : groups) {
    if (asked_to_end() != 0) break;
    if (auto done = runner.run(group, out); !done) return std::unexpected(done.error());
  }
  if (const int signal = asked_to_end(); signal != 0) out.interrupted = signal_name(signal);
  return out;
}

}  // namespace ff::compute
