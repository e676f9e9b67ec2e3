// The loops with vectors of 64 bytes, as AVX-512 uses them, on whatever CPU runs the tests.
#pragma GCC diagnostic ignored "-Wpsabi"
#define HARDMARGIN_LEVEL_NAME wide
#define HARDMARGIN_VECTOR_BYTES 64
#include "../src/level.cpp"
#include "level_checks.hpp"

int main() { hardmargin::test::check_level(hardmargin::level_wide); }
