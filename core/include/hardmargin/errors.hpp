// Errors that callers may want to handle separately.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace hardmargin {

// The memory cannot even hold the rows.
struct MemoryTooSmall : std::invalid_argument {
    MemoryTooSmall(std::size_t given, std::size_t needed_bytes)
        : std::invalid_argument("memory_bytes is " + std::to_string(given) +
                                ", but these rows need " + std::to_string(needed_bytes)),
          needed(needed_bytes) {}
    std::size_t needed;
};

// Columns were required to be packed as bits, but none can be.
struct NothingToPack : std::invalid_argument {
    NothingToPack()
        : std::invalid_argument("bits need a distance kernel and five or more columns of two "
                                "values each, the same step apart") {}
};

// Values of a kernel, or sums of them, overflow or are no numbers.
struct NotFinite : std::invalid_argument {
    NotFinite()
        : std::invalid_argument("the kernel's values must be finite; some are NaN or infinite") {}
};

}  // namespace hardmargin
