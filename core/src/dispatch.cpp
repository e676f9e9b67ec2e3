#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardmargin/level.hpp"

namespace hardmargin {

extern const Level level_baseline;
#if defined(HARDMARGIN_X86_LEVELS)
extern const Level level_avx2;
extern const Level level_avx512;
#endif

namespace {

// Best first.
std::vector<const Level*> levels_of_this_cpu() {
    std::vector<const Level*> found;
#if defined(HARDMARGIN_X86_LEVELS)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                      __builtin_cpu_supports("popcnt");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    if (avx512) found.push_back(&level_avx512);
    if (avx2) found.push_back(&level_avx2);
#endif
    found.push_back(&level_baseline);
    return found;
}

const Level& chosen() {
    const auto levels = levels_of_this_cpu();
    const char* wanted = std::getenv("HARDMARGIN_LEVEL");
    if (!wanted || !*wanted) return *levels.front();
    std::string names;
    for (const Level* candidate : levels) {
        if (std::string(candidate->name) == wanted) return *candidate;
        names += names.empty() ? candidate->name : std::string(", ") + candidate->name;
    }
    throw std::runtime_error("HARDMARGIN_LEVEL=" + std::string(wanted) +
                             " is not a level of this CPU, which has: " + names);
}

}  // namespace

const Level& level() {
    static const Level& in_use = chosen();
    return in_use;
}

}  // namespace hardmargin
