# ff_embed(target): compiles files into a library as a table of (name, bytes). The bytes come in through the assembler.
#   HEADER     header that declares the type and the function
#   NAMESPACE  of both
#   TYPE       an aggregate of two std::string_view: name, bytes
#   FUNCTION   returns std::span<const TYPE>
#   FILES      named by their last part
function(ff_embed target)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE;TYPE;FUNCTION" "FILES" ${ARGN})
  set(text "#include \"${ARG_HEADER}\"\n")
  set(table "")
  set(number 0)
  foreach(file ${ARG_FILES})
    get_filename_component(name ${file} NAME)
    set(symbol "ff_${ARG_FUNCTION}_${number}")
    string(APPEND text "asm(\".section .rodata\\n.balign 16\\n.global ${symbol}_begin\\n.global ${symbol}_end\\n\"\n"
      "    \"${symbol}_begin:\\n.incbin \\\"${file}\\\"\\n${symbol}_end:\\n.byte 0\\n.previous\\n\");\n"
      "extern \"C\" {\nextern const char ${symbol}_begin[];\nextern const char ${symbol}_end[];\n}\n")
    string(APPEND table "      {\"${name}\", {${symbol}_begin, static_cast<std::size_t>(${symbol}_end - ${symbol}_begin)}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND text "#include <array>\nnamespace ${ARG_NAMESPACE} {\nstd::span<const ${ARG_TYPE}> ${ARG_FUNCTION}() {\n"
    "  static const std::array<${ARG_TYPE}, ${number}> table{{\n${table}  }};\n  return table;\n}\n}  // namespace ${ARG_NAMESPACE}\n")
  set(source ${PROJECT_BINARY_DIR}/${ARG_FUNCTION}_blob.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "@text@")
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS "${ARG_FILES}")
  target_sources(${target} PRIVATE ${source})
endfunction()
