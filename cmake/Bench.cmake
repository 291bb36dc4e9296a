# bench/<name>_bench.cpp is one program each; bench/<name>.py drives whole-command comparisons (./dev bench).
find_package(benchmark REQUIRED)
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cpp)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ff_cli benchmark::benchmark)
endforeach()
