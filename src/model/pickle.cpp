#include "model/pickle.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/text.h"

namespace ff::model {
namespace {

/// Each instruction makes at most one item; the limit bounds the memory of a hostile file.
constexpr std::size_t max_items = 20'000'000;

/// A value that the machine would hold, as far as it matters here.
struct Item {
  enum class Kind : std::uint8_t { other, mark, integer, text, import, list, dictionary, storage, tensor } kind = Kind::other;
  std::int64_t number = 0;              ///< integer; storage, tensor: index
  std::string_view text;                ///< text (escapes of protocol 0 not undone)
  std::vector<std::uint32_t> children;  ///< list (and tuple)
};

class Machine {
 public:
  Machine(std::string_view bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  Result<PickleSurvey> run() {
    while (true) {
      if (at_ >= bytes_.size()) return stop_short();
      op_at_ = at_;
      const auto op = static_cast<unsigned char>(bytes_[at_++]);
      if (op == '.') break;
      if (!step(op))
        return problem_.empty() ? stop_short()
                                : fail(problem_, fmt::format("{}: byte {}", where_, op_at_), "the pickle is damaged: fetch or save the file again");
      if (items_.size() > max_items) return fail(fmt::format("a pickle with more than {} values", max_items), std::string(where_));
    }
    if (stack_.empty() || items_[stack_.back()].kind == Kind::mark)
      return fail("a pickle that leaves no value", fmt::format("{}: byte {}", where_, op_at_));
    const Item& result = items_[stack_.back()];
    if (result.kind == Item::Kind::list)
      for (const auto child : result.children)
        if (items_[child].kind == Item::Kind::text) out_.string_list.emplace_back(items_[child].text);
    out_.size = at_;
    return std::move(out_);
  }

 private:
  using Kind = Item::Kind;

  std::unexpected<Error> stop_short() {
    return fail("a pickle cut short", fmt::format("{}: byte {}", where_, bytes_.size()), "the file is incomplete: fetch or save it again");
  }
  bool broken(std::string what) {
    problem_ = std::move(what);
    return false;
  }

  std::uint32_t make(Item item) {
    items_.push_back(std::move(item));
    return static_cast<std::uint32_t>(items_.size() - 1);
  }
  bool push(Item item) {
    stack_.push_back(make(std::move(item)));
    return true;
  }
  bool push_other() { return push({}); }
  bool pop(std::uint32_t& out) {
    if (stack_.empty() || items_[stack_.back()].kind == Kind::mark) return broken("an instruction finds too few values");
    out = stack_.back();
    stack_.pop_back();
    return true;
  }
  /// Takes everything above the last mark, and the mark.
  bool pop_mark(std::vector<std::uint32_t>& out) {
    std::size_t i = stack_.size();
    while (i > 0 && items_[stack_[i - 1]].kind != Kind::mark) --i;
    if (i == 0) return broken("an instruction finds no mark");
    out.assign(stack_.begin() + static_cast<std::ptrdiff_t>(i), stack_.end());
    stack_.resize(i - 1);
    return true;
  }

  bool take(std::uint64_t size, std::string_view& out) {
    if (size > bytes_.size() - at_) return false;
    out = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }
  template <class T>
  bool number(T& out) {
    std::string_view raw;
    if (!take(sizeof(T), raw)) return false;
    std::memcpy(&out, raw.data(), sizeof(T));
    return true;
  }
  template <class Length>
  bool counted(std::string_view& out) {
    Length size{};
    return number(size) && take(static_cast<std::uint64_t>(size), out);
  }
  bool line(std::string_view& out) {
    const auto end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  void import(std::string_view module, std::string_view name, Trust trust) {
    std::string full = std::string(module) + "." + std::string(name);
    if (!seen_.try_emplace(full, true).second) return;
    out_.imports.push_back({std::move(full), op_at_, trust});
  }
  bool push_import(std::string_view module, std::string_view name) {
    import(module, name, trust_in(module, name));
    Item item{Kind::import};
    item.text = name;
    import_names_.push_back(std::string(module) + "." + std::string(name));
    item.number = static_cast<std::int64_t>(import_names_.size() - 1);
    return push(std::move(item));
  }

  bool put(std::uint64_t key) {
    if (stack_.empty()) return broken("an instruction finds too few values");
    memo_[key] = stack_.back();
    return true;
  }
  bool get(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return broken("a value is fetched that was never kept");
    stack_.push_back(found->second);
    return true;
  }
  bool sequence(std::vector<std::uint32_t> children) {
    Item item{Kind::list};
    item.children = std::move(children);
    return push(std::move(item));
  }
  bool tuple(std::size_t n) {
    std::vector<std::uint32_t> children(n);
    for (std::size_t i = n; i-- > 0;)
      if (!pop(children[i])) return false;
    return sequence(std::move(children));
  }

  /// ('storage', type, key, location, elements): the reference by which a tensor finds its data.
  bool persistent(std::uint32_t id) {
    const Item& item = items_[id];
    if (item.kind == Kind::list && item.children.size() >= 5) {
      const auto& c = item.children;
      if (items_[c[0]].text == "storage" && items_[c[1]].kind == Kind::import && items_[c[2]].kind == Kind::text &&
          items_[c[4]].kind == Kind::integer) {
        out_.storages.push_back({import_names_[static_cast<std::size_t>(items_[c[1]].number)], std::string(items_[c[2]].text),
                                 std::string(items_[c[3]].text), items_[c[4]].number});
        Item storage{Kind::storage};
        storage.number = static_cast<std::int64_t>(out_.storages.size() - 1);
        return push(std::move(storage));
      }
    }
    return push_other();
  }

  std::vector<std::int64_t> integers(std::uint32_t id) const {
    std::vector<std::int64_t> out;
    for (const auto child : items_[id].children) out.push_back(items_[child].kind == Kind::integer ? items_[child].number : -1);
    return out;
  }

  bool reduce() {
    std::uint32_t arguments = 0, callable = 0;
    if (!pop(arguments) || !pop(callable)) return false;
    const auto& c = items_[arguments].children;
    if (items_[callable].kind == Kind::import && items_[arguments].kind == Kind::list) {
      const std::string& name = import_names_[static_cast<std::size_t>(items_[callable].number)];
      if (name.starts_with("torch._utils._rebuild_tensor") && c.size() >= 4 && items_[c[0]].kind == Kind::storage) {
        PickleTensor t;
        t.storage = static_cast<std::size_t>(items_[c[0]].number);
        t.offset = items_[c[1]].number;
        t.shape = integers(c[2]);
        t.stride = integers(c[3]);
        tensors_.push_back(std::move(t));
        Item item{Kind::tensor};
        item.number = static_cast<std::int64_t>(tensors_.size() - 1);
        return push(std::move(item));
      }
      if (name.starts_with("torch._utils._rebuild_parameter") && !c.empty() && items_[c[0]].kind == Kind::tensor) {
        stack_.push_back(c[0]);
        return true;
      }
      if (name == "collections.OrderedDict") return push({Kind::dictionary});
    }
    return push_other();
  }
  void set_item(std::uint32_t key, std::uint32_t value) {
    if (items_[key].kind != Kind::text || items_[value].kind != Kind::tensor) return;
    out_.tensors.push_back(tensors_[static_cast<std::size_t>(items_[value].number)]);
    out_.tensors.back().name = std::string(items_[key].text);
  }

  bool long_integer(std::string_view raw) {
    if (raw.size() > 8) return push_other();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) value |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    if (!raw.empty() && raw.size() < 8 && (raw.back() & 0x80) != 0) value |= ~std::uint64_t{0} << (8 * raw.size());
    Item item{Kind::integer};
    item.number = static_cast<std::int64_t>(value);
    return push(std::move(item));
  }
  bool integer(std::int64_t value) {
    Item item{Kind::integer};
    item.number = value;
    return push(std::move(item));
  }
  bool text(std::string_view value) {
    Item item{Kind::text};
    item.text = value;
    return push(std::move(item));
  }

  bool step(unsigned char op);

  std::string_view bytes_, where_;
  std::uint64_t at_ = 0, op_at_ = 0;
  std::string problem_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> stack_;
  std::unordered_map<std::uint64_t, std::uint32_t> memo_;
  std::unordered_map<std::string, bool> seen_;
  std::vector<std::string> import_names_;
  std::vector<PickleTensor> tensors_;
  PickleSurvey out_;
};

bool Machine::step(unsigned char op) {
  std::string_view raw, second;
  std::uint32_t a = 0, b = 0, c = 0;
  std::vector<std::uint32_t> many;
  switch (op) {
    case 0x80: {  // PROTO
      std::uint8_t version = 0;
      if (!number(version)) return false;
      if (version > 5) return broken(fmt::format("pickle protocol {} is not known", version));
      out_.protocol = version;
      return true;
    }
    case 0x95: {  // FRAME
      std::uint64_t size = 0;
      if (!number(size)) return false;
      return size <= bytes_.size() - at_;
    }
    case '(':
      return push({Kind::mark});
    case '0': {  // POP takes a mark, too
      if (stack_.empty()) return broken("an instruction finds too few values");
      stack_.pop_back();
      return true;
    }
    case '1':
      return pop_mark(many);
    case '2': {
      if (stack_.empty()) return broken("an instruction finds too few values");
      stack_.push_back(stack_.back());
      return true;
    }
    case 'N':
    case 0x88:
    case 0x89:
      return push_other();
    case 'I': {
      if (!line(raw)) return false;
      const auto value = to_integer(raw);
      return value ? integer(*value) : push_other();
    }
    case 'L': {
      if (!line(raw)) return false;
      if (raw.ends_with('L')) raw.remove_suffix(1);
      const auto value = to_integer(raw);
      return value ? integer(*value) : push_other();
    }
    case 'J': {
      std::int32_t v = 0;
      return number(v) && integer(v);
    }
    case 'K': {
      std::uint8_t v = 0;
      return number(v) && integer(v);
    }
    case 'M': {
      std::uint16_t v = 0;
      return number(v) && integer(v);
    }
    case 0x8a:
      return counted<std::uint8_t>(raw) && long_integer(raw);
    case 0x8b: {
      std::int32_t size = 0;
      if (!number(size)) return false;
      if (size < 0) return broken("a negative length");
      return take(static_cast<std::uint64_t>(size), raw) && long_integer(raw);
    }
    case 'F':
      return line(raw) && push_other();
    case 'G':
      return take(8, raw) && push_other();
    case 'S': {
      if (!line(raw)) return false;
      raw = trim(raw);
      if (raw.size() < 2) return broken("a text without quotes");
      return text(raw.substr(1, raw.size() - 2));
    }
    case 'V':
      return line(raw) && text(raw);
    case 'T': {
      std::int32_t size = 0;
      if (!number(size)) return false;
      if (size < 0) return broken("a negative length");
      return take(static_cast<std::uint64_t>(size), raw) && text(raw);
    }
    case 'U':
    case 0x8c:
      return counted<std::uint8_t>(raw) && text(raw);
    case 'X':
      return counted<std::uint32_t>(raw) && text(raw);
    case 0x8d:
      return counted<std::uint64_t>(raw) && text(raw);
    case 'C':
      return counted<std::uint8_t>(raw) && push_other();
    case 'B':
      return counted<std::uint32_t>(raw) && push_other();
    case 0x8e:
    case 0x96:
      return counted<std::uint64_t>(raw) && push_other();
    case 0x97:
      return push_other();  // NEXT_BUFFER
    case 0x98:
      return !stack_.empty() || broken("an instruction finds too few values");
    case ')':
      return sequence({});
    case ']':
      return sequence({});
    case '}':
      return push({Kind::dictionary});
    case 0x8f:
      return push_other();  // EMPTY_SET
    case 't':
    case 'l':
      return pop_mark(many) && sequence(std::move(many));
    case 0x85:
      return tuple(1);
    case 0x86:
      return tuple(2);
    case 0x87:
      return tuple(3);
    case 'd': {
      if (!pop_mark(many)) return false;
      for (std::size_t i = 0; i + 1 < many.size(); i += 2) set_item(many[i], many[i + 1]);
      return push({Kind::dictionary});
    }
    case 0x91:
      return pop_mark(many) && push_other();  // FROZENSET
    case 'a': {
      if (!pop(a) || stack_.empty()) return broken("an instruction finds too few values");
      if (items_[stack_.back()].kind == Kind::list) items_[stack_.back()].children.push_back(a);
      return true;
    }
    case 'e': {
      if (!pop_mark(many)) return false;
      if (stack_.empty()) return broken("an instruction finds too few values");
      if (items_[stack_.back()].kind == Kind::list)
        items_[stack_.back()].children.insert(items_[stack_.back()].children.end(), many.begin(), many.end());
      return true;
    }
    case 's': {
      if (!pop(b) || !pop(a)) return false;
      if (stack_.empty()) return broken("an instruction finds too few values");
      set_item(a, b);
      return true;
    }
    case 'u': {
      if (!pop_mark(many)) return false;
      if (stack_.empty()) return broken("an instruction finds too few values");
      for (std::size_t i = 0; i + 1 < many.size(); i += 2) set_item(many[i], many[i + 1]);
      return true;
    }
    case 0x90: {
      if (!pop_mark(many)) return false;
      return !stack_.empty() || broken("an instruction finds too few values");
    }
    case 'p': {
      if (!line(raw)) return false;
      const auto key = to_integer<std::uint64_t>(raw);
      return key ? put(*key) : broken("a value is kept under no number");
    }
    case 'q': {
      std::uint8_t key = 0;
      return number(key) && put(key);
    }
    case 'r': {
      std::uint32_t key = 0;
      return number(key) && put(key);
    }
    case 0x94:
      return put(memo_.size());
    case 'g': {
      if (!line(raw)) return false;
      const auto key = to_integer<std::uint64_t>(raw);
      return key ? get(*key) : broken("a value is fetched under no number");
    }
    case 'h': {
      std::uint8_t key = 0;
      return number(key) && get(key);
    }
    case 'j': {
      std::uint32_t key = 0;
      return number(key) && get(key);
    }
    case 'c':
      return line(raw) && line(second) && push_import(raw, second);
    case 0x93: {  // STACK_GLOBAL
      if (!pop(b) || !pop(a)) return false;
      if (items_[a].kind == Kind::text && items_[b].kind == Kind::text) return push_import(items_[a].text, items_[b].text);
      import("?", "?", Trust::dangerous);  // no writer computes a name while loading, except to hide it
      return push_other();
    }
    case 0x82:
    case 0x83:
    case 0x84: {  // EXT1, EXT2, EXT4: an import by a number that only the reader's registry knows
      if (!take(op == 0x82 ? 1 : op == 0x83 ? 2 : 4, raw)) return false;
      import("copyreg", "extension", Trust::dangerous);
      return push_other();
    }
    case 'i': {  // INST: import and call
      if (!line(raw) || !line(second) || !pop_mark(many)) return false;
      import(raw, second, trust_in(raw, second));
      return push_other();
    }
    case 'o':
      return pop_mark(many) && (!many.empty() || broken("an instruction finds too few values")) && push_other();
    case 'R':
      return reduce();
    case 0x81:
      return pop(b) && pop(a) && push_other();
    case 0x92:
      return pop(c) && pop(b) && pop(a) && push_other();
    case 'b': {
      if (!pop(a)) return false;
      return !stack_.empty() || broken("an instruction finds too few values");
    }
    case 'P':
      return line(raw) && push_other();
    case 'Q':
      return pop(a) && persistent(a);
    default:
      return broken(fmt::format("byte 0x{:02x} is no pickle instruction", op));
  }
}

}  // namespace

Result<PickleSurvey> read_pickle(std::string_view bytes, std::string_view where) { return Machine(bytes, where).run(); }

}  // namespace ff::model
