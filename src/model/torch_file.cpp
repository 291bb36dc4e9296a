#include "model/torch_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <map>

#include "elf/zip.h"

namespace ff::model {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view legacy_magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);  // LONG1 of 0x1950a86a20f9469cfc6c
constexpr std::uint64_t max_pickle_bytes = 1ULL << 30;

std::optional<Dtype> storage_dtype(std::string_view type) {
  static constexpr std::pair<std::string_view, Dtype> rows[] = {
      {"torch.FloatStorage", Dtype::f32},     {"torch.DoubleStorage", Dtype::f64},      {"torch.HalfStorage", Dtype::f16},
      {"torch.BFloat16Storage", Dtype::bf16}, {"torch.LongStorage", Dtype::i64},        {"torch.IntStorage", Dtype::i32},
      {"torch.ShortStorage", Dtype::i16},     {"torch.CharStorage", Dtype::i8},         {"torch.ByteStorage", Dtype::u8},
      {"torch.BoolStorage", Dtype::boolean},  {"torch.ComplexFloatStorage", Dtype::c64}};
  for (const auto& [name, dtype] : rows)
    if (name == type) return dtype;
  return std::nullopt;
}

std::uint32_t crc(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void take_imports(TorchFile& out, const PickleSurvey& survey) {
  for (const auto& i : survey.imports) {
    if (out.format == TorchFormat::torchscript && i.name.starts_with("__torch__")) continue;
    if (std::none_of(out.imports.begin(), out.imports.end(), [&](const PickleImport& known) { return known.name == i.name; }))
      out.imports.push_back(i);
  }
}

/// A tensor must lie inside its storage. Sizes that overflow do not.
bool inside(const PickleTensor& t, std::int64_t elements) {
  if (t.offset < 0 || t.shape.size() != t.stride.size()) return false;
  std::int64_t last = t.offset;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    if (t.shape[i] < 0 || t.stride[i] < 0) return false;
    if (t.shape[i] == 0) return true;
    std::int64_t step = 0;
    if (__builtin_mul_overflow(t.shape[i] - 1, t.stride[i], &step) || __builtin_add_overflow(last, step, &last)) return false;
  }
  return last < elements;
}

void damage(TorchFile& out, std::string what, std::string where, std::string remedy = {}, bool truncated = false) {
  if (out.damage.empty()) out.truncated = truncated;
  out.damage.push_back({std::move(what), std::move(where), std::move(remedy), 3});
}

void damage(TorchFile& out, const Error& error, bool truncated = false) {
  if (out.damage.empty()) out.truncated = truncated;
  out.damage.push_back(error);
}

void take_tensors(TorchFile& out, const PickleSurvey& survey, const std::map<std::string, std::size_t, std::less<>>& by_key, std::string_view where) {
  for (const auto& s : survey.storages) {
    const auto found = by_key.find(s.key);
    if (found == by_key.end()) {
      damage(out, fmt::format("storage {} is named and not in the file", s.key), std::string(where), "save or fetch the file again");
      continue;
    }
    TorchStorage& storage = out.storages[found->second];
    storage.type = s.type;
    storage.dtype = storage_dtype(s.type);
    if (!storage.dtype || s.elements < 0) continue;
    const std::uint64_t size = dtype_bits(*storage.dtype) / 8;
    if (static_cast<std::uint64_t>(s.elements) > UINT64_MAX / size || static_cast<std::uint64_t>(s.elements) * size != storage.bytes.size())
      damage(out, fmt::format("storage {} has {} bytes, {} elements of {} are stated", s.key, storage.bytes.size(), s.elements, s.type),
             std::string(where));
  }
  for (auto t : survey.tensors) {
    if (t.storage >= survey.storages.size()) continue;
    const PickleStorage& s = survey.storages[t.storage];
    const auto found = by_key.find(s.key);
    if (found == by_key.end()) continue;
    if (!inside(t, s.elements))
      damage(out, fmt::format("tensor \"{}\" reaches beyond its storage {} of {} elements", t.name, s.key, s.elements), std::string(where));
    t.storage = found->second;
    if (out.storages[found->second].tensor.empty()) out.storages[found->second].tensor = t.name;
    out.tensors.push_back(std::move(t));
  }
}

void read_zip(TorchFile& out, std::string_view bytes, std::string_view where, bool check_crc) {
  const auto members = elf::read_zip_directory(bytes);
  if (!members) {
    damage(out, fmt::format("{} ({} bytes are there)", members.error().what, bytes.size()), std::string(where),
           "the file is incomplete: fetch or save it again", true);
    return;
  }
  out.members = members->size();
  const auto below_top = [](std::string_view name) {
    const auto slash = name.find('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
  };
  for (const auto& m : *members)
    if (below_top(m.name).starts_with("code/") || below_top(m.name) == "constants.pkl") out.format = TorchFormat::torchscript;
  std::map<std::string, std::size_t, std::less<>> by_key;
  bool has_pickle = false;
  for (const auto& m : *members) {
    const auto name = below_top(m.name);
    if (!name.starts_with("data/")) continue;
    const auto content = m.method == 0 ? elf::open_zip_member(bytes, m)
                                       : Result<elf::ZipContent>(fail("is packed; PyTorch stores data as they are", std::string(m.name)));
    if (!content) {
      Error e = content.error();
      damage(out, fmt::format("member {}: {}", m.name, e.what), std::string(where), "fetch or save the file again");
      continue;
    }
    if (check_crc && crc(content->bytes()) != m.crc32)
      damage(out, fmt::format("member {} has another checksum than the archive states: its bytes were changed", m.name), std::string(where),
             "fetch the file again");
    by_key.emplace(std::string(name.substr(5)), out.storages.size());
    out.storages.push_back({std::string(name.substr(5)), {}, std::nullopt, content->bytes(), {}});
  }
  for (const auto& m : *members) {
    const auto name = below_top(m.name);
    if (!name.ends_with(".pkl")) continue;
    if (m.size > max_pickle_bytes) {
      damage(out, fmt::format("member {} claims {} bytes (limit {})", m.name, m.size, max_pickle_bytes), std::string(where));
      continue;
    }
    const auto content = elf::open_zip_member(bytes, m);
    if (!content) {
      damage(out, fmt::format("member {}: {}", m.name, content.error().what), std::string(where), "fetch or save the file again");
      continue;
    }
    if (crc(content->bytes()) != m.crc32)
      damage(out, fmt::format("member {} has another checksum than the archive states: its bytes were changed", m.name), std::string(where),
             "fetch the file again");
    const auto survey = read_pickle(content->bytes(), m.name);
    if (!survey) {
      damage(out, survey.error());
      continue;
    }
    has_pickle = has_pickle || name == "data.pkl";
    take_imports(out, *survey);
    if (name == "data.pkl") take_tensors(out, *survey, by_key, where);
  }
  if (!has_pickle && out.damage.empty())
    damage(out, "a zip archive without data.pkl: no PyTorch file", std::string(where), "give the file that torch.save wrote");
}

/// Magic number, protocol version, system information, the object, the storage keys; then each storage's length and data.
void read_legacy(TorchFile& out, std::string_view bytes, std::string_view where) {
  std::uint64_t at = 0;
  PickleSurvey object, keys;
  for (int i = 0; i < 5; ++i) {
    auto survey = read_pickle(bytes.substr(at, max_pickle_bytes), where);
    if (!survey) {
      damage(out, survey.error(), at + 64 >= bytes.size() || survey.error().what == "a pickle cut short");
      return;
    }
    at += survey->size;
    take_imports(out, *survey);
    if (i == 3)
      object = std::move(*survey);
    else if (i == 4)
      keys = std::move(*survey);
  }
  std::map<std::string, std::size_t, std::less<>> by_key;
  for (const auto& key : keys.string_list) {
    const auto known = std::find_if(object.storages.begin(), object.storages.end(), [&](const PickleStorage& s) { return s.key == key; });
    const auto dtype = known == object.storages.end() ? std::nullopt : storage_dtype(known->type);
    if (!dtype) return;  // lengths count elements, so the next storage cannot be found
    const auto count = elf::Bytes(bytes).number<std::uint64_t>(at);
    const std::uint64_t size = dtype_bits(*dtype) / 8;
    if (!count || *count > (bytes.size() - at - 8) / size) {
      damage(out, fmt::format("the file ends inside storage {}", key), std::string(where), "the file is incomplete: fetch or save it again", true);
      return;
    }
    by_key.emplace(key, out.storages.size());
    out.storages.push_back({key, {}, std::nullopt, bytes.substr(at + 8, *count * size), {}});
    at += 8 + *count * size;
  }
  take_tensors(out, object, by_key, where);
}

}  // namespace

std::string_view torch_format_name(TorchFormat format) {
  switch (format) {
    case TorchFormat::zip:
      return "PyTorch zip";
    case TorchFormat::torchscript:
      return "TorchScript program";
    case TorchFormat::legacy:
      return "PyTorch file of the old format (before 1.6)";
    case TorchFormat::tar:
      return "PyTorch tar file (before 0.2)";
    case TorchFormat::pickle:
      return "Python pickle";
  }
  return "?";
}

bool looks_like_torch(std::string_view bytes) {
  return bytes.starts_with("PK\3\4"sv) || (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) ||
         (bytes.size() > 262 && bytes.substr(257, 5) == "ustar");
}

TorchFile read_torch_file(std::string_view bytes, std::string_view where, bool check_crc) {
  TorchFile out;
  if (bytes.starts_with("PK\3\4"sv)) {
    read_zip(out, bytes, where, check_crc);
  } else if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar") {
    out.format = TorchFormat::tar;
  } else if (bytes.size() > 14 && bytes.substr(2, 12) == legacy_magic) {
    out.format = TorchFormat::legacy;
    read_legacy(out, bytes, where);
  } else {
    out.format = TorchFormat::pickle;
    const auto survey = read_pickle(bytes.substr(0, max_pickle_bytes), where);
    if (!survey)
      damage(out, survey.error(), survey.error().what == "a pickle cut short");
    else
      take_imports(out, *survey);
  }
  return out;
}

}  // namespace ff::model
