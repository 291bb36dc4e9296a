#pragma once

#include <arrow/api.h>
#include <parquet/column_page.h>
#include <parquet/encoding.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "parquet/levels.h"

namespace ff_parquet {

/// Numbers of a plain column, or of a list column whose lists are all of one length, read page by page into arrays without a
/// look at single rows. Most of what a general reader does is finding out where lists begin; here the encoded levels are compared with what they
/// have to be, and values are decoded straight into the array.
class NumberColumn {
 public:
  /// What a column is, and which row groups of it are read.
  struct Shape {
    int leaf = 0;
    bool list = false;
    int64_t width = 1;
    int definition_level = 0;
    int first_group = 0, groups = 0;
    std::shared_ptr<arrow::DataType> type, element;
  };

  virtual ~NumberColumn() = default;
  /// The next `rows` rows; `regular` becomes false when a value is missing or a list has another length: then another reader has to take over.
  virtual arrow::Status read(int64_t rows, std::shared_ptr<arrow::Array>* out, bool* regular) = 0;

  static std::unique_ptr<NumberColumn> make(std::shared_ptr<parquet::ParquetFileReader> file, Shape shape);
};

template <class Physical>
class TypedNumberColumn final : public NumberColumn {
 public:
  using T = typename Physical::c_type;

  TypedNumberColumn(std::shared_ptr<parquet::ParquetFileReader> file, Shape shape)
      : file_(std::move(file)), shape_(std::move(shape)), lists_(shape_.width), group_(shape_.first_group - 1) {}

  arrow::Status read(int64_t rows, std::shared_ptr<arrow::Array>* out, bool* regular) override {
    const int64_t n = rows * shape_.width;
    // The memory of the batch before is used again when its reader has let go of it.
    if (values_ == nullptr || values_.use_count() > 1 || values_->size() < n * static_cast<int64_t>(sizeof(T))) {
      ARROW_ASSIGN_OR_RAISE(values_, arrow::AllocateBuffer(n * static_cast<int64_t>(sizeof(T))));
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // it may have let go in another thread
    auto* to = reinterpret_cast<T*>(values_->mutable_data());
    for (int64_t done = 0; done < n;) {
      while (left_ == 0) {
        ARROW_RETURN_NOT_OK(next_page(regular));
        if (!*regular) return arrow::Status::OK();
      }
      const int64_t taken = std::min(left_, n - done);
      if (plain_ != nullptr) {
        std::memcpy(to + done, plain_, static_cast<size_t>(taken) * sizeof(T));
        plain_ += static_cast<size_t>(taken) * sizeof(T);
      } else if (decoder_->Decode(to + done, static_cast<int>(taken)) != taken) {
        return arrow::Status::Invalid("a page holds fewer values than its header says");
      }
      done += taken;
      left_ -= taken;
    }
    *out = array(rows, n);
    return arrow::Status::OK();
  }

 private:
  arrow::Status next_page(bool* regular) {
    while (true) {
      page_ = pages_ != nullptr ? pages_->NextPage() : nullptr;
      if (page_ == nullptr) {
        if (!lists_.between_lists()) return arrow::Status::Invalid("a row group ends within a list");
        if (++group_ >= shape_.first_group + shape_.groups) return arrow::Status::Invalid("a column ends before its footer says");
        row_group_ = file_->RowGroup(group_);
        dictionary_.reset();
        pages_ = row_group_->metadata()->num_rows() > 0 ? row_group_->GetColumnPageReader(shape_.leaf) : nullptr;
        continue;
      }
      switch (page_->type()) {
        case parquet::PageType::DICTIONARY_PAGE:
          ARROW_RETURN_NOT_OK(take_dictionary(static_cast<const parquet::DictionaryPage&>(*page_), regular));
          if (!*regular) return arrow::Status::OK();
          continue;
        case parquet::PageType::DATA_PAGE:
        case parquet::PageType::DATA_PAGE_V2:
          return take_data(regular);
        default:
          continue;  // readers skip what they do not know
      }
    }
  }

  arrow::Status take_dictionary(const parquet::DictionaryPage& page, bool* regular) {
    if (page.encoding() != parquet::Encoding::PLAIN && page.encoding() != parquet::Encoding::PLAIN_DICTIONARY) {
      *regular = false;
      return arrow::Status::OK();
    }
    if (page.num_values() < 0 || static_cast<int64_t>(page.num_values()) * static_cast<int64_t>(sizeof(T)) > page.size())
      return arrow::Status::Invalid("a dictionary holds fewer values than its header says");
    auto plain = parquet::MakeTypedDecoder<Physical>(parquet::Encoding::PLAIN, description());
    plain->SetData(page.num_values(), page.data(), page.size());
    dictionary_ = parquet::MakeDictDecoder<Physical>(description(), arrow::default_memory_pool());
    dictionary_->SetDict(plain.get());
    return arrow::Status::OK();
  }

  arrow::Status take_data(bool* regular) {
    const auto& page = static_cast<const parquet::DataPage&>(*page_);
    const uint8_t* at = page.data();
    int64_t size = page.size();
    const int64_t count = page.num_values();
    if (count < 0 || at == nullptr) return arrow::Status::Invalid("a page has no content");
    const auto skip = [&](int64_t bytes) {
      at += bytes;
      size -= bytes;
    };
    const bool v2 = page.type() == parquet::PageType::DATA_PAGE_V2;
    // Repetition levels come first, then definition levels; the old format puts their length before them.
    for (const bool repetition : {true, false}) {
      if (repetition ? !shape_.list : shape_.definition_level == 0) continue;
      int64_t length = 0;
      if (v2) {
        const auto& own = static_cast<const parquet::DataPageV2&>(page);
        length = repetition ? own.repetition_levels_byte_length() : own.definition_levels_byte_length();
      } else {
        const auto& own = static_cast<const parquet::DataPageV1&>(page);
        if ((repetition ? own.repetition_level_encoding() : own.definition_level_encoding()) != parquet::Encoding::RLE) {
          *regular = false;
          return arrow::Status::OK();
        }
        if (size < 4) return arrow::Status::Invalid("a page ends within its levels");
        length =
            static_cast<int64_t>(at[0]) | static_cast<int64_t>(at[1]) << 8 | static_cast<int64_t>(at[2]) << 16 | static_cast<int64_t>(at[3]) << 24;
        skip(4);
      }
      if (length < 0 || length > size) return arrow::Status::Invalid("a page ends within its levels");
      *regular = repetition ? lists_.follow(at, length, count) : all_defined(at, length, count, shape_.definition_level);
      if (!*regular) return arrow::Status::OK();
      skip(length);
    }
    plain_ = nullptr;
    decoder_ = nullptr;
    if (page.encoding() == parquet::Encoding::PLAIN) {
      if (size < count * static_cast<int64_t>(sizeof(T))) return arrow::Status::Invalid("a page holds fewer values than its header says");
      plain_ = at;
    } else if (page.encoding() == parquet::Encoding::RLE_DICTIONARY || page.encoding() == parquet::Encoding::PLAIN_DICTIONARY) {
      if (dictionary_ == nullptr) return arrow::Status::Invalid("a page needs a dictionary, and there is none before it");
      dictionary_->SetData(static_cast<int>(count), at, static_cast<int>(size));
      decoder_ = dictionary_.get();
    } else {
      other_ = parquet::MakeTypedDecoder<Physical>(page.encoding(), description());
      other_->SetData(static_cast<int>(count), at, static_cast<int>(size));
      decoder_ = other_.get();
    }
    left_ = count;
    return arrow::Status::OK();
  }

  std::shared_ptr<arrow::Array> array(int64_t rows, int64_t n) {
    if (!shape_.list) return arrow::MakeArray(arrow::ArrayData::Make(shape_.type, rows, {nullptr, values_}, 0));
    auto elements = arrow::ArrayData::Make(shape_.element, n, {nullptr, values_}, 0);
    if (shape_.type->id() == arrow::Type::FIXED_SIZE_LIST)
      return arrow::MakeArray(arrow::ArrayData::Make(shape_.type, rows, {nullptr}, {std::move(elements)}, 0));
    if (offsets_ == nullptr || offsets_->size() < (rows + 1) * static_cast<int64_t>(sizeof(int32_t))) {
      offsets_ = arrow::AllocateBuffer((rows + 1) * static_cast<int64_t>(sizeof(int32_t))).ValueOrDie();
      auto* offsets = reinterpret_cast<int32_t*>(offsets_->mutable_data());
      for (int64_t i = 0; i <= rows; ++i) offsets[i] = static_cast<int32_t>(i * shape_.width);
    }
    return arrow::MakeArray(arrow::ArrayData::Make(shape_.type, rows, {nullptr, offsets_}, {std::move(elements)}, 0));
  }

  [[nodiscard]] const parquet::ColumnDescriptor* description() const { return file_->metadata()->schema()->Column(shape_.leaf); }

  std::shared_ptr<parquet::ParquetFileReader> file_;
  Shape shape_;
  ListLevels lists_;
  int group_;
  std::shared_ptr<parquet::RowGroupReader> row_group_;
  std::unique_ptr<parquet::PageReader> pages_;
  std::shared_ptr<parquet::Page> page_;  ///< holds what plain_ and the decoders point into
  std::unique_ptr<parquet::DictDecoder<Physical>> dictionary_;
  std::unique_ptr<parquet::TypedDecoder<Physical>> other_;
  parquet::TypedDecoder<Physical>* decoder_ = nullptr;
  const uint8_t* plain_ = nullptr;  ///< values as they stand in the page
  int64_t left_ = 0;                ///< values of the page that are still to come
  std::shared_ptr<arrow::Buffer> values_;
  std::shared_ptr<arrow::Buffer> offsets_;  ///< the same for every batch
};

inline std::unique_ptr<NumberColumn> NumberColumn::make(std::shared_ptr<parquet::ParquetFileReader> file, Shape shape) {
  switch (shape.element->id()) {
    case arrow::Type::FLOAT:
      return std::make_unique<TypedNumberColumn<parquet::FloatType>>(std::move(file), std::move(shape));
    case arrow::Type::DOUBLE:
      return std::make_unique<TypedNumberColumn<parquet::DoubleType>>(std::move(file), std::move(shape));
    case arrow::Type::INT64:
      return std::make_unique<TypedNumberColumn<parquet::Int64Type>>(std::move(file), std::move(shape));
    default:
      return std::make_unique<TypedNumberColumn<parquet::Int32Type>>(std::move(file), std::move(shape));
  }
}

}  // namespace ff_parquet
