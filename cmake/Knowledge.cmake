# knowledge/*.yaml, checked and compiled into the program. The compiler is src/knowledge's own loader (tools/kbc).
add_executable(kbc ${PROJECT_SOURCE_DIR}/tools/kbc/main.cpp)
target_link_libraries(kbc PRIVATE ff_knowledge)

file(GLOB knowledge_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/knowledge/*.yaml ${PROJECT_SOURCE_DIR}/knowledge/*/*.yaml)
set(knowledge_blob ${PROJECT_BINARY_DIR}/knowledge.bin)
add_custom_command(OUTPUT ${knowledge_blob}
  COMMAND kbc ${PROJECT_SOURCE_DIR}/knowledge ${knowledge_blob}
  DEPENDS kbc ${knowledge_files}
  COMMENT "Checking and compiling knowledge/" VERBATIM)

# The bytes come in through the assembler: no generated array to compile.
set(knowledge_source ${PROJECT_BINARY_DIR}/knowledge_blob.cpp)
file(CONFIGURE OUTPUT ${knowledge_source} @ONLY CONTENT [[
asm(".section .rodata\n.balign 64\n.global ff_knowledge_blob_begin\n.global ff_knowledge_blob_end\n"
    "ff_knowledge_blob_begin:\n.incbin \"@knowledge_blob@\"\nff_knowledge_blob_end:\n.byte 0\n.previous\n");
]])
set_source_files_properties(${knowledge_source} PROPERTIES OBJECT_DEPENDS ${knowledge_blob})
add_library(ff_knowledge_data STATIC ${PROJECT_SOURCE_DIR}/src/knowledge/built_in/built_in.cpp ${knowledge_source})
target_link_libraries(ff_knowledge_data PUBLIC ff_knowledge)
