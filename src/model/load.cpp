#include "model/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "python/python.h"

namespace ff::model {
namespace fs = std::filesystem;
namespace {

constexpr unsigned checksum_threads = 2;
constexpr std::size_t max_sentences = 200;

/// safetensors' and torch's names of a type.
std::string_view torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return "bool";
    case Dtype::u8:
      return "uint8";
    case Dtype::i8:
      return "int8";
    case Dtype::i16:
      return "int16";
    case Dtype::u16:
      return "uint16";
    case Dtype::i32:
      return "int32";
    case Dtype::u32:
      return "uint32";
    case Dtype::i64:
      return "int64";
    case Dtype::u64:
      return "uint64";
    case Dtype::f16:
      return "float16";
    case Dtype::bf16:
      return "bfloat16";
    case Dtype::f32:
      return "float32";
    case Dtype::f64:
      return "float64";
    case Dtype::c64:
      return "complex64";
    case Dtype::f8_e5m2:
      return "float8_e5m2";
    case Dtype::f8_e4m3:
      return "float8_e4m3fn";
    case Dtype::f8_e8m0:
      return "float8_e8m0fnu";
    case Dtype::f8_e4m3fnuz:
      return "float8_e4m3fnuz";
    case Dtype::f8_e5m2fnuz:
      return "float8_e5m2fnuz";
    case Dtype::f4:
    case Dtype::f6_e2m3:
    case Dtype::f6_e3m2:
      return "";  // torch packs them; their shape differs too
  }
  return "";
}

LoaderKind kind_of(const Survey& s) {
  if (!s.is_directory) return LoaderKind::plain;
  if (s.is_lerobot) return LoaderKind::lerobot;
  return s.has("config.json") && s.config["model_type"].is_text() ? LoaderKind::transformers : LoaderKind::plain;
}

LoadStage* open_stage(LoadOutcome& out, std::string_view name) {
  for (auto it = out.stages.rbegin(); it != out.stages.rend(); ++it)
    if (it->name == name && !it->ended) return &*it;
  return nullptr;
}

void take_memory(LoadStage& stage, const Value& line) {
  stage.host_peak_bytes = line["host_peak_bytes"].as_int(-1);
  stage.device_peak_bytes = line["device_peak_bytes"].as_int(-1);
  stage.device_reserved_bytes = line["device_reserved_bytes"].as_int(-1);
}

std::string shape_text(const Value& shape) {
  std::vector<std::string> out;
  for (const auto& n : shape.items()) out.push_back(std::to_string(n.as_int()));
  return "[" + join(out, ", ") + "]";
}

std::string different_text(const Value& line) {
  const auto name = line["tensor"].as_text();
  const auto why = line["why"].as_text();
  if (why == "shape")
    return line["file_shape"].items().empty() && line["model_shape"].items().empty()
               ? fmt::format("\"{}\" has another shape in the model", name)
               : fmt::format("\"{}\" has shape {} in the file and {} in the model", name, shape_text(line["file_shape"]),
                             shape_text(line["model_shape"]));
  if (why == "cast")
    return fmt::format("\"{}\" is {} in the file and {} in the model, with other values than the cast gives", name, line["file_dtype"].as_text(),
                       line["model_dtype"].as_text());
  return fmt::format("\"{}\" has other values in the model than in the file", name);
}

}  // namespace

std::string_view loader_kind_name(LoaderKind kind) {
  switch (kind) {
    case LoaderKind::lerobot:
      return "lerobot";
    case LoaderKind::transformers:
      return "transformers";
    case LoaderKind::plain:
      return "plain";
  }
  return "plain";
}

bool LoadOutcome::reached(std::string_view stage) const {
  return std::any_of(stages.begin(), stages.end(), [&](const LoadStage& s) { return s.name == stage && s.ended; });
}

std::string LoadOutcome::failed_place() const {
  if (error_type.empty() && died.empty()) return {};
  const auto* last = last_stage();
  // A package that is missing is missing in the environment, whatever the model is.
  const bool missing = error_type == "ModuleNotFoundError" || error_type == "ImportError";
  if (last == nullptr || last->name == "import" || last->name == "device" || missing) return "framework";
  // A child that dies between two stages dies while it ends or begins one.
  return last->name == "transfer" || last->name == "back" ? "transfer" : "cpu";
}

LoadOutcome read_load_records(const std::vector<Value>& records, const std::vector<NamedTensor>& expected, const std::vector<std::uint32_t>& sums) {
  LoadOutcome out;
  std::multimap<std::pair<std::string_view, std::string_view>, std::size_t> by_name;  // file and name
  for (std::size_t i = 0; i < expected.size(); ++i)
    by_name.emplace(std::pair<std::string_view, std::string_view>(expected[i].file, expected[i].name), i);
  std::vector<bool> seen(expected.size(), false);
  const auto tell = [](std::vector<std::string>& list, std::string sentence) {
    if (list.size() < max_sentences) list.push_back(std::move(sentence));
  };
  out.tensors = expected.size();
  for (const Value& line : records) {
    const auto event = line["event"].as_text();
    if (event == "begin") {
      out.stages.push_back({std::string(line["stage"].as_text()), false, 0, -1, -1, -1});
    } else if (event == "end") {
      if (auto* stage = open_stage(out, line["stage"].as_text())) {
        stage->ended = true;
        stage->seconds = line["seconds"].as_real();
        take_memory(*stage, line);
      }
    } else if (event == "error") {
      out.error_type = line["type"].as_text();
      out.error_text = line["text"].as_text();
      out.error_trace = line["trace"].as_text();
      if (auto* stage = open_stage(out, line["stage"].as_text())) take_memory(*stage, line);
    } else if (event == "versions") {
      out.versions = line;
      out.versions.members_mut().erase(out.versions.members_mut().begin());
    } else if (event == "device") {
      out.device = line;
      out.device.members_mut().erase(out.device.members_mut().begin());
    } else if (event == "plain") {
      out.plain_because = line["why"].as_text();
    } else if (event == "built") {
      out.built = line["what"].as_text();
    } else if (event == "tensor") {
      const auto name = line["tensor"].as_text(), file = line["file"].as_text();
      auto [at, end] = by_name.equal_range({file, name});
      if (at == end) continue;  // a tensor of a type that is not compared
      // Names can repeat in nested PyTorch files: any of them may be the one.
      std::size_t index = expected.size();
      std::string why;
      for (; at != end; ++at) {
        const auto& t = expected[at->second];
        if (seen[at->second]) continue;
        const auto dtype = torch_dtype(t.dtype);
        std::vector<std::uint64_t> shape;
        for (const auto& n : line["shape"].items()) shape.push_back(static_cast<std::uint64_t>(n.as_int()));
        if (!dtype.empty() && dtype != line["dtype"].as_text())
          why = fmt::format("is {} in the file and {} after loading", dtype, line["dtype"].as_text());
        else if (!dtype.empty() && shape != t.shape)
          why = fmt::format("has shape {} in the file and {} after loading", t.shape_text(), shape_text(line["shape"]));
        else if (line["crc"].as_int(-1) != static_cast<std::int64_t>(sums[at->second]))
          why = "has other bytes after loading than in the file";
        else
          why.clear();
        index = at->second;
        if (why.empty()) break;
      }
      if (index == expected.size()) continue;
      seen[index] = true;
      if (why.empty())
        ++out.equal;
      else
        tell(out.different, fmt::format("{}: \"{}\" {}", file, name, why));
      if (!line["finite"].is_null() && !line["finite"].as_bool(true)) tell(out.nonfinite_read, std::string(name));
    } else if (event == "different") {
      tell(out.model_different, different_text(line));
    } else if (event == "keys") {
      out.keys = line;
    } else if (event == "finite") {
      out.model_finite = line;
    } else if (event == "altered") {
      tell(out.altered, std::string(line["tensor"].as_text()));
    } else if (event == "transferred") {
      out.transferred = line;
    }
  }
  if (out.reached("read"))
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!seen[i]) tell(out.not_read, expected[i].name);
  return out;
}

Result<LoadOutcome> load_model(const Survey& survey, const LoadRequest& request) {
  const LoaderKind kind = kind_of(survey);
  Value files = Value::list();
  std::vector<NamedTensor> expected = named_tensors(survey, Role::weights);
  // What is compared is what is read: all files of weights, both formats when both are there.
  for (const auto& f : survey.files) {
    if (f.role != Role::weights || (!f.safetensors && !f.torch)) continue;
    if (f.torch && std::any_of(survey.files.begin(), survey.files.end(), [](const ModelFile& o) { return o.role == Role::weights && o.safetensors; }))
      continue;
    const fs::path path = survey.is_directory ? fs::path(survey.root) / f.name : fs::path(survey.root.empty() ? "." : survey.root) / f.name;
    files.push(Value::object({{"path", fs::absolute(path).string()}, {"name", f.name}, {"format", f.safetensors ? "safetensors" : "torch"}}));
  }
  std::erase_if(expected, [&](const NamedTensor& t) {
    return std::none_of(files.items().begin(), files.items().end(), [&](const Value& f) { return f["name"].as_text() == t.file; });
  });
  const auto sums = checksums(expected, checksum_threads);
  const Value spec = Value::object({{"root", survey.is_directory ? fs::absolute(survey.root).string() : std::string()},
                                    {"kind", std::string(loader_kind_name(kind))},
                                    {"device", request.device},
                                    {"files", std::move(files)}});
  const auto directory = TemporaryDirectory::make("firstfault-load");
  if (!directory) return std::unexpected(directory.error());
  const auto spec_path = directory->path() / "request.json";
  if (auto written = write_file(spec_path, to_json(spec)); !written) return std::unexpected(written.error());
  python::Call call;
  call.interpreter = request.python;
  call.probe = "model_load.py";
  call.arguments = {spec_path.string()};
  call.time_limit = request.time_limit;
  call.environment = {"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false"};
  const auto answer = python::run(call);
  if (!answer) return std::unexpected(answer.error());
  const ChildResult& ended = answer->child;
  LoadOutcome out = read_load_records(answer->records, expected, sums);
  out.kind = kind;
  out.timed_out = ended.timed_out;
  out.killed = ended.signal == SIGKILL && !ended.timed_out;
  if (!ended.ok() && out.error_type.empty()) {
    out.died = ended.describe();
    out.error_trace = ended.err.size() > 8000 ? ended.err.substr(ended.err.size() - 8000) : ended.err;
  }
  return out;
}

}  // namespace ff::model
