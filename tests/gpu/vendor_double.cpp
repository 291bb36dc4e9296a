// Stand-ins for rocBLAS, hipBLASLt and RCCL over the memory of hip_double, for tests: the same calls with the same arguments, worked out
// on the host. FF_VENDOR_FAIL="ncclAllReduce:3" makes every such call fail with that status.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compute/native_types.h"

namespace {

using ff::compute::Type;

int injected(const char* function) {
  const char* wanted = std::getenv("FF_VENDOR_FAIL");
  if (wanted == nullptr) return 0;
  const std::string text = wanted;
  const auto colon = text.find(':');
  return text.substr(0, colon) == function ? std::atoi(text.c_str() + colon + 1) : 0;
}
#define FF_ENTRY \
  if (const int code = injected(__func__); code != 0) return code

std::vector<double> read(Type type, const void* from, std::size_t count) {
  return ff::compute::decode(type, {static_cast<const std::byte*>(from), count * ff::compute::type_size(type)});
}
void write(Type type, void* to, const std::vector<double>& values) {
  const auto bytes = ff::compute::encode(type, values);
  std::memcpy(to, bytes.data(), bytes.size());
}

// ---- RCCL

struct Communicator {
  int rank, ranks;
};
/// What was asked for between begin and end; done at the end, when all ranks have spoken.
std::vector<std::function<void()>> asked;
struct Part {
  const void* in;
  void* out;
};
std::map<std::string, std::vector<Part>> meetings;
int depth = 0;
/// Letters by sender and receiver, taken in the order in which they were sent.
struct Letter {
  const void* from;
};
std::map<std::pair<int, int>, std::vector<Letter>> letters;

Type nccl_type(int number) {
  switch (number) {
    case 0:
      return Type::i8;
    case 2:
      return Type::i32;
    case 6:
      return Type::f16;
    case 7:
      return Type::f32;
    case 8:
      return Type::f64;
    default:
      return Type::bf16;
  }
}

/// All ranks meet at one call; the last to come does the work.
int meet(const char* call, void* communicator, const void* in, void* out, const std::function<void(const std::vector<Part>&)>& work) {
  const auto& c = *static_cast<Communicator*>(communicator);
  auto& parts = meetings[call];
  parts.resize(static_cast<std::size_t>(c.ranks));
  parts[static_cast<std::size_t>(c.rank)] = {in, out};
  if (c.rank == c.ranks - 1) asked.emplace_back([call, work] { work(std::exchange(meetings[call], {})); });
  return depth > 0 || c.ranks == 1 ? 0 : 5;
}
std::vector<double> combined(const std::vector<Part>& parts, Type type, std::size_t count, int op) {
  auto out = read(type, parts[0].in, count);
  for (std::size_t r = 1; r < parts.size(); ++r) {
    const auto more = read(type, parts[r].in, count);
    for (std::size_t i = 0; i < count; ++i) out[i] = op == 2 ? std::max(out[i], more[i]) : out[i] + more[i];
  }
  return out;
}

// ---- products

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k,
                            std::size_t lda, std::size_t ldb) {
  std::vector<double> out(m * n);  // column-major, leading dimension m
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < m; ++i) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) sum += (ta ? a[l + i * lda] : a[i + l * lda]) * (tb ? b[j + l * ldb] : b[l + j * ldb]);
      out[i + j * m] = sum;
    }
  return out;
}

Type rocblas_type(int number) {
  switch (number) {
    case 150:
      return Type::f16;
    case 152:
      return Type::f64;
    case 160:
      return Type::i8;
    case 162:
      return Type::i32;
    case 168:
      return Type::bf16;
    default:
      return Type::f32;
  }
}
double scalar(int compute, const void* at) {
  if (compute == 152) return *static_cast<const double*>(at);
  if (compute == 162) return *static_cast<const std::int32_t*>(at);
  return static_cast<double>(*static_cast<const float*>(at));
}

struct Operation {
  std::map<int, int> attributes;
};
struct Layout {
  int type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};
Type lt_type(int number) {
  return number == 28 ? Type::e4m3 : number == 29 ? Type::e5m2 : number == 1000 ? Type::e4m3fnuz : number == 1001 ? Type::e5m2fnuz : Type::f32;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(int code) { return code == 0 ? "no error" : code == 3 ? "internal error" : "unhandled error"; }
int ncclGetVersion(int* version) {
  *version = 22403;
  return 0;
}
int ncclCommInitAll(void** communicators, int count, const int*) {
  FF_ENTRY;
  for (int i = 0; i < count; ++i) communicators[i] = new Communicator{i, count};
  return 0;
}
int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  return 0;
}
int ncclGroupStart() {
  FF_ENTRY;
  ++depth;
  return 0;
}
int ncclGroupEnd() {
  if (--depth > 0) return 0;
  const int code = injected(__func__);
  if (code == 0)
    for (const auto& one : asked) one();
  // What a failed call has left does not reach the next group.
  asked.clear();
  meetings.clear();
  letters.clear();
  return code;
}
int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int op, void* communicator, void*) {
  FF_ENTRY;
  return meet(__func__, communicator, in, out, [=](const std::vector<Part>& parts) {
    const auto sum = combined(parts, nccl_type(type), count, op);
    for (const auto& part : parts) write(nccl_type(type), part.out, sum);
  });
}
int ncclBroadcast(const void* in, void* out, std::size_t count, int type, int root, void* communicator, void*) {
  FF_ENTRY;
  return meet(__func__, communicator, in, out, [=](const std::vector<Part>& parts) {
    for (const auto& part : parts) std::memcpy(part.out, parts[static_cast<std::size_t>(root)].in, count * ff::compute::type_size(nccl_type(type)));
  });
}
int ncclAllGather(const void* in, void* out, std::size_t count, int type, void* communicator, void*) {
  FF_ENTRY;
  return meet(__func__, communicator, in, out, [=](const std::vector<Part>& parts) {
    const std::size_t bytes = count * ff::compute::type_size(nccl_type(type));
    for (const auto& part : parts)
      for (std::size_t r = 0; r < parts.size(); ++r) std::memcpy(static_cast<char*>(part.out) + r * bytes, parts[r].in, bytes);
  });
}
int ncclReduceScatter(const void* in, void* out, std::size_t count, int type, int op, void* communicator, void*) {
  FF_ENTRY;
  return meet(__func__, communicator, in, out, [=](const std::vector<Part>& parts) {
    const auto sum = combined(parts, nccl_type(type), count * parts.size(), op);
    for (std::size_t r = 0; r < parts.size(); ++r)
      write(nccl_type(type), parts[r].out,
            {sum.begin() + static_cast<std::ptrdiff_t>(r * count), sum.begin() + static_cast<std::ptrdiff_t>((r + 1) * count)});
  });
}
int ncclSend(const void* in, std::size_t, int, int peer, void* communicator, void*) {
  FF_ENTRY;
  letters[{static_cast<Communicator*>(communicator)->rank, peer}].push_back({in});
  return 0;
}
int ncclRecv(void* out, std::size_t count, int type, int peer, void* communicator, void*) {
  FF_ENTRY;
  const std::pair<int, int> way{peer, static_cast<Communicator*>(communicator)->rank};
  asked.emplace_back([=] {
    auto& waiting = letters[way];
    if (waiting.empty()) return;
    std::memcpy(out, waiting.front().from, count * ff::compute::type_size(nccl_type(type)));
    waiting.erase(waiting.begin());
  });
  return 0;
}

int rocblas_create_handle(void** handle) {
  FF_ENTRY;
  *handle = &depth;
  return 0;
}
int rocblas_set_stream(void*, void*) {
  FF_ENTRY;
  return 0;
}
int rocblas_gemm_strided_batched_ex(void*, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int a_type, int lda,
                                    long long stride_a, const void* b, int b_type, int ldb, long long stride_b, const void* beta, const void* c,
                                    int c_type, int ldc, long long stride_c, void* d, int d_type, int ldd, long long stride_d, int batch, int compute,
                                    int, int, unsigned) {
  FF_ENTRY;
  const auto at = [](const void* base, Type type, long long elements) {
    return static_cast<const char*>(base) + elements * static_cast<long long>(ff::compute::type_size(type));
  };
  const Type ia = rocblas_type(a_type), ib = rocblas_type(b_type), ic = rocblas_type(c_type), id = rocblas_type(d_type);
  const bool transpose_a = ta == 112, transpose_b = tb == 112;
  const auto last = [](bool t, int rows, int columns, int leading) {
    return static_cast<std::size_t>((t ? rows : columns) - 1) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(t ? columns : rows);
  };
  for (int z = 0; z < batch; ++z) {
    const auto va = read(ia, at(a, ia, z * stride_a), last(transpose_a, m, k, lda)),
               vb = read(ib, at(b, ib, z * stride_b), last(transpose_b, k, n, ldb));
    const auto sums = product(va, vb, transpose_a, transpose_b, static_cast<std::size_t>(m), static_cast<std::size_t>(n), static_cast<std::size_t>(k),
                              static_cast<std::size_t>(lda), static_cast<std::size_t>(ldb));
    const double al = scalar(compute, alpha), be = scalar(compute, beta);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        double value = al * sums[static_cast<std::size_t>(i) + static_cast<std::size_t>(j) * static_cast<std::size_t>(m)];
        if (be != 0) value += be * read(ic, at(c, ic, z * stride_c + i + static_cast<long long>(j) * ldc), 1).front();
        write(id, const_cast<char*>(at(d, id, z * stride_d + i + static_cast<long long>(j) * ldd)), {value});
      }
  }
  return 0;
}

int hipblasLtCreate(void** handle) {
  FF_ENTRY;
  *handle = &depth;
  return 0;
}
int hipblasLtMatmulDescCreate(void** operation, int compute, int) {
  FF_ENTRY;
  if (compute != 2) return 7;
  *operation = new Operation();
  return 0;
}
int hipblasLtMatmulDescSetAttribute(void* operation, int attribute, const void* value, std::size_t size) {
  FF_ENTRY;
  if (size != 4) return 3;
  std::memcpy(&static_cast<Operation*>(operation)->attributes[attribute], value, size);
  return 0;
}
int hipblasLtMatmulDescDestroy(void* operation) {
  delete static_cast<Operation*>(operation);
  return 0;
}
int hipblasLtMatrixLayoutCreate(void** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  FF_ENTRY;
  *layout = new Layout{type, rows, columns, leading};
  return 0;
}
int hipblasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
int hipblasLtMatmulPreferenceCreate(void** preference) {
  FF_ENTRY;
  *preference = new char(0);
  return 0;
}
int hipblasLtMatmulPreferenceSetAttribute(void*, int attribute, const void*, std::size_t size) {
  FF_ENTRY;
  return attribute == 1 && size == 8 ? 0 : 3;
}
int hipblasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<char*>(preference);
  return 0;
}
int hipblasLtMatmulAlgoGetHeuristic(void*, void*, void* a, void*, void*, void*, void*, int, void* answers, int* found) {
  FF_ENTRY;
  // gfx942 knows the fnuz forms only.
  if (static_cast<Layout*>(a)->type < 1000) return 7;
  std::memset(answers, 0x5a, 56);
  *found = 1;
  return 0;
}
int hipblasLtMatmul(void*, void* operation, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout, const void* beta,
                    const void*, void*, void* d, void* d_layout, const void* algorithm, void* workspace, std::size_t, void*) {
  FF_ENTRY;
  auto& o = static_cast<Operation*>(operation)->attributes;
  const auto &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout), &ld = *static_cast<Layout*>(d_layout);
  if (o[0] != 112 || o[1] != 111 || *static_cast<const unsigned char*>(algorithm) != 0x5a || workspace == nullptr || la.rows != lb.rows ||
      ld.rows != la.columns || ld.columns != lb.columns || *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return 3;
  const Type ta = lt_type(la.type), tb = lt_type(lb.type);
  write(Type::f32, d,
        product(read(ta, a, la.rows * la.columns), read(tb, b, lb.rows * lb.columns), true, false, ld.rows, ld.columns, la.rows,
                static_cast<std::size_t>(la.leading), static_cast<std::size_t>(lb.leading)));
  return 0;
}

}  // extern "C"
