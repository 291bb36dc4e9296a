#pragma once

#include <string>

namespace ff::facts {
struct Machine;
}

namespace ff::report {

/// One sentence that says which machine this is: "2 x Radeon RX 7900 XTX (gfx1100), ROCm 7.0.2, torch 2.9.0+rocm6.4,
/// kernel 6.8.0-45-generic, Ubuntu 24.04". What is unknown is left out.
std::string machine_summary(const facts::Machine& machine);

}  // namespace ff::report
