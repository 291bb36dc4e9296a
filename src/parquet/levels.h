#pragma once

#include <cstdint>
#include <vector>

/// Repetition and definition levels of Parquet pages ("RLE/bit-packing hybrid", parquet.apache.org/docs/file-format/data-pages/encodings),
/// compared as they are encoded with what they have to be when no value is missing and every list has the same length. No level is ever written out.
namespace ff_parquet {

/// Lists of `width` values: does a stretch of levels say that a list begins exactly at every width-th value?
class ListLevels {
 public:
  explicit ListLevels(int64_t width);
  /// Follows `count` encoded levels. False: other lists, a broken encoding, or fewer levels than said; then nothing more may be asked.
  bool follow(const uint8_t* bytes, int64_t size, int64_t count);
  /// At the first value of a list?
  [[nodiscard]] bool between_lists() const { return phase_ == 0; }

 private:
  int64_t width_;
  int64_t phase_ = 0;              ///< of the next level within its list
  std::vector<uint8_t> expected_;  ///< by phase: the next eight levels as bits
};

/// Are all `count` encoded definition levels `level` (1 to 3: nothing is missing)?
bool all_defined(const uint8_t* bytes, int64_t size, int64_t count, int level);

}  // namespace ff_parquet
