#include <gtest/gtest.h>

#include "support.h"

namespace ff::training {
namespace {

using testing::judge_text;

constexpr const char* healthy = "step 1 loss 0.52\nstep 2 loss 0.41\nstep 3 loss 0.45\n";

std::vector<std::string> spellings() {
  std::vector<std::string> out;
  for (const char* value : {"nan", "NaN", "NAN", "-nan", "inf", "-inf", "Infinity", "-Infinity", "+inf", "tensor(nan)",
                            "tensor(inf, device='cuda:0')", "tensor(nan, device='cuda:0', grad_fn=<MseLossBackward0>)", "np.float32(nan)", "1.#IND",
                            "-1.#IND", "1.#QNAN", "-1.#INF", "-nan(ind)", "1e999"})
    for (const char* line : {"loss={}",
                             "loss: {}",
                             "Loss: {}",
                             "loss = {}",
                             "loss {}",
                             "train_loss: {}",
                             "train/loss: {}",
                             "total_loss: {}",
                             "{{'loss': {}}}",
                             "{{'loss': {}, 'epoch': 0.5}}",
                             "step 4 loss {}",
                             "step=4, loss={}, lr=1e-4",
                             "step:4 smpl:32 ep:1 epch:0.01 loss:{} grdn:1.0 lr:1.0e-05",
                             "Epoch 1: loss {}",
                             "[2026-01-22 09:04:58] loss: {}",
                             "INFO 2026-01-22 09:04:58 loss: {}",
                             "average loss: {}",
                             "epoch 2 mean loss: {}",
                             "step 4 l2_loss: {}",
                             "step 4, actor_loss={}",
                             " 3%|#  | 4/100 [00:01<00:10,  1.00it/s, loss={}]",
                             "loss {}:   3%|#  | 4/100 [00:01<00:10,  1.00it/s]",
                             "iteration 4/ 100 | lm loss: {} | grad norm: 1.2",
                             "loss: {} - accuracy: 0.5"}) {
      std::string text = line;
      for (std::size_t at; (at = text.find("{{")) != std::string::npos;) text.replace(at, 2, "{");
      for (std::size_t at; (at = text.find("}}")) != std::string::npos;) text.replace(at, 2, "}");
      text.replace(text.find("{}"), 2, value);
      out.push_back(text);
    }
  for (const char* value : {"NaN", "Infinity", "-Infinity", "\"NaN\"", "\"-inf\"", "1e999"})
    for (const char* line : {R"({"step": 4, "loss": )", R"({"loss": )", R"({"train/loss": )", R"({"step": 4, "train/l2_loss": )"})
      out.push_back(std::string(line) + value + "}");
  return out;
}

TEST(NonFinite, ALossIsFoundHoweverItIsWrittenAloneAndBehindHealthyRecords) {
  const auto all = spellings();
  ASSERT_GT(all.size(), 450U);
  for (const auto& line : all)
    for (const char* before : {"", healthy}) {
      const auto verdict = judge_text(before + line + "\n");
      const auto* found = verdict.of("step.loss-finite");
      EXPECT_EQ(found->status, Status::fail) << line << (before == healthy ? " behind healthy records: " : " alone: ") << found->summary;
    }
}

TEST(NonFinite, WhatIsNoLossOfTrainingIsNotJudged) {
  for (const char* line : {"best loss: inf", "best_loss=inf", "early stopping: best val loss inf", "val loss: nan", "eval_loss: nan", "min_loss=inf",
                           "val average loss: nan", "{'eval_loss': nan, 'epoch': 1.0}", R"({"step": 4, "val_loss": NaN})", "loss function: mse",
                           "prev_loss = inf", "the loss is not nan", "loss: info", "loss: nano", "test loss: nan"}) {
    const auto verdict = judge_text(std::string(healthy) + line + "\n");
    EXPECT_EQ(verdict.of("step.loss-finite")->status, Status::pass) << line;
  }
}

TEST(NonFinite, LinesOfALossAloneAreRecordsWhereThereAreNoOthers) {
  const auto verdict = judge_text("loss: 0.52\nloss: 0.41\nloss: tensor(0.38, grad_fn=<MseLossBackward0>)\nloss: nan\n");
  EXPECT_EQ(verdict.of("step.metrics")->measured["records"].as_real(), 4);
  EXPECT_EQ(verdict.of("step.loss-finite")->status, Status::fail);
  EXPECT_NE(verdict.of("step.loss-finite")->summary.find("0.38"), std::string::npos) << verdict.of("step.loss-finite")->summary;
  EXPECT_EQ(judge_text(std::string(healthy) + "loss: 0.1\n").of("step.metrics")->measured["records"].as_real(), 3);
}

TEST(NonFinite, RecordsThatACollectorGluedTogetherAreRead) {
  const auto verdict = judge_text("step 1 loss 0.5 step 2 loss 0.4 step 3 loss nan step 4 loss nan\n");
  EXPECT_EQ(verdict.of("step.metrics")->measured["records"].as_real(), 4);
  EXPECT_EQ(verdict.of("step.loss-finite")->status, Status::fail);
  EXPECT_EQ(judge_text("step 1 loss 0.5 next save at step 200\n").of("step.metrics")->measured["records"].as_real(), 1);
}

TEST(NonFinite, ALossOfNullIsSaid) {
  const auto verdict = judge_text("{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": null}\n{\"step\": 3, \"loss\": null}\n");
  EXPECT_EQ(verdict.of("step.metrics")->status, Status::warn);
  EXPECT_NE(verdict.of("step.metrics")->summary.find("null"), std::string::npos);
  EXPECT_EQ(judge_text("{\"step\": 1, \"loss\": 0.5}\n{\"step\": 2, \"loss\": null, \"eval_loss\": 0.3}\n").of("step.metrics")->status, Status::pass);
}

}  // namespace
}  // namespace ff::training
