#pragma once

#include "facts/machine.h"
#include "facts/read.h"

namespace ff::facts {

// One reader a subject; each fills its part of the machine from the capture and touches nothing else.
void read_host(Machine& machine, const Evidence& evidence);         // host.cpp
void read_driver(Machine& machine, const Evidence& evidence);       // driver.cpp
void read_access(Machine& machine, const Evidence& evidence);       // access.cpp
void read_container(Machine& machine, const Evidence& evidence);    // container.cpp
void read_limits(Machine& machine, const Evidence& evidence);       // container.cpp
void read_environment(Machine& machine, const Evidence& evidence);  // environment.cpp
void read_loader(Machine& machine, const Evidence& evidence);       // loader.cpp
void read_packages(Machine& machine, const Evidence& evidence);     // packages.cpp
void read_rocm(Machine& machine, const Evidence& evidence);         // rocm.cpp
void read_pythons(Machine& machine, const Evidence& evidence);      // python.cpp
void read_disks(Machine& machine, const Evidence& evidence);        // disks.cpp
void read_processes(Machine& machine, const Evidence& evidence);    // processes.cpp
void read_unreadable(Machine& machine, const Evidence& evidence);   // processes.cpp

/// How the IOMMU treats GPUs; after the GPUs and the kernel log were read.
void read_iommu_mode(Machine& machine, const Evidence& evidence);  // host.cpp

/// Numbers by numbers, whatever stands between: "6.8.0-60-generic" is older than "6.8.0-100-generic". <0, 0, >0.
int compare_releases(std::string_view a, std::string_view b);  // driver.cpp

/// pip's normal form: lower case, runs of "-", "_" and "." as one "-".
std::string normal_package_name(std::string_view name);  // python.cpp
/// `pip list`, `pip freeze`, `pip list --format=json`, `uv pip list`.
std::vector<PythonPackage> parse_pip_list(const Evidence& evidence, std::string_view source, std::string_view text);  // python.cpp
/// HIP and CUDA build from torch's version text ("2.9.0+rocm6.4" is a HIP build of 6.4 and no CUDA build).
void read_torch_local_version(PythonEnv& env);  // python.cpp

/// A probe's answer as a known value with the probe as its origin.
Known<std::string> known_member(const Evidence& evidence, std::string_view probe, std::string_view member);
template <class Integer>
Known<Integer> known_number(const Evidence& evidence, std::string_view probe, const Value& value, std::string_view name) {
  if (value.kind() != Value::Kind::integer) return {};
  return {static_cast<Integer>(value.as_int()), evidence.origin("probe/" + std::string(probe), 0, std::string(name) + ": " + value.to_string())};
}

}  // namespace ff::facts
