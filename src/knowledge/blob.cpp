#include "knowledge/blob.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace ff::knowledge {

namespace {

constexpr std::string_view magic = "FFKB0005";
constexpr int max_value_depth = 64;
constexpr int max_condition_depth = 16;

/// Both directions share one description of each type: `describe(archive, object)` lists its members once.
class Writer {
 public:
  static constexpr bool reading = false;
  std::string out;

  void number(std::uint64_t v) {  // LEB128
    while (v >= 0x80) {
      out.push_back(static_cast<char>(0x80 | (v & 0x7F)));
      v >>= 7;
    }
    out.push_back(static_cast<char>(v));
  }
  void bytes(std::string_view s) {
    number(s.size());
    out.append(s);
  }
};

class Reader {
 public:
  static constexpr bool reading = true;
  explicit Reader(std::string_view s) : rest_(s) {}

  std::uint64_t number() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return bad(), 0;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      v |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return v;
    }
    return bad(), 0;
  }
  /// A number of things of at least one byte each: more cannot be there than bytes are left.
  std::size_t count() {
    const std::uint64_t n = number();
    if (n > rest_.size()) return bad(), 0;
    return static_cast<std::size_t>(n);
  }
  std::string_view bytes() {
    const std::size_t n = count();
    std::string_view s = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return s;
  }
  void bad() {
    ok = false;
    rest_ = {};
  }
  bool ok = true;

 private:
  std::string_view rest_;
};

template <class A>
void describe(A& a, std::string& s) {
  if constexpr (A::reading)
    s = std::string(a.bytes());
  else
    a.bytes(s);
}
template <class A, class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void describe(A& a, T& v) {
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (A::reading)
      v = std::bit_cast<T>(a.number());
    else
      a.number(std::bit_cast<std::uint64_t>(v));
  } else {
    if constexpr (A::reading)
      v = static_cast<T>(a.number());
    else
      a.number(static_cast<std::uint64_t>(v));
  }
}
template <class A, class T>
void describe(A& a, std::vector<T>& v);
template <class A, class X, class Y>
void describe(A& a, std::pair<X, Y>& p) {
  describe(a, p.first);
  describe(a, p.second);
}
template <class A>
void describe(A& a, Pattern& p) {
  describe(a, p.text);
  describe(a, p.literals);
  describe(a, p.also);
  describe(a, p.numbers_matter);
}
template <class A>
void describe(A& a, Follow& f) {
  describe(a, f.within);
  describe(a, f.match);
}
template <class A>
void describe(A& a, std::map<std::string, std::string>& m) {
  std::vector<std::pair<std::string, std::string>> flat(m.begin(), m.end());
  describe(a, flat);
  if constexpr (A::reading) m = {flat.begin(), flat.end()};
}
template <class A>
void describe(A& a, Signal& s) {
  describe(a, s.id);
  describe(a, s.title);
  describe(a, s.layer);
  describe(a, s.explain);
  describe(a, s.mistaken_for);
  describe(a, s.severity);
  describe(a, s.benign);
  describe(a, s.kinds);
  describe(a, s.in_kernel_log);
  describe(a, s.match);
  describe(a, s.follow);
  describe(a, s.sources);
  describe(a, s.decode);
}
template <class A>
void describe(A& a, Comparison& c) {
  describe(a, c.op);
  describe(a, c.words);
}
template <class A>
void describe(A& a, Condition& c, int depth = 0) {
  describe(a, c.type);
  describe(a, c.name);
  describe(a, c.where);
  describe(a, c.is);
  describe(a, c.count);
  describe(a, c.before);
  describe(a, c.after);
  std::uint64_t n = c.parts.size();
  describe(a, n);
  if constexpr (A::reading) {
    if (depth >= max_condition_depth && n > 0) return a.bad();
    for (std::uint64_t i = 0; i < n && a.ok; ++i) describe(a, c.parts.emplace_back(), depth + 1);
  } else {
    for (Condition& part : c.parts) describe(a, part, depth + 1);
  }
}
template <class A>
void describe(A& a, Rule& r) {
  describe(a, r.name);
  describe(a, r.when);
  describe(a, r.score);
  describe(a, r.confirms);
  describe(a, r.because);
  describe(a, r.fix);
  describe(a, r.verify);
  describe(a, r.sources);
}
template <class A>
void describe(A& a, Cause& c) {
  describe(a, c.text.id);
  describe(a, c.text.layer);
  describe(a, c.text.title);
  describe(a, c.text.explain);
  describe(a, c.text.fix);
  describe(a, c.text.verify);
  describe(a, c.text.sources);
  describe(a, c.rules);
  describe(a, c.against);
  describe(a, c.covers);
  describe(a, c.separates);
}
template <class A, class T>
void describe(A& a, std::vector<T>& v) {
  if constexpr (A::reading) {
    const std::size_t n = a.count();
    for (std::size_t i = 0; i < n && a.ok; ++i) describe(a, v.emplace_back());
  } else {
    a.number(v.size());
    for (T& item : v) describe(a, item);
  }
}

void write_value(Writer& w, const Value& v) {
  w.number(static_cast<std::uint64_t>(v.kind()));
  switch (v.kind()) {
    case Value::Kind::null:
      break;
    case Value::Kind::boolean:
      w.number(v.as_bool() ? 1 : 0);
      break;
    case Value::Kind::integer:
      w.number(static_cast<std::uint64_t>(v.as_int()));
      break;
    case Value::Kind::real:
      w.number(std::bit_cast<std::uint64_t>(v.as_real()));
      break;
    case Value::Kind::text:
      w.bytes(v.as_text());
      break;
    case Value::Kind::list:
      w.number(v.items().size());
      for (const Value& item : v.items()) write_value(w, item);
      break;
    case Value::Kind::object:
      w.number(v.members().size());
      for (const auto& [name, member] : v.members()) {
        w.bytes(name);
        write_value(w, member);
      }
      break;
  }
}

Value read_value(Reader& r, int depth) {
  if (depth > max_value_depth) return r.bad(), Value();
  const std::uint64_t kind = r.number();
  if (kind > static_cast<std::uint64_t>(Value::Kind::object)) return r.bad(), Value();
  switch (static_cast<Value::Kind>(kind)) {
    case Value::Kind::null:
      return {};
    case Value::Kind::boolean:
      return r.number() != 0;
    case Value::Kind::integer:
      return static_cast<std::int64_t>(r.number());
    case Value::Kind::real:
      return std::bit_cast<double>(r.number());
    case Value::Kind::text:
      return Value(r.bytes());
    case Value::Kind::list: {
      Value::List out;
      for (std::size_t n = r.count(); n > 0 && r.ok; --n) out.push_back(read_value(r, depth + 1));
      return Value(std::move(out));
    }
    case Value::Kind::object: {
      Value::Object out;
      for (std::size_t n = r.count(); n > 0 && r.ok; --n) {
        std::string name(r.bytes());
        out.emplace_back(std::move(name), read_value(r, depth + 1));
      }
      return Value(std::move(out));
    }
  }
  return {};
}

}  // namespace

std::string write_blob(const Bundle& bundle) {
  Writer w;
  w.out = magic;
  Bundle copy;  // `describe` serves both directions and takes what it could change
  copy.date = bundle.date;
  copy.signals = bundle.signals;
  copy.causes = bundle.causes;
  copy.literals = bundle.literals;
  copy.alarm_words = bundle.alarm_words;
  copy.forms = bundle.forms;
  describe(w, copy.date);
  describe(w, copy.signals);
  describe(w, copy.causes);
  describe(w, copy.literals);
  describe(w, copy.alarm_words);
  describe(w, copy.forms);
  w.bytes(bundle.database);
  w.bytes(bundle.kernel_database);
  w.bytes(bundle.origin_database);
  w.number(bundle.tables.size());
  for (const auto& [name, table] : bundle.tables) {
    Writer inner;
    write_value(inner, table);
    w.bytes(name);
    w.bytes(inner.out);
  }
  return std::move(w.out);
}

Result<Opened> read_blob(std::string_view bytes) {
  if (!bytes.starts_with(magic)) return fail("this is not compiled knowledge of this version", "knowledge", "build the program again");
  Reader r(bytes.substr(magic.size()));
  Opened o;
  describe(r, o.bundle.date);
  describe(r, o.bundle.signals);
  describe(r, o.bundle.causes);
  describe(r, o.bundle.literals);
  describe(r, o.bundle.alarm_words);
  describe(r, o.bundle.forms);
  o.database = r.bytes();
  o.kernel_database = r.bytes();
  o.origin_database = r.bytes();
  for (std::size_t n = r.count(); n > 0 && r.ok; --n) {
    std::string name(r.bytes());
    const std::string_view table = r.bytes();
    o.tables.emplace_back(std::move(name), table);
  }
  const auto in_range = [&](const std::vector<std::uint32_t>& ids) {
    for (std::uint32_t id : ids)
      if (id >= o.bundle.literals.size()) return false;
    return true;
  };
  bool ids_ok = in_range(o.bundle.alarm_words);
  for (const auto& literals : o.bundle.forms) ids_ok = ids_ok && in_range(literals);
  for (const Signal& s : o.bundle.signals) {
    for (const Pattern& p : s.match) ids_ok = ids_ok && in_range(p.literals);
    for (const Follow& f : s.follow)
      for (const Pattern& p : f.match) ids_ok = ids_ok && in_range(p.literals);
  }
  if (!r.ok || !ids_ok) return fail("the compiled knowledge is damaged", "knowledge", "build the program again");
  return o;
}

Result<Value> read_table(std::string_view bytes) {
  Reader r(bytes);
  Value v = read_value(r, 0);
  if (!r.ok) return fail("a table of the compiled knowledge is damaged", "knowledge", "build the program again");
  return v;
}

}  // namespace ff::knowledge
