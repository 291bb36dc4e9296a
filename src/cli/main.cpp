#include "cli/command.h"

int main(int argc, char** argv) { return ff::cli::run(argc, argv); }
