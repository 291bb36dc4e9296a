#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace ff::training {

/// A tensor as a safetensors file holds it.
struct StoredTensor {
  std::string type;            ///< "F32", "BF16", "I64", ...
  std::uint64_t elements = 0;  ///< product of the shape
  std::string_view bytes;      ///< within the mapped file
  [[nodiscard]] bool real() const { return type == "F32" || type == "F64" || type == "F16" || type == "BF16"; }
  [[nodiscard]] std::vector<double> values() const;  ///< of F32 and F64; empty for others
};

/// A whole safetensors file, mapped; what is not whole is an error.
class StoredTensors {
 public:
  static Result<StoredTensors> open(const std::string& path);
  [[nodiscard]] const std::map<std::string, StoredTensor>& all() const { return tensors_; }
  [[nodiscard]] const StoredTensor* find(const std::string& name) const;

 private:
  explicit StoredTensors(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace ff::training
