#pragma once

#include <string_view>

#include "diagnosis/extract_support.h"

/// The single extractors; extract.h holds the table that callers use. Each file says which facts it makes.
namespace ff::diagnosis {

void extract_dataset(std::string_view text, std::string_view source, Facts& out);
void extract_report(std::string_view text, std::string_view source, Facts& out);
void extract_rows(std::string_view text, std::string_view source, Facts& out);
void extract_video(std::string_view text, std::string_view source, Facts& out);
void extract_model(std::string_view text, std::string_view source, Facts& out);
void extract_training(std::string_view text, std::string_view source, Facts& out);
void extract_evaluation(std::string_view text, std::string_view source, Facts& out);
void extract_comparison(std::string_view text, std::string_view source, Facts& out);
void extract_code(std::string_view text, std::string_view source, Facts& out);
void extract_exception(std::string_view text, std::string_view source, Facts& out);
void extract_session(std::string_view text, std::string_view source, Facts& out);
void extract_numbers(std::string_view text, std::string_view source, Facts& out);
void extract_names(std::string_view text, std::string_view source, Facts& out);
void extract_labelled(std::string_view text, std::string_view source, Facts& out);
void extract_notes(std::string_view text, std::string_view source, Facts& out);
void extract_series(std::string_view text, std::string_view source, Facts& out);
void extract_results(std::string_view text, std::string_view source, Facts& out);

}  // namespace ff::diagnosis
