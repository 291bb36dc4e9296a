// The GPU's gfx target: known, supported, overridden, covered by PyTorch's kernels.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "device/judge.h"
#include "device/rung.h"
#include "device/stack.h"
#include "elf/coverage.h"
#include "facts/components.h"
#include "knowledge/knowledge.h"

namespace ff::device {
namespace {

constexpr int max_major = 63;  // libhsakmt topology.c: larger numbers are refused
constexpr int max_part = 255;

const Value& target_row(const CheckContext& context, std::string_view gfx) {
  static const Value none;
  for (const auto& row : context.knowledge.table("targets")["targets"].items())
    if (row["name"].as_text() == gfx) return row;
  return none;
}

struct Version {
  int major = 0, minor = 0, step = 0;
  [[nodiscard]] std::string gfx() const { return fmt::format("gfx{}{:x}{:x}", major, minor, step); }
};

/// The override's text as libhsakmt reads it: three decimal numbers.
std::optional<Version> parse_version(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 3) return std::nullopt;
  const auto a = to_integer<int>(parts[0]), b = to_integer<int>(parts[1]), c = to_integer<int>(parts[2]);
  if (!a || !b || !c || *a < 0 || *b < 0 || *c < 0 || *a > max_major || *b > max_part || *c > max_part) return std::nullopt;
  return Version{*a, *b, *c};
}

/// The override that holds for a GPU: the one for its node, else the one for all.
const Known<std::string>* override_for(const Machine& m, const Gpu& gpu) {
  if (gpu.kfd_node)
    if (const auto* own = variable(m, fmt::format("HSA_OVERRIDE_GFX_VERSION_{}", *gpu.kfd_node))) return own;
  return variable(m, "HSA_OVERRIDE_GFX_VERSION");
}

enum class Safety { safe, doubtful, unsafe };

struct Advice {
  Safety safety = Safety::unsafe;
  std::string why;
};

/// May code for `to` run on `real`? From the targets' override rows, else from LLVM's generic families.
Advice judge_override(const CheckContext& context, std::string_view real, const Version& to) {
  const auto& row = target_row(context, real);
  const auto to_gfx = to.gfx();
  const auto dotted = fmt::format("{}.{}.{}", to.major, to.minor, to.step);
  const auto& known = row["override"];
  if (known["to"].as_text() == dotted) {
    const auto safety = known["safety"].as_text();
    const auto text = lower(safety);
    if (safety.starts_with("UNSAFE")) return {Safety::unsafe, std::string(safety)};
    for (const auto* word : {"unsafe", "not recommended", "not tested", "hang", "may fail", "partly"})
      if (contains(text, word)) return {Safety::doubtful, std::string(safety)};
    return {Safety::safe, std::string(safety)};
  }
  const auto family = row["generic_target"].as_text();
  const auto to_family = target_row(context, to_gfx)["generic_target"].as_text();
  // gfx9-generic holds parts with different instructions, gfx11-generic both gfx110x and gfx115x: these are not one family here.
  const bool same_step = real.size() == to_gfx.size() && real.substr(0, real.size() - 1) == std::string_view(to_gfx).substr(0, to_gfx.size() - 1);
  if (!family.empty() && family == to_family && same_step && real.starts_with("gfx1"))
    return {Safety::doubtful, fmt::format("both belong to {}", family)};
  return {Safety::unsafe, family.empty() || to_family.empty() ? std::string("the two have no common family")
                                                              : fmt::format("{} belongs to {}, {} to {}", real, family, to_gfx, to_family)};
}

/// The entry of the arch list that serves the target: itself, the generic target of its family, or SPIR-V.
std::optional<std::string> covered_by(std::string_view gfx, const std::vector<std::string>& arch_list) {
  const auto coverage = elf::covers(gfx, arch_list);
  return coverage && coverage->works() ? std::optional(coverage->by) : std::nullopt;
}

/// What an override could do where code is missing; empty when none helps.
std::string override_advice(const elf::Coverage& coverage) {
  if (coverage.cover == elf::Cover::override_ok)
    return fmt::format("; HSA_OVERRIDE_GFX_VERSION={} runs its {} code and is safe ({})", coverage.override_version, coverage.by, coverage.why);
  if (coverage.cover == elf::Cover::override_unsafe)
    return fmt::format("; HSA_OVERRIDE_GFX_VERSION={} would run its {} code and is not safe ({})", coverage.override_version, coverage.by,
                       coverage.why);
  if (coverage.cover == elf::Cover::setting) return "; " + coverage.why;
  return {};
}

/// The gfx target that the runtime loads code for: the GPU's own, or the one that an override names.
std::string effective_target(const Machine& m, const Gpu& gpu) {
  if (const auto* set = override_for(m, gpu))
    if (const auto version = parse_version(**set)) return version->gfx();
  return *gpu.gfx;
}

/// GPUs that a program is meant to compute on: the visible ones, without an integrated one beside a discrete one.
std::vector<const Gpu*> working_gpus(const Machine& m) {
  const auto s = select_devices(m);
  const auto gpus = s.all.empty() ? usable_gpus(m) : s.visible;
  std::vector<const Gpu*> discrete;
  for (const auto* gpu : gpus)
    if (!is_integrated(*gpu)) discrete.push_back(gpu);
  return discrete.empty() ? gpus : discrete;
}

/// Some rows of the releases describe their list in words ("as 7.2 plus …"), some have none: no list to compare with.
bool is_plain(const Value& row) {
  bool plain = !row["gpu"].items().empty();
  for (const auto& name : row["gpu"].items()) plain = plain && name.as_text().starts_with("gfx") && !contains(name.as_text(), " ");
  return plain;
}

/// The text of a skip where no GPU that a program sees has a known target.
std::string without_target(const CheckContext& context, const std::vector<const Gpu*>& gpus) {
  if (gpus.empty() && !usable_gpus(context.machine).empty()) return "no GPU is visible to a program, so none can be judged";
  return why_nothing(context, "the evidence names no gfx target");
}

/// Which cause a component's missing code is; the component that PyTorch itself is has a check of its own.
std::string_view cause_of(const facts::Component& part, elf::Cover cover) {
  if (cover == elf::Cover::setting) return "library-coverage.feature-mismatch";
  if (part.id == "rocblas" || part.id == "librocblas") return "library-coverage.rocblas-lacks-target";
  return "library-coverage.extension-lacks-target";
}

}  // namespace

CheckResult gfx_known(const CheckContext& context) {
  if (context.knowledge.table("targets")["targets"].items().empty()) return CheckResult::skip("the knowledge base holds no table of gfx targets");
  Findings findings;
  std::vector<std::string> names;
  for (const auto* gpu : usable_gpus(context.machine)) {
    if (!gpu->gfx) {
      if (gpu->device_id && gpu->pci && complete(context))
        findings.warn("device.device-id-unknown",
                      fmt::format("{} (device id {:04x}) has no known gfx target: neither the driver nor the knowledge base of {} names one",
                                  name_of(*gpu), *gpu->device_id, context.knowledge.date()),
                      {evidence(gpu->device_id)});
      else
        findings.unknown();
      continue;
    }
    findings.measured("gpus", Value::object({{"gpu", address_of(*gpu)}, {"gfx", *gpu->gfx}}));
    if (target_row(context, *gpu->gfx).is_null())
      findings.warn(
          "device.device-id-unknown",
          fmt::format("{} is {}, which the knowledge base of {} does not know: it may be newer", name_of(*gpu), *gpu->gfx, context.knowledge.date()),
          {evidence(gpu->gfx)});
    else
      findings.good();
    if (std::find(names.begin(), names.end(), *gpu->gfx) == names.end()) names.push_back(*gpu->gfx);
  }
  return findings.result(fmt::format("The GPU's target is known: {}", enumerate(names)), why_nothing(context, "the evidence names no gfx target"));
}

CheckResult rocm_supports_gfx(const CheckContext& context) {
  const auto& m = context.machine;
  const auto* rocm = system_rocm(m);
  if (rocm == nullptr)
    return complete(context) ? not_applicable("no system-wide ROCm is installed; PyTorch wheels bring their own")
                             : CheckResult::skip("the evidence names no installed ROCm");
  const auto& releases = context.knowledge.table("releases")["releases"].items();
  if (releases.empty()) return CheckResult::skip("the knowledge base holds no table of ROCm releases");
  // The exact release, else the newest of the same minor release that says what it supports.
  const Value* exact = nullptr;
  const Value* near = nullptr;
  for (const auto& row : releases) {
    if (!is_plain(row)) continue;
    const auto version = row["version"].as_text();
    if (compare_versions(version, *rocm->version) == 0) exact = &row;
    if (major_minor(version) == major_minor(*rocm->version)) near = &row;
  }
  const auto* release = exact != nullptr ? exact : near;
  // A minor release without a list of its own: what the lists before and after it agree on holds for it.
  const Value* before = nullptr;
  const Value* after = nullptr;
  if (release == nullptr)
    for (const auto& row : releases) {
      if (!is_plain(row)) continue;
      const auto version = row["version"].as_text();
      if (compare_versions(version, *rocm->version) < 0) {
        if (before == nullptr || compare_versions((*before)["version"].as_text(), version) < 0) before = &row;
      } else if (after == nullptr || compare_versions(version, (*after)["version"].as_text()) < 0) {
        after = &row;
      }
    }
  if (release == nullptr && (before == nullptr || after == nullptr))
    return CheckResult::skip(fmt::format("the knowledge base holds no support list for ROCm {}", *rocm->version));
  const std::string older(before != nullptr ? (*before)["version"].as_text() : ""), newer(after != nullptr ? (*after)["version"].as_text() : "");
  const auto gpus = working_gpus(m);
  std::string disagree;
  Findings findings;
  findings.set("rocm", *rocm->version);
  findings.set("list_of", release != nullptr ? std::string((*release)["version"].as_text()) : older + " and " + newer);
  for (const auto* gpu : gpus) {
    if (!gpu->gfx) {
      findings.unknown();
      continue;
    }
    const auto names_it = [&](const Value& row) {
      bool found = false;
      for (const auto& name : row["gpu"].items()) found = found || name.as_text() == *gpu->gfx;
      return found;
    };
    const bool listed = release != nullptr ? names_it(*release) : names_it(*before) && names_it(*after);
    if (release == nullptr && !listed && names_it(*before) != names_it(*after)) {
      findings.unknown();
      disagree = fmt::format("the knowledge base holds no support list for ROCm {}; of its neighbours only {} names {}", *rocm->version,
                             names_it(*after) ? newer : older, *gpu->gfx);
      continue;
    }
    findings.measured("gpus", Value::object({{"gpu", address_of(*gpu)}, {"gfx", *gpu->gfx}, {"listed", listed}}));
    if (listed) {
      findings.good();
      continue;
    }
    std::string first_later;
    for (const auto& row : releases)
      for (const auto& name : row["gpu"].items())
        if (name.as_text() == *gpu->gfx && compare_versions(row["version"].as_text(), *rocm->version) > 0 &&
            (first_later.empty() || compare_versions(row["version"].as_text(), first_later) < 0))
          first_later = std::string(row["version"].as_text());
    findings.warn("version.gpu-dropped",
                  first_later.empty()
                      ? fmt::format("ROCm {} does not list {} ({}) as supported; it may work, its libraries may lack kernels for it", *rocm->version,
                                    *gpu->gfx, name_of(*gpu))
                      : fmt::format("ROCm {} does not list {} ({}) yet; ROCm {} does", *rocm->version, *gpu->gfx, name_of(*gpu), first_later),
                  {evidence(gpu->gfx), evidence(rocm->version)});
  }
  return findings.result(
      fmt::format("ROCm {} supports this GPU{}", *rocm->version,
                  exact == nullptr && near == nullptr ? fmt::format(" (the lists of {} and {} both name it)", older, newer) : std::string()),
      disagree.empty() ? without_target(context, gpus) : disagree);
}

CheckResult gfx_override(const CheckContext& context) {
  const auto& m = context.machine;
  const auto gpus = working_gpus(m);
  const auto* env = judged_python(context);
  const bool list_known = env != nullptr && !env->torch_arch_list.empty();
  Findings findings;
  bool any_set = false;
  std::vector<std::string> different;
  for (const auto* gpu : gpus) {
    const auto* set = override_for(m, *gpu);
    if (gpu->gfx && std::find(different.begin(), different.end(), *gpu->gfx) == different.end()) different.push_back(*gpu->gfx);
    if (set == nullptr) {
      if (!environment_known(m)) {
        findings.unknown();
        continue;
      }
      if (!gpu->gfx || !list_known || covered_by(*gpu->gfx, env->torch_arch_list)) {
        findings.good();
        continue;
      }
      const auto& known = target_row(context, *gpu->gfx)["override"];
      const auto to = parse_version(known["to"].as_text());
      if (to && judge_override(context, *gpu->gfx, *to).safety == Safety::safe && covered_by(to->gfx(), env->torch_arch_list)) {
        findings.fail(
            "runtime.override-missing",
            fmt::format("PyTorch {} has no kernels for {} ({}); it runs with those for {} when HSA_OVERRIDE_GFX_VERSION={} is set, and it is not set",
                        torch_version(*env).value_or(""), *gpu->gfx, name_of(*gpu), to->gfx(), known["to"].as_text()),
            {evidence(gpu->gfx), evidence(env->torch_arch_origin)},
            {fmt::format("export HSA_OVERRIDE_GFX_VERSION={}   (before Python starts)", known["to"].as_text())});
        findings.measured("gpus", Value::object({{"gpu", address_of(*gpu)}, {"gfx", *gpu->gfx}, {"needed", known["to"]}}));
      } else {
        findings.good();
      }
      continue;
    }
    any_set = true;
    const auto& value = **set;
    const auto version = parse_version(value);
    auto entry = Value::object({{"gpu", address_of(*gpu)}, {"override", value}});
    if (gpu->gfx) entry.set("gfx", *gpu->gfx);
    findings.measured("gpus", std::move(entry));
    if (!version) {
      findings.fail(
          "runtime.override-harmful",
          fmt::format("HSA_OVERRIDE_GFX_VERSION={} is no version (three numbers, as 10.3.0): the runtime refuses it and finds no GPU", value),
          {evidence(*set)}, {"unset HSA_OVERRIDE_GFX_VERSION"});
      continue;
    }
    if (!gpu->gfx) {
      findings.unknown();
      continue;
    }
    const std::vector<Evidence> because{evidence(*set), evidence(gpu->gfx)};
    if (version->gfx() == *gpu->gfx) {
      findings.warn(
          "runtime.override-harmful",
          fmt::format("HSA_OVERRIDE_GFX_VERSION={} names what {} is anyway: it changes nothing here, and harms any other GPU", value, name_of(*gpu)),
          because, {"unset HSA_OVERRIDE_GFX_VERSION"});
      continue;
    }
    const auto advice = judge_override(context, *gpu->gfx, *version);
    const bool native = list_known && covered_by(*gpu->gfx, env->torch_arch_list);
    if (advice.safety == Safety::unsafe)
      findings.fail(
          "runtime.override-harmful",
          fmt::format(
              "HSA_OVERRIDE_GFX_VERSION={} makes the runtime load code for {} on {}, which is {}: wrong results, illegal instructions or hangs ({})",
              value, version->gfx(), name_of(*gpu), *gpu->gfx, advice.why),
          because, {"unset HSA_OVERRIDE_GFX_VERSION"});
    else if (native)
      findings.warn("runtime.override-harmful",
                    fmt::format("HSA_OVERRIDE_GFX_VERSION={} is not needed: PyTorch {} has kernels for {} itself", value,
                                torch_version(*env).value_or(""), *gpu->gfx),
                    because, {"unset HSA_OVERRIDE_GFX_VERSION"});
    else if (advice.safety == Safety::doubtful)
      findings.warn("runtime.override-harmful",
                    fmt::format("HSA_OVERRIDE_GFX_VERSION={} runs code for {} on {}: {}", value, version->gfx(), *gpu->gfx, advice.why), because);
    else
      findings.good();
  }
  if (any_set && different.size() > 1 && variable(m, "HSA_OVERRIDE_GFX_VERSION") != nullptr)
    findings.warn(
        "runtime.override-harmful",
        fmt::format("HSA_OVERRIDE_GFX_VERSION holds for all GPUs, and they differ ({}): use HSA_OVERRIDE_GFX_VERSION_<node>", enumerate(different)),
        {evidence(*variable(m, "HSA_OVERRIDE_GFX_VERSION"))});
  return findings.result(any_set ? "HSA_OVERRIDE_GFX_VERSION is set to a target whose code this GPU runs"
                                 : "HSA_OVERRIDE_GFX_VERSION is not set, and nothing shows that it is needed",
                         gpus.empty() || environment_known(m) ? without_target(context, gpus) : "the capture holds no environment variables");
}

CheckResult torch_covers_gpu(const CheckContext& context) {
  const auto& m = context.machine;
  const auto* env = judged_python(context);
  if (env == nullptr) return not_captured("Python environment");
  const auto version = torch_version(*env);
  if (!version) return CheckResult::skip(fmt::format("{} has no PyTorch", env->prefix.empty() ? "the Python environment" : env->prefix));
  if (env->torch_arch_list.empty())
    return CheckResult::skip(fmt::format("the capture does not say which targets PyTorch {} was built for", *version));
  Findings findings;
  findings.set("torch", *version);
  findings.set("arch_list", Value::list_of(env->torch_arch_list));
  std::vector<std::string> served;
  for (const auto* gpu : working_gpus(m)) {
    if (!gpu->gfx) {
      findings.unknown();
      continue;
    }
    const auto effective = effective_target(m, *gpu);
    const auto by = covered_by(effective, env->torch_arch_list);
    findings.measured(
        "gpus", Value::object({{"gpu", address_of(*gpu)}, {"gfx", *gpu->gfx}, {"runs_as", effective}, {"served_by", by ? Value(*by) : Value()}}));
    if (by) {
      findings.good();
      served.push_back(*by);
      continue;
    }
    findings.fail(
        "library-coverage.torch-lacks-target",
        fmt::format("PyTorch {} has no kernels for {} ({}): it was built for {}{}", *version, effective, name_of(*gpu),
                    join(env->torch_arch_list, ", "), override_advice(elf::covers(effective, env->torch_arch_list).value_or(elf::Coverage{}))),
        {evidence(gpu->gfx), evidence(env->torch_arch_origin)});
  }
  auto result =
      findings.result(fmt::format("PyTorch {} has kernels for this GPU ({})", *version, enumerate(served)), without_target(context, working_gpus(m)));
  // One GPU that it serves is enough to work with.
  if (result.status == Status::fail && !served.empty()) result.status = Status::warn;
  return result;
}

CheckResult libraries_cover_gpu(const CheckContext& context) {
  const auto& m = context.machine;
  const auto* env = judged_python(context);
  if (env == nullptr) return not_captured("Python environment");
  // The wheel's own libraries; those of the system when the wheel brings none.
  auto libraries = env->kernel_targets;
  if (const auto* rocm = system_rocm(m); rocm != nullptr && !brings_rocm(*env))
    for (const auto& [library, targets] : rocm->kernel_targets) libraries[rocm->root + "/lib/" + library + "/library"] = targets;
  if (libraries.empty()) return CheckResult::skip("the capture names no GPU library with device code");
  const auto gpus = working_gpus(m);
  Findings findings;
  std::vector<std::string> slower;
  for (const auto* gpu : gpus) {
    if (!gpu->gfx) {
      findings.unknown();
      continue;
    }
    const auto effective = effective_target(m, *gpu);
    for (const auto& [library, targets] : libraries) {
      const auto part = facts::component_of(library + (library.ends_with("/library") || library.ends_with(".images") ? "/x" : ""));
      if (part.id == "torch") continue;
      const auto coverage = elf::covers(effective, targets);
      if (!coverage) continue;
      findings.measured(
          "libraries",
          Value::object(
              {{"gpu", address_of(*gpu)}, {"library", library}, {"answer", std::string(elf::cover_id(coverage->cover))}, {"by", coverage->by}}));
      if (coverage->works()) {
        findings.good();
        continue;
      }
      if (part.fallback) {
        if (std::find(slower.begin(), slower.end(), part.name) == slower.end()) slower.push_back(part.name);
        findings.good();
        continue;
      }
      // One GPU needs no RCCL; solvers of MIOpen hold code for some targets only and others take over.
      if (part.id == "libmiopen" || (part.id == "librccl" && gpus.size() == 1)) {
        findings.good();
        continue;
      }
      const std::string text = fmt::format("{} ({}) has no code for {} ({}), only for {}: {}{}", part.name, library, effective, name_of(*gpu),
                                           join(targets, ", "), part.without, override_advice(*coverage));
      const std::vector<Evidence> because{evidence(gpu->gfx), Evidence{"probe/pythons", 0, library + ": " + join(targets, " ")}};
      const std::string cause(cause_of(part, coverage->cover));
      if (cause == "library-coverage.rocblas-lacks-target")
        findings.fail(cause, text, because);
      else
        findings.warn(cause, text, because);
    }
  }
  const std::string pass = slower.empty()
                               ? std::string("The GPU libraries beside PyTorch hold code for this GPU")
                               : fmt::format("The GPU libraries that a program needs hold code for this GPU; {} {} none and another way is taken",
                                             enumerate(slower), slower.size() == 1 ? "has" : "have");
  std::string nothing = without_target(context, gpus);
  for (const auto* gpu : gpus)
    if (gpu->gfx) nothing = fmt::format("none of the captured libraries names targets that can be compared with {}", *gpu->gfx);
  return findings.result(pass, std::move(nothing));
}

}  // namespace ff::device
