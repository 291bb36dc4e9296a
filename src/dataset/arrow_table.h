#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct ArrowArrayStream;

namespace ff::dataset {

/// Columns made here, handed to the Parquet library through the Arrow C data interface. No value is missing.
class ArrowTable {
 public:
  void integers(std::string name, const std::vector<std::int64_t>& values);
  void reals(std::string name, const std::vector<double>& values);
  void floats(std::string name, const std::vector<float>& values);
  void texts(std::string name, const std::vector<std::string>& values);
  void integer_lists(std::string name, const std::vector<std::vector<std::int64_t>>& rows);
  void real_lists(std::string name, const std::vector<std::vector<double>>& rows);
  /// A row of `channels` numbers as LeRobot stores statistics of pictures: [[[r]], [[g]], [[b]]].
  void picture_lists(std::string name, const std::vector<std::vector<double>>& rows);
  void text_lists(std::string name, const std::vector<std::vector<std::string>>& rows);
  /// Rows of `width` float32 each, one after another.
  void float_rows(std::string name, std::int64_t width, const std::vector<float>& values);
  /// Pictures as Hugging Face datasets keep them: a struct of the encoded file's bytes and its name.
  void pictures(std::string name, const std::vector<std::string>& bytes, const std::vector<std::string>& names);

  [[nodiscard]] std::size_t columns() const { return columns_.size(); }
  /// One batch with all columns. The stream keeps what it needs alive; it may outlive this object. Its release must be called.
  [[nodiscard]] ArrowArrayStream stream() const;

  struct Node;

 private:
  std::vector<std::shared_ptr<const Node>> columns_;
};

}  // namespace ff::dataset
