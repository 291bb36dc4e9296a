#pragma once

#include <string>
#include <string_view>

namespace ff {

/// `text` as one word of a POSIX shell command: as it is when it holds only letters, digits and _ . / : @ % + = , -, else in
/// single quotes, so that nothing in it is executed or expanded. "" gives ''. With control characters, or bytes that are no
/// UTF-8, $'…' as bash and zsh read it, so that it can be printed and copied.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace ff
