// Which devices a program gets to see, and under which number.
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "device/judge.h"
#include "device/rung.h"
#include "device/stack.h"
#include "knowledge/knowledge.h"

namespace ff::device {
namespace {

/// Set by a batch system or an orchestrator: hiding devices is then its purpose.
bool assigned_by_scheduler(const Machine& m) {
  static constexpr std::array<std::string_view, 5> signs{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "KUBERNETES_SERVICE_HOST"};
  for (const auto name : signs)
    if (variable(m, name) != nullptr) return true;
  return false;
}

constexpr std::size_t mapped = 2;  // devices named in a summary; "measured" has all

std::string assignments(const Selection& s) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < s.names.size(); ++i) out.push_back(fmt::format("{}={}", s.names[i], **s.variables[i]));
  return enumerate(out);
}

bool is_variable_name(std::string_view s) {
  if (s.empty()) return false;
  for (const char c : s)
    if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_') return false;
  return true;
}

}  // namespace

CheckResult visible_devices(const CheckContext& context) {
  const auto& m = context.machine;
  const auto s = select_devices(m);
  if (s.names.empty() && !environment_known(m)) return not_captured("environment variables");
  if (s.all.empty()) return CheckResult::skip("no GPU with a compute node is known, so the numbers in the variables cannot be followed");

  Findings findings;
  Value order = Value::list();
  for (const auto* gpu : s.visible) order.push(address_of(*gpu));
  findings.set("hip_order", std::move(order));
  findings.set("gpus", s.all.size());
  std::vector<Evidence> because;
  for (std::size_t i = 0; i < s.names.size(); ++i) {
    findings.set(s.names[i], **s.variables[i]);
    because.push_back(evidence(*s.variables[i]));
  }
  const auto problems = enumerate(s.problems);

  const auto* hip = variable(m, "HIP_VISIBLE_DEVICES");
  const auto* cuda = variable(m, "CUDA_VISIBLE_DEVICES");
  if (s.visible.empty()) {
    findings.fail("runtime.visible-devices",
                  fmt::format("{} {} every GPU: {}", assignments(s), s.names.size() == 1 ? "hides" : "together hide", problems), because,
                  {fmt::format("unset {}", join(s.names, " "))});
    return findings.result("", "");
  }
  if (!s.problems.empty())
    findings.warn("runtime.visible-devices",
                  fmt::format("{}; what follows in the list is ignored, {} of {} GPUs stay visible", problems, s.visible.size(), s.all.size()),
                  because);
  if (hip != nullptr && cuda != nullptr && **hip != **cuda)
    findings.warn(
        "runtime.visible-devices",
        fmt::format("HIP_VISIBLE_DEVICES={} and CUDA_VISIBLE_DEVICES={} disagree: HIP takes the first, some frameworks the second", **hip, **cuda),
        {evidence(*hip), evidence(*cuda)});
  for (const auto* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
    if (const auto* value = variable(m, name); value != nullptr && (*value)->empty())
      findings.warn("runtime.visible-devices", fmt::format("{} is set to nothing: PyTorch reads that as \"no GPU\"", name), {evidence(*value)},
                    {fmt::format("unset {}", name)});
  if (const auto* ordinal = variable(m, "GPU_DEVICE_ORDINAL"); ordinal != nullptr && hip == nullptr && cuda == nullptr && s.all.size() > 1)
    findings.warn("runtime.visible-devices",
                  fmt::format("GPU_DEVICE_ORDINAL={} is set: some runtimes hide or renumber devices by it; use HIP_VISIBLE_DEVICES", **ordinal),
                  {evidence(*ordinal)});

  bool renumbered = false;
  for (std::size_t i = 0; i < s.visible.size(); ++i) renumbered = renumbered || s.visible[i] != s.all[i];
  std::size_t hidden_discrete = 0;
  for (const auto* gpu : s.all) {
    bool seen = is_integrated(*gpu);
    for (const auto* v : s.visible) seen = seen || v == gpu;
    if (!seen) ++hidden_discrete;
  }
  if (s.names.empty()) {
    if (findings.clean()) findings.good();
    return findings.result(fmt::format("No variable hides or renumbers devices: HIP sees {} in the driver's order", count_of(s.all.size(), "GPU")),
                           "");
  }
  std::vector<std::string> mapping;
  for (std::size_t i = 0; i < s.visible.size() && i < mapped; ++i) mapping.push_back(fmt::format("HIP device {} is {}", i, name_of(*s.visible[i])));
  if (s.visible.size() > mapped) mapping.push_back(fmt::format("{} more in this order (--json lists them)", s.visible.size() - mapped));
  const auto text = fmt::format("{}: {} of {} visible, {}: {}", assignments(s), s.visible.size(), count_of(s.all.size(), "GPU"),
                                renumbered ? "renumbered" : "numbered as the driver does", enumerate(mapping));
  if (findings.clean() && (hidden_discrete > 0 || renumbered) && !assigned_by_scheduler(m) &&
      (hidden_discrete > 0 || s.visible.size() == s.all.size()))
    findings.warn("runtime.visible-devices", text, because);
  if (findings.clean()) findings.good();
  return findings.result(text, "");
}

CheckResult integrated_beside_discrete(const CheckContext& context) {
  const auto& m = context.machine;
  const auto s = select_devices(m);
  const auto gpus = s.all.empty() ? usable_gpus(m) : s.visible;
  const Gpu* integrated = nullptr;
  const Gpu* discrete = nullptr;
  bool unknown = false;
  for (const auto* gpu : gpus) {
    if (!gpu->integrated) unknown = true;
    if (is_integrated(*gpu)) integrated = integrated == nullptr ? gpu : integrated;
    if (gpu->integrated && !*gpu->integrated) discrete = discrete == nullptr ? gpu : discrete;
  }
  if (gpus.empty()) return CheckResult::skip("no GPU is visible to compare");
  if (integrated == nullptr || discrete == nullptr) {
    if (unknown && gpus.size() > 1) return CheckResult::skip("the evidence does not say which GPU is integrated");
    if (gpus.size() < 2) return not_applicable("a program sees one GPU");
    return CheckResult::pass(fmt::format("The {} a program sees are of one kind", count_of(gpus.size(), "GPU")));
  }
  std::size_t number = 0;
  std::string discrete_numbers;
  for (std::size_t i = 0; i < s.all.size(); ++i)
    if (!is_integrated(*s.all[i])) discrete_numbers += (discrete_numbers.empty() ? "" : ",") + std::to_string(i);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i] == integrated) number = i;
  const auto measured =
      Value::object({{"integrated", address_of(*integrated)}, {"discrete", address_of(*discrete)}, {"integrated_hip_index", number}});
  if (s.all.empty()) return CheckResult::skip("the compute driver's order is not known, so it is not known which GPU is first");
  // HIP's numbers count within what the other variables leave: with none of them set, they are the driver's order.
  const auto others = s.names.empty() ? std::string() : fmt::format("unset {}; ", join(s.names, " "));
  const auto fix =
      fmt::format("{}export HIP_VISIBLE_DEVICES={}   (or switch the integrated GPU off in the firmware setup)", others, discrete_numbers);
  auto result = number == 0 ? CheckResult::fail("runtime.integrated-gpu-selected",
                                                fmt::format("HIP device 0, the one programs take, is the integrated {} and not {}",
                                                            name_of(*integrated), name_of(*discrete)),
                                                measured)
                            : CheckResult::warn("runtime.integrated-gpu-selected",
                                                fmt::format("The integrated {} is visible beside {} (as HIP device {}): programs that use all "
                                                            "devices, or libraries without kernels for it, stumble over it",
                                                            name_of(*integrated), name_of(*discrete), number),
                                                measured);
  result.fix.push_back(fix);
  result.verify.push_back(fmt::format(
      "{}HIP_VISIBLE_DEVICES={} python -c \"import torch; print([torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())])\"", others,
      discrete_numbers));
  return result.because(evidence(integrated->integrated)).because(evidence(integrated->kfd_node)).because(evidence(discrete->kfd_node));
}

CheckResult environment(const CheckContext& context) {
  const auto& m = context.machine;
  if (!environment_known(m) && m.env.empty()) return not_captured("environment variables");
  Findings findings;
  std::size_t compared = 0;

  // Names that circulate and that nothing reads; written "NAME", "NAME=VALUE", several with ", " or " / " between them.
  for (const auto& row : context.knowledge.table("env")["false_or_misused"].items()) {
    for (const auto piece_comma : split(row["name"].as_text(), ','))
      for (auto piece : split(piece_comma, '/')) {
        piece = trim(piece);
        if (piece.ends_with(" at run time")) piece = trim(piece.substr(0, piece.find(' ')));
        if (piece.ends_with(" etc.")) piece = trim(piece.substr(0, piece.find(' ')));
        const auto equals = piece.find('=');
        const auto name = piece.substr(0, equals);
        if (!is_variable_name(name)) continue;
        ++compared;
        const auto* set = variable(m, name);
        if (set == nullptr) continue;
        if (equals != std::string_view::npos && **set != piece.substr(equals + 1)) continue;
        // The container toolkit reads this one, and sets it.
        if (name == "AMD_VISIBLE_DEVICES" && !m.container.kind.value_or("").empty()) continue;
        const auto use = row["use_instead"].as_text();
        findings.warn(contains(name, "VISIBLE_DEVICES") ? "runtime.visible-devices" : "",
                      fmt::format("{}={} does not do what its name says: {}", name, **set, row["why"].as_text()), {evidence(*set)},
                      use.empty() || use == "-" ? std::vector<std::string>{} : std::vector<std::string>{fmt::format("Instead of {}: {}", name, use)});
        findings.measured("without_effect", Value(std::string(name)));
      }
  }

  struct Slow {
    std::string_view name;
    int from;  ///< slow from this value on
    std::string_view what;
  };
  static constexpr std::array<Slow, 10> slow{{
      {"AMD_SERIALIZE_KERNEL", 1, "waits around every kernel"},
      {"AMD_SERIALIZE_COPY", 1, "waits around every copy"},
      {"HIP_LAUNCH_BLOCKING", 1, "waits after every kernel launch"},
      {"AMD_LOG_LEVEL", 2, "makes the runtime log its calls"},
      {"MIOPEN_ENABLE_LOGGING", 1, "makes MIOpen log its calls"},
      {"MIOPEN_FIND_ENFORCE", 2, "tunes convolutions again in every run"},
      {"PYTORCH_NO_CUDA_MEMORY_CACHING", 1, "allocates and frees device memory for every tensor"},
      {"PYTORCH_NO_HIP_MEMORY_CACHING", 1, "allocates and frees device memory for every tensor"},
      {"HSA_DISABLE_FRAGMENT_ALLOCATOR", 1, "gives every allocation its own pages"},
      {"HSA_DISABLE_CACHE", 1, "switches the GPU's L2 cache off for host memory"},
  }};
  for (const auto& row : slow) {
    ++compared;
    const auto* set = variable(m, row.name);
    if (set == nullptr || to_integer<int>(**set).value_or(0) < row.from) continue;
    findings.warn("performance.host-bound", fmt::format("{}={} is left on from debugging: it {}", row.name, **set, row.what), {evidence(*set)},
                  {fmt::format("unset {}", row.name)});
    findings.measured("slow", Value(std::string(row.name)));
  }
  if (const auto* sdma = variable(m, "HSA_ENABLE_SDMA"); sdma != nullptr && **sdma == "0")
    findings.warn("performance.slow-transfer", "HSA_ENABLE_SDMA=0 is left on: copies run on the compute units instead of the copy engines",
                  {evidence(*sdma)}, {"unset HSA_ENABLE_SDMA"});
  if (findings.clean()) findings.good();
  findings.set("names_compared", compared);
  return findings.result("No variable is set that nothing reads or that slows every run", "");
}

}  // namespace ff::device
