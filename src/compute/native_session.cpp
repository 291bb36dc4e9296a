#include "compute/native_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/finally.h"
#include "gpu/kernels.h"

namespace ff::compute {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard_value{0xA5};

/// "element 17 is 3.5, expected 4".
std::string element_text(std::size_t i, double found, double expected) {
  return fmt::format("element {} is {:.9g}, expected {:.9g}", i, found, expected);
}

void add_detail(Outcome& out, const std::string& text) { out.detail += (out.detail.empty() ? "" : "; ") + text; }

}  // namespace

Session::~Session() {
  if (stream_ != nullptr) (void)device_.release_stream(stream_);
}

std::size_t Session::size(std::size_t gpu_size, std::size_t cpu_size) const {
  if (small()) return cpu_size;
  return quick_ ? std::max(gpu_size / 8, cpu_size) : gpu_size;
}

Result<gpu::Function> Session::kernel(std::string_view source, const std::string& name) {
  auto found = modules_.find(source);
  if (found == modules_.end()) {
    const auto* text = gpu::kernel_source(source);
    if (text == nullptr) return fail("there is no kernel source \"" + std::string(source) + "\"");
    auto module = device_.compile(*text);
    if (!module) return std::unexpected(module.error());
    found = modules_.emplace(std::string(source), std::move(*module)).first;
  }
  return found->second->function(name);
}

Result<gpu::Stream> Session::stream() {
  if (stream_ == nullptr) {
    auto made = device_.make_stream();
    if (!made) return made;
    stream_ = *made;
  }
  return stream_;
}

Result<gpu::Blas*> Session::blas() {
  if (blas_ == nullptr) {
    auto opened = gpu::open_blas(device_, {.library_folders = options_.library_folders});
    if (!opened) return std::unexpected(opened.error());
    blas_ = std::move(*opened);
  }
  return blas_.get();
}

Result<gpu::BlasLt*> Session::blas_lt() {
  if (blas_lt_ == nullptr) {
    auto opened = gpu::open_blas_lt(device_, {.library_folders = options_.library_folders});
    if (!opened) return std::unexpected(opened.error());
    blas_lt_ = std::move(*opened);
  }
  return blas_lt_.get();
}

Result<gpu::Dnn*> Session::dnn() {
  if (dnn_ == nullptr) {
    auto opened = gpu::open_dnn(device_, {.library_folders = options_.library_folders});
    if (!opened) return std::unexpected(opened.error());
    dnn_ = std::move(*opened);
  }
  return dnn_.get();
}

Outcome without_library(const Error& error) {
  const std::string text = error.to_string();
  return text.find("No such file") != std::string::npos || error.what.starts_with("unsupported") ? Outcome::unsupported(text) : Outcome::fail(text);
}

Result<gpu::Buffer> Session::upload(const Bytes& bytes) {
  auto buffer = device_.buffer(std::max<std::size_t>(bytes.size(), 1));
  if (!buffer) return buffer;
  if (auto copied = device_.copy_in(buffer->address(), bytes.data(), bytes.size()); !copied) return std::unexpected(copied.error());
  return buffer;
}

Result<Bytes> Session::download(gpu::Address from, std::size_t size_bytes) {
  Bytes out(size_bytes);
  if (auto copied = device_.copy_out(out.data(), from, size_bytes); !copied) return std::unexpected(copied.error());
  return out;
}

Result<Session::Runs> Session::run_all(const Trial& trial) {
  const std::size_t size = trial.elements * type_size(trial.type);
  const std::size_t whole = size + 2 * guard_bytes;
  auto buffer = device_.buffer(whole);
  if (!buffer) return std::unexpected(buffer.error());
  auto s = stream();
  if (!s) return std::unexpected(s.error());
  auto begin = device_.make_event();
  if (!begin) return std::unexpected(begin.error());
  const Finally free_begin{[&] { (void)device_.release_event(*begin); }};
  auto end = device_.make_event();
  if (!end) return std::unexpected(end.error());
  const Finally free_end{[&] { (void)device_.release_event(*end); }};
  Bytes start(whole, guard_value);
  if (trial.initial != nullptr)
    std::copy(trial.initial->begin(), trial.initial->end(), start.begin() + guard_bytes);
  else
    std::fill(start.begin() + guard_bytes, start.end() - guard_bytes, std::byte{0xCD});
  Runs runs;
  for (int r = 0; r < repeat(); ++r) {
    if (auto ok = device_.copy_in(buffer->address(), start.data(), whole); !ok) return std::unexpected(ok.error());
    if (auto ok = device_.wait(nullptr); !ok) return std::unexpected(ok.error());
    if (auto ok = device_.record(*begin, *s); !ok) return std::unexpected(ok.error());
    if (auto ok = trial.run(buffer->address() + guard_bytes, *s); !ok) return std::unexpected(ok.error());
    if (auto ok = device_.record(*end, *s); !ok) return std::unexpected(ok.error());
    if (auto ok = device_.wait(*s); !ok) return std::unexpected(ok.error());
    auto ms = device_.milliseconds_between(*begin, *end);
    if (!ms) return std::unexpected(ms.error());
    runs.best_ms = r == 0 ? *ms : std::min(runs.best_ms, *ms);
    auto all = download(buffer->address(), whole);
    if (!all) return std::unexpected(all.error());
    for (std::size_t i = 0; i < guard_bytes && !runs.overrun; ++i) {
      if ((*all)[guard_bytes - 1 - i] != guard_value) runs.overrun = fmt::format("a kernel wrote {} bytes before its result", i + 1);
      if ((*all)[guard_bytes + size + i] != guard_value) runs.overrun = fmt::format("a kernel wrote {} bytes behind its result", i + 1);
    }
    all->erase(all->begin(), all->begin() + guard_bytes);
    all->resize(size);
    if (r == 0) {
      runs.first = std::move(*all);
    } else if (!runs.differs && std::memcmp(runs.first.data(), all->data(), size) != 0) {
      std::size_t count = 0, first = 0;
      const std::size_t element = type_size(trial.type);
      for (std::size_t i = 0; i < trial.elements; ++i)
        if (std::memcmp(runs.first.data() + i * element, all->data() + i * element, element) != 0 && ++count == 1) first = i;
      runs.differs = fmt::format("repeat {} differs from the first in {} of {} elements, first in element {}", r + 1, count, trial.elements, first);
    }
  }
  return runs;
}

void Session::judge_repeats(const Runs& runs, const Trial& trial, Outcome& out) {
  if (runs.overrun) {
    out.status = OperatorStatus::fail;
    add_detail(out, *runs.overrun);
  }
  if (runs.differs && !trial.may_differ) {
    if (out.status == OperatorStatus::pass) out.status = OperatorStatus::nondeterministic;
    add_detail(out, *runs.differs);
  }
}

Result<Outcome> Session::judge(const Trial& trial, const Reference& reference) {
  auto runs = run_all(trial);
  if (!runs) return std::unexpected(runs.error());
  Outcome out;
  out.time_ms = runs->best_ms;
  out.bound = reference.bound;
  out.detail = trial.detail;
  const auto add = [&](const std::string& text) { add_detail(out, text); };
  const auto found = decode(trial.type, runs->first);
  std::vector<double> errors(found.size());
  std::size_t wrong = 0, nan = 0, worst = 0;
  std::optional<std::size_t> first_wrong;
  double worst_error = -1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = reference.value[i], got = found[i];
    bool bad = false;
    double error = 0;
    if (std::isnan(expected)) {
      bad = !std::isnan(got);
      error = bad ? INFINITY : 0;
    } else if (std::isnan(got)) {
      bad = true;
      ++nan;
      error = INFINITY;
    } else if (std::isinf(expected) || std::isinf(got)) {
      bad = expected != got;
      error = bad ? INFINITY : 0;
    } else {
      const double scale = reference.scale.empty() ? std::abs(expected) : reference.scale[i];
      const double rest = std::max(0.0, std::abs(got - expected) - reference.floor);
      error = rest == 0 ? 0 : scale > 0 ? rest / scale : INFINITY;
      bad = !(error <= reference.bound);
    }
    errors[i] = error;
    if (bad) {
      ++wrong;
      if (!first_wrong) first_wrong = i;
    }
    if (error > worst_error) {
      worst_error = error;
      worst = i;
    }
  }
  std::vector<double> finite;
  finite.reserve(errors.size());
  for (const double e : errors)
    if (std::isfinite(e)) finite.push_back(e);
  if (!finite.empty()) {
    out.max_error = *std::ranges::max_element(finite);
    double sum = 0;
    for (const double e : finite) sum += e;
    out.mean_error = sum / static_cast<double>(finite.size());
    const auto at = finite.begin() + static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(finite.size() - 1));
    std::ranges::nth_element(finite, at);
    out.p99_error = *at;
  }
  if (wrong > 0) {
    out.status = nan > 0 ? OperatorStatus::nan : OperatorStatus::fail;
    add(fmt::format("{} of {} elements are wrong, the first: {}", wrong, found.size(),
                    element_text(*first_wrong, found[*first_wrong], reference.value[*first_wrong])));
    if (worst != *first_wrong) add("the worst: " + element_text(worst, found[worst], reference.value[worst]));
  }
  judge_repeats(*runs, trial, out);
  return out;
}

Result<Outcome> Session::judge_bytes(const Trial& trial, const Bytes& expected) {
  auto runs = run_all(trial);
  if (!runs) return std::unexpected(runs.error());
  Outcome out;
  out.time_ms = runs->best_ms;
  out.bound = 0;
  out.detail = trial.detail;
  const auto add = [&](const std::string& text) { add_detail(out, text); };
  const std::size_t element = type_size(trial.type);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < trial.elements; ++i)
    if (std::memcmp(runs->first.data() + i * element, expected.data() + i * element, element) != 0 && ++wrong == 1) first = i;
  out.max_error = wrong == 0 ? 0.0 : 1.0;
  if (wrong > 0) {
    out.status = OperatorStatus::fail;
    const auto at = [&](const Bytes& b) { return decode(trial.type, std::span(b).subspan(first * element, element)).front(); };
    add(fmt::format("{} of {} elements are wrong, the first: {}", wrong, trial.elements, element_text(first, at(runs->first), at(expected))));
  }
  judge_repeats(*runs, trial, out);
  return out;
}

}  // namespace ff::compute
