#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "knowledge/model.h"

namespace ff::diagnosis {

/// Everything that is wrong with a user's directories: structure, patterns, references, signals' examples, and whether
/// each cause comes first for its examples and stays below "likely" for its look-alikes.
std::vector<Error> check_directories(const std::vector<std::string>& directories);

/// The examples of causes, judged with the knowledge they belong to.
std::vector<Error> check_cause_examples(const std::vector<knowledge::Cause>& causes, const knowledge::Knowledge& knowledge);

}  // namespace ff::diagnosis
