// The level in use. CTest runs this once for every level that the CPU supports.
#include <cstdlib>
#include <cstring>

#include "level_checks.hpp"

int main() {
    const hardmargin::Level& level = hardmargin::level();
    const char* wanted = std::getenv("HARDMARGIN_LEVEL");
    CHECK(!wanted || !*wanted || std::strcmp(wanted, level.name) == 0);
    hardmargin::test::check_level(level);
}
