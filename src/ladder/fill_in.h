#pragma once

#include <string>
#include <string_view>

#include "check/check.h"
#include "knowledge/knowledge.h"

namespace ff::ladder {

/// A line of advice or proof from the knowledge with what is known of this climb put in: <folder> (the dataset for causes of
/// data and after --dataset, the policy for causes of models), <new folder>, <python>, <run> and <log> (causes of training), <episodes>
/// and <dataset> (causes of the closed loop).
/// Paths are quoted for a shell where they need it. What is not known stays as it is, for a person to complete.
[[nodiscard]] std::string filled_in(std::string text, std::string_view cause, const CheckInputs& inputs);

/// The same for a proof: where the cause's fix writes a corrected copy of the dataset, the copy is what is proved.
[[nodiscard]] std::string filled_in_proof(std::string text, const knowledge::CauseText& cause, CheckInputs inputs);

}  // namespace ff::ladder
