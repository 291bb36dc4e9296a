#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/command.h"
#include "cli/given_path.h"
#include "cli/options.h"
#include "knowledge/knowledge.h"
#include "model/budget.h"
#include "report/style.h"

namespace ff::cli {
namespace {

struct BudgetOptions {
  model::BudgetRequest request;
  std::string task = "infer", precision, targets, render;
  bool json = false;
};

std::string size(double bytes) { return human_bytes(static_cast<std::uint64_t>(std::max(0.0, bytes))); }

void print(const model::BudgetRequest& q, const model::Budget& b, const model::GpuMemory& gpu, const model::BudgetAdvice& advice) {
  const auto style = report::Style::for_stdout();
  const auto width = report::terminal_width();
  const double total = static_cast<double>(gpu.bytes);
  std::cout << style.bold(report::printable(q.path)) << fmt::format("  {}, {} parameters\n", b.title, b.parameters);
  std::string what =
      fmt::format("{}, batch {}, {} tokens a sample, {}", model::task_name(q.task), q.batch, b.tokens, model::precision_name(q.precision));
  if (q.task != model::BudgetTask::infer) what += ", " + q.optimizer;
  if (q.task == model::BudgetTask::lora) what += fmt::format(", LoRA rank {}: {} trainable", q.lora_rank, b.trainable);
  if (q.checkpointing) what += ", activation checkpointing";
  std::cout << "  " << what << "\n\n";
  for (const auto& line : b.lines) {
    const bool infer = q.task == model::BudgetTask::infer;
    const std::string when = infer || (line.forward && line.backward && line.step) ? ""
                                                                                   : fmt::format(" [{}]", join(
                                                                                                              [&] {
                                                                                                                std::vector<std::string> out;
                                                                                                                if (line.forward)
                                                                                                                  out.emplace_back("forward");
                                                                                                                if (line.backward)
                                                                                                                  out.emplace_back("backward");
                                                                                                                if (line.step)
                                                                                                                  out.emplace_back("step");
                                                                                                                return out;
                                                                                                              }(),
                                                                                                              ", "));
    std::cout << fmt::format("  {:>10}  {}{}\n", size(line.bytes), line.what, style.dim(when));
    std::cout << style.dim(
                     fmt::format("              {}{}", report::wrapped(line.formula, 14, width), line.numbers.empty() ? "" : " = " + line.numbers))
              << "\n";
  }
  if (q.task != model::BudgetTask::infer)
    std::cout << fmt::format("\n  peaks: forward {}, backward {}, optimiser's step {}\n", size(b.forward), size(b.backward), size(b.step));
  std::cout << fmt::format("\n  {:>10}  allocated at the peak; \"{}\" decides\n", size(b.allocated), b.decides);
  if (b.rendering > 0)
    std::cout << fmt::format("  {:>10}  rendering: environments x (1 GiB + cameras x width x height x 4 bytes x 3 buffers)\n", size(b.rendering));
  std::cout << fmt::format("  {:>10}  on the device, typically ({} to {}): allocator x {} ({} to {}) and context {} ({} to {})\n", size(b.typical),
                           size(b.low), size(b.high), model::reserve_typical, model::reserve_low, model::reserve_high, size(model::context_typical),
                           size(model::context_low), size(model::context_high));
  std::cout << fmt::format("  {:>10}  {}{}\n", size(total), report::printable(gpu.name), gpu.shared ? ", shared with the host" : "");
  for (const auto& other : gpu.others) std::cout << style.dim(fmt::format("              also: {}", report::printable(other))) << "\n";
  if (b.typical <= total)
    std::cout << "\n  " << style.green("fits") << fmt::format(", {} are left; largest batch {}\n", size(total - b.typical), advice.largest_batch);
  else
    std::cout << "\n  " << style.red("does not fit")
              << fmt::format(", {} are missing; largest batch {}\n", size(b.typical - total),
                             advice.largest_batch == 0 ? "0 (not one sample)" : std::to_string(advice.largest_batch));
  if (!advice.options.empty()) std::cout << "\n  with\n";
  for (const auto& o : advice.options)
    std::cout << fmt::format("  {:>10}  {}  {}\n", size(o.typical), o.fits ? style.green("fits") : style.red("no  "), o.change);
}

int run_budget(BudgetOptions o, const std::string& gpu_text) {
  if (const auto given = given_path(o.request.path); !given) return report_error(given.error());
  auto& q = o.request;
  q.task = o.task == "train" ? model::BudgetTask::train : o.task == "lora" ? model::BudgetTask::lora : model::BudgetTask::infer;
  if (o.precision.empty()) o.precision = q.task == model::BudgetTask::train ? "fp32" : "bf16";
  q.precision = o.precision == "fp32"   ? model::BudgetPrecision::fp32
                : o.precision == "amp"  ? model::BudgetPrecision::amp
                : o.precision == "fp16" ? model::BudgetPrecision::fp16
                                        : model::BudgetPrecision::bf16;
  for (const auto target : split(o.targets, ','))
    if (!trim(target).empty()) q.lora_targets.emplace_back(trim(target));
  if (!o.render.empty()) {
    const auto parts = split(o.render, 'x');
    const auto number = [&](std::size_t i, std::uint64_t fallback) {
      return i < parts.size() ? to_integer<std::uint64_t>(parts[i]).value_or(0) : fallback;
    };
    q.render_width = number(0, 0);
    q.render_height = number(1, 0);
    q.render_cameras = number(2, 1);
    q.environments = std::max<std::uint64_t>(1, q.environments);
    if (parts.size() > 3 || q.render_width == 0 || q.render_height == 0 || q.render_cameras == 0 || q.render_width > 65536 ||
        q.render_height > 65536 || q.render_cameras > 1024)
      return report_error(Error{"\"" + o.render + "\" is no picture size", "--render", "WIDTHxHEIGHT or WIDTHxHEIGHTxCAMERAS", 2});
  }
  const auto& knowledge = knowledge::Knowledge::built_in();
  const auto gpu = model::gpu_memory(gpu_text, knowledge);
  if (!gpu) return report_error(gpu.error());
  const auto budget = model::budget_of(q, knowledge);
  if (!budget) return report_error(budget.error());
  const auto advice = model::advise(q, static_cast<double>(gpu->bytes), knowledge);
  if (!advice) return report_error(advice.error());
  if (o.json)
    print_document(model::to_document(q, *budget, *gpu, *advice));
  else
    print(q, *budget, *gpu, *advice);
  return budget->typical <= static_cast<double>(gpu->bytes) ? 0 : 1;
}

}  // namespace

void add_model_budget(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<BudgetOptions>();
  auto gpu = std::make_shared<std::string>();
  auto& q = o->request;
  app.add_option("path", q.path, "A model's directory, or its config.json alone")->required();
  app.add_option("--gpu", *gpu, "What it must fit on: 16GiB, 24GB, a gfx target (gfx1100) or a product (\"RX 7900 XTX\", MI300X)")->required();
  app.add_option("--task", o->task, "infer, train or lora")->check(CLI::IsMember({"infer", "train", "lora"}));
  app.add_option("--batch", q.batch, "Samples at a time (default 1)")->check(CLI::Range(1, 65536));
  app.add_option("--tokens", q.tokens, "Tokens of a sample's text (default: the model's own length, at most 1024)")->check(CLI::Range(1, 10'000'000));
  app.add_option("--new-tokens", q.new_tokens, "Tokens that inference adds (default 0)")->check(CLI::Range(0, 10'000'000));
  app.add_option("--precision", o->precision, "fp32; amp: FP32 weights, bf16 under autocast; bf16; fp16 (default: fp32 to train, bf16 else)")
      ->check(CLI::IsMember({"fp32", "amp", "bf16", "fp16"}));
  app.add_option("--optimizer", q.optimizer, "adamw, adamw-fused, adamw-master (FP32 copy), adamw8bit, adafactor, sgd, sgd-momentum");
  app.add_flag("--checkpointing", q.checkpointing, "Activation checkpointing: layers are run again in the backward pass");
  app.add_option("--lora-rank", q.lora_rank, "Rank of the adapters (default 16)")->check(CLI::Range(1, 4096));
  app.add_option("--lora-targets", o->targets, "Ends of module names, with commas: q_proj,v_proj (default: the family's)");
  app.add_option("--envs", q.environments, "Simulator processes that render on the same GPU")->check(CLI::Range(0, 4096));
  app.add_option("--render", o->render, "Size of their pictures: WIDTHxHEIGHT or WIDTHxHEIGHTxCAMERAS");
  app.add_flag("--json", o->json, "Print one JSON document (firstfault/model-budget/1)");
  app.footer("Exit code 1: it typically does not fit. The formulas were compared with measured peaks on another vendor's GPU (docs/models.md).");
  app.callback([o, gpu, &exit_code] { exit_code = run_budget(*o, *gpu); });
}

}  // namespace ff::cli
