#include "model/device_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/finally.h"
#include "base/process.h"
#include "base/text.h"
#include "gpu/device.h"
#include "gpu/finite.h"

namespace ff::model {
namespace {

constexpr std::size_t piece_bytes = 256ULL << 20;
constexpr std::size_t vector_bytes = 16;  ///< what one thread reads
constexpr std::chrono::seconds least_time{120};
constexpr double least_bytes_per_second = 200e6;  ///< over a slow link, with everything else on it

std::optional<gpu::FiniteScan::Type> type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return gpu::FiniteScan::Type::f64;
    case Dtype::f32:
    case Dtype::c64:
      return gpu::FiniteScan::Type::f32;
    case Dtype::f16:
      return gpu::FiniteScan::Type::f16;
    case Dtype::bf16:
      return gpu::FiniteScan::Type::bf16;
    case Dtype::f8_e5m2:
      return gpu::FiniteScan::Type::e5m2;
    case Dtype::f8_e4m3:
      return gpu::FiniteScan::Type::e4m3;
    case Dtype::f8_e4m3fnuz:
    case Dtype::f8_e5m2fnuz:
      return gpu::FiniteScan::Type::fnuz;
    case Dtype::f8_e8m0:
      return gpu::FiniteScan::Type::e8m0;
    default:
      return std::nullopt;
  }
}

struct Item {
  const ModelFile* file = nullptr;
  std::string_view name, bytes;
  Dtype dtype = Dtype::f32;
  const ValueStats* host = nullptr;
};

std::vector<Item> items_of(const Survey& s) {
  std::vector<Item> out;
  for (const auto& f : s.files) {
    const std::size_t n = f.safetensors ? f.safetensors->tensors.size() : f.torch ? f.torch->storages.size() : 0;
    for (std::size_t i = 0; i < n && i < f.values.size(); ++i) {
      Item item{&f, {}, {}, Dtype::u8, &f.values[i]};
      if (f.safetensors) {
        const auto& t = f.safetensors->tensors[i];
        item.name = t.name;
        item.bytes = t.bytes;
        item.dtype = t.dtype;
      } else {
        const auto& t = f.torch->storages[i];
        item.name = t.tensor.empty() ? t.key : t.tensor;
        item.bytes = t.bytes;
        item.dtype = t.dtype.value_or(Dtype::u8);
      }
      if (type_of(item.dtype) && !item.bytes.empty()) out.push_back(item);
    }
  }
  return out;
}

gpu::Opened open(const std::string& device) {
  if (device == "cpu") return gpu::open(gpu::Api::cpu);
  if (device == "cuda") return gpu::open(gpu::Api::cuda);
  auto hip = gpu::open(gpu::Api::hip);
  if (hip || device == "hip") return hip;
  auto cuda = gpu::open(gpu::Api::cuda);
  if (cuda || cuda.error().stage > hip.error().stage) return cuda;
  if (hip.error().stage == gpu::OpenStage::library)
    hip.error().error = {"no GPU runtime can be opened: " + hip.error().error.what + "; " + cuda.error().error.what, "",
                         "install ROCm's HIP runtime (libamdhip64) or the NVIDIA driver; --device cpu runs the same kernel on the CPU", 3};
  return hip;
}

double since(std::chrono::steady_clock::time_point start) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

void say(int out, const Value& line) { (void)write_all(out, to_json(line) + "\n"); }

/// In the child: the device, one line a tensor that has anything, and the sums.
Result<void> work(int out, const std::vector<Item>& items, const std::string& name) {
  auto device = open(name);
  if (!device) return std::unexpected(device.error().error);
  const auto& p = (*device)->properties();
  say(out,
      Value::object(
          {{"device", Value::object({{"api", std::string(gpu::api_name(p.api))}, {"name", p.name}, {"target", p.target}, {"runtime", p.runtime}})}}));
  auto scan = gpu::FiniteScan::make(**device);
  if (!scan) return std::unexpected(scan.error());
  auto buffer = (*device)->buffer(piece_bytes);
  if (!buffer) return std::unexpected(buffer.error());
  const auto began = (*device)->make_event(), ended = (*device)->make_event();
  const Finally release_events{[&] {
    for (const auto& event : {began, ended})
      if (event) (void)(*device)->release_event(*event);
  }};
  if (!began || !ended) return std::unexpected(began ? ended.error() : began.error());
  std::uint64_t bytes = 0;
  double scanning = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t at = 0; at < items[i].bytes.size(); at += piece_bytes) {
      const auto piece = items[i].bytes.substr(at, piece_bytes);
      const std::size_t whole = piece.size() / vector_bytes * vector_bytes, rest = piece.size() - whole;
      if (whole > 0)
        if (auto ok = (*device)->copy_in(buffer->address(), piece.data(), whole); !ok) return ok;
      if (rest > 0) {  // filled up with zeros, which are finite
        std::array<char, vector_bytes> last{};
        std::memcpy(last.data(), piece.data() + whole, rest);
        if (auto ok = (*device)->copy_in(buffer->address() + whole, last.data(), last.size()); !ok) return ok;
      }
      // The device's own clock: a launch and its wait cost as much as reading a piece.
      if (auto ok = (*device)->record(*began, nullptr); !ok) return ok;
      if (auto ok = scan->add(*type_of(items[i].dtype), buffer->address(), whole + (rest > 0 ? vector_bytes : 0)); !ok) return ok;
      if (auto ok = (*device)->record(*ended, nullptr); !ok) return ok;
      if (auto ok = (*device)->wait(nullptr); !ok) return ok;
      const auto took = (*device)->milliseconds_between(*began, *ended);
      if (!took) return std::unexpected(took.error());
      scanning += *took / 1000;
      bytes += piece.size();
    }
    const auto count = scan->take();
    if (!count) return std::unexpected(count.error());
    if (count->nonfinite != items[i].host->nonfinite()) say(out, Value::object({{"tensor", i}, {"nonfinite", count->nonfinite}}));
  }
  say(out, Value::object({{"tensors", items.size()}, {"bytes", bytes}, {"seconds", since(start)}, {"scan_seconds", scanning}}));
  return {};
}

}  // namespace

Result<DeviceScan> scan_on_device(const Survey& survey, const std::string& device) {
  const auto items = items_of(survey);
  std::uint64_t bytes = 0;
  for (const auto& item : items) bytes += item.bytes.size();
  ChildOptions child;
  child.body = [&](int out) {
    if (const auto done = work(out, items, device); !done)
      say(out, Value::object({{"error", done.error().what}, {"where", done.error().where}, {"remedy", done.error().remedy}}));
  };
  child.time_limit = std::chrono::duration_cast<std::chrono::milliseconds>(
      least_time + std::chrono::duration<double>(static_cast<double>(bytes) / least_bytes_per_second));
  const auto ended = run_child(child);
  DeviceScan out;
  bool complete = false;
  for (const auto line : lines(ended.out)) {
    const auto value = parse_json(line);
    if (!value) continue;  // torn by the child's death
    if (value->find("error") != nullptr)
      return fail(std::string((*value)["error"].as_text()), std::string((*value)["where"].as_text()), std::string((*value)["remedy"].as_text()));
    if (const Value* found = value->find("device"); found != nullptr) out.device = *found;
    if (value->find("tensor") != nullptr) {
      const auto i = static_cast<std::size_t>((*value)["tensor"].as_int());
      if (i < items.size())
        out.different.push_back({items[i].file->name, std::string(items[i].name), items[i].host->nonfinite(),
                                 static_cast<std::uint64_t>((*value)["nonfinite"].as_int())});
    }
    if (value->find("tensors") != nullptr) {
      complete = true;
      out.tensors = static_cast<std::uint64_t>((*value)["tensors"].as_int());
      out.bytes = static_cast<std::uint64_t>((*value)["bytes"].as_int());
      out.seconds = (*value)["seconds"].as_real();
      out.scan_seconds = (*value)["scan_seconds"].as_real();
    }
  }
  if (!complete)
    return fail(
        fmt::format("the scan on the device {}{}", ended.describe(), ended.err.empty() ? "" : ": " + std::string(trim(ended.err.substr(0, 400)))),
        device, "firstfault check --rung compute says whether the device computes at all");
  return out;
}

}  // namespace ff::model
