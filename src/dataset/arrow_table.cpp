#include "dataset/arrow_table.h"

#include <cerrno>
#include <cstring>

#include "parquet/parquet_abi.h"

namespace ff::dataset {

/// One array of the interface: a column, or the element of a list column.
struct ArrowTable::Node {
  std::string format, name;
  std::int64_t length = 0;
  std::vector<std::vector<char>> buffers;  ///< without the validity bitmap, which is always absent
  std::vector<std::shared_ptr<const Node>> children;
};

namespace {

using Node = ArrowTable::Node;
using NodePointer = std::shared_ptr<const Node>;

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
  // A pointer is wanted even for no values, so never an empty buffer.
  std::vector<char> out(std::max<std::size_t>(1, values.size() * sizeof(T)));
  if (!values.empty()) std::memcpy(out.data(), values.data(), values.size() * sizeof(T));
  return out;
}

template <class T>
NodePointer numbers(std::string name, const char* format, const std::vector<T>& values) {
  auto node = std::make_shared<Node>();
  node->format = format;
  node->name = std::move(name);
  node->length = static_cast<std::int64_t>(values.size());
  node->buffers.push_back(bytes_of(values));
  return node;
}

/// `format`: "u" text, "z" bytes.
NodePointer text_node(std::string name, const std::vector<std::string>& values, const char* format = "u") {
  auto node = std::make_shared<Node>();
  node->format = format;
  node->name = std::move(name);
  node->length = static_cast<std::int64_t>(values.size());
  std::vector<std::int32_t> offsets{0};
  std::vector<char> characters;
  for (const auto& v : values) {
    characters.insert(characters.end(), v.begin(), v.end());
    offsets.push_back(static_cast<std::int32_t>(characters.size()));
  }
  node->buffers.push_back(bytes_of(offsets));
  node->buffers.push_back(bytes_of(characters));
  return node;
}

NodePointer list_node(std::string name, std::vector<std::int32_t> offsets, NodePointer element) {
  auto node = std::make_shared<Node>();
  node->format = "+l";
  node->name = std::move(name);
  node->length = static_cast<std::int64_t>(offsets.size()) - 1;
  node->buffers.push_back(bytes_of(offsets));
  node->children.push_back(std::move(element));
  return node;
}

template <class T>
std::pair<std::vector<std::int32_t>, std::vector<T>> flatten(const std::vector<std::vector<T>>& rows) {
  std::vector<std::int32_t> offsets{0};
  std::vector<T> flat;
  for (const auto& row : rows) {
    flat.insert(flat.end(), row.begin(), row.end());
    offsets.push_back(static_cast<std::int32_t>(flat.size()));
  }
  return {std::move(offsets), std::move(flat)};
}

// Each exported struct owns what it points to through its private data, children included.
struct SchemaKept {
  NodePointer node;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};
struct ArrayKept {
  NodePointer node;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
};

template <class Kept, class Struct>
void release(Struct* s) {
  for (std::int64_t i = 0; i < s->n_children; ++i)
    if (s->children[i]->release != nullptr) s->children[i]->release(s->children[i]);
  delete static_cast<Kept*>(s->private_data);
  s->release = nullptr;
}

void export_schema(const NodePointer& node, ArrowSchema* out) {
  auto* kept = new SchemaKept{node, std::vector<ArrowSchema>(node->children.size()), {}};
  for (std::size_t i = 0; i < node->children.size(); ++i) {
    export_schema(node->children[i], &kept->children[i]);
    kept->pointers.push_back(&kept->children[i]);
  }
  constexpr std::int64_t nullable = 2;
  *out = {node->format.c_str(),
          node->name.c_str(),
          nullptr,
          nullable,
          static_cast<std::int64_t>(kept->children.size()),
          kept->pointers.data(),
          nullptr,
          &release<SchemaKept, ArrowSchema>,
          kept};
}

void export_array(const NodePointer& node, ArrowArray* out) {
  auto* kept = new ArrayKept{node, {nullptr}, std::vector<ArrowArray>(node->children.size()), {}};
  for (const auto& buffer : node->buffers) kept->buffers.push_back(buffer.data());
  for (std::size_t i = 0; i < node->children.size(); ++i) {
    export_array(node->children[i], &kept->children[i]);
    kept->pointers.push_back(&kept->children[i]);
  }
  *out = {node->length,
          0,
          0,
          static_cast<std::int64_t>(kept->buffers.size()),
          static_cast<std::int64_t>(kept->children.size()),
          kept->buffers.data(),
          kept->pointers.data(),
          nullptr,
          &release<ArrayKept, ArrowArray>,
          kept};
}

struct StreamKept {
  NodePointer root;
  bool given = false;
};

}  // namespace

void ArrowTable::integers(std::string name, const std::vector<std::int64_t>& values) { columns_.push_back(numbers(std::move(name), "l", values)); }
void ArrowTable::reals(std::string name, const std::vector<double>& values) { columns_.push_back(numbers(std::move(name), "g", values)); }
void ArrowTable::floats(std::string name, const std::vector<float>& values) { columns_.push_back(numbers(std::move(name), "f", values)); }
void ArrowTable::texts(std::string name, const std::vector<std::string>& values) { columns_.push_back(text_node(std::move(name), values)); }

void ArrowTable::integer_lists(std::string name, const std::vector<std::vector<std::int64_t>>& rows) {
  auto [offsets, flat] = flatten(rows);
  columns_.push_back(list_node(std::move(name), std::move(offsets), numbers("element", "l", flat)));
}

void ArrowTable::real_lists(std::string name, const std::vector<std::vector<double>>& rows) {
  auto [offsets, flat] = flatten(rows);
  columns_.push_back(list_node(std::move(name), std::move(offsets), numbers("element", "g", flat)));
}

void ArrowTable::picture_lists(std::string name, const std::vector<std::vector<double>>& rows) {
  auto [offsets, flat] = flatten(rows);
  std::vector<std::int32_t> ones(flat.size() + 1);
  for (std::size_t k = 0; k < ones.size(); ++k) ones[k] = static_cast<std::int32_t>(k);
  auto inner = list_node("element", ones, numbers("element", "g", flat));
  columns_.push_back(list_node(std::move(name), std::move(offsets), list_node("element", std::move(ones), std::move(inner))));
}

void ArrowTable::text_lists(std::string name, const std::vector<std::vector<std::string>>& rows) {
  auto [offsets, flat] = flatten(rows);
  columns_.push_back(list_node(std::move(name), std::move(offsets), text_node("element", flat)));
}

void ArrowTable::float_rows(std::string name, std::int64_t width, const std::vector<float>& values) {
  std::vector<std::int32_t> offsets;
  for (std::int64_t i = 0; i <= static_cast<std::int64_t>(values.size()); i += width) offsets.push_back(static_cast<std::int32_t>(i));
  columns_.push_back(list_node(std::move(name), std::move(offsets), numbers("element", "f", values)));
}

void ArrowTable::pictures(std::string name, const std::vector<std::string>& bytes, const std::vector<std::string>& names) {
  auto node = std::make_shared<Node>();
  node->format = "+s";
  node->name = std::move(name);
  node->length = static_cast<std::int64_t>(bytes.size());
  node->children = {text_node("bytes", bytes, "z"), text_node("path", names)};
  columns_.push_back(std::move(node));
}

ArrowArrayStream ArrowTable::stream() const {
  auto root = std::make_shared<Node>();
  root->format = "+s";
  root->length = columns_.empty() ? 0 : columns_.front()->length;
  root->children = columns_;
  ArrowArrayStream out{};
  out.private_data = new StreamKept{std::move(root)};
  out.get_schema = [](ArrowArrayStream* s, ArrowSchema* schema) {
    export_schema(static_cast<StreamKept*>(s->private_data)->root, schema);
    return 0;
  };
  out.get_next = [](ArrowArrayStream* s, ArrowArray* array) {
    auto* kept = static_cast<StreamKept*>(s->private_data);
    if (kept->given)
      *array = {};
    else
      export_array(kept->root, array);
    kept->given = true;
    return 0;
  };
  out.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  out.release = [](ArrowArrayStream* s) {
    delete static_cast<StreamKept*>(s->private_data);
    s->release = nullptr;
  };
  return out;
}

}  // namespace ff::dataset
