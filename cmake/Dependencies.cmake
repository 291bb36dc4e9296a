# Every library comes from Debian's packages (./dev setup installs them) and is linked statically, so that the
# program is one file.
find_package(Threads REQUIRED)

function(ff_static_library target)
  cmake_parse_arguments(ARG "" "" "NAMES" ${ARGN})
  add_library(${target} INTERFACE)
  foreach(name ${ARG_NAMES})
    find_library(FF_LIB_${name} NAMES lib${name}.a)
    if(NOT FF_LIB_${name})
      message(FATAL_ERROR "lib${name}.a is missing: run ./dev setup")
    endif()
    target_link_libraries(${target} INTERFACE ${FF_LIB_${name}})
  endforeach()
endfunction()

add_library(ff_fmt INTERFACE)
target_compile_definitions(ff_fmt INTERFACE FMT_HEADER_ONLY=1)
target_link_libraries(ff_fmt INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

ff_static_library(ff_yaml NAMES yaml-cpp)
ff_static_library(ff_regex NAMES re2 hs)
# Only tar, zip and the filters are named in the code, so --gc-sections drops what needs libxml2 and ACLs.
ff_static_library(ff_archive NAMES archive nettle acl lzma zstd lz4 bz2 z xml2 icuuc icudata)
ff_static_library(ff_elfutils NAMES dw elf lzma zstd bz2 z)
ff_static_library(ff_compression NAMES zstd z)
ff_static_library(ff_sqlite NAMES sqlite3)
