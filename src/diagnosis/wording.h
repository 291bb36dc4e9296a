#pragma once

#include <vector>

#include "diagnosis/evidence.h"
#include "diagnosis/judge.h"
#include "diagnosis/match.h"
#include "knowledge/knowledge.h"

namespace ff::diagnosis {

/// Puts values of the evidence in the place of `<…>` in fix and proof, where the evidence holds exactly one, and gives a diagnosis that rests on
/// lines of Windows only the proofs that exist there (table `wording`).
void word_for_evidence(const Evidence& evidence, const Matcher& matcher, const knowledge::Knowledge& knowledge, std::vector<Diagnosis>& diagnoses);

}  // namespace ff::diagnosis
