#include "capture/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace ff::capture {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }
bool is_upper_name(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// How the tokens of well-known services begin and how long the rest is at least.
struct TokenForm {
  std::string_view prefix;
  std::size_t rest_at_least;
};
constexpr std::array token_forms{TokenForm{"hf_", 20},  TokenForm{"api_org_", 20},    TokenForm{"ghp_", 20},   TokenForm{"gho_", 20},
                                 TokenForm{"ghs_", 20}, TokenForm{"ghu_", 20},        TokenForm{"ghr_", 20},   TokenForm{"glpat-", 16},
                                 TokenForm{"sk-", 20},  TokenForm{"github_pat_", 20}, TokenForm{"xoxb-", 16},  TokenForm{"xoxp-", 16},
                                 TokenForm{"AKIA", 16}, TokenForm{"ASIA", 16},        TokenForm{"AIza", 30},   TokenForm{"pypi-", 30},
                                 TokenForm{"npm_", 30}, TokenForm{"dckr_pat_", 16},   TokenForm{"nvapi-", 20}, TokenForm{"wandb_v1_", 20}};

using CharacterSet = std::array<bool, 256>;
const CharacterSet word_chars = [] {
  CharacterSet set{};
  for (int c = 0; c < 256; ++c) set[static_cast<std::size_t>(c)] = is_word(static_cast<char>(c));
  return set;
}();
/// With what a token, or the word "Bearer" before one, begins.
const CharacterSet token_heads = [] {
  CharacterSet set{};
  for (const TokenForm& form : token_forms) set[static_cast<unsigned char>(form.prefix[0])] = true;
  for (const char c : {'e', 'B', 'b'}) set[static_cast<unsigned char>(c)] = true;
  return set;
}();

/// Length of a token that starts at the front of `s`; 0 when none does.
std::size_t token_length(std::string_view s) {
  for (const TokenForm& form : token_forms) {
    if (!s.starts_with(form.prefix)) continue;
    std::size_t size = form.prefix.size();
    while (size < s.size() && is_word(s[size])) ++size;
    if (size - form.prefix.size() >= form.rest_at_least) return size;
  }
  // A JSON web token: two or three base64url parts, the first of which is a JSON object.
  if (s.starts_with("eyJ")) {
    std::size_t size = 0, dots = 0;
    while (size < s.size() && (is_word(s[size]) || s[size] == '.')) dots += s[size++] == '.' ? 1 : 0;
    if (dots >= 1 && size >= 40) return size;
  }
  return 0;
}

/// "user:password@" behind "://": its length without the "@", 0 when there is none.
std::size_t url_credentials_length(std::string_view after_scheme) {
  for (std::size_t i = 0; i < after_scheme.size(); ++i) {
    const char c = after_scheme[i];
    if (c == '@') return i;
    if (c == '/' || c == '?' || c == '#' || c == '"' || c == '\'' || c == '<' || c == '>' || std::isspace(static_cast<unsigned char>(c)) != 0)
      return 0;
  }
  return 0;
}

std::size_t value_length(std::string_view s) {
  if (!s.empty() && (s[0] == '"' || s[0] == '\'')) {
    const auto end = s.find(s[0], 1);
    return end == std::string_view::npos || contains(s.substr(0, end), "\n") ? std::min(s.find('\n'), s.size()) : end + 1;
  }
  return std::min(s.find_first_of(" \t\r\n,;&|)"), s.size());
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string small = lower(name);
  for (const std::string_view part : {"secret", "passw", "passphrase", "credential", "apikey"})
    if (contains(small, part)) return true;
  std::string_view rest = small;
  while (!rest.empty()) {
    const auto end = std::min(rest.find_first_of("_-.[]:/ "), rest.size());
    const std::string_view word = rest.substr(0, end);
    for (const std::string_view secret : {"token", "tokens", "key", "keys", "auth", "authorization", "bearer", "cookie", "pat"})
      if (word == secret) return true;
    if (word.ends_with("token") || word.ends_with("accesskey")) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string redact_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t i = 0;
  std::size_t kept = 0;  // text before it is in `out`
  const auto keep_until = [&](std::size_t end) { out += text.substr(kept, end - kept); };
  const auto replace = [&](std::size_t begin, std::size_t size) {
    keep_until(begin);
    out += redacted_mark;
    i = kept = begin + size;
  };
  while (i < text.size()) {
    const std::string_view here = text.substr(i);
    const char c = here[0];
    const bool word = word_chars[static_cast<unsigned char>(c)];
    if (word && (i == 0 || !word_chars[static_cast<unsigned char>(text[i - 1])])) {
      if (token_heads[static_cast<unsigned char>(c)]) {
        if (const auto size = token_length(here); size != 0) {
          replace(i, size);
          continue;
        }
        if ((here.starts_with("Bearer ") || here.starts_with("bearer ")) && here.size() > 7) {
          const auto size = std::min(here.substr(7).find_first_of(" \t\r\n\"'"), here.size() - 7);
          if (size >= 8) {
            replace(i + 7, size);
            continue;
          }
        }
      }
      // NAME=value with a name in the style of environment variables.
      if (c >= 'A' && c <= 'Z') {
        std::size_t size = 0;
        while (size < here.size() && is_upper_name(here[size])) ++size;
        if (size > 2 && size < here.size() && here[size] == '=' && is_secret_name(here.substr(0, size))) {
          const auto value = value_length(here.substr(size + 1));
          if (value != 0)
            replace(i + size + 1, value);
          else
            i += size + 1;
          continue;
        }
        if (size > 1) {
          i += size;
          continue;
        }
      }
    }
    if (c == ':' && here.starts_with("://")) {
      i += 3;
      if (const auto size = url_credentials_length(text.substr(i)); size != 0) replace(i, size);
      continue;
    }
    if (c == '-' && here.starts_with("-----BEGIN ")) {
      const auto line = here.substr(0, here.find('\n'));
      if (contains(line, "PRIVATE KEY-----")) {
        const auto end = here.find("-----END ");
        replace(i, end == std::string_view::npos ? here.size() : std::min(here.find('\n', end), here.size()));
        continue;
      }
    }
    ++i;
    // The rest of a word has nothing that could begin here; a '-' may begin a key's first line.
    if (word)
      while (i < text.size() && text[i] != '-' && word_chars[static_cast<unsigned char>(text[i])]) ++i;
  }
  keep_until(text.size());
  return out;
}

std::string redact_value(std::string_view name, std::string_view value) {
  if (is_secret_name(name) && !value.empty()) return std::string(redacted_mark);
  // A value that is a command line: its options are judged as those of a command.
  std::vector<std::string> parts;
  const std::string text = redact_text(value);
  for (const auto part : split(text, ' ')) parts.emplace_back(part);
  return join(redact_arguments(parts), " ");
}

std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  bool value_follows = false;
  for (const std::string& argument : arguments) {
    const auto equals = argument.find('=');
    if (value_follows && !argument.starts_with("-")) {
      out.emplace_back(redacted_mark);
      value_follows = false;
    } else if (equals != std::string::npos && is_secret_name(std::string_view(argument).substr(0, equals))) {
      out.push_back(argument.substr(0, equals + 1) + std::string(redacted_mark));
      value_follows = false;
    } else {
      value_follows = argument.starts_with("-") && equals == std::string::npos && is_secret_name(argument);
      out.push_back(redact_text(argument));
    }
  }
  return out;
}

}  // namespace ff::capture
