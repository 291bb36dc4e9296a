#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "knowledge/model.h"

namespace ff::diagnosis {

struct KbCheck {
  std::vector<Error> problems;
  std::size_t signals = 0, causes = 0;  ///< that were read
  bool nothing_read = false;            ///< no file, so there was nothing to check
  bool examples_judged = true;          ///< false: signals are broken, so what the causes' examples show is not known
};

/// Everything that is wrong with a user's directories: structure, patterns, references, names of facts, proofs, signals' examples, and whether
/// each cause comes first for its examples and stays below "likely" for its look-alikes. One problem hides no other.
KbCheck check_directories(const std::vector<std::string>& directories);

/// The examples of causes, judged with the knowledge they belong to.
std::vector<Error> check_cause_examples(const std::vector<knowledge::Cause>& causes, const knowledge::Knowledge& knowledge);

}  // namespace ff::diagnosis
