// A run's directory as somebody hands it over (tests/fuzz/folder.h): read, its climb printed again, its operators read and compared.
#include "base/file.h"
#include "compute/operator.h"
#include "fuzz/folder.h"
#include "report/ladder_report.h"
#include "report/style.h"
#include "run/run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto root = ff::fuzz::fill_folder(data, size);
  (void)ff::run::read_run(root.string());
  if (const auto text = ff::read_file((root / "report.json").string()))
    if (const auto document = ff::parse_json(*text))
      if (const auto climb = ff::report::climb_from_value(*document)) {
        ff::report::LadderContext context;
        context.diagnoses = (*document)["diagnoses"];
        context.show_all = true;
        (void)ff::report::ladder_text(*climb, context, ff::report::Style(false), 80);
      }
  if (const auto text = ff::read_file((root / "ops.json").string()))
    if (const auto document = ff::parse_json(*text))
      if (const auto operators = ff::compute::operator_run_from(*document, "ops.json")) {
        (void)ff::compute::operators_text(*operators, true);
        (void)ff::compute::compare_operators(*operators, *operators);
      }
  return 0;
}
