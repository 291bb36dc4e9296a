// Faults that were put into logs of healthy runs, each with several seeds: found at its check, named with its cause, and
// nothing is found in the healthy ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "reference/random.h"
#include "support.h"

namespace ff::training {
namespace {

using reference::Random;

struct Line {
  double step = 0, loss = 0, gradient = 0, rate = 0, update = 0, data = 0, memory_gb = 0, reserved_gb = 0, host_mb = 0, time = 0, epoch = 0;
  std::string before, after;  ///< lines around it
};

/// A run of lerobot-train as its log would be: warm-up and cosine, falling loss, noise everywhere.
struct Made {
  std::vector<Line> lines;
  double every = 100, steps = 6000, save = 1000;
  std::string head, tail;
  bool exact = true;
};

Made healthy(unsigned seed) {
  Random random(seed, 5);
  Made run;
  run.every = 50 * (1 + random.below(3));
  run.steps = run.every * (60 + random.below(60));
  run.save = run.every * (10 + random.below(5));
  const double start = random.uniform(0.5, 8), floor = random.uniform(0.03, 0.2) * start, peak = random.uniform(1e-5, 1e-3),
               update = random.uniform(0.05, 0.6);
  const double memory = random.uniform(2, 60), host = random.uniform(2000, 9000);
  double time = 0;
  for (double step = run.every; step <= run.steps; step += run.every) {
    Line l;
    l.step = step;
    l.epoch = step / 1000;
    const double done = step / run.steps;
    l.loss = (floor + (start - floor) * std::exp(-5 * done)) * (1 + 0.05 * random.normal());
    l.gradient = random.uniform(0.8, 1.2) * (0.5 + 3 * std::exp(-4 * done));
    l.rate = done < 0.05 ? peak * done / 0.05 : peak * (0.05 + 0.95 * 0.5 * (1 + std::cos(3.14159265 * done)));
    l.update = update * (1 + 0.03 * random.normal());
    l.data = 0.05 * update * (1 + 0.2 * random.uniform());
    l.memory_gb = memory + 0.01 * random.below(2);
    l.reserved_gb = memory * 1.2;
    l.host_mb = host * (1 + 0.002 * random.normal());
    time += run.every * (l.update + l.data);
    l.time = time;
    if (std::fmod(step, run.save) == 0) l.after = fmt::format("INFO 2026-01-22 09:36:46 ot_train.py:361 Checkpoint policy after step {:.0f}\n", step);
    run.lines.push_back(l);
  }
  run.head = fmt::format(
      "INFO 2026-01-22 09:00:00 ot_train.py:200 cfg.steps={0:.0f} ({0:.0f})\n{{'save_freq': {1:.0f}, 'log_freq': {2:.0f}}}\nINFO 2026-01-22 09:00:00 "
      "ot_train.py:210 Start offline "
      "training on a fixed dataset, with effective batch size: 8\n",
      run.steps, run.save, run.every);
  run.tail = "INFO 2026-01-22 23:36:46 ot_train.py:400 End of training\n";
  return run;
}

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds);
  return fmt::format("2026-01-{:02} {:02}:{:02}:{:02}", 22 + s / 86400 % 8, s / 3600 % 24, s / 60 % 60, s % 60);
}

std::string text_of(const Made& run) {
  std::string out = run.head;
  for (const auto& l : run.lines)
    out += l.before +
           fmt::format(
               "INFO {} ot_train.py:423 step:{:.0f} smpl:{:.0f} ep:3 epch:{:.2f} loss:{:.4f} grdn:{:.4f} lr:{:.3e} data_s:{:.4f} updt_s:{:.4f} "
               "mem_gb:{:.2f} memory_reserved_gb:{:.2f} "
               "rss_mb:{:.0f}\n",
               clock_text(l.time), l.step, 8 * l.step, l.epoch, l.loss, l.gradient, l.rate, l.data, l.update, l.memory_gb, l.reserved_gb, l.host_mb) +
           l.after;
  return out + run.tail;
}

struct Kind {
  const char* name;
  const char* told;  ///< "check cause"
  std::function<void(Made&, Random&)> spoil;
};

std::size_t middle(const Made& run, Random& random) { return run.lines.size() / 3 + random.below(static_cast<std::uint32_t>(run.lines.size() / 3)); }

/// The run stops after `at` and goes on in a second part, from the last save.
void resume(Made& run, std::size_t at, const std::function<void(Line&)>& change, bool announce = true) {
  std::vector<Line> again;
  const double saved = std::floor(run.lines[at].step / run.save) * run.save;
  for (const auto& l : run.lines)
    if (l.step > saved) again.push_back(l);
  for (auto& l : again) change(l);
  if (!again.empty())
    again.front().before =
        std::string("INFO 2026-01-23 09:00:00 ot_train.py:210 Start offline training on a fixed dataset, with effective batch size: 8\n") +
        (announce ? fmt::format("Resumed training from step {:.0f}\n", saved) : "");
  run.lines.resize(at + 1);
  run.lines.insert(run.lines.end(), again.begin(), again.end());
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"nan", "step.loss-finite training.loss-nonfinite",
       [](Made& r, Random& g) {
         for (auto i = middle(r, g); i < r.lines.size(); ++i) r.lines[i].loss = r.lines[i].gradient = NAN;
       }},
      {"inf", "step.loss-finite training.loss-nonfinite", [](Made& r, Random& g) { r.lines[middle(r, g)].loss = INFINITY; }},
      {"nan that is printed as zero", "step.loss-finite training.loss-nonfinite",
       [](Made& r, Random& g) {
         for (auto i = middle(r, g); i < r.lines.size(); ++i) r.lines[i].loss = 0, r.lines[i].gradient = NAN;
       }},
      {"no gradient", "step.gradient training.gradient-zero",
       [](Made& r, Random& g) {
         const double level = r.lines.front().loss;
         for (auto& l : r.lines) l.gradient = 0, l.loss = level * (1 + 0.001 * g.uniform());
       }},
      {"explosion", "step.gradient training.gradient-explosion",
       [](Made& r, Random& g) {
         const auto at = middle(r, g);
         for (auto i = at; i < r.lines.size(); ++i)
           r.lines[i].loss = r.lines.front().loss * std::min(1e6, std::pow(1.6, static_cast<double>(i - at) + 3)), r.lines[i].gradient *= 60;
       }},
      {"loss scaling collapsed", "step.gradient precision.half-overflow",
       [](Made& r, Random& g) {
         const auto at = middle(r, g);
         for (auto i = at; i < at + 5 + g.below(6); ++i) r.lines[i].gradient = g.below(2) == 0 ? NAN : INFINITY;
       }},
      {"frozen", "step.loss-plausible training.configuration",
       [](Made& r, Random& g) {
         const double level = 0.123456 + g.uniform();
         for (auto& l : r.lines) l.loss = level;
       }},
      {"loss of nothing", "step.loss-plausible training.configuration",
       [](Made& r, Random&) {
         for (auto& l : r.lines) l.loss = 0, l.gradient = 1e-4;
       }},
      {"too good", "step.loss-plausible training.configuration",
       [](Made& r, Random& g) {
         for (std::size_t i = 4; i < r.lines.size(); ++i) r.lines[i].loss = 2e-5 * (1 + 3 * g.uniform()) * r.lines.front().loss / 8;
       }},
      {"rate of zero", "step.learning-rate training.learning-rate",
       [](Made& r, Random&) {
         for (auto& l : r.lines) l.rate = 0;
       }},
      {"rate jumps", "step.learning-rate training.learning-rate",
       [](Made& r, Random& g) {
         for (auto i = r.lines.size() / 2 + g.below(static_cast<std::uint32_t>(r.lines.size() / 4)); i < r.lines.size(); ++i) r.lines[i].rate *= 6;
       }},
      {"schedule too short", "step.schedule training.learning-rate",
       [](Made& r, Random& g) {
         const auto at = middle(r, g);
         for (std::size_t i = 0; i < r.lines.size(); ++i)
           r.lines[i].rate = i < at ? 1e-4 * 0.5 * (1 + std::cos(3.14159265 * static_cast<double>(i) / static_cast<double>(at))) + 1e-6 : 1e-6;
       }},
      {"leak on the device", "step.memory-growth memory.leak",
       [](Made& r, Random& g) {
         const double k = r.lines[0].memory_gb * g.uniform(0.001, 0.01);
         for (std::size_t i = 0; i < r.lines.size(); ++i)
           r.lines[i].memory_gb += k * static_cast<double>(i), r.lines[i].reserved_gb += k * static_cast<double>(i);
       }},
      {"fragmentation", "step.memory-growth memory.fragmentation",
       [](Made& r, Random& g) {
         const double k = r.lines[0].memory_gb * g.uniform(0.001, 0.01);
         for (std::size_t i = 0; i < r.lines.size(); ++i) r.lines[i].reserved_gb += k * static_cast<double>(i);
       }},
      {"leak on the host", "step.memory-growth memory.leak",
       [](Made& r, Random& g) {
         const double k = g.uniform(40, 200);
         for (std::size_t i = 0; i < r.lines.size(); ++i) r.lines[i].host_mb += k * static_cast<double>(i);
       }},
      {"held from epoch to epoch", "step.memory-growth memory.leak",
       [](Made& r, Random& g) {
         const double k = 0.02 * r.lines[0].memory_gb * g.uniform(1, 3), each = r.steps / 6000;
         for (auto& l : r.lines) l.epoch = l.step / 1000 / each, l.memory_gb += k * std::floor(l.epoch), l.reserved_gb += k * std::floor(l.epoch);
       }},
      {"slow loader", "step.loading training.data-bound",
       [](Made& r, Random& g) {
         const double k = g.uniform(1.2, 4);
         for (auto& l : r.lines) l.data = k * l.update * (1 + 0.1 * g.uniform());
       }},
      {"long tail", "step.tail performance.tail-latency",
       [](Made& r, Random& g) {
         const auto n = 5 + g.below(8);
         for (std::size_t i = 8; i < r.lines.size(); i += n) r.lines[i].update *= 6;
       }},
      {"slower and slower", "step.pace performance.low-clocks",
       [](Made& r, Random& g) {
         const double k = g.uniform(0.6, 1.2);
         for (std::size_t i = 0; i < r.lines.size(); ++i) r.lines[i].update *= 1 + k * static_cast<double>(i) / static_cast<double>(r.lines.size());
       }},
      {"standstill", "step.stall training.stall",
       [](Made& r, Random& g) {
         auto at = middle(r, g);
         while (!r.lines[at - 1].after.empty()) ++at;
         const double usual = r.lines[1].time - r.lines[0].time;
         for (auto i = at; i < r.lines.size(); ++i) r.lines[i].time += std::max(15 * usual, 400.0);
       }},
      {"out of GPU memory", "step.interruption memory.vram-exhausted",
       [](Made& r, Random& g) {
         r.lines.resize(middle(r, g));
         r.tail =
             "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\ntorch.OutOfMemoryError: HIP out of memory. Tried to "
             "allocate 1.50 GiB. GPU 0 has a total capacity of 15.98 GiB "
             "of which 512.00 MiB is free. Of the allocated memory 13.20 GiB is allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but "
             "unallocated.\n";
       }},
      {"full disk", "step.interruption runtime.disk-full",
       [](Made& r, Random& g) {
         r.lines.resize(middle(r, g));
         r.tail = "Traceback (most recent call last):\nOSError: [Errno 28] No space left on device\n";
       }},
      {"small shared memory", "step.interruption container.shared-memory-small",
       [](Made& r, Random& g) {
         r.lines.resize(middle(r, g));
         r.tail =
             "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared "
             "memory. Please try to raise your shared memory limit.\nERROR: "
             "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n";
       }},
      {"killed without a word", "step.interruption training.killed",
       [](Made& r, Random& g) {
         r.lines.resize(middle(r, g));
         r.tail.clear();
       }},
      {"the batch system's limit", "step.interruption training.killed",
       [](Made& r, Random& g) {
         static constexpr const char* said[] = {
             "slurmstepd: error: *** JOB 88123 ON node7 CANCELLED AT 2026-03-01T13:00:00 DUE TO TIME LIMIT ***\n",
             "slurmstepd: error: *** STEP 91.0 ON n1 CANCELLED AT 2026-03-01T13:00:00 DUE TO PREEMPTION ***\n",
             "slurmstepd: error: *** JOB 5 ON n2 CANCELLED AT 2026-03-01T13:00:00 ***\n",
             "W1201 12:00:00.1 agent/server/api.py:704] Received Signals.SIGTERM death signal, shutting down workers\n"};
         r.lines.resize(middle(r, g));
         r.tail = said[g.below(4)];
       }},
      {"an exception of one's own", "step.interruption closed-loop.observation-mismatch",
       [](Made& r, Random& g) {
         r.lines.resize(middle(r, g));
         r.tail = "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'observation.images.top'\n";
       }},
      {"nothing saved", "step.checkpoints training.checkpoint-write-failed",
       [](Made& r, Random&) {
         for (auto& l : r.lines) l.after.clear();
       }},
      {"missing weights", "step.weights model.key-mismatch",
       [](Made& r, Random&) {
         r.head += "WARNING 2026-01-22 09:00:00 s/utils.py:97 Missing key(s) when loading model: ['model.action_head.weight']\n";
       }},
      {"from the beginning", "resume.from-checkpoint training.resume-reset",
       [](Made& r, Random&) { r.head += "Starting training from scratch. No valid checkpoint could be loaded.\n"; }},
      {"an older checkpoint", "resume.from-checkpoint training.resume-reset",
       [](Made& r, Random&) { r.head += "Failed to load checkpoint out/step_9. Trying older one...\n"; }},
      {"step falls", "resume.step-continues training.resume-reset",
       [](Made& r, Random& g) {
         const auto at = middle(r, g) + 5;
         std::vector<Line> again(r.lines.begin(), r.lines.begin() + static_cast<std::ptrdiff_t>(at));
         for (auto& l : again) l.after.clear(), l.loss = r.lines[at].loss, l.rate = r.lines[at].rate, l.loss *= 1 + 0.02 * g.normal();
         again.front().before = "INFO 2026-01-23 09:00:00 ot_train.py:210 Start offline training on a fixed dataset, with effective batch size: 8\n";
         r.lines.resize(at + 1);
         r.lines.insert(r.lines.end(), again.begin(), again.end());
         r.head = "";
       }},
      {"step falls and nothing tells of a checkpoint", "resume.step-continues training.resume-reset",
       [](Made& r, Random& g) {
         const auto at = r.lines.size() - 5;
         std::vector<Line> again(r.lines.begin(), r.lines.begin() + static_cast<std::ptrdiff_t>(at));
         for (auto& l : again) l.loss = r.lines[at].loss * (1 + 0.02 * g.normal()), l.rate = r.lines[at].rate;
         r.lines.resize(at + 1);
         for (auto& l : r.lines) l.after.clear();
         for (auto& l : again) l.after.clear();
         again.front().before = "INFO 2026-01-23 09:00:00 ot_train.py:210 Start offline training on a fixed dataset, with effective batch size: 8\n";
         r.lines.insert(r.lines.end(), again.begin(), again.end());
         r.head = "";
       }},
      {"schedule not restored", "resume.rate-continues training.resume-state-missing",
       [](Made& r, Random& g) {
         const double k = g.uniform(0.1, 0.5);
         resume(r, std::max<std::size_t>(middle(r, g), 20), [k](Line& l) { l.rate *= k; });
       }},
      {"weights not restored", "resume.loss-continues training.resume-state-missing",
       [](Made& r, Random& g) {
         const double start = r.lines.front().loss;
         resume(r, std::max<std::size_t>(middle(r, g), 25),
                [&, start](Line& l) { l.loss = std::max(l.loss * 2, start * 0.9) * (1 + 0.03 * g.normal()); });
       }},
  };
  return all;
}

TEST(LogFaults, EachKindIsFoundWithItsCauseForEverySeed) {
  EXPECT_GE(kinds().size(), 15U);
  for (const auto& kind : kinds())
    for (unsigned seed = 1; seed <= testing::seeds(); ++seed) {
      Made run = healthy(seed);
      Random random(seed, 9);
      kind.spoil(run, random);
      const auto verdict = testing::judge_text(text_of(run));
      EXPECT_EQ(verdict.told(), kind.told) << kind.name << ", seed " << seed << (verdict.first() != nullptr ? ": " + verdict.first()->summary : "");
    }
}

TEST(LogFaults, NothingIsFoundInHealthyRuns) {
  for (unsigned seed = 1; seed <= 10 * testing::seeds(); ++seed) {
    const auto verdict = testing::judge_text(text_of(healthy(seed)));
    EXPECT_EQ(verdict.first(), nullptr) << "seed " << seed << ": " << verdict.told() << " " << verdict.first()->summary;
  }
}

TEST(LogFaults, AResumedRunThatGoesOnIsHealthyAndItsRepeatedStepsAreCounted) {
  for (unsigned seed = 1; seed <= 5 * testing::seeds(); ++seed) {
    Made run = healthy(seed);
    const auto at = run.lines.size() / 2 + 3;
    const bool repeats = std::fmod(run.lines[at].step, run.save) != 0;
    resume(run, at, [](Line&) {});
    const auto verdict = testing::judge_text(text_of(run));
    EXPECT_EQ(verdict.first(), nullptr) << "seed " << seed << ": " << verdict.told() << " " << verdict.first()->summary;
    EXPECT_EQ(verdict.of("resume.step-continues")->summary.find("done twice") != std::string::npos, repeats)
        << verdict.of("resume.step-continues")->summary;
  }
}

// The findings that real logs of these kinds must and must not give.
TEST(LogRules, SingleStepsThatLossScalingLeavesOutAreNoFault) {
  std::string text;
  for (int i = 1; i <= 12; ++i)
    text += fmt::format(
        "INFO 2026-01-22 09:{:02}:58 ot_train.py:351 step:{} smpl:1K ep:3 epch:0.06 loss:{:.3f} grdn:{} lr:1.0e-05 updt_s:0.186 data_s:0.005\n", i,
        200 * i, 1.0 / i,
        i == 1             ? "nan"
        : i == 5 || i == 9 ? "inf"
                           : "3.107");
  const auto verdict = testing::judge_text(text);
  EXPECT_EQ(verdict.of("step.gradient")->status, Status::pass);
  EXPECT_NE(verdict.of("step.gradient")->summary.find("3 not finite"), std::string::npos);
}

TEST(LogRules, OneZeroGradientIsNoFaultAndStepsThatFallAre) {
  const auto one = testing::judge_text(
      "INFO 2026-01-22 09:04:58 ot_train.py:351 step:200 smpl:1K ep:3 epch:0.06 loss:0.562 grdn:0.000 lr:1.0e-05 updt_s:0.186 data_s:0.005\n");
  EXPECT_EQ(one.of("step.gradient")->status, Status::pass);
  const auto falls = testing::judge_text(
      "INFO 2026-01-22 09:04:58 ot_train.py:351 step:500.0 smpl:1K ep:3 epch:0.06 loss:0.562 grdn:1.000 lr:1.0e-05 updt_s:0.186 data_s:0.005\n"
      "INFO 2026-01-22 09:05:58 ot_train.py:351 step:450.0 smpl:1K ep:3 epch:0.06 loss:0.561 grdn:1.000 lr:1.0e-05 updt_s:0.186 data_s:0.005\n");
  EXPECT_EQ(falls.told(), "resume.step-continues training.resume-reset");
}

// An exception of the program's own comes before the batch system takes the rest of the job away.
TEST(LogRules, TheBatchSystemThatTidiesUpIsNotTheReason) {
  const auto verdict = testing::judge_text(
      "step=1 loss=0.5 lr=1e-4\nstep=2 loss=0.4 lr=1e-4\nTraceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'action'\n"
      "srun: error: n1: task 0: Exited with exit code 1\nslurmstepd: error: *** STEP 91.0 ON n1 CANCELLED AT 2026-03-01T13:00:00 ***\n");
  EXPECT_EQ(verdict.told(), "step.interruption data.metadata-mismatch");
}

// What a program said as it ended is judged as `explain` judges it.
TEST(LogRules, AnExceptionHasTheCauseThatItsWordsHave) {
  const auto told = [](const std::string& last) {
    return testing::judge_text("step=1 loss=0.5 lr=1e-4\nstep=2 loss=0.4 lr=1e-4\nTraceback (most recent call last):\n  File \"x.py\", line 1\n" +
                               last + "\n")
        .told();
  };
  EXPECT_EQ(told("torch.AcceleratorError: HIP error: invalid device function"), "step.interruption library-coverage.torch-lacks-target");
  EXPECT_EQ(told("PermissionError: [Errno 13] Permission denied: '/out/ckpt'"), "step.interruption permission.path-not-writable");
  EXPECT_EQ(told("RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x14 and 12x64)"), "step.interruption model.shape-mismatch");
  EXPECT_EQ(told("MemoryError"), "step.interruption memory.host-exhausted");
  EXPECT_EQ(told("IndexError: index 5 is out of bounds for axis 0 with size 4"), "step.interruption training.configuration");
}

TEST(LogRules, ALossScaleThatIsSearchedForIsNoFault) {
  const auto with_inf = [](int from, int to) {
    std::string text;
    for (int step = 1; step <= 60; ++step)
      text += fmt::format("step={} loss={:.4f} lr=1e-4 grad_norm={}\n", step, 1.0 - step * 0.01,
                          step >= from && step <= to ? "inf" : fmt::format("{:.3f}", 1 + step * 0.01));
    return testing::judge_text(text);
  };
  EXPECT_EQ(with_inf(1, 3).of("step.gradient")->status, Status::pass);
  EXPECT_EQ(with_inf(20, 23).of("step.gradient")->status, Status::fail);
}

TEST(LogRules, ASawOfMemoryIsNoLeakAndARisingOneIs) {
  const auto memory = [](double rise) {
    std::string text;
    for (int step = 1; step <= 360; ++step)
      text += fmt::format("step={} loss={:.4f} mem_gb={:.2f}\n", step, 1.0 - step * 0.001, 10 + 0.05 * (step % 50) + rise * step);
    return testing::judge_text(text);
  };
  EXPECT_EQ(memory(0).of("step.memory-growth")->status, Status::pass);
  EXPECT_EQ(memory(0.05).of("step.memory-growth")->status, Status::fail);
}

TEST(LogRules, SmallLossesRepeatByRounding) {
  std::string text;
  for (int step = 1; step <= 100; ++step)
    text += fmt::format("step={} loss=0.000{} lr=1e-4 grad_norm={:.3f}\n", step, step < 60 ? 4 : 3, 0.5 + 0.001 * step);
  EXPECT_EQ(testing::judge_text(text).of("step.loss-plausible")->status, Status::pass);
}

TEST(LogRules, APersonsInterruptIsNoFault) {
  const auto verdict =
      testing::judge_text("step=1 loss=0.5 lr=1e-4\nstep=2 loss=0.4 lr=1e-4\nTraceback (most recent call last):\nKeyboardInterrupt\n");
  EXPECT_EQ(verdict.of("step.interruption")->status, Status::warn);
}

TEST(LogRules, StepsThatAreCountedByEpochAreNoResumption) {
  std::string bars, plain;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (int step = 0; step < 40; ++step) {
      const double loss = 2.0 / (1 + epoch * 40 + step);
      bars += fmt::format("Epoch {}: {}%|##| {}/40 [00:01<00:00, 10.0it/s, train_loss={:.3f}]\n", epoch, step * 100 / 40, step, loss);
      plain += fmt::format("epoch {} step {} loss {:.4f}\n", epoch + 1, step, loss);
    }
  EXPECT_EQ(testing::judge_text(bars).told(), "");
  EXPECT_EQ(testing::judge_text(plain).told(), "");
}

TEST(LogRules, ALogThatStopsBeforeItsOwnTotalIsWarnedOf) {
  for (const char* form :
       {"step={}/1000 loss={:.4f}\n", "Training: 1%|#| {}/1000 [00:29<01:00, 10.0it/s, loss={:.4f}]\n", "iteration {}/ 1000 | loss {:.4f}\n"}) {
    std::string text;
    for (int step = 1; step <= 300; ++step) text += fmt::format(fmt::runtime(form), step, 1.0 - step / 1000.0);
    const auto verdict = testing::judge_text(text);
    EXPECT_EQ(verdict.of("step.interruption")->status, Status::warn) << form;
    EXPECT_NE(verdict.of("step.interruption")->summary.find("of 1000"), std::string::npos) << verdict.of("step.interruption")->summary;
  }
}

// A second run of its own in the same file begins anew, with a loss of a beginning.
TEST(LogRules, ASecondRunInTheSameFileIsNoReset) {
  const std::string banner = "INFO 2026-01-23 09:00:00 ot_train.py:210 Start offline training on a fixed dataset, with effective batch size: 8\n";
  std::string text;
  for (int run = 0; run < 2; ++run) {
    text += banner;
    for (int i = 1; i <= 30; ++i)
      text += fmt::format(
          "INFO 2026-01-22 09:{:02}:58 ot_train.py:351 step:{} smpl:1K ep:3 epch:0.06 loss:{:.3f} grdn:1.0 lr:1.0e-05 updt_s:0.186 data_s:0.005\n", i,
          200 * i, 0.1 + std::exp(-i / 6.0));
  }
  EXPECT_EQ(testing::judge_text(text).of("resume.step-continues")->status, Status::pass);
}

// Caches that fill in the first epochs and then rest are no leak.
TEST(LogRules, MemoryThatComesToRestAfterSomeEpochsIsNoGrowth) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const double epoch = i / 10.0, memory = 10 + 2 * (1 - std::pow(0.3, std::floor(epoch)));
    text += fmt::format("step:{} smpl:1K ep:3 epch:{:.2f} loss:{:.3f} grdn:1.0 lr:1.0e-05 updt_s:0.186 data_s:0.005 mem_gb:{:.3f}\n", 10 * (i + 1),
                        epoch, 1.0 / (i + 1), memory);
  }
  EXPECT_EQ(testing::judge_text(text).of("step.memory-growth")->status, Status::pass);
}

TEST(LogRules, ThreeReadingsOfMemoryAreNoGrowth) {
  std::string text;
  for (const char* memory : {"3.73", "3.74", "3.73"})
    text += std::string("step:8K smpl:66K ep:1K epch:1.20 loss:0.025 grdn:0.400 lr:5.5e-05 updt_s:0.100 data_s:0.005 mem_gb:") + memory + "\n";
  EXPECT_EQ(testing::judge_text(text).of("step.memory-growth")->status, Status::skip);
}

}  // namespace
}  // namespace ff::training
