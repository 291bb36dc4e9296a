# knowledge/*.yaml, checked and compiled into the program. The compiler is src/knowledge's own loader.
add_library(ff_knowledge_data INTERFACE)
target_link_libraries(ff_knowledge_data INTERFACE ff_knowledge)
