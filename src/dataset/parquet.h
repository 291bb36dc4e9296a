#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"
#include "dataset/arrow_table.h"

namespace ff::dataset {

/// Element type of a Parquet column as it lies in memory after decoding.
enum class ElementType { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, boolean, text, other };
[[nodiscard]] std::string_view element_type_name(ElementType type);  ///< numpy's names: "int64", "float32", ...

/// One column of one batch, without a copy. Valid until the next batch is asked for.
struct ColumnView {
  ElementType type = ElementType::other;
  std::int64_t rows = 0;
  /// Values of a row: 1 for a scalar, N when every row holds a list of N values; -1 when rows differ (then `offsets`).
  std::int64_t width = 1;
  bool is_list = false;
  std::int64_t nulls = 0;         ///< missing rows or missing values inside lists
  std::int64_t first_null = -1;   ///< row of the first of them
  std::int64_t ragged_row = -1;   ///< first row whose list length differs from that of the first row
  std::int64_t ragged_width = 0;  ///< and its length
  const void* values = nullptr;   ///< rows*width elements when width >= 0; bits for boolean (see bit_offset)
  std::int64_t bit_offset = 0;
  const std::int32_t* offsets = nullptr;       ///< text and ragged lists: rows+1 positions
  const std::int64_t* long_offsets = nullptr;  ///< the same for large texts
  const char* characters = nullptr;            ///< text
  /// Lists of texts: positions of the elements, counted from the first one of the batch.
  const std::int32_t* element_offsets = nullptr;

  template <class T>
  [[nodiscard]] const T* data() const {
    return static_cast<const T*>(values);
  }
  /// Columns of bytes, and of structs that have some (`{bytes, path}`, as the datasets library stores pictures), are texts too.
  /// A numeric or boolean value; `i` counts values, not rows. NaN for text.
  [[nodiscard]] double real(std::int64_t i) const;
  [[nodiscard]] std::int64_t integer(std::int64_t i) const;
  [[nodiscard]] std::string_view text(std::int64_t row) const;
  /// The texts of one row of a list column.
  [[nodiscard]] std::vector<std::string> texts(std::int64_t row) const;
};

/// What a file's footer says.
struct ParquetInfo {
  std::int64_t rows = 0;
  std::vector<std::int64_t> row_groups;  ///< rows of each
  struct Column {
    std::string name;  ///< top-level name, also when it is a list
    std::string type;  ///< Arrow's type text: "int64", "list<element: float>", "fixed_size_list<element: float>[14]"
  };
  std::vector<Column> columns;
  Value metadata;  ///< key-value metadata: object of texts
  [[nodiscard]] const Column* column(std::string_view name) const;
};

/// One file made of rows of others: see ffp_rewrite in parquet/parquet_abi.h.
struct Rewrite {
  std::vector<std::string> paths;        ///< source files
  std::vector<std::int64_t> rows;        ///< row of the sources, laid end to end, for each row of the result; -1: missing values
  std::vector<std::int64_t> group_rows;  ///< rows of each row group; empty: one group
  ArrowTable columns;                    ///< replaced by name, or added
  std::vector<std::string> drop;         ///< columns left out
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Row groups `first` to `first + count - 1`; count -1: all from `first` on.
struct RowGroups {
  std::int64_t first = 0, count = -1;
};

/// Reads Parquet through firstfault-parquet.so beside the program (or where $FIRSTFAULT_PARQUET says).
class Parquet {
 public:
  /// Error: the library or its Arrow is missing; the remedy says how to get it.
  static Result<Parquet> load();

  Result<ParquetInfo> inspect(const std::string& path) const;

  /// Streams the batches of a file.
  class Scan {
   public:
    Scan(Scan&&) noexcept;
    Scan& operator=(Scan&&) noexcept;
    ~Scan();
    /// Fetches the next batch; false at the end. After an error the scan is over.
    Result<bool> next();
    [[nodiscard]] std::int64_t rows() const;  ///< of the current batch
    /// A column of the current batch by name; nothing when the file has none of it.
    [[nodiscard]] const ColumnView* column(std::string_view name) const;

   private:
    friend class Parquet;
    struct State;
    explicit Scan(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  /// `columns` empty: all. Batches hold at most `batch_rows` rows. Several scans may run at a time, in one thread each; with `threads` columns are
  /// decoded in parallel, the next batch while the caller works on this one.
  Result<Scan> scan(const std::string& path, const std::vector<std::string>& columns, std::int64_t batch_rows = 65536, bool threads = true,
                    RowGroups groups = {0, -1}) const;

  /// Writes one file; an existing one is replaced.
  Result<void> rewrite(const std::string& path, const Rewrite& job) const;

  [[nodiscard]] const std::string& arrow_version() const;

  struct Api;
  [[nodiscard]] const Api& api() const { return *api_; }

 private:
  explicit Parquet(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  std::shared_ptr<const Api> api_;
};

}  // namespace ff::dataset
