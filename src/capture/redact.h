#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ff::capture {

inline constexpr std::string_view redacted_mark = "<redacted>";

/// True when a variable or option of this name holds a secret: "HF_TOKEN", "--api-key", "db.password"; not
/// "TOKENIZERS_PARALLELISM" and not "PWD".
[[nodiscard]] bool is_secret_name(std::string_view name);

/// Free text: replaces well-known token forms, "Bearer …", user and password in URLs, private key blocks, and the value
/// of assignments to upper-case names that say secret ("WANDB_API_KEY=…"). Leaves everything else byte for byte.
[[nodiscard]] std::string redact_text(std::string_view text);

/// The value of a variable: all of it when the name says secret, else as free text.
[[nodiscard]] std::string redact_value(std::string_view name, std::string_view value);

/// A command line, argument by argument: also the value of "--token X", "--token=X" and "token=X".
[[nodiscard]] std::vector<std::string> redact_arguments(const std::vector<std::string>& arguments);

}  // namespace ff::capture
