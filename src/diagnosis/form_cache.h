#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ff::diagnosis {

/// What a line of one form has shown, enough to answer the next line of that form without searching it.
struct alignas(64) FormVerdict {
  /// Some literals hold digits: at a place where the form would allow one of them, which one stands there (none: no_literal). A line of
  /// the same form with another answer is another case.
  struct Place {
    std::uint16_t form;  ///< of the literals, by Bundle::forms
    std::uint16_t end;   ///< of the literal in the line
  };
  static constexpr std::uint8_t no_literal = 0xFF;
  static constexpr std::uint8_t some_pattern = 0xFF;  ///< which pattern's fields a line has is to be searched
  static constexpr std::uint16_t several_kinds = 0xFFFF;
  static constexpr std::size_t max_signals = 6, max_asks = 5, max_places = 4;
  static constexpr std::uint32_t alarm_unknown = 0xFFFFFFFF, alarm_dull = 0xFFFFFFFE;

  /// Index into Evidence::alarms when no signal shows; alarm_dull: nothing to say; alarm_unknown: a signal showed, by its digits perhaps.
  std::uint32_t alarm;
  std::uint16_t kinds;  ///< of such a line
  std::uint8_t signal_count, ask_count, place_count;
  std::uint8_t hits;                                      ///< lines answered, until the asks are looked through once
  std::array<std::uint8_t, max_signals> signal_patterns;  ///< of the signal, that every such line matches
  std::array<std::uint16_t, max_signals> signals;         ///< that every such line shows
  std::array<std::uint16_t, max_asks> asks;               ///< for which the digits decide: patterns of one signal stand together, in order
  std::array<std::uint8_t, max_asks> ask_patterns;        ///< of that signal
  std::array<std::uint8_t, max_places> expected;          ///< index into Bundle::forms[form]
  std::array<Place, max_places> places;
};
static_assert(sizeof(FormVerdict) == 64);

/// A table of fixed size from keys (LineForm) to verdicts; one key may have several. What is not looked up gives way.
class FormCache {
 public:
  static constexpr std::size_t ways = 8, sets = 2048;

  /// Index of the first way whose verdict is of the key, from `way` on; `ways` when there is none.
  [[nodiscard]] std::size_t find(std::uint64_t key, std::size_t way = 0) const {
    const Keys& keys = keys_[set_of(key)];
    while (way < ways && (keys[way] | dull_bit) != (key | dull_bit)) ++way;
    return way;
  }
  /// Whether nothing can be in a line of the key at all.
  [[nodiscard]] bool dull(std::uint64_t key, std::size_t way) const { return (keys_[set_of(key)][way] & dull_bit) != 0; }
  [[nodiscard]] FormVerdict& verdict(std::uint64_t key, std::size_t way) { return verdicts_[set_of(key) * ways + way]; }

  /// A verdict of the key, in the given way or, when that is `ways`, in place of another.
  void put(std::uint64_t key, std::size_t way, const FormVerdict& verdict, bool dull) {
    Keys& keys = keys_[set_of(key)];
    for (std::size_t i = 0; i < ways && way == ways; ++i)
      if (keys[i] == 0) way = i;
    if (way == ways) way = next_++ % ways;
    keys[way] = dull ? key | dull_bit : key & ~dull_bit;
    verdicts_[set_of(key) * ways + way] = verdict;
  }

 private:
  using Keys = std::array<std::uint64_t, ways>;  // a cache line: most lines of a log need no other
  static constexpr std::uint64_t dull_bit = 1;
  static std::size_t set_of(std::uint64_t key) { return (key >> 20) % sets; }

  struct alignas(64) Set : Keys {};
  std::vector<Set> keys_ = std::vector<Set>(sets);
  /// What a key stands for; nothing where there is none.
  std::unique_ptr<FormVerdict[]> verdicts_ = std::make_unique_for_overwrite<FormVerdict[]>(sets * ways);
  std::size_t next_ = 0;
};

}  // namespace ff::diagnosis
