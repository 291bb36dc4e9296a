// Weight files as listings, hex dumps and key lists show them; policy configurations.
//
//   file.magic                 safetensors, git-lfs, zip, html, parquet, mp4, gzip, pickle, zeros, json (of a hex dump)
//   safetensors.header_bytes   the length that the first eight bytes of a dumped safetensors file say
//   files.{weights,videos,parquet}.{min_bytes,empty,pointer_sized}   of `ls -l` listings
//   policy.config.{type,action_dim,state_dim,chunk_size,n_action_steps,cameras[i]}
//   policy.normalizer.features[i]   states and actions that a processor is to normalise (mode not IDENTITY)
//   weights.lora_prefix        what stands before "layers." (or the first numbered part) in the names of an adapter's tensors
//   weights.names_differ       first names of two lists, of the checkpoint and of the model, that end alike and begin differently
//   weights.module_prefix      the same for modules or tensors of the model that a text lists
//   normalizer.keys[i]              features for which statistics are stored

#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "diagnosis/extract_parts.h"
#include "diagnosis/extract_support.h"

namespace ff::diagnosis {

namespace {

re2::StringPiece piece(std::string_view s) { return {s.data(), s.size()}; }

constexpr std::size_t max_keys = 512;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Bytes of one dump line after its offset: "9049 7c07" (xxd) or "90 49 7c 07" (hexdump -C). At most 16.
std::string dump_bytes(std::string_view line) {
  std::string out;
  std::size_t i = 0;
  while (i < line.size() && out.size() < 16) {
    if (line[i] == ' ') {
      if (line.substr(i, 2) == "  " && !out.empty() && out.size() != 8) break;  // the text column follows
      ++i;
      continue;
    }
    if (line[i] == '|' || i + 1 >= line.size()) break;
    const int high = hex_digit(line[i]), low = hex_digit(line[i + 1]);
    if (high < 0 || low < 0) break;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool begins(const std::string& bytes, std::string_view with, std::size_t at = 0) {
  return bytes.size() >= at + with.size() && bytes.compare(at, with.size(), with) == 0;
}

std::string magic_of(const std::string& bytes) {
  if (bytes.size() < 8) return {};
  if (begins(bytes, "version ")) return "git-lfs";
  if (begins(bytes, "PK\x03\x04")) return "zip";
  if (begins(bytes, "PAR1")) return "parquet";
  if (begins(bytes, "ftyp", 4)) return "mp4";
  if (begins(bytes, "\x1f\x8b")) return "gzip";
  if (begins(bytes, "\x80\x02") || begins(bytes, "\x80\x04")) return "pickle";
  if (begins(bytes, "<!DOC") || begins(bytes, "<!doc") || begins(bytes, "<html") || begins(bytes, "<HTML")) return "html";
  if (bytes.find_first_not_of('\0') == std::string::npos) return "zeros";
  if (bytes[0] == '{') return "json";
  if (bytes.size() > 8 && bytes[8] == '{') return "safetensors";
  return {};
}

void read_dumps(std::string_view text, FactSink& sink) {
  static const RE2 first(R"(^\s*0{4,16}:?\s+([0-9a-fA-F]{2}.*))");
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    std::string rest;
    if (!RE2::PartialMatch(piece(line), first, &rest)) return;
    const std::string bytes = dump_bytes(rest);
    const std::string magic = magic_of(bytes);
    if (magic.empty()) return;
    sink.add("file.magic", magic, number, line);
    if (magic != "safetensors") return;
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    if (length < (std::uint64_t{1} << 53)) sink.number("safetensors.header_bytes", static_cast<double>(length), number, line);
  });
}

struct Sizes {
  double smallest = -1, empty = 0, pointers = 0;
};

void read_listings(std::string_view text, FactSink& sink) {
  static const RE2 entry(
      R"(^[-l][rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+(\d{1,15})\s+\S.*?([^\s/]+\.(safetensors|bin|pt|pth|ckpt|mp4|parquet))\s*$)");
  std::map<std::string, Sizes> kinds;
  for_each_line(text, [&](std::uint64_t, std::string_view line) {
    if (line.size() < 12 || line[0] != '-') return;
    std::int64_t size = 0;
    std::string name, suffix;
    if (!RE2::FullMatch(piece(line), entry, &size, &name, &suffix)) return;
    Sizes& kind = kinds[suffix == "mp4" ? "videos" : suffix == "parquet" ? "parquet" : "weights"];
    if (kind.smallest < 0 || static_cast<double>(size) < kind.smallest) kind.smallest = static_cast<double>(size);
    if (size == 0) ++kind.empty;
    if (size >= 120 && size <= 140) ++kind.pointers;  // a pointer has three lines: 127 to 136 bytes
  });
  for (const auto& [name, kind] : kinds) {
    sink.number("files." + name + ".min_bytes", kind.smallest);
    sink.number("files." + name + ".empty", kind.empty);
    sink.number("files." + name + ".pointer_sized", kind.pointers);
  }
}

void read_policy(const Document& document, FactSink& sink) {
  const Value& config = document.value;
  if (config["type"].is_text()) sink.add("policy.config.type", config["type"], document.line);
  for (std::string_view key : {"chunk_size", "n_action_steps", "max_action_dim", "max_state_dim"})
    if (const auto number = scalar(config[key])) sink.number("policy.config." + std::string(key), *number, document.line);
  int camera = 0;
  for (const auto& [name, feature] : config["input_features"].members()) {
    if (feature["type"].as_text() == "VISUAL" && camera < 32)
      sink.add("policy.config.cameras[" + std::to_string(camera++) + "]", name, document.line);
    const auto shape = flat_numbers(feature["shape"]);
    if (feature["type"].as_text() == "STATE" && shape.size() == 1) sink.number("policy.config.state_dim", shape[0], document.line);
  }
  for (const auto& [name, feature] : config["output_features"].members()) {
    const auto shape = flat_numbers(feature["shape"]);
    if (feature["type"].as_text() == "ACTION" && shape.size() == 1) sink.number("policy.config.action_dim", shape[0], document.line);
  }
}

void read_processor(const Document& document, FactSink& sink) {
  int count = 0;
  for (const Value& step : document.value["steps"].items()) {
    const std::string_view name = step["registry_name"].as_text();
    if (name != "normalizer_processor" && name != "unnormalizer_processor") continue;
    const Value& config = step["config"];
    for (const auto& [feature, description] : config["features"].members()) {
      const std::string_view type = description["type"].as_text();
      const std::string_view mode = config["norm_map"][type].as_text();
      if ((type != "STATE" && type != "ACTION") || mode.empty() || mode == "IDENTITY" || count >= 64) continue;
      sink.add("policy.normalizer.features[" + std::to_string(count++) + "]", feature, document.line);
    }
  }
}

/// Keys of a statistics file, one a line or in a printed list: "action.mean", "so100.buffer.action.mean".
void read_keys(std::string_view text, FactSink& sink) {
  static const RE2 key(R"((?:^|[\s'\"\[,])([A-Za-z][\w./-]*)\.(?:mean|std|min|max|q01|q10|q90|q99)(?:$|[\s'\"\],:]))");
  std::set<std::string> seen;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.find("normalize_") != std::string_view::npos || line.find('(') != std::string_view::npos) return;  // weights, code
    re2::StringPiece rest = piece(line);
    std::string name;
    while (seen.size() < max_keys && RE2::FindAndConsume(&rest, key, &name)) {
      if (name.find("action") == std::string::npos && name.find("observation") == std::string::npos && name.find("state") == std::string::npos)
        continue;
      if (seen.insert(name).second) sink.add("normalizer.keys[" + std::to_string(seen.size() - 1) + "]", name, number, line);
    }
  });
}

/// Names up to the first number: "language_model.model.layers" of an adapter, "model.layers" of the model.
void read_prefixes(std::string_view text, FactSink& sink) {
  static const RE2 adapter(R"(\bbase_model\.model\.([A-Za-z_][\w.]*?)\.\d+\.[\w.]*lora_[AB])");
  static const RE2 module(R"((?:^|[\s'\"\[,])([A-Za-z_][\w.]*?)\.\d+\.[\w.]*(?:_proj|_attn|mlp|norm|dense|fc\d?)\w*(?:\.weight|\.bias)?['\"\s,\]])");
  std::set<std::string> adapters, modules;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 16'384) return;
    std::string name;
    if (RE2::PartialMatch(piece(line), adapter, &name)) {
      if (adapters.size() < 8 && adapters.insert(name).second) sink.add("weights.lora_prefix", name, number, line);
      return;
    }
    if (line.find("lora_") != std::string_view::npos) return;
    if (RE2::PartialMatch(piece(std::string(line) + " "), module, &name) && modules.size() < 8 && modules.insert(name).second)
      sink.add("weights.module_prefix", name, number, line);
  });
}

/// "checkpoint keys" and "model keys" with names below: the first part of each that the other does not begin with.
void read_key_lists(std::string_view text, FactSink& sink) {
  static const RE2 heading(R"((?i)\b(checkpoint|state_dict|saved|file|model|expected|module)\b.{0,20}\b(?:keys|names|parameters|tensors)\b)");
  static const RE2 name_line(R"(^\W*((?:[A-Za-z_]\w*\.){2,}[\w.]+)\W*$)");
  std::string list, saved, wanted;
  std::uint64_t at = 0;
  for_each_line(text, [&](std::uint64_t number, std::string_view line) {
    if (line.size() > 1000) return;
    std::string name;
    if (RE2::FullMatch(piece(trim(line)), name_line, &name)) {
      std::string& to = list == "model" ? wanted : saved;
      if (!list.empty() && to.empty()) {
        to = name;
        at = number;
      }
      return;
    }
    if (RE2::PartialMatch(piece(line), heading, &name)) {
      const std::string word = lower(name);
      list = word == "model" || word == "expected" || word == "module" ? "model" : "saved";
    }
  });
  if (saved.empty() || wanted.empty() || saved == wanted) return;
  const bool one_in_other = saved.ends_with("." + wanted) || wanted.ends_with("." + saved);
  if (one_in_other || saved.substr(saved.find_last_of('.')) == wanted.substr(wanted.find_last_of('.')))
    sink.add("weights.names_differ", saved + " / " + wanted, at);
}

}  // namespace

void extract_model(std::string_view text, std::string_view source, Facts& out) {
  FactSink sink(source, out);
  if (text.find("0000") != std::string_view::npos) read_dumps(text, sink);
  if (text.find("-rw") != std::string_view::npos || text.find("-r--") != std::string_view::npos) read_listings(text, sink);
  if (text.find(".mean") != std::string_view::npos || text.find(".std") != std::string_view::npos || text.find(".q01") != std::string_view::npos ||
      text.find(".min") != std::string_view::npos)
    read_keys(text, sink);
  if (text.find(" keys") != std::string_view::npos || text.find(" names") != std::string_view::npos) read_key_lists(text, sink);
  if (text.find("lora_") != std::string_view::npos || text.find("_proj") != std::string_view::npos) read_prefixes(text, sink);
  const bool config = text.find("\"input_features\"") != std::string_view::npos || text.find("\"output_features\"") != std::string_view::npos;
  const bool processor = text.find("normalizer_processor\"") != std::string_view::npos;
  if (!config && !processor) return;
  for (const Document& document : json_documents(text)) {
    if (document.value["input_features"].is_object() || document.value["output_features"].is_object()) read_policy(document, sink);
    if (document.value["policy"]["input_features"].is_object()) read_policy({document.value["policy"], document.line}, sink);
    if (document.value["steps"].is_list()) read_processor(document, sink);
  }
}

}  // namespace ff::diagnosis
