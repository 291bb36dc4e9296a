#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/value.h"

namespace ff::run {
class Run;
}

namespace ff::cli {

/// Who asked for JSON (--json) gets exactly one document on stdout, also when the work could not be done:
/// {"schema":"firstfault/error/1","what","where","remedy","exit_code"}. Nothing without --json.
void print_error_document(const Error& error);
/// The same document as text; "" without --json.
[[nodiscard]] std::string error_document(const Error& error);
/// Prints that document where asked for, and the error on stderr ("firstfault: where: what", then the remedy) and returns its exit code.
int report_error(const Error& error);
/// The same, and ends the run in which it happened (Run::fail_with).
int report_error(run::Run& run, const Error& error);
/// Prints exactly one JSON document on stdout.
void print_document(const Value& document);
/// The command line of this process, secrets redacted.
std::vector<std::string> redacted_command_line();

}  // namespace ff::cli
