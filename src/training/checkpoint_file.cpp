// Is a file of a checkpoint whole? Header and size are enough; no value is read.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/text.h"
#include "base/value.h"
#include "training/checkpoint.h"
#include "training/series.h"
#include "training/wire.h"

namespace ff::training {
namespace {

std::string safetensors_problem(std::string_view bytes) {
  const auto length = little<std::uint64_t>(bytes, 0);
  if (!length) return fmt::format("has {} bytes, too few for a safetensors file", bytes.size());
  if (*length > bytes.size() - 8) return fmt::format("its header should have {} bytes and {} are there: cut short", *length, bytes.size() - 8);
  if (*length > (100U << 20U)) return "its header is above 100 MiB: no safetensors file";
  const auto header = parse_json(bytes.substr(8, *length));
  if (!header || !header->is_object()) return "its header is no JSON object: damaged";
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : header->members()) {
    if (name == "__metadata__") continue;
    const auto& offsets = tensor["data_offsets"].items();
    if (offsets.size() != 2 || offsets[0].as_int(-1) < 0 || offsets[1].as_int(-1) < offsets[0].as_int(-1))
      return "tensor \"" + name.substr(0, 80) + "\" has no valid place";
    end = std::max(end, static_cast<std::uint64_t>(offsets[1].as_int()));
  }
  const std::uint64_t have = bytes.size() - 8 - *length;
  if (end > have) return fmt::format("its tensors need {} bytes and {} are there: cut short", end, have);
  if (end < have) return fmt::format("{} bytes stand behind the last tensor: damaged, or two writers at once", have - end);
  return {};
}

std::string zip_problem(std::string_view bytes) {
  // The end record is the last thing that is written; it stands within the last 64 KiB.
  const std::string_view tail = bytes.substr(bytes.size() > 66'000 ? bytes.size() - 66'000 : 0);
  const auto end = tail.rfind("PK\x05\x06");
  if (end == std::string_view::npos) return "has no end record: cut short while it was written";
  const auto size = little<std::uint32_t>(tail, end + 12), offset = little<std::uint32_t>(tail, end + 16);
  if (!size || !offset) return "its end record is cut short";
  if (*offset != 0xffffffffU && static_cast<std::uint64_t>(*offset) + *size > bytes.size())
    return "its directory lies beyond its end: cut short or damaged";
  return {};
}

}  // namespace

std::string content_problem(std::string_view name, std::string_view bytes, std::uint64_t file_size) {
  if (file_size == 0) return "is empty";
  if (bytes.starts_with("version https://git-lfs.github.com/spec/")) return "is a Git LFS pointer, not the data";
  const std::string low = lower(name);
  if (low.ends_with(".safetensors")) return safetensors_problem(bytes);
  if (low.ends_with(".json")) {
    const auto parsed = parse_json(quote_nonfinite(bytes));
    if (!parsed) return "is no whole JSON document: " + parsed.error().what;
    // What a state is written into is never empty.
    for (const char* state : {"rng_state", "scheduler_state", "training_step", "trainer_state"})
      if (low.starts_with(state) && parsed->members().empty() && parsed->items().empty() &&
          (parsed->is_object() || parsed->is_list() || parsed->is_null()))
        return "holds nothing: an empty JSON document";
    return {};
  }
  if (low.ends_with(".pt") || low.ends_with(".pth") || low.ends_with(".bin")) {
    if (bytes.starts_with("PK")) return zip_problem(bytes);
    if (bytes.find_first_not_of('\0') == std::string_view::npos) return "holds zeros only: space was reserved and never written";
  }
  return {};
}

Result<std::string> file_problem(const std::string& path) {
  const auto mapped = MappedFile::open(path);
  if (!mapped) return std::unexpected(mapped.error());
  return content_problem(std::filesystem::path(path).filename().string(), mapped->bytes(), mapped->bytes().size());
}

}  // namespace ff::training
