#pragma once

#include <string_view>

namespace ff::diagnosis {

/// Whether a terminal would show the text otherwise than it stands: it holds NUL, a backspace, a carriage return or an escape.
[[nodiscard]] bool holds_terminal_control(std::string_view text);
/// The same without the processor's wider registers; for machines that lack them, and for tests.
[[nodiscard]] bool holds_terminal_control_portable(std::string_view text);

}  // namespace ff::diagnosis
