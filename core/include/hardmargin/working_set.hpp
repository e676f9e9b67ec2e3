// The two sides of a machine, and those of its rows that the hard-margin engine works on for now.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin {

// The classes of one label, in consecutive lanes.
struct Side {
    std::size_t begin = 0, end = 0;
    double label = 0;
    std::size_t group = 0;
    double direction = 1;  // u: see hard_margin.hpp

    // The rows whose multiplier may move along u, and those whose multiplier may move against it: a
    // multiplier that falls must be positive.
    Role forward() const { return {direction, direction > 0 ? everything : 0.0}; }
    Role backward() const { return {direction, direction > 0 ? 0.0 : everything}; }

    static constexpr double everything = -1;
};
using Sides = std::array<Side, 2>;

inline std::size_t side_at(const Sides& sides, std::size_t at) { return at < sides[0].end ? 0 : 1; }

// The rows that steps are taken between, negative ones first. Each side is padded to a multiple of
// pair_rows with rows of infinite gradient and no mass.
struct WorkingSet {
    std::vector<std::uint32_t> lanes;
    AlignedVector<double> gradient, alpha, diagonal;
    Sides sides;

    std::size_t size() const { return lanes.size(); }
    void clear() {
        lanes.clear();
        gradient.clear();
        alpha.clear();
        diagonal.clear();
    }
    void add(std::uint32_t lane, double g, double a, double k) {
        lanes.push_back(lane);
        gradient.push_back(g);
        alpha.push_back(a);
        diagonal.push_back(k);
    }
};

}  // namespace hardmargin
