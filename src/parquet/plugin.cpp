// firstfault-parquet.so: Parquet through the Arrow of a Python wheel. Nothing but the C surface of parquet_abi.h leaves
// this file, and every exception ends here.
#define ARROW_C_DATA_INTERFACE  // the structs come from parquet_abi.h
#define ARROW_C_STREAM_INTERFACE

// Before Arrow, which then takes these structs.
// clang-format off
#include "parquet/parquet_abi.h"
// clang-format on

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/compute/api.h>
#include <arrow/io/file.h>
#include <arrow/util/config.h>
#include <arrow/util/thread_pool.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parquet/number_column.h"

namespace {

/// A footer that describes more than this is refused: it would only serve to exhaust memory.
constexpr int max_columns = 100'000;
constexpr int max_thrift_bytes = 256 << 20;

int report(const std::string& message, char* error, size_t error_size) {
  if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", message.c_str());
  return 1;
}

/// Runs `body`, which returns an arrow::Status, and turns whatever happens into the C convention.
template <class Body>
int guarded(char* error, size_t error_size, Body&& body) {
  try {
    const arrow::Status status = body();
    return status.ok() ? 0 : report(status.message(), error, error_size);
  } catch (const std::exception& e) {
    return report(e.what(), error, error_size);
  } catch (...) {
    return report("unknown error", error, error_size);
  }
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

parquet::ReaderProperties reader_properties() {
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.set_thrift_string_size_limit(max_thrift_bytes);
  return properties;
}

/// The file is mapped: what would be read into fresh memory costs as much as decoding it.
arrow::Status open(const char* path, std::unique_ptr<parquet::ParquetFileReader>* out, std::shared_ptr<parquet::FileMetaData> footer = nullptr) {
  ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::MemoryMappedFile::Open(path, arrow::io::FileMode::READ));
  *out = parquet::ParquetFileReader::Open(file, reader_properties(), std::move(footer));
  if ((*out)->metadata()->num_columns() > max_columns) return arrow::Status::Invalid("more than ", max_columns, " columns");
  return arrow::Status::OK();
}

parquet::Compression::type codec_of(const std::string& name) {
  return name == "zstd" ? parquet::Compression::ZSTD : name == "none" ? parquet::Compression::UNCOMPRESSED : parquet::Compression::SNAPPY;
}

arrow::Status read_table(const char* path, std::shared_ptr<arrow::Table>* out) {
  std::unique_ptr<parquet::ParquetFileReader> reader;
  ARROW_RETURN_NOT_OK(open(path, &reader));
  ARROW_ASSIGN_OR_RAISE(auto arrow_reader, parquet::arrow::FileReader::Make(arrow::default_memory_pool(), std::move(reader)));
  ARROW_ASSIGN_OR_RAISE(*out, arrow_reader->ReadTable());
  return arrow::Status::OK();
}

/// Rows of a table in a given order. Stretches of neighbours are sliced, not copied; many short ones are taken.
arrow::Status take_rows(const std::shared_ptr<arrow::Table>& table, const int64_t* rows, int64_t n, std::shared_ptr<arrow::Table>* out) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // first row, rows
  bool missing = false;
  for (int64_t i = 0; i < n; ++i) {
    missing |= rows[i] < 0;
    if (rows[i] >= table->num_rows()) return arrow::Status::Invalid("row ", rows[i], " of ", table->num_rows(), " was asked for");
    if (!runs.empty() && rows[i] == runs.back().first + runs.back().second)
      ++runs.back().second;
    else
      runs.emplace_back(rows[i], 1);
  }
  if (!missing && static_cast<int64_t>(runs.size()) <= std::max<int64_t>(64, n / 64)) {
    std::vector<std::shared_ptr<arrow::Table>> parts;
    parts.reserve(runs.size());
    for (const auto& [first, count] : runs) parts.push_back(table->Slice(first, count));
    if (parts.empty()) parts.push_back(table->Slice(0, 0));
    ARROW_ASSIGN_OR_RAISE(*out, arrow::ConcatenateTables(parts));
    return arrow::Status::OK();
  }
  arrow::Int64Builder indices;
  ARROW_RETURN_NOT_OK(indices.Reserve(n));
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] < 0)
      indices.UnsafeAppendNull();
    else
      indices.UnsafeAppend(rows[i]);
  }
  ARROW_ASSIGN_OR_RAISE(auto array, indices.Finish());
  // One chunk a column first: taking from many chunks is slow.
  ARROW_ASSIGN_OR_RAISE(auto whole, table->CombineChunks());
  ARROW_ASSIGN_OR_RAISE(auto taken, arrow::compute::Take(arrow::Datum(whole), arrow::Datum(array)));
  *out = taken.table();
  return arrow::Status::OK();
}

/// Puts a column in the place of the one of the same name, in that one's type where a cast is possible; else appends it.
arrow::Status put_column(const std::shared_ptr<arrow::Field>& field, std::shared_ptr<arrow::ChunkedArray> values,
                         std::shared_ptr<arrow::Table>* table) {
  const int at = (*table)->schema()->GetFieldIndex(field->name());
  if (at < 0) {
    ARROW_ASSIGN_OR_RAISE(*table, (*table)->AddColumn((*table)->num_columns(), field, std::move(values)));
    return arrow::Status::OK();
  }
  auto own = (*table)->schema()->field(at);
  if (!own->type()->Equals(values->type())) {
    auto cast = arrow::compute::Cast(arrow::Datum(values), own->type(), arrow::compute::CastOptions::Unsafe());
    if (cast.ok())
      values = cast->chunked_array();
    else
      own = field;
  }
  ARROW_ASSIGN_OR_RAISE(*table, (*table)->SetColumn(at, own, std::move(values)));
  return arrow::Status::OK();
}

/// A row group or more of a file.
struct Groups {
  int first = 0, count = 0;
};

/// Number columns of regular rows, each read page by page; the general reader takes over at the first batch that is otherwise.
class NumberReader final : public arrow::RecordBatchReader {
 public:
  using General = std::function<arrow::Result<std::shared_ptr<arrow::RecordBatchReader>>()>;

  /// Nothing when a column is no such column.
  static std::shared_ptr<NumberReader> make(const std::shared_ptr<parquet::ParquetFileReader>& file, std::shared_ptr<arrow::Schema> schema,
                                            const std::vector<int>& leaves, Groups groups, int64_t batch_rows, bool threads, General general) {
    auto out = std::make_shared<NumberReader>();
    const auto metadata = file->metadata();
    if (schema->num_fields() != static_cast<int>(leaves.size()) || leaves.empty()) return nullptr;
    for (size_t i = 0; i < leaves.size(); ++i) {
      ff_parquet::NumberColumn::Shape c;
      c.leaf = leaves[i];
      c.first_group = groups.first;
      c.groups = groups.count;
      c.width = 0;
      c.type = schema->field(static_cast<int>(i))->type();
      c.element = c.type;
      if (c.type->id() == arrow::Type::LIST || c.type->id() == arrow::Type::FIXED_SIZE_LIST) {
        c.list = true;
        c.element = c.type->field(0)->type();
      }
      const auto* description = metadata->schema()->Column(c.leaf);
      const auto id = c.element->id();
      const auto physical = description->physical_type();
      if (!((id == arrow::Type::FLOAT && physical == parquet::Type::FLOAT) || (id == arrow::Type::DOUBLE && physical == parquet::Type::DOUBLE) ||
            (id == arrow::Type::INT64 && physical == parquet::Type::INT64) || (id == arrow::Type::INT32 && physical == parquet::Type::INT32)))
        return nullptr;
      if (description->max_repetition_level() != (c.list ? 1 : 0) || description->max_definition_level() > 3) return nullptr;
      c.definition_level = description->max_definition_level();
      for (int g = groups.first; g < groups.first + groups.count; ++g) {
        const auto group = metadata->RowGroup(g);
        const int64_t rows = group->num_rows();
        if (rows == 0) continue;
        const int64_t values = group->ColumnChunk(c.leaf)->num_values();
        if (c.width == 0) c.width = values / rows;
        if (c.width <= 0 || c.width > 4096 || values != rows * c.width) return nullptr;
      }
      if (c.width == 0 || (!c.list && c.width != 1)) return nullptr;
      if (c.type->id() == arrow::Type::FIXED_SIZE_LIST && std::static_pointer_cast<arrow::FixedSizeListType>(c.type)->list_size() != c.width)
        return nullptr;
      out->columns_.push_back(ff_parquet::NumberColumn::make(file, std::move(c)));
    }
    out->schema_ = std::move(schema);
    out->batch_rows_ = std::clamp<int64_t>(batch_rows, 1, 1 << 16);
    out->threads_ = threads;
    for (int g = groups.first; g < groups.first + groups.count; ++g) out->rows_ += metadata->RowGroup(g)->num_rows();
    out->general_ = std::move(general);
    return out;
  }

  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override { return schema_; }

  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    try {
      if (slow_ != nullptr) return from_general(batch);
      const int64_t n = std::min(batch_rows_, rows_ - delivered_);
      if (n == 0) {
        *batch = nullptr;
        return arrow::Status::OK();
      }
      std::vector<std::shared_ptr<arrow::Array>> arrays(columns_.size());
      std::vector<char> even(columns_.size(), 1);
      std::vector<arrow::Future<>> others;
      const auto read = [&](size_t i) -> arrow::Status {
        try {
          bool regular = true;
          ARROW_RETURN_NOT_OK(columns_[i]->read(n, &arrays[i], &regular));
          even[i] = regular ? 1 : 0;
          return arrow::Status::OK();
        } catch (const std::exception& e) {
          return arrow::Status::IOError(e.what());
        }
      };
      arrow::Status status;
      for (size_t i = 1; i < columns_.size(); ++i) {
        if (!threads_) {
          status &= read(i);
          continue;
        }
        auto submitted = arrow::internal::GetCpuThreadPool()->Submit([&read, i] { return read(i); });
        if (submitted.ok())
          others.push_back(*submitted);
        else
          status &= read(i);
      }
      status &= read(0);
      for (auto& other : others) status &= other.status();
      ARROW_RETURN_NOT_OK(status);
      for (const char e : even)
        if (e == 0) {
          // Rows from here on are read by the general reader.
          ARROW_ASSIGN_OR_RAISE(slow_, general_());
          skip_ = delivered_;
          return from_general(batch);
        }
      delivered_ += n;
      *batch = arrow::RecordBatch::Make(schema_, n, std::move(arrays));
      return arrow::Status::OK();
    } catch (const std::exception& e) {
      return arrow::Status::IOError(e.what());
    }
  }

 private:
  arrow::Status from_general(std::shared_ptr<arrow::RecordBatch>* batch) {
    while (true) {
      ARROW_RETURN_NOT_OK(slow_->ReadNext(batch));
      if (*batch == nullptr || skip_ == 0) return arrow::Status::OK();
      if ((*batch)->num_rows() <= skip_) {
        skip_ -= (*batch)->num_rows();
        continue;
      }
      *batch = (*batch)->Slice(skip_);
      skip_ = 0;
      return arrow::Status::OK();
    }
  }

  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::unique_ptr<ff_parquet::NumberColumn>> columns_;
  int64_t batch_rows_ = 0, rows_ = 0, delivered_ = 0, skip_ = 0;
  bool threads_ = false;
  General general_;
  std::shared_ptr<arrow::RecordBatchReader> slow_;
};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int ffp_abi_version() { return FFP_ABI_VERSION; }

__attribute__((visibility("default"))) const char* ffp_arrow_version() { return ARROW_VERSION_STRING; }

__attribute__((visibility("default"))) void ffp_free(void* pointer) { free(pointer); }

__attribute__((visibility("default"))) int ffp_inspect(const char* path, char** json, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> arrow::Status {
    std::unique_ptr<parquet::ParquetFileReader> reader;
    ARROW_RETURN_NOT_OK(open(path, &reader));
    const auto metadata = reader->metadata();
    std::string out = "{\"rows\":" + std::to_string(metadata->num_rows()) + ",\"row_groups\":[";
    for (int i = 0; i < metadata->num_row_groups(); ++i) out += (i != 0 ? "," : "") + std::to_string(metadata->RowGroup(i)->num_rows());
    out += "],\"columns\":[";
    const auto* schema = metadata->schema();
    for (int i = 0; i < schema->num_columns(); ++i) {
      const auto* column = schema->Column(i);
      const std::string compression =
          metadata->num_row_groups() > 0 ? arrow::util::Codec::GetCodecAsString(metadata->RowGroup(0)->ColumnChunk(i)->compression()) : "";
      const auto dotted = column->path()->ToDotString();
      out += std::string(i != 0 ? "," : "") + "{\"name\":" + quoted(dotted.substr(0, dotted.find(".list"))) + ",\"path\":" + quoted(dotted) +
             ",\"type\":" + quoted(parquet::TypeToString(column->physical_type())) + ",\"logical\":" + quoted(column->logical_type()->ToString()) +
             ",\"max_definition_level\":" + std::to_string(column->max_definition_level()) +
             ",\"max_repetition_level\":" + std::to_string(column->max_repetition_level()) + ",\"compression\":" + quoted(compression) + "}";
    }
    out += "],\"schema\":[";
    std::unique_ptr<parquet::arrow::FileReader> arrow_reader;
    const auto key_values = metadata->key_value_metadata();
    const auto created_by = metadata->created_by();
    ARROW_ASSIGN_OR_RAISE(arrow_reader, parquet::arrow::FileReader::Make(arrow::default_memory_pool(), std::move(reader)));
    std::shared_ptr<arrow::Schema> fields;
    ARROW_RETURN_NOT_OK(arrow_reader->GetSchema(&fields));
    for (int i = 0; i < fields->num_fields(); ++i)
      out += std::string(i != 0 ? "," : "") + "{\"name\":" + quoted(fields->field(i)->name()) +
             ",\"type\":" + quoted(fields->field(i)->type()->ToString()) + "}";
    out += "],\"metadata\":{";
    if (key_values != nullptr)
      for (int64_t i = 0; i < key_values->size(); ++i)
        out += std::string(i != 0 ? "," : "") + quoted(key_values->key(i)) + ":" + quoted(key_values->value(i));
    out += "},\"created_by\":" + quoted(created_by) + "}";
    *json = strdup(out.c_str());
    return *json != nullptr ? arrow::Status::OK() : arrow::Status::OutOfMemory("out of memory");
  });
}

__attribute__((visibility("default"))) int ffp_scan(const char* path, const struct ffp_scan_job* job, struct ArrowArrayStream* out, char* error,
                                                    size_t error_size) {
  return guarded(error, error_size, [&]() -> arrow::Status {
    std::unique_ptr<parquet::ParquetFileReader> reader;
    ARROW_RETURN_NOT_OK(open(path, &reader));
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(std::clamp<int64_t>(job->batch_rows, 1, 1 << 20));
    properties.set_use_threads(job->threads != 0);
    const auto metadata = reader->metadata();
    // Top-level names to leaf columns.
    std::vector<int> leaves;
    for (int i = 0; i < metadata->schema()->num_columns(); ++i) {
      const std::string& top = metadata->schema()->GetColumnRoot(i)->name();
      if (job->n_columns == 0 || std::any_of(job->columns, job->columns + job->n_columns, [&](const char* name) { return top == name; }))
        leaves.push_back(i);
    }
    Groups chosen;
    chosen.first = static_cast<int>(std::clamp<int64_t>(job->first_group, 0, metadata->num_row_groups()));
    const int64_t rest = metadata->num_row_groups() - chosen.first;
    chosen.count = static_cast<int>(job->n_groups < 0 ? rest : std::min(job->n_groups, rest));
    std::vector<int> groups(static_cast<size_t>(chosen.count));
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = chosen.first + static_cast<int>(i);
    ARROW_ASSIGN_OR_RAISE(auto arrow_reader, parquet::arrow::FileReader::Make(arrow::default_memory_pool(), std::move(reader), properties));
    // The batch reader refers to the file reader, so one object keeps both.
    std::shared_ptr<parquet::arrow::FileReader> keeper = std::move(arrow_reader);
    struct Kept final : arrow::RecordBatchReader {
      std::shared_ptr<parquet::arrow::FileReader> file;
      std::shared_ptr<arrow::RecordBatchReader> inner;
      [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override { return inner->schema(); }
      arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
        try {
          return inner->ReadNext(batch);
        } catch (const std::exception& e) {
          return arrow::Status::IOError(e.what());
        }
      }
    };
    const auto general = [keeper, groups, leaves]() -> arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> {
      auto kept = std::make_shared<Kept>();
      kept->file = keeper;
      ARROW_ASSIGN_OR_RAISE(kept->inner, keeper->GetRecordBatchReader(groups, leaves));
      return kept;
    };
    if (job->n_columns != 0) {
      std::shared_ptr<arrow::Schema> whole;
      ARROW_RETURN_NOT_OK(keeper->GetSchema(&whole));
      arrow::FieldVector fields;
      for (const int leaf : leaves)
        if (auto field = whole->GetFieldByName(metadata->schema()->GetColumnRoot(leaf)->name())) fields.push_back(std::move(field));
      std::unique_ptr<parquet::ParquetFileReader> again;
      ARROW_RETURN_NOT_OK(open(path, &again, metadata));
      if (auto numbers =
              NumberReader::make(std::move(again), arrow::schema(std::move(fields)), leaves, chosen, job->batch_rows, job->threads != 0, general))
        return arrow::ExportRecordBatchReader(std::move(numbers), out);
    }
    ARROW_ASSIGN_OR_RAISE(auto batches, general());
    return arrow::ExportRecordBatchReader(std::move(batches), out);
  });
}

__attribute__((visibility("default"))) int ffp_write(const char* path, struct ArrowArrayStream* in, int64_t rows_per_group, const char* compression,
                                                     const char* const* metadata, size_t n_metadata, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto batches, arrow::ImportRecordBatchReader(in));
    parquet::WriterProperties::Builder builder;
    builder.compression(codec_of(compression));
    builder.max_row_group_length(std::max<int64_t>(1, rows_per_group));
    auto schema = batches->schema();
    if (n_metadata != 0) {
      std::vector<std::string> keys, values;
      for (size_t i = 0; i < n_metadata; ++i) {
        keys.emplace_back(metadata[2 * i]);
        values.emplace_back(metadata[2 * i + 1]);
      }
      schema = schema->WithMetadata(arrow::key_value_metadata(std::move(keys), std::move(values)));
    }
    ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::FileOutputStream::Open(path));
    const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    ARROW_ASSIGN_OR_RAISE(auto writer,
                          parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), sink, builder.build(), arrow_properties));
    while (true) {
      std::shared_ptr<arrow::RecordBatch> batch;
      ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
      if (batch == nullptr) break;
      ARROW_ASSIGN_OR_RAISE(auto table, arrow::Table::FromRecordBatches(batch->schema(), {batch}));
      ARROW_RETURN_NOT_OK(writer->WriteTable(*table, std::max<int64_t>(1, rows_per_group)));
    }
    ARROW_RETURN_NOT_OK(writer->Close());
    return sink->Close();
  });
}

__attribute__((visibility("default"))) int ffp_rewrite(const char* path, const struct ffp_rewrite_job* job, char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> arrow::Status {
    std::shared_ptr<arrow::RecordBatchReader> columns;
    if (job->columns != nullptr) {
      ARROW_ASSIGN_OR_RAISE(columns, arrow::ImportRecordBatchReader(job->columns));
    }
    std::shared_ptr<arrow::Table> table;
    std::shared_ptr<const arrow::KeyValueMetadata> key_values;
    std::vector<std::shared_ptr<arrow::Table>> sources(job->n_paths);
    for (size_t i = 0; i < job->n_paths; ++i) ARROW_RETURN_NOT_OK(read_table(job->paths[i], &sources[i]));
    if (!sources.empty()) {
      key_values = sources.front()->schema()->metadata();
      auto options = arrow::ConcatenateTablesOptions::Defaults();
      options.unify_schemas = true;
      options.field_merge_options = arrow::Field::MergeOptions::Permissive();
      ARROW_ASSIGN_OR_RAISE(auto all, arrow::ConcatenateTables(sources, options));
      sources.clear();
      ARROW_RETURN_NOT_OK(take_rows(all, job->rows, job->n_rows, &table));
      for (size_t i = 0; i < job->n_drop; ++i) {
        const int at = table->schema()->GetFieldIndex(job->drop[i]);
        if (at >= 0) {
          ARROW_ASSIGN_OR_RAISE(table, table->RemoveColumn(at));
        }
      }
    }
    if (columns != nullptr) {
      ARROW_ASSIGN_OR_RAISE(auto added, arrow::Table::FromRecordBatchReader(columns.get()));
      if (added->num_rows() != job->n_rows) return arrow::Status::Invalid("columns of ", added->num_rows(), " rows for ", job->n_rows);
      if (table == nullptr)
        table = added;
      else
        for (int i = 0; i < added->num_columns(); ++i) ARROW_RETURN_NOT_OK(put_column(added->schema()->field(i), added->column(i), &table));
    }
    if (table == nullptr) return arrow::Status::Invalid("neither a source nor a column");
    auto metadata = key_values != nullptr ? key_values->Copy() : std::make_shared<arrow::KeyValueMetadata>();
    for (size_t i = 0; i < job->n_metadata; ++i) ARROW_RETURN_NOT_OK(metadata->Set(job->metadata[2 * i], job->metadata[2 * i + 1]));
    table = table->ReplaceSchemaMetadata(metadata);
    int64_t largest = 1;
    for (size_t i = 0; i < job->n_groups; ++i) largest = std::max(largest, job->group_rows[i]);
    parquet::WriterProperties::Builder builder;
    builder.compression(codec_of(job->compression))->max_row_group_length(largest);
    ARROW_ASSIGN_OR_RAISE(auto sink, arrow::io::FileOutputStream::Open(path));
    const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    ARROW_ASSIGN_OR_RAISE(auto writer,
                          parquet::arrow::FileWriter::Open(*table->schema(), arrow::default_memory_pool(), sink, builder.build(), arrow_properties));
    int64_t first = 0;
    for (size_t i = 0; i < job->n_groups; ++i) {
      if (job->group_rows[i] <= 0) continue;
      ARROW_RETURN_NOT_OK(writer->WriteTable(*table->Slice(first, job->group_rows[i]), job->group_rows[i]));
      first += job->group_rows[i];
    }
    if (first != table->num_rows()) return arrow::Status::Invalid("row groups of ", first, " rows for ", table->num_rows());
    ARROW_RETURN_NOT_OK(writer->Close());
    return sink->Close();
  });
}

}  // extern "C"
