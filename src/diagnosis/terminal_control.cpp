#include "diagnosis/terminal_control.h"

#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ff::diagnosis {

namespace {

constexpr bool is_control(char c) { return c == '\x1b' || c == '\r' || c == '\b' || c == '\0'; }

#ifdef __x86_64__
__attribute__((target("avx2"))) bool holds_avx2(std::string_view text) {
  // Which byte below 16 is meant stands in a table by its low half; a byte of another high half finds nothing there.
  const __m256i table = _mm256_setr_epi8(0, -1, -1, -1, -1, -1, -1, -1, 8, -1, -1, -1, -1, 13, -1, -1,  //
                                         0, -1, -1, -1, -1, -1, -1, -1, 8, -1, -1, -1, -1, 13, -1, -1);
  const __m256i escape = _mm256_set1_epi8('\x1b');
  const char* at = text.data();
  const char* const end = at + text.size();
  for (; end - at >= 64; at += 64) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
    // A byte above 127 makes the table give 0, which is not that byte.
    const __m256i found_a = _mm256_or_si256(_mm256_cmpeq_epi8(a, _mm256_shuffle_epi8(table, a)), _mm256_cmpeq_epi8(a, escape));
    const __m256i found_b = _mm256_or_si256(_mm256_cmpeq_epi8(b, _mm256_shuffle_epi8(table, b)), _mm256_cmpeq_epi8(b, escape));
    const __m256i found = _mm256_or_si256(found_a, found_b);
    if (_mm256_testz_si256(found, found) == 0) return true;
  }
  return holds_terminal_control_portable(text.substr(static_cast<std::size_t>(at - text.data())));
}
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

bool holds_terminal_control_portable(std::string_view text) {
  // In pieces, of each of which the compiler makes vector operations.
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, 4096);
    std::uint8_t found = 0;
    for (const char c : piece) found = static_cast<std::uint8_t>(found | static_cast<std::uint8_t>(is_control(c)));
    if (found != 0) return true;
    text.remove_prefix(piece.size());
  }
  return false;
}

bool holds_terminal_control(std::string_view text) {
#ifdef __x86_64__
  if (has_avx2) return holds_avx2(text);
#endif
  return holds_terminal_control_portable(text);
}

}  // namespace ff::diagnosis
