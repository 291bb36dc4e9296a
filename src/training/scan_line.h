#pragma once

#include <string_view>

#include "training/series.h"

namespace ff::training {

[[nodiscard]] constexpr bool digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// What a piece of a text log says in "key separator number" pairs.
struct Scan {
  Record record;
  bool any = false;   ///< a metric, a step or a further loss was found
  bool lone = false;  ///< the text is a loss and nothing else: "loss: 0.53", "train_loss=tensor(0.5, device='cuda:0')"
};
[[nodiscard]] Scan scan(std::string_view text);
/// Where behind a record with step and loss another step stands ("step 1 loss 0.5 step 2 loss 0.4", glued by a collector); npos: nowhere.
[[nodiscard]] std::size_t next_record(std::string_view text);

/// "41%|####  | 8200/20000 [1:28:46<2:00:23,  1.63step/s, loss=0.023, lr=5.5e-05]". False: it is no progress bar.
[[nodiscard]] bool read_bar(std::string_view text, Record& record);

}  // namespace ff::training
