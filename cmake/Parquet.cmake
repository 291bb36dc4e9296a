# firstfault-parquet.so: the one part that lies beside the program. It needs the Arrow of the pyarrow wheel (./dev setup
# fetches it); without the wheel it is not built, and rung 3 says how to get it.
set(FIRSTFAULT_PYARROW "" CACHE PATH "unpacked pyarrow wheel (the directory with libarrow.so.*); empty: not built")
if(FIRSTFAULT_PYARROW)
  file(GLOB arrow_library ${FIRSTFAULT_PYARROW}/libarrow.so.*)
  file(GLOB parquet_library ${FIRSTFAULT_PYARROW}/libparquet.so.*)
  if(NOT arrow_library OR NOT parquet_library)
    message(FATAL_ERROR "no libarrow.so.* in ${FIRSTFAULT_PYARROW}: run ./dev setup")
  endif()
  add_library(firstfault-parquet MODULE ${PROJECT_SOURCE_DIR}/src/parquet/plugin.cpp ${PROJECT_SOURCE_DIR}/src/parquet/levels.cpp)
  set_target_properties(firstfault-parquet PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden BUILD_RPATH "$ORIGIN/firstfault-arrow"
    BUILD_RPATH_USE_ORIGIN ON LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} SKIP_BUILD_RPATH OFF CXX_STANDARD 20)
  target_include_directories(firstfault-parquet PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(firstfault-parquet SYSTEM PRIVATE ${FIRSTFAULT_PYARROW}/include)
  # Arrow is not built with sanitizers; its allocations cross the boundary only through release callbacks.
  target_link_libraries(firstfault-parquet PRIVATE ${parquet_library} ${arrow_library})
  # The program finds Arrow beside the plug-in. Hard links (copies on another file system): a symbolic one into the cache of the user
  # who builds could not be followed by another account.
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/firstfault-arrow)
  foreach(library ${arrow_library} ${parquet_library})
    get_filename_component(name ${library} NAME)
    file(REMOVE ${PROJECT_BINARY_DIR}/firstfault-arrow/${name})
    file(CREATE_LINK ${library} ${PROJECT_BINARY_DIR}/firstfault-arrow/${name} COPY_ON_ERROR)
  endforeach()
endif()
