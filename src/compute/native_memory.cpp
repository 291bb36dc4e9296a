#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "compute/native_session.h"
#include "gpu/kernels.h"

// Families "allocation" and "memory": what everything else rests on. All results are exact.
namespace ff::compute {
namespace {

/// Bytes that depend on their place.
Bytes noise(std::size_t size, std::uint64_t seed) {
  Bytes out(size);
  Series series(seed);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t v = series.next();
    std::memcpy(out.data() + i, &v, 8);
  }
  for (; i < size; ++i) out[i] = static_cast<std::byte>(series.next());
  return out;
}

std::string first_difference(const Bytes& found, const Bytes& expected, std::size_t offset = 0) {
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (found[offset + i] != expected[i] && ++wrong == 1) first = i;
  if (wrong == 0) return {};
  return fmt::format("{} of {} bytes are wrong, the first at byte {}: 0x{:02x}, expected 0x{:02x}", wrong, expected.size(), first,
                     std::to_integer<unsigned>(found[offset + first]), std::to_integer<unsigned>(expected[first]));
}

Result<Outcome> allocation_sizes(Session& s) {
  // Small, odd, page and large sizes; all at once, so that two that overlap would show.
  std::vector<std::size_t> sizes{1, 3, 255, 256, 4096, 4097, 65536, (1u << 20) + 1, s.size(256u << 20, 4u << 20)};
  std::vector<std::pair<gpu::Buffer, Bytes>> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto buffer = s.device().buffer(sizes[i]);
    if (!buffer) return std::unexpected(buffer.error());
    Bytes content = noise(std::min<std::size_t>(sizes[i], 1u << 20), 100 + i);
    if (auto ok = s.device().copy_in(buffer->address(), content.data(), content.size()); !ok) return std::unexpected(ok.error());
    all.emplace_back(std::move(*buffer), std::move(content));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = i + 1; k < all.size(); ++k) {
      const auto a = all[i].first.address(), b = all[k].first.address();
      if (a < b + sizes[k] && b < a + sizes[i]) return Outcome::fail(fmt::format("allocations of {} and {} bytes overlap", sizes[i], sizes[k]));
    }
  for (auto& [buffer, content] : all) {
    auto back = s.download(buffer.address(), content.size());
    if (!back) return std::unexpected(back.error());
    if (auto wrong = first_difference(*back, content); !wrong.empty()) return Outcome::fail(fmt::format("{} bytes: {}", buffer.size_bytes(), wrong));
  }
  return Outcome::pass(fmt::format("{} sizes from 1 B to {}", sizes.size(), human_bytes(sizes.back())));
}

/// Freed memory must come back, or a long run dies of it.
Result<Outcome> allocation_returns(Session& s) {
  const std::size_t piece = s.size(64u << 20, 1u << 20);
  auto before = s.device().memory();
  if (!before) return std::unexpected(before.error());
  for (int i = 0; i < 50; ++i) {
    auto buffer = s.device().buffer(piece);
    if (!buffer) return std::unexpected(buffer.error());
    if (auto ok = s.device().fill(buffer->address(), 1, piece); !ok) return std::unexpected(ok.error());
  }
  auto after = s.device().memory();
  if (!after) return std::unexpected(after.error());
  const double lost = static_cast<double>(before->free_bytes) - static_cast<double>(after->free_bytes);
  // Other processes share the device; half of what was taken in all cannot be chance.
  if (!s.on_cpu() && lost > 25.0 * static_cast<double>(piece))
    return Outcome::fail(
        fmt::format("after 50 allocations of {} {} less is free", human_bytes(piece), human_bytes(static_cast<std::uint64_t>(lost))));
  return Outcome::pass(fmt::format("50 times {}", human_bytes(piece)));
}

/// More than there is must be refused with an error, not with a crash, and must leave the device usable.
Result<Outcome> allocation_too_much(Session& s) {
  auto memory = s.device().memory();
  if (!memory) return std::unexpected(memory.error());
  auto too_much = s.device().buffer(static_cast<std::size_t>(memory->total_bytes) * 4 + (1u << 30));
  if (too_much) return Outcome::fail("four times the device's memory was granted");
  auto small = s.upload(noise(4096, 5));
  if (!small) return Outcome::fail("after a refused allocation nothing can be allocated: " + small.error().to_string());
  return Outcome::pass("refused: " + too_much.error().what);
}

constexpr std::array<std::size_t, 9> odd_sizes{1, 2, 3, 7, 15, 63, 255, 4095, 65537};

/// Host to device and back, at every small offset and odd size; neighbours must stay as they were.
Result<Outcome> round_trip(Session& s, bool pinned) {
  const std::size_t whole = 70000;
  auto buffer = s.device().buffer(whole);
  if (!buffer) return std::unexpected(buffer.error());
  Bytes pageable(whole);
  std::byte* host = pageable.data();
  void* memory = nullptr;
  if (pinned) {
    auto got = s.device().allocate_pinned(whole);
    if (!got) return std::unexpected(got.error());
    memory = *got;
    host = static_cast<std::byte*>(memory);
  }
  struct Free {
    Session& s;
    void* memory;
    ~Free() {
      if (memory != nullptr) (void)s.device().release_pinned(memory);
    }
  } const free{s, memory};
  std::size_t tried = 0;
  for (const std::size_t size : odd_sizes)
    for (const std::size_t offset : {0, 1, 3, 4, 7, 16, 255}) {
      const Bytes content = noise(size, size * 1000 + offset);
      if (auto ok = s.device().fill(buffer->address(), 0x5A, whole); !ok) return std::unexpected(ok.error());
      std::memcpy(host + offset, content.data(), size);
      if (auto ok = s.device().copy_in(buffer->address() + offset, host + offset, size); !ok) return std::unexpected(ok.error());
      std::memset(host, 0, whole);
      if (auto ok = s.device().copy_out(host, buffer->address(), whole); !ok) return std::unexpected(ok.error());
      Bytes expected(whole, std::byte{0x5A});
      std::copy(content.begin(), content.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      if (s.plants("flipped-bit") && tried == 20) host[offset + size / 2] ^= std::byte{0x10};
      Bytes found(host, host + whole);
      if (auto wrong = first_difference(found, expected); !wrong.empty())
        return Outcome::fail(fmt::format("{} bytes at offset {}: {}", size, offset, wrong));
      ++tried;
    }
  return Outcome::pass(fmt::format("{} sizes and offsets, {} host memory", tried, pinned ? "pinned" : "pageable"));
}

Result<Outcome> device_copy(Session& s) {
  const std::size_t size = s.size(64u << 20, 1u << 20);
  const Bytes content = noise(size, 7);
  auto from = s.upload(content);
  if (!from) return std::unexpected(from.error());
  Trial trial{.type = Type::u8, .elements = size - 3};
  trial.run = [&](gpu::Address out, gpu::Stream stream) { return s.device().copy_async(out, from->address() + 3, size - 3, stream); };
  trial.detail = human_bytes(size) + ", offset 3";
  return s.judge_bytes(trial, Bytes(content.begin() + 3, content.end()));
}

Result<Outcome> fills(Session& s) {
  const std::size_t whole = 70000;
  auto buffer = s.device().buffer(whole);
  if (!buffer) return std::unexpected(buffer.error());
  for (const std::size_t size : odd_sizes)
    for (const std::size_t offset : {0, 1, 2, 13}) {
      if (auto ok = s.device().fill(buffer->address(), 0, whole); !ok) return std::unexpected(ok.error());
      if (auto ok = s.device().fill(buffer->address() + offset, 0xC3, size); !ok) return std::unexpected(ok.error());
      auto found = s.download(buffer->address(), whole);
      if (!found) return std::unexpected(found.error());
      Bytes expected(whole, std::byte{0});
      std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(offset), size, std::byte{0xC3});
      if (auto wrong = first_difference(*found, expected); !wrong.empty())
        return Outcome::fail(fmt::format("{} bytes at offset {}: {}", size, offset, wrong));
    }
  return Outcome::pass();
}

/// Asynchronous copies on two streams, ordered by an event: the second must not start before the first has ended.
Result<Outcome> async_events(Session& s) {
  const std::size_t size = s.size(32u << 20, 1u << 20);
  const Bytes content = noise(size, 11);
  auto& d = s.device();
  auto pinned = d.allocate_pinned(size);
  if (!pinned) return std::unexpected(pinned.error());
  auto pinned_back = d.allocate_pinned(size);
  if (!pinned_back) {
    (void)d.release_pinned(*pinned);
    return std::unexpected(pinned_back.error());
  }
  auto a = d.make_stream(), b = d.make_stream();
  auto event = d.make_event();
  const auto run = [&]() -> Result<Outcome> {
    if (!a) return std::unexpected(a.error());
    if (!b) return std::unexpected(b.error());
    if (!event) return std::unexpected(event.error());
    auto first = d.buffer(size), second = d.buffer(size);
    if (!first) return std::unexpected(first.error());
    if (!second) return std::unexpected(second.error());
    for (int r = 0; r < s.repeat(); ++r) {
      std::memcpy(*pinned, content.data(), size);
      std::memset(*pinned_back, 0, size);
      if (auto ok = d.fill(second->address(), 0, size); !ok) return std::unexpected(ok.error());
      if (auto ok = d.wait(nullptr); !ok) return std::unexpected(ok.error());
      if (auto ok = d.copy_in_async(first->address(), *pinned, size, *a); !ok) return std::unexpected(ok.error());
      if (auto ok = d.record(*event, *a); !ok) return std::unexpected(ok.error());
      if (auto ok = d.stream_waits(*b, *event); !ok) return std::unexpected(ok.error());
      if (auto ok = d.copy_async(second->address(), first->address(), size, *b); !ok) return std::unexpected(ok.error());
      if (auto ok = d.copy_out_async(*pinned_back, second->address(), size, *b); !ok) return std::unexpected(ok.error());
      if (auto ok = d.wait(*b); !ok) return std::unexpected(ok.error());
      const auto* found = static_cast<const std::byte*>(*pinned_back);
      if (std::memcmp(found, content.data(), size) != 0)
        return Outcome::fail(fmt::format("repeat {}: {}", r + 1, first_difference(Bytes(found, found + size), content)));
    }
    return Outcome::pass(fmt::format("{} through two streams", human_bytes(size)));
  };
  auto outcome = run();
  if (event) (void)d.release_event(*event);
  if (a) (void)d.release_stream(*a);
  if (b) (void)d.release_stream(*b);
  (void)d.release_pinned(*pinned);
  (void)d.release_pinned(*pinned_back);
  return outcome;
}

/// Every word depends on its address: a kernel writes, another one checks.
Result<Outcome> patterns(Session& s) {
  const std::size_t size = s.size(512u << 20, 1u << 20);
  const std::uint64_t vectors = size / 16;
  auto buffer = s.device().buffer(size);
  if (!buffer) return std::unexpected(buffer.error());
  auto write = s.kernel("memory", "pattern_write");
  if (!write) return std::unexpected(write.error());
  auto check_write = s.kernel("memory", "pattern_check_write");
  if (!check_write) return std::unexpected(check_write.error());
  auto flip = s.kernel("memory", "pattern_flip");
  if (!flip) return std::unexpected(flip.error());
  const std::vector<std::uint64_t> clean{0, 0, ~0ull, ~0ull, 0};
  Bytes start(clean.size() * 8);
  std::memcpy(start.data(), clean.data(), start.size());
  auto errors = s.upload(start);
  if (!errors) return std::unexpected(errors.error());
  if (auto ok = s.launch(*write, vectors, 256, nullptr, buffer->address(), vectors, std::uint64_t{0}, 0u, 17u); !ok)
    return std::unexpected(ok.error());
  for (const unsigned mode : {0u, 1u, 2u, 3u, 4u}) {
    if (s.plants("flipped-bit-device") && mode == 2)
      if (auto ok = s.launch(*flip, 1, 32, nullptr, buffer->address(), vectors * 2 + 1, 21u); !ok) return std::unexpected(ok.error());
    if (auto ok =
            s.launch(*check_write, vectors, 256, nullptr, buffer->address(), vectors, std::uint64_t{0}, mode, (mode + 1) % 5, 17u, errors->address());
        !ok)
      return std::unexpected(ok.error());
    if (auto ok = s.device().wait(nullptr); !ok) return std::unexpected(ok.error());
    auto found = s.download(errors->address(), start.size());
    if (!found) return std::unexpected(found.error());
    std::uint64_t e[5];
    std::memcpy(e, found->data(), sizeof e);
    if (e[0] != 0)
      return Outcome::fail(fmt::format("pattern {}: {} wrong words, {} wrong bits; word {}: 0x{:08x}, expected 0x{:08x}", mode, e[0], e[1], e[3],
                                       static_cast<std::uint32_t>(e[4]), static_cast<std::uint32_t>(e[4] >> 32)));
  }
  return Outcome::pass(fmt::format("{}, 5 patterns", human_bytes(size)));
}

}  // namespace

void add_memory_operators(std::vector<NativeOperator>& to) {
  to.push_back({"allocation.sizes", "allocation", "u8", &allocation_sizes});
  to.push_back({"allocation.returns", "allocation", "u8", &allocation_returns});
  to.push_back({"allocation.too-much", "allocation", "u8", &allocation_too_much});
  to.push_back({"memory.round-trip.pageable", "memory", "u8", [](Session& s) { return round_trip(s, false); }});
  to.push_back({"memory.round-trip.pinned", "memory", "u8", [](Session& s) { return round_trip(s, true); }});
  to.push_back({"memory.device-copy", "memory", "u8", &device_copy});
  to.push_back({"memory.fill", "memory", "u8", &fills});
  to.push_back({"memory.async-events", "memory", "u8", &async_events});
  to.push_back({"memory.patterns", "memory", "u32", &patterns});
}

std::span<const PlantedFault> planted_faults() {
  static constexpr std::array<PlantedFault, 11> faults{{
      {"flipped-bit", "one bit of a copied buffer is flipped", "memory.round-trip", ""},
      {"flipped-bit-device", "one bit of device memory is flipped between writing and checking", "memory.patterns", "memory"},
      {"wrong-kernel", "another kernel than asked for is launched", "elementwise.", ""},
      {"off-by-one", "a reduction leaves out its last element", "reduction.", ""},
      {"swapped-operand", "a product's operands are exchanged", "gemm.", "gemm"},
      {"race", "additions are not atomic", "atomics.histogram", "atomics"},
      {"out-of-range", "a kernel writes behind its result", "launch.guards", ""},
      {"short-launch", "the grid is one block short", "launch.", "launch"},
      {"wrong-rank", "one rank of a collective gives other numbers than the rest expect", "collective.", ""},
      {"hang", "a kernel waits for a flag that nobody sets", "launch.ends", "launch"},
      {"crash", "the process dies in the middle of an operator", "launch.ends", ""},
  }};
  return faults;
}

std::string planted_faults_text(bool stress) {
  std::string out;
  for (const auto& fault : planted_faults())
    if (!stress || !fault.stress.empty())
      out += fmt::format("  {:<20} {}; found by {}\n", fault.name, fault.what,
                         stress ? "stress " + std::string(fault.stress) : std::string(fault.found_by));
  return out;
}

Result<void> known_planted_fault(std::string_view name, bool stress) {
  std::string known;
  for (const auto& fault : planted_faults()) {
    if (stress && fault.stress.empty()) continue;
    if (fault.name == name) return {};
    known += (known.empty() ? "" : ", ") + std::string(fault.name);
  }
  return usage_error(fmt::format("there is no planted fault \"{}\"", name), "--plant", known + " (--plant help says what they are)");
}

}  // namespace ff::compute
