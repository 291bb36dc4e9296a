#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/dtype.h"

namespace ff::model {

/// The format's own limit (safetensors src/tensor.rs MAX_HEADER_SIZE).
inline constexpr std::uint64_t safetensors_max_header_bytes = 100'000'000;

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;  ///< empty: a single number
  std::uint64_t elements = 0;
  std::uint64_t begin = 0, end = 0;              ///< bytes of the data area; half open
  std::string_view bytes;                        ///< of the file that was parsed
  [[nodiscard]] std::string shape_text() const;  ///< "[512, 7]"
};

/// A valid file.
struct Safetensors {
  std::uint64_t header_bytes = 0;  ///< of the JSON; data begin at byte 8 + header_bytes
  std::vector<Tensor> tensors;     ///< by position in the file
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<std::string> repeated;  ///< names that stand twice in the header: readers keep the last one and say nothing
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// The first rule that a file breaks.
struct Violation {
  enum class Kind {
    truncated,     ///< a good file's beginning: bytes are missing at the end
    foreign,       ///< no safetensors file at all
    header,        ///< the header does not describe a valid file
    unknown_dtype  ///< the header is good JSON and names a type that this version does not know
  } kind = Kind::header;
  std::string what;                  ///< one sentence
  std::uint64_t position = 0;        ///< byte of the file at which the violation stands
  std::string tensor;                ///< the tensor concerned; empty: none
  std::uint64_t expected_bytes = 0;  ///< truncated in its data: the size that the header calls for; else 0
};

/// Reads a file's header and checks every rule that the reference reader checks (safetensors 0.8, src/tensor.rs
/// SafeTensors::read_metadata and Metadata::validate), in its order; accepts what it accepts. Values are not looked at.
std::expected<Safetensors, Violation> parse_safetensors(std::string_view file);

}  // namespace ff::model
