#include "dataset/parquet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <future>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "base/dynlib.h"
#include "base/text.h"
#include "dataset/parquet_api.h"

namespace ff::dataset {
namespace {

constexpr std::size_t message_size = 2048;

std::string program_directory() {
  std::array<char, 4096> buffer{};
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  if (n <= 0) return ".";
  const std::string path(buffer.data(), static_cast<std::size_t>(n));
  return path.substr(0, path.rfind('/'));
}

/// The element type of an Arrow format code; lists are handled by the caller.
ElementType element_type(std::string_view format) {
  static const std::map<std::string_view, ElementType> codes{
      {"c", ElementType::i8},      {"s", ElementType::i16},  {"i", ElementType::i32},  {"l", ElementType::i64},  {"C", ElementType::u8},
      {"S", ElementType::u16},     {"I", ElementType::u32},  {"L", ElementType::u64},  {"f", ElementType::f32},  {"g", ElementType::f64},
      {"b", ElementType::boolean}, {"u", ElementType::text}, {"U", ElementType::text}, {"z", ElementType::text}, {"Z", ElementType::text}};
  const auto found = codes.find(format);
  return found != codes.end() ? found->second : ElementType::other;
}

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::i8:
    case ElementType::u8:
      return 1;
    case ElementType::i16:
    case ElementType::u16:
      return 2;
    case ElementType::i32:
    case ElementType::u32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::u64:
    case ElementType::f64:
      return 8;
    case ElementType::boolean:
    case ElementType::text:
    case ElementType::other:
      return 0;
  }
  return 0;
}

bool bit(const void* bits, std::int64_t i) { return ((static_cast<const std::uint8_t*>(bits)[i / 8] >> (i % 8)) & 1) != 0; }

/// Counts missing elements among `length` elements from `offset`; says where the first is.
void count_nulls(const ArrowArray& array, std::int64_t offset, std::int64_t length, std::int64_t per_row, ColumnView& view) {
  if (array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr) return;
  for (std::int64_t i = 0; i < length; ++i) {
    if (bit(array.buffers[0], offset + i)) continue;
    ++view.nulls;
    const std::int64_t row = per_row > 0 ? i / per_row : i;
    if (view.first_null < 0 || row < view.first_null) view.first_null = row;
  }
}

void set_values(const ArrowArray& array, std::int64_t first, ColumnView& view) {
  if (array.n_buffers < 2) return;
  if (view.type == ElementType::boolean) {
    view.values = array.buffers[1];
    view.bit_offset = first;
  } else if (view.type == ElementType::text) {
    view.characters = array.n_buffers > 2 ? static_cast<const char*>(array.buffers[2]) : nullptr;
  } else if (view.type != ElementType::other) {
    view.values = static_cast<const char*>(array.buffers[1]) + static_cast<std::size_t>(first) * element_size(view.type);
  }
}

/// Positions of texts from element `first` on.
void set_offsets(const ArrowArray& array, std::int64_t first, bool narrow, ColumnView& view) {
  if (array.n_buffers < 3) return;
  if (narrow)
    view.offsets = static_cast<const std::int32_t*>(array.buffers[1]) + first;
  else
    view.long_offsets = static_cast<const std::int64_t*>(array.buffers[1]) + first;
}

ColumnView view_of(const ArrowSchema& schema, const ArrowArray& array) {
  ColumnView view;
  view.rows = array.length;
  const std::string_view format = schema.format;
  count_nulls(array, array.offset, array.length, 1, view);
  if (format.starts_with("+w:") && schema.n_children == 1 && array.n_children == 1) {
    view.is_list = true;
    view.width = to_integer(format.substr(3)).value_or(0);
    view.type = element_type(schema.children[0]->format);
    const ArrowArray& child = *array.children[0];
    const std::int64_t first = child.offset + array.offset * view.width;
    count_nulls(child, first, array.length * view.width, view.width, view);
    set_values(child, first, view);
    return view;
  }
  if (format == "+l" && schema.n_children == 1 && array.n_children == 1) {
    view.is_list = true;
    const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]) + array.offset;
    view.offsets = offsets;
    view.width = array.length > 0 ? offsets[1] - offsets[0] : 0;
    for (std::int64_t i = 1; i < array.length; ++i)
      if (offsets[i + 1] - offsets[i] != view.width) {
        view.ragged_row = i;
        view.ragged_width = offsets[i + 1] - offsets[i];
        view.width = -1;
        break;
      }
    std::int64_t first = array.length > 0 ? offsets[0] : 0;
    std::int64_t count = array.length > 0 ? offsets[array.length] - offsets[0] : 0;
    const ArrowSchema* element = schema.children[0];
    const ArrowArray* child = array.children[0];
    // Arrays of more than one dimension: lists of lists of one length each, whose values lie one after another.
    while (std::string_view(element->format) == "+l" && element->n_children == 1 && child->n_children == 1 && view.width > 0 && count > 0) {
      const auto* inner = static_cast<const std::int32_t*>(child->buffers[1]) + child->offset + first;
      const std::int64_t each = inner[1] - inner[0];
      bool even = child->null_count == 0 && each > 0;
      for (std::int64_t i = 1; i < count && even; ++i) even = inner[i + 1] - inner[i] == each;
      if (!even) return view;
      view.width *= each;
      first = inner[0];
      count *= each;
      element = element->children[0];
      child = child->children[0];
    }
    view.type = element_type(element->format);
    count_nulls(*child, child->offset + first, count, view.width, view);
    set_values(*child, child->offset + first, view);
    if (view.type == ElementType::text && std::string_view(element->format) == "u" && child->n_buffers > 2)
      view.element_offsets = static_cast<const std::int32_t*>(child->buffers[1]) + child->offset + first;
    return view;
  }
  if (format == "+s") {  // an encoded picture: {bytes, path}
    for (std::int64_t i = 0; i < schema.n_children && i < array.n_children; ++i) {
      const std::string_view child = schema.children[i]->format;
      if (std::string_view(schema.children[i]->name) != "bytes" || (child != "z" && child != "Z")) continue;
      const ArrowArray& bytes = *array.children[i];
      count_nulls(bytes, bytes.offset + array.offset, array.length, 1, view);
      view.type = ElementType::text;
      set_offsets(bytes, bytes.offset + array.offset, child == "z", view);
      set_values(bytes, 0, view);
    }
    return view;
  }
  view.type = element_type(format);
  if (view.type == ElementType::text) set_offsets(array, array.offset, format == "u" || format == "z", view);
  set_values(array, array.offset, view);
  return view;
}

}  // namespace

std::string_view element_type_name(ElementType type) {
  constexpr std::array<std::string_view, 13> names{"int8",   "int16",   "int32",   "int64", "uint8",  "uint16", "uint32",
                                                   "uint64", "float32", "float64", "bool",  "string", "other"};
  return names[static_cast<std::size_t>(type)];
}

double ColumnView::real(std::int64_t i) const {
  switch (type) {
    case ElementType::f32:
      return data<float>()[i];
    case ElementType::f64:
      return data<double>()[i];
    case ElementType::text:
    case ElementType::other:
      return std::numeric_limits<double>::quiet_NaN();
    default:
      return static_cast<double>(integer(i));
  }
}

std::int64_t ColumnView::integer(std::int64_t i) const {
  switch (type) {
    case ElementType::i8:
      return data<std::int8_t>()[i];
    case ElementType::i16:
      return data<std::int16_t>()[i];
    case ElementType::i32:
      return data<std::int32_t>()[i];
    case ElementType::i64:
      return data<std::int64_t>()[i];
    case ElementType::u8:
      return data<std::uint8_t>()[i];
    case ElementType::u16:
      return data<std::uint16_t>()[i];
    case ElementType::u32:
      return data<std::uint32_t>()[i];
    case ElementType::u64:
      return static_cast<std::int64_t>(data<std::uint64_t>()[i]);
    case ElementType::boolean:
      return bit(values, bit_offset + i) ? 1 : 0;
    case ElementType::f32:
    case ElementType::f64: {
      const double v = real(i);
      // Out of range is undefined behaviour in C++, so it becomes the smallest number, which no index ever is.
      return std::abs(v) < 9e18 ? static_cast<std::int64_t>(v) : std::numeric_limits<std::int64_t>::min();
    }
    case ElementType::text:
    case ElementType::other:
      return 0;
  }
  return 0;
}

std::vector<std::string> ColumnView::texts(std::int64_t row) const {
  std::vector<std::string> out;
  if (element_offsets == nullptr || characters == nullptr || offsets == nullptr) return out;
  for (std::int64_t i = offsets[row] - offsets[0]; i < offsets[row + 1] - offsets[0]; ++i)
    out.emplace_back(characters + element_offsets[i], static_cast<std::size_t>(element_offsets[i + 1] - element_offsets[i]));
  return out;
}

std::string_view ColumnView::text(std::int64_t row) const {
  if (type != ElementType::text || characters == nullptr) return {};
  const std::int64_t from = offsets != nullptr ? offsets[row] : long_offsets != nullptr ? long_offsets[row] : 0;
  const std::int64_t to = offsets != nullptr ? offsets[row + 1] : long_offsets != nullptr ? long_offsets[row + 1] : 0;
  return {characters + from, static_cast<std::size_t>(to - from)};
}

const ParquetInfo::Column* ParquetInfo::column(std::string_view name) const {
  for (const auto& c : columns)
    if (c.name == name) return &c;
  return nullptr;
}

Result<Parquet> Parquet::load() {
  constexpr std::string_view remedy =
      "keep firstfault-parquet.so and firstfault-arrow/ beside the program (./dev build makes both; the pyarrow wheel brings Arrow)";
  const char* chosen = std::getenv("FIRSTFAULT_PARQUET");  // NOLINT(concurrency-mt-unsafe): read before any thread starts
  const std::string path = chosen != nullptr && *chosen != '\0' ? std::string(chosen) : program_directory() + "/firstfault-parquet.so";
  auto library = DynamicLibrary::open({path});
  if (!library) return fail("Parquet files cannot be read: " + library.error().what, path, std::string(remedy));
  auto* abi_version = library->function<int()>("ffp_abi_version");
  if (abi_version == nullptr || abi_version() != FFP_ABI_VERSION)
    return fail("Parquet files cannot be read: the library belongs to another version of FirstFault", path, std::string(remedy));
  auto api = std::make_shared<Api>();
  api->inspect = reinterpret_cast<ffp_inspect_fn>(library->find("ffp_inspect"));
  api->free = reinterpret_cast<ffp_free_fn>(library->find("ffp_free"));
  api->scan = reinterpret_cast<ffp_scan_fn>(library->find("ffp_scan"));
  api->write = reinterpret_cast<ffp_write_fn>(library->find("ffp_write"));
  api->rewrite = reinterpret_cast<ffp_rewrite_fn>(library->find("ffp_rewrite"));
  const auto version = reinterpret_cast<ffp_arrow_version_fn>(library->find("ffp_arrow_version"));
  if (api->inspect == nullptr || api->free == nullptr || api->scan == nullptr || api->write == nullptr || api->rewrite == nullptr ||
      version == nullptr)
    return fail("Parquet files cannot be read: the library is incomplete", path, std::string(remedy));
  api->arrow_version = version();
  api->library = path;
  return Parquet(std::move(api));
}

const std::string& Parquet::arrow_version() const { return api_->arrow_version; }

Result<ParquetInfo> Parquet::inspect(const std::string& path) const {
  std::array<char, message_size> message{};
  char* json = nullptr;
  if (api_->inspect(path.c_str(), &json, message.data(), message.size()) != 0)
    return fail(std::string("is no readable Parquet file: ") + message.data(), path);
  auto document = parse_json(json, path);
  api_->free(json);
  if (!document) return std::unexpected(document.error());
  ParquetInfo info;
  info.rows = (*document)["rows"].as_int();
  for (const auto& rows : (*document)["row_groups"].items()) info.row_groups.push_back(rows.as_int());
  for (const auto& field : (*document)["schema"].items())
    info.columns.push_back({std::string(field["name"].as_text()), std::string(field["type"].as_text())});
  info.metadata = (*document)["metadata"];
  return info;
}

Result<void> Parquet::rewrite(const std::string& path, const Rewrite& job) const {
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    out.reserve(texts.size());
    for (const auto& t : texts) out.push_back(t.c_str());
    return out;
  };
  const auto paths = pointers(job.paths);
  const auto drop = pointers(job.drop);
  std::vector<const char*> metadata;
  for (const auto& [key, value] : job.metadata) {
    metadata.push_back(key.c_str());
    metadata.push_back(value.c_str());
  }
  std::vector<std::int64_t> groups = job.group_rows;
  if (groups.empty()) groups.push_back(job.rows.size());
  ArrowArrayStream stream = job.columns.stream();
  ffp_rewrite_job c{paths.data(),  paths.size(),  job.rows.data(), static_cast<std::int64_t>(job.rows.size()),
                    groups.data(), groups.size(), nullptr,         drop.data(),
                    drop.size(),   "snappy",      metadata.data(), job.metadata.size()};
  if (job.columns.columns() > 0) c.columns = &stream;
  std::array<char, message_size> message{};
  const int failed = api_->rewrite(path.c_str(), &c, message.data(), message.size());
  if (stream.release != nullptr) stream.release(&stream);
  if (failed != 0) return fail(std::string("cannot be written: ") + message.data(), path);
  return {};
}

struct Parquet::Scan::State {
  std::shared_ptr<const Api> api;
  std::string path;
  ArrowArrayStream stream{};
  ArrowSchema schema{};
  ArrowArray batch{};
  std::vector<std::pair<std::string, ColumnView>> columns;
  bool ahead = false;   ///< the next batch is decoded while the caller works on this one
  ArrowArray coming{};  ///< written by `decoding`
  std::future<int> decoding;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (decoding.valid()) decoding.wait();
    for (auto* array : {&batch, &coming})
      if (array->release != nullptr) array->release(array);
    if (schema.release != nullptr) schema.release(&schema);
    if (stream.release != nullptr) stream.release(&stream);
  }

  /// The next batch into `batch`; an errno, and no batch at the end.
  int advance() {
    if (batch.release != nullptr) batch.release(&batch);
    batch = {};
    if (!ahead) return stream.get_next(&stream, &batch);
    const auto start = [this] {
      coming = {};
      try {
        decoding = std::async(std::launch::async, [this] { return stream.get_next(&stream, &coming); });
      } catch (const std::system_error&) {  // no thread to be had
        ahead = false;
      }
    };
    if (!decoding.valid()) start();
    if (!decoding.valid()) return stream.get_next(&stream, &batch);
    const int failed = decoding.get();
    batch = std::exchange(coming, {});
    if (failed == 0 && batch.release != nullptr)
      start();
    else
      ahead = false;
    return failed;
  }
};

Parquet::Scan::Scan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Parquet::Scan::Scan(Scan&&) noexcept = default;
Parquet::Scan& Parquet::Scan::operator=(Scan&&) noexcept = default;
Parquet::Scan::~Scan() = default;

Result<Parquet::Scan> Parquet::scan(const std::string& path, const std::vector<std::string>& columns, std::int64_t batch_rows, bool threads,
                                    RowGroups groups) const {
  auto state = std::make_unique<Scan::State>();
  state->api = api_;
  state->path = path;
  std::vector<const char*> names;
  names.reserve(columns.size());
  for (const auto& name : columns) names.push_back(name.c_str());
  std::array<char, message_size> message{};
  const ffp_scan_job job{names.data(), names.size(), batch_rows, groups.first, groups.count, threads ? 1 : 0};
  if (api_->scan(path.c_str(), &job, &state->stream, message.data(), message.size()) != 0)
    return fail(std::string("cannot be read: ") + message.data(), path);
  if (state->stream.get_schema(&state->stream, &state->schema) != 0) {
    const char* why = state->stream.get_last_error(&state->stream);
    return fail(std::string("cannot be read: ") + (why != nullptr ? why : "no schema"), path);
  }
  state->ahead = threads;
  return Scan(std::move(state));
}

Result<bool> Parquet::Scan::next() {
  State& s = *state_;
  s.columns.clear();
  if (s.advance() != 0) {
    const char* why = s.stream.get_last_error(&s.stream);
    return fail(std::string("cannot be decoded: ") + (why != nullptr ? why : "unknown error"), s.path,
                "the file is damaged or incomplete: copy it again from its source");
  }
  if (s.batch.release == nullptr) return false;
  for (std::int64_t i = 0; i < s.batch.n_children && i < s.schema.n_children; ++i)
    s.columns.emplace_back(s.schema.children[i]->name, view_of(*s.schema.children[i], *s.batch.children[i]));
  return true;
}

std::int64_t Parquet::Scan::rows() const { return state_->batch.length; }

const ColumnView* Parquet::Scan::column(std::string_view name) const {
  for (const auto& [own, view] : state_->columns)
    if (own == name) return &view;
  return nullptr;
}

}  // namespace ff::dataset
