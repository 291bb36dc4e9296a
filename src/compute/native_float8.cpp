#include <fmt/format.h>

#include <array>
#include <cmath>

#include "compute/native_session.h"

// Eight-bit floating point in all four formats: conversions by our kernels (with the target's instructions where it has them), and
// the vendor's products. All data is such that every result is exact: conversions round once, to nearest; products take whole
// numbers up to 3, whose sums stay far below the 13 bits that matrix units keep of eight-bit products.
namespace ff::compute {
namespace {

constexpr std::array<Type, 4> formats{Type::e4m3, Type::e5m2, Type::e4m3fnuz, Type::e5m2fnuz};
unsigned number(Type type) { return static_cast<unsigned>(type) - static_cast<unsigned>(Type::e4m3); }

/// "by instruction" or "in software": which of them was tried.
Result<std::string> means(Session& s, Type type) {
  auto f = s.kernel("float8", "float8_hard");
  if (!f) return std::unexpected(f.error());
  auto flags = s.upload(Bytes(16));
  if (!flags) return std::unexpected(flags.error());
  auto stream = s.stream();
  if (!stream) return std::unexpected(stream.error());
  if (auto ok = s.launch(*f, 4, 32, *stream, flags->address()); !ok) return std::unexpected(ok.error());
  if (auto ok = s.device().wait(*stream); !ok) return std::unexpected(ok.error());
  auto back = s.download(flags->address(), 16);
  if (!back) return std::unexpected(back.error());
  return decode(Type::u32, *back)[number(type)] != 0 ? "by the target's instruction" : "in whole-number arithmetic";
}

Result<Outcome> encoding(Session& s, Type type) {
  std::vector<double> values{0.0, -0.0, NAN, largest(type), -largest(type)};
  // Every number of the type, the middle between it and the next, and both neighbours of the middle in f32.
  for (int bits = 0; bits < 128; ++bits) {
    const std::array<std::byte, 1> one{static_cast<std::byte>(bits)}, next{static_cast<std::byte>(bits + 1)};
    const double low = decode(type, one).front(), high = bits < 127 ? decode(type, next).front() : NAN;
    if (!std::isfinite(low)) continue;
    const double middle = (low + high) / 2;
    for (const double sign : {1.0, -1.0}) {
      values.push_back(sign * low);
      if (!std::isfinite(middle)) continue;
      const auto m = static_cast<float>(middle);
      for (const float near : {m, std::nextafterf(m, 0.0F), std::nextafterf(m, 1e30F)}) values.push_back(sign * static_cast<double>(near));
    }
  }
  Series series(800 + number(type));
  const std::size_t random = s.size(1u << 20, 4000);
  for (std::size_t i = 0; i < random; ++i)
    values.push_back(static_cast<double>(static_cast<float>(std::ldexp(series.uniform(-1, 1), static_cast<int>(series.whole(-22, 7))))));
  auto f = s.kernel("float8", "float8_encode");
  if (!f) return std::unexpected(f.error());
  auto how = means(s, type);
  if (!how) return std::unexpected(how.error());
  auto in = s.upload(Type::f32, values);
  if (!in) return std::unexpected(in.error());
  Reference reference;
  for (const double v : values) reference.value.push_back(rounded(type, v));
  Trial trial{.type = type, .elements = values.size()};
  trial.detail = fmt::format("{} values, {}", values.size(), *how);
  trial.run = [&](gpu::Address out, gpu::Stream stream) {
    return s.launch(*f, values.size(), 256, stream, out, in->address(), number(type), static_cast<std::uint64_t>(values.size()));
  };
  return s.judge(trial, reference);
}

Result<Outcome> decoding(Session& s, Type type) {
  Bytes codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  auto f = s.kernel("float8", "float8_decode");
  if (!f) return std::unexpected(f.error());
  auto how = means(s, type);
  if (!how) return std::unexpected(how.error());
  auto in = s.upload(codes);
  if (!in) return std::unexpected(in.error());
  const Reference reference{.value = decode(type, codes), .scale = {}};
  Trial trial{.type = Type::f32, .elements = codes.size()};
  trial.detail = fmt::format("all 256 codes, {}", *how);
  trial.run = [&](gpu::Address out, gpu::Stream stream) {
    return s.launch(*f, codes.size(), 64, stream, out, in->address(), number(type), static_cast<std::uint64_t>(codes.size()));
  };
  return s.judge(trial, reference);
}

Result<Outcome> product(Session& s, Type a_type, Type b_type) {
  auto blas = s.blas_lt();
  if (!blas) return without_library(blas.error());
  struct Shape {
    unsigned m, n, k;
  };
  const std::vector<Shape> shapes = s.small() || s.quick() ? std::vector<Shape>{{16, 32, 64}, {48, 16, 80}}
                                                           : std::vector<Shape>{{16, 16, 16}, {256, 256, 256}, {16, 512, 1024}, {272, 48, 4096}};
  Outcome all;
  double ms = 0;
  for (const auto& shape : shapes) {
    Series series(shape.m + 3 * shape.n + 7 * shape.k);
    std::vector<double> a(static_cast<std::size_t>(shape.m) * shape.k), b(static_cast<std::size_t>(shape.n) * shape.k);
    for (auto& v : a) v = static_cast<double>(series.whole(-3, 3));
    for (auto& v : b) v = static_cast<double>(series.whole(-3, 3));
    Reference reference;
    for (unsigned i = 0; i < shape.m; ++i)
      for (unsigned j = 0; j < shape.n; ++j) {
        double sum = 0;
        for (unsigned k = 0; k < shape.k; ++k) sum += a[static_cast<std::size_t>(i) * shape.k + k] * b[static_cast<std::size_t>(j) * shape.k + k];
        reference.value.push_back(sum);
      }
    auto da = s.upload(a_type, a), db = s.upload(b_type, b);
    if (!da) return std::unexpected(da.error());
    if (!db) return std::unexpected(db.error());
    Trial trial{.type = Type::f32, .elements = reference.value.size()};
    trial.detail = fmt::format("{}x{}x{}, {}", shape.m, shape.n, shape.k, (*blas)->library());
    const auto kind = [](Type type) { return static_cast<gpu::Float8>(number(type)); };
    trial.run = [&](gpu::Address out, gpu::Stream stream) {
      return (*blas)->multiply(kind(a_type), kind(b_type), shape.m, shape.n, shape.k, da->address(), db->address(), out, stream);
    };
    auto one = s.judge(trial, reference);
    if (!one || one->status != OperatorStatus::pass) return one;
    ms += one->time_ms.value_or(0);
    all = *one;
  }
  all.time_ms = ms;
  all.detail = fmt::format("{} shapes, exact data, {}", shapes.size(), (*blas)->library());
  return all;
}

}  // namespace

void add_float8_operators(std::vector<NativeOperator>& to) {
  for (const Type type : formats) {
    const std::string name(type_name(type));
    to.push_back({"convert.f32." + name, "convert", name, [type](Session& s) { return encoding(s, type); }});
    to.push_back({"convert." + name + ".f32", "convert", name, [type](Session& s) { return decoding(s, type); }});
  }
  for (const auto& [a, b] : {std::pair{Type::e4m3, Type::e4m3},
                             {Type::e4m3, Type::e5m2},
                             {Type::e5m2, Type::e4m3},
                             {Type::e4m3fnuz, Type::e4m3fnuz},
                             {Type::e4m3fnuz, Type::e5m2fnuz},
                             {Type::e5m2fnuz, Type::e4m3fnuz}})
    to.push_back({fmt::format("blas.{}.{}.exact", type_name(a), type_name(b)), "blas", std::string(type_name(a)),
                  [a, b](Session& s) { return product(s, a, b); }});
}

}  // namespace ff::compute
