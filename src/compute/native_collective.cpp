#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "compute/native_session.h"
#include "gpu/collectives.h"

// Family "collective": NCCL or RCCL over all devices that the runtime shows, one rank a device, all in this process; and copies
// between devices. The data are whole numbers so small that sums are exact in every type and every order: the bound is 0. With
// one device the library runs with one rank, which tries its kernels and no link.
namespace ff::compute {
namespace {

using gpu::Element;

struct Kind {
  Element element;
  Type type;
};
constexpr Kind kinds[] = {{Element::f32, Type::f32},   {Element::f64, Type::f64}, {Element::f16, Type::f16},
                          {Element::bf16, Type::bf16}, {Element::i32, Type::i32}, {Element::i8, Type::i8}};

/// All devices and the communicator over them, kept from operator to operator of one process. The first device is the session's.
struct Group {
  std::vector<std::unique_ptr<gpu::Device>> others;
  std::vector<gpu::Device*> devices;
  std::unique_ptr<gpu::Collectives> collectives;

  Result<void> open_devices(Session& s) {
    if (!devices.empty()) return {};
    devices.push_back(&s.device());
    for (unsigned i = 0; i < s.properties().devices && others.size() < 15; ++i) {
      if (static_cast<int>(i) == s.properties().index) continue;
      auto opened = gpu::open(s.properties().api, {.index = static_cast<int>(i), .library_folders = s.library_folders()});
      if (!opened) {
        auto error = opened.error().error;
        error.what = fmt::format("device {}: {}", i, error.what);
        return std::unexpected(error);
      }
      devices.push_back(opened->get());
      others.push_back(std::move(*opened));
    }
    return s.device().use();
  }
};

enum class Call { all_reduce, all_reduce_max, broadcast, all_gather, reduce_scatter, all_to_all };
constexpr std::string_view call_names[] = {"all-reduce", "all-reduce-max", "broadcast", "all-gather", "reduce-scatter", "all-to-all"};

/// What every rank gives and what it must get, as numbers.
struct Data {
  std::vector<std::vector<double>> in, out;
};
Data data_for(Call call, std::size_t ranks, std::size_t count, std::size_t root) {
  Data d;
  const bool parts = call == Call::reduce_scatter || call == Call::all_to_all;
  for (std::size_t r = 0; r < ranks; ++r) {
    Series series(900 + r);
    auto& mine = d.in.emplace_back(parts ? ranks * count : count);
    for (auto& v : mine) v = static_cast<double>(series.whole(-7, 7));
  }
  const auto combined = [&](std::size_t i) {
    double v = d.in[0][i];
    for (std::size_t r = 1; r < ranks; ++r) v = call == Call::all_reduce_max ? std::max(v, d.in[r][i]) : v + d.in[r][i];
    return v;
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    auto& out = d.out.emplace_back();
    switch (call) {
      case Call::all_reduce:
      case Call::all_reduce_max:
        for (std::size_t i = 0; i < count; ++i) out.push_back(combined(i));
        break;
      case Call::broadcast:
        out = d.in[root];
        break;
      case Call::all_gather:
        for (const auto& in : d.in) out.insert(out.end(), in.begin(), in.end());
        break;
      case Call::reduce_scatter:
        for (std::size_t i = 0; i < count; ++i) out.push_back(combined(r * count + i));
        break;
      case Call::all_to_all:
        for (const auto& in : d.in)
          out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(r * count), in.begin() + static_cast<std::ptrdiff_t>((r + 1) * count));
        break;
    }
  }
  return d;
}

/// One rank's buffers and stream on its device.
struct Rank {
  gpu::Device& device;
  gpu::Buffer in, out;
  gpu::Stream stream = nullptr;
  explicit Rank(gpu::Device& on) : device(on) {}
  Rank(Rank&& other) noexcept
      : device(other.device), in(std::move(other.in)), out(std::move(other.out)), stream(std::exchange(other.stream, nullptr)) {}
  Rank& operator=(Rank&&) = delete;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    (void)device.use();
    if (stream != nullptr) (void)device.release_stream(stream);
  }
};

constexpr std::size_t guard_bytes = 256;

Result<std::optional<std::string>> compare(gpu::Device& device, const gpu::Buffer& buffer, const Bytes& expected, Type type) {
  Bytes back(expected.size() + guard_bytes);
  if (auto ok = device.copy_out(back.data(), buffer.address(), back.size()); !ok) return std::unexpected(ok.error());
  for (std::size_t i = 0; i < guard_bytes; ++i)
    if (back[expected.size() + i] != std::byte{0xCD}) return fmt::format("writes {} bytes behind its result", i + 1);
  if (std::memcmp(back.data(), expected.data(), expected.size()) == 0) return std::nullopt;
  const auto found = decode(type, std::span(back).first(expected.size())), wanted = decode(type, expected);
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != wanted[i] && ++wrong == 1) first = i;
  if (wrong == 0) return std::nullopt;  // -0 for 0
  return fmt::format("{} of {} elements are wrong, the first: element {} is {:.9g}, expected {:.9g}", wrong, found.size(), first, found[first],
                     wanted[first]);
}

Result<Outcome> collective(Session& s, Group& group, Call call, const Kind& kind) {
  if (s.on_cpu()) return Outcome::unsupported("the CPU has no vendor library here");
  if (auto ok = group.open_devices(s); !ok) return std::unexpected(ok.error());
  if (group.collectives == nullptr) {
    auto opened = gpu::Collectives::open(group.devices, {.library_folders = s.library_folders()});
    if (!opened) return without_library(opened.error());
    group.collectives = std::move(*opened);
  }
  auto& c = *group.collectives;
  const std::size_t ranks = group.devices.size();
  Outcome out;
  out.bound = out.max_error = 0;
  double best = 0;
  for (const std::size_t count : {std::size_t{1}, s.size(1u << 20, 1000) + 3}) {
    const std::size_t root = ranks - 1;
    const auto data = data_for(call, ranks, count, root);
    std::vector<Rank> all;
    std::vector<gpu::Address> in, to;
    std::vector<gpu::Stream> streams;
    std::vector<Bytes> expected;
    for (std::size_t r = 0; r < ranks; ++r) {
      auto& device = *group.devices[r];
      if (auto ok = device.use(); !ok) return std::unexpected(ok.error());
      auto& rank = all.emplace_back(device);
      auto given = data.in[r];
      if (s.plants("wrong-rank") && r == ranks - 1) given.back() += 16;  // above all others: seen by a maximum too
      const Bytes bytes = encode(kind.type, given);
      expected.push_back(encode(kind.type, data.out[r]));
      auto from = device.buffer(bytes.size()), result = device.buffer(expected[r].size() + guard_bytes);
      if (!from) return std::unexpected(from.error());
      if (!result) return std::unexpected(result.error());
      rank.in = std::move(*from);
      rank.out = std::move(*result);
      if (auto ok = device.copy_in(rank.in.address(), bytes.data(), bytes.size()); !ok) return std::unexpected(ok.error());
      auto stream = device.make_stream();
      if (!stream) return std::unexpected(stream.error());
      rank.stream = *stream;
      in.push_back(rank.in.address());
      to.push_back(rank.out.address());
      streams.push_back(rank.stream);
    }
    for (int repeat = 0; repeat < s.repeat(); ++repeat) {
      for (auto& rank : all) {
        if (auto ok = rank.device.use(); !ok) return std::unexpected(ok.error());
        if (auto ok = rank.device.fill(rank.out.address(), 0xCD, rank.out.size_bytes()); !ok) return std::unexpected(ok.error());
        if (auto ok = rank.device.wait(nullptr); !ok) return std::unexpected(ok.error());
      }
      const auto start = std::chrono::steady_clock::now();
      Result<void> done;
      switch (call) {
        case Call::all_reduce:
          done = c.all_reduce(in, to, count, kind.element, gpu::Reduction::sum, streams);
          break;
        case Call::all_reduce_max:
          done = c.all_reduce(in, to, count, kind.element, gpu::Reduction::max, streams);
          break;
        case Call::broadcast:
          done = c.broadcast(in, to, count, kind.element, static_cast<int>(root), streams);
          break;
        case Call::all_gather:
          done = c.all_gather(in, to, count, kind.element, streams);
          break;
        case Call::reduce_scatter:
          done = c.reduce_scatter(in, to, count, kind.element, gpu::Reduction::sum, streams);
          break;
        case Call::all_to_all:
          done = c.all_to_all(in, to, count, kind.element, streams);
          break;
      }
      if (!done) return std::unexpected(done.error());
      for (auto& rank : all) {
        if (auto ok = rank.device.use(); !ok) return std::unexpected(ok.error());
        if (auto ok = rank.device.wait(rank.stream); !ok) return std::unexpected(ok.error());
      }
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      best = repeat == 0 ? ms : std::min(best, ms);
      for (std::size_t r = 0; r < ranks; ++r) {
        if (auto ok = all[r].device.use(); !ok) return std::unexpected(ok.error());
        auto wrong = compare(all[r].device, all[r].out, expected[r], kind.type);
        if (!wrong) return std::unexpected(wrong.error());
        if (*wrong) {
          (void)s.device().use();
          return Outcome::fail(fmt::format("rank {} of {}, repeat {}: {}; {}", r, ranks, repeat + 1, **wrong, c.library()));
        }
      }
    }
    out.detail = fmt::format("{} rank{}, {} elements, {}", ranks, ranks == 1 ? "" : "s", count, c.library());
  }
  out.time_ms = best;
  if (auto ok = s.device().use(); !ok) return std::unexpected(ok.error());
  return out;
}

/// Every device's memory to every other's, and back by way of the host; where the link allows it, by a kernel that reads it in place.
Result<Outcome> peers(Session& s, Group& group) {
  if (s.properties().devices < 2) return Outcome::unsupported("there is one device: nothing to copy to");
  if (auto ok = group.open_devices(s); !ok) return std::unexpected(ok.error());
  const std::size_t size = s.size(64u << 20, 1u << 16) + 13;
  std::size_t in_place = 0, pairs = 0;
  for (auto* from : group.devices)
    for (auto* to : group.devices) {
      if (from == to) continue;
      ++pairs;
      Bytes content(size);
      Series series(pairs);
      for (auto& byte : content) byte = static_cast<std::byte>(series.next());
      if (auto ok = from->use(); !ok) return std::unexpected(ok.error());
      auto source = from->buffer(size);
      if (!source) return std::unexpected(source.error());
      if (auto ok = from->copy_in(source->address(), content.data(), size); !ok) return std::unexpected(ok.error());
      if (auto ok = to->use(); !ok) return std::unexpected(ok.error());
      auto target = to->buffer(size);
      if (!target) return std::unexpected(target.error());
      const auto pair = fmt::format("from device {} to device {}", from->properties().index, to->properties().index);
      const auto check = [&](std::string_view how) -> Result<std::optional<Outcome>> {
        if (auto ok = to->wait(nullptr); !ok) return std::unexpected(ok.error());
        Bytes back(size);
        if (auto ok = to->copy_out(back.data(), target->address(), size); !ok) return std::unexpected(ok.error());
        const auto at = std::ranges::mismatch(back, content).in1 - back.begin();
        if (at == static_cast<std::ptrdiff_t>(size)) return std::nullopt;
        return Outcome::fail(fmt::format("{} {}: byte {} is wrong", how, pair, at));
      };
      for (int repeat = 0; repeat < s.repeat(); ++repeat) {
        if (auto ok = to->fill(target->address(), 0xCD, size); !ok) return std::unexpected(ok.error());
        if (auto ok = to->copy_from_peer(target->address(), *from, source->address(), size); !ok) return std::unexpected(ok.error());
        auto wrong = check("copied");
        if (!wrong) return std::unexpected(wrong.error());
        if (*wrong) return **wrong;
      }
      auto reach = to->reach(*from);
      if (!reach) return std::unexpected(reach.error());
      if (*reach) {
        ++in_place;
        if (auto ok = to->fill(target->address(), 0xCD, size); !ok) return std::unexpected(ok.error());
        if (auto ok = to->copy(target->address(), source->address(), size); !ok) return std::unexpected(ok.error());
        auto wrong = check("read in place");
        if (!wrong) return std::unexpected(wrong.error());
        if (*wrong) return **wrong;
      }
    }
  if (auto ok = s.device().use(); !ok) return std::unexpected(ok.error());
  return Outcome::pass(fmt::format("{} pairs of devices, {} bytes each, {} of them with peer access", pairs, size, in_place));
}

}  // namespace

void add_collective_operators(std::vector<NativeOperator>& to) {
  auto group = std::make_shared<Group>();
  to.push_back({"collective.peer-copy", "collective", "u8", [group](Session& s) { return peers(s, *group); }});
  for (const Call call : {Call::all_reduce, Call::all_reduce_max, Call::broadcast, Call::all_gather, Call::reduce_scatter, Call::all_to_all})
    for (const auto& kind : kinds) {
      if (call != Call::all_reduce && kind.element != Element::f32 && kind.element != Element::bf16) continue;
      to.push_back({fmt::format("collective.{}.{}", call_names[static_cast<std::size_t>(call)], type_name(kind.type)), "collective",
                    std::string(type_name(kind.type)), [group, call, &kind](Session& s) { return collective(s, *group, call, kind); }});
    }
}

}  // namespace ff::compute
