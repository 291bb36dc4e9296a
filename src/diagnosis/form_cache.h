#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ff::diagnosis {

/// What a line of one form has shown, enough to answer the next line of that form without searching it.
struct alignas(64) FormVerdict {
  /// Some literals hold digits: at a place where the form would allow one of them, which one stands there (none: no_literal). A line of
  /// the same form with another answer is another case.
  struct Place {
    std::uint16_t form = 0;  ///< of the literals, by Bundle::forms
    std::uint16_t end = 0;   ///< of the literal in the line
  };
  static constexpr std::uint8_t no_literal = 0xFF;
  static constexpr std::size_t max_signals = 6, max_asks = 4, max_places = 4;
  static constexpr std::uint32_t alarm_unknown = 0xFFFFFFFF, alarm_dull = 0xFFFFFFFE;

  std::uint64_t key = 0;
  /// Index into Evidence::alarms when no signal shows; alarm_dull: nothing to say; alarm_unknown: a signal showed, by its digits perhaps.
  std::uint32_t alarm = alarm_dull;
  std::uint8_t signal_count = 0, ask_count = 0, place_count = 0;
  bool empty = false;                              ///< holds no literal at all
  std::array<std::uint16_t, max_signals> signals;  ///< that every such line shows
  std::array<std::uint16_t, max_asks> asks;        ///< for which the digits decide
  std::array<Place, max_places> places;
  std::array<std::uint8_t, max_places> expected;  ///< index into Bundle::forms[form]
};
static_assert(sizeof(FormVerdict) == 64);

/// A table of fixed size: what is not looked up gives way.
class FormCache {
 public:
  static constexpr std::size_t ways = 4, sets = 2048;

  /// The verdicts of which some may be of the key.
  [[nodiscard]] std::array<FormVerdict, ways>& set_of(std::uint64_t key) { return sets_[(key >> 20) % sets]; }
  /// A place for a new verdict of the key.
  FormVerdict& make_room(std::uint64_t key) {
    auto& set = set_of(key);
    for (FormVerdict& v : set)
      if (v.key == 0) return v;
    return set[next_++ % ways];
  }

 private:
  std::vector<std::array<FormVerdict, ways>> sets_ = std::vector<std::array<FormVerdict, ways>>(sets);
  std::size_t next_ = 0;
};

}  // namespace ff::diagnosis
