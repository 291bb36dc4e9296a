#include "training/weights_file.h"

#include <cstring>

#include "base/value.h"
#include "training/checkpoint.h"
#include "training/wire.h"

namespace ff::training {

std::vector<double> StoredTensor::values() const {
  std::vector<double> out;
  const auto read = [&]<class T>(T) {
    out.reserve(bytes.size() / sizeof(T));
    for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      out.push_back(static_cast<double>(value));
    }
  };
  if (type == "F32") read(float{});
  if (type == "F64") read(double{});
  return out;
}

Result<StoredTensors> StoredTensors::open(const std::string& path) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return std::unexpected(mapped.error());
  if (const std::string problem = content_problem("x.safetensors", mapped->bytes(), mapped->bytes().size()); !problem.empty())
    return fail(problem, path);
  StoredTensors out(std::move(*mapped));
  const std::string_view bytes = out.file_.bytes();
  // content_problem saw to it that length and offsets lie within the file.
  const auto length = *little<std::uint64_t>(bytes, 0);
  const auto header = parse_json(bytes.substr(8, length));
  if (!header) return std::unexpected(header.error());
  for (const auto& [name, tensor] : header->members()) {
    if (name == "__metadata__") continue;
    StoredTensor t;
    t.type = std::string(tensor["dtype"].as_text());
    t.elements = 1;
    for (const auto& n : tensor["shape"].items()) t.elements *= static_cast<std::uint64_t>(n.as_int(0));
    const auto from = static_cast<std::uint64_t>(tensor["data_offsets"].items()[0].as_int()),
               to = static_cast<std::uint64_t>(tensor["data_offsets"].items()[1].as_int());
    t.bytes = bytes.substr(8 + length + from, to - from);
    out.tensors_.emplace(name, std::move(t));
  }
  return out;
}

const StoredTensor* StoredTensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace ff::training
