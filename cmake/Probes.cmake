# probes/*.py, the Python that is handed to the user's interpreter, compiled into the program (src/python/python.h).
file(GLOB probe_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/probes/*.py)
ff_embed(ff_python HEADER python/python.h NAMESPACE ff::python TYPE Probe FUNCTION probes FILES ${probe_files})
