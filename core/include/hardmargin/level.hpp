// The hot loops, compiled once per CPU level (see src/level.cpp) and reached through a table.
//
// Rows are packed in tiles of 64 bytes per feature: `lanes<T>` rows side by side, feature after
// feature. Two-valued features can be packed into bytes instead, in strips of 64 rows, byte after
// byte for all 64. Features of which a row has at most one (one-hot columns) are bundled into a
// byte that holds the number of that one; the others are bits, four per byte. (Half bytes index a
// table of 16 bit counts, which CPUs look up 32 at a time.) Columns, the rows that tiles are
// evaluated against, are plain contiguous rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hardmargin/kernel.hpp"

namespace hardmargin {

template <class T>
inline constexpr std::size_t lanes = 64 / sizeof(T);

inline constexpr std::size_t strip_rows = 64;

// Columns evaluated in one call: the sums of more would not fit into the registers.
inline constexpr int max_columns = 4;

// Two-valued features of equal weight; their bytes follow those of the previous groups.
struct BitGroup {
    int quads;      // bytes of four bits
    int complete;   // bundles of which each row has exactly one feature, numbered 1, 2, ..
    int partial;    // bundles of which each row has at most one; 0 stands for none
    double weight;  // what one differing feature adds to the distance

    int bytes() const { return quads + complete + partial; }
};

struct TileShape {
    int dense;  // features stored as numbers
    int bytes;  // of all groups together
    const BitGroup* groups;
    int n_groups;
};

// Boxes around blocks of rows, side by side. low and high[feature][box] are the range of a number;
// each byte has a table bounds[byte][.][box]. For a bundle, row `value` of the table holds the
// fewest features in which that value differs from one in the box. For a quad, row 0 holds the bits
// set in all rows and row 1 those set in any.
template <class T>
struct Boxes {
    std::size_t n;  // padded to a multiple of strip_rows
    const T* low;
    const T* high;
    const std::uint8_t* const* bounds;
};

// A value and its place, the first among equals.
struct Best {
    double value;
    std::size_t at;
};

// Which rows may take part in a step: those with alpha > `least_alpha`. Their value is
// sign * gradient.
struct Role {
    double sign;
    double least_alpha;
};

// Looks for the row that makes the best pair with a given one.
struct PartnerSearch {
    Role role;
    double level;            // differences are level + value
    double diagonal;         // of the given row
    double twice_sign;       // curvature: both diagonals minus this times the kernel value,
    double least_curvature;  // but at least this, for equal rows and indefinite kernels
};
struct Partner {
    Best gain;        // difference^2 / curvature
    double furthest;  // the largest difference, 0 if all are negative
};

// Looks for the row whose multiplier should change together with a given one, where no constraint
// ties the two.
struct CompanionSearch {
    double slope;              // 1 - gradient of the given row
    double diagonal;           // of the given row
    double least_determinant;  // of the two rows, relative to the product of their diagonals
};

// Functions on pairs take rows in multiples of this.
inline constexpr std::size_t pair_rows = 16;

template <class T>
struct LevelTable {
    // out[c * stride + i] = kernel(row i, column c) for all rows of `n_tiles` tiles.
    void (*values)(const KernelSpec& kernel, const TileShape& shape, const T* dense,
                   const std::uint8_t* bytes, std::size_t n_tiles, const T* columns,
                   const std::uint8_t* column_bytes, int n_columns, T* out, std::size_t stride);

    // out[c * stride + i] = the product of row i and column c, without bytes.
    void (*products)(const T* tiles, std::size_t n_tiles, std::size_t n_features, const T* columns,
                     std::size_t n_columns, T* out, std::size_t stride);
    // The products of rows, or columns, with themselves, equal to the last bit. There must be
    // `lanes<T>` numbers more behind the columns.
    void (*tile_norms)(const T* tiles, std::size_t n_tiles, std::size_t n_features, T* out);
    void (*column_norms)(const T* columns, std::size_t n_columns, std::size_t n_features, T* out);

    // The same for a sparse row, given by its entries, and strip_rows rows side by side, feature
    // after feature. For the Laplacian kernel these are not products, but half of what ||x - z||_1
    // falls short of ||x||_1 + ||z||_1, and norms to match. There must be `lanes<T>` numbers more
    // behind the values of a norm.
    void (*entry_products)(const KernelSpec& kernel, const T* rows, const std::uint32_t* features,
                           const T* values, std::size_t n_entries, T* out);
    T (*entry_norm)(const KernelSpec& kernel, const T* values, std::size_t n_entries);

    // Turns products of at most 64 rows into kernel values. `shares`, if given, are added to the
    // distances, n_rows for each column. Bit i of is_rough[c] tells that a value has lost too much
    // to rounding.
    void (*finish)(const KernelSpec& kernel, const T* row_norms, const T* column_norms,
                   const T* shares, std::size_t n_columns, T* out, std::size_t stride,
                   std::size_t n_rows, std::uint64_t* is_rough);

    // reach[b] = largest value the (distance) kernel can take between a point and box b.
    void (*reach)(const KernelSpec& kernel, const TileShape& shape, const Boxes<T>& boxes,
                  const T* point, const std::uint8_t* point_bytes, T* reach);

    // gradient[i] += steps[c] * values[c * stride + i], column after column; returns the least
    // gradient.
    double (*accumulate)(double* gradient, const T* values, std::size_t stride, const double* steps,
                         int n_columns, std::size_t n);

    // out[m * out_stride + i] += sum_s coef[s * coef_stride + m] * values[s * stride + i].
    void (*mix)(double* out, std::size_t out_stride, const T* values, std::size_t stride,
                const T* coef, std::size_t coef_stride, int n_columns, int n_machines,
                std::size_t n);

    // out[i] += sum_s coef[s] * values[columns[s] * stride + i], over `n_columns` listed columns.
    void (*mix_some)(double* out, const T* values, std::size_t stride, const std::uint8_t* columns,
                     const T* coef, std::size_t n_columns, std::size_t n);

    // gradient[i] += first_step * first[i] + second_step * second[i]; returns the least value among
    // the rows with the role.
    Best (*exchange)(const Role& role, double* gradient, const double* alpha, const T* first,
                     double first_step, const T* second, double second_step, std::size_t n);

    // Rows without the role have no gain and no difference.
    Partner (*partner)(const PartnerSearch& search, const double* gradient, const double* alpha,
                       const double* diagonal, const T* column, std::size_t n);

    // Updates the gradient as exchange does; returns the row whose gradient is furthest from 1,
    // where rows with alpha = 0 count only from below.
    Best (*adjust)(double* gradient, const double* alpha, const T* first, double first_step,
                   const T* second, double second_step, std::size_t n);

    // The most that changing another multiplier too gains over changing the given one alone; rows
    // whose alpha = 0 would become negative gain 0.
    Best (*companion)(const CompanionSearch& search, const double* gradient, const double* alpha,
                      const double* diagonal, const T* column, std::size_t n);
};

// Logistic weights w = v p, p = 1 / (1 + exp(2 y (score + bias))), of rows with labels y and sample
// weights v; rows with label 0 have w = 0.
struct LogisticSums {
    double positive, negative;  // of w in each class
    double curvature;           // of w (1 - p)
};

// With z = 2 * scale * margin and p = 1 / (1 + exp(z)), the sums of v z p and of v z^2 p (1 - p).
struct TemperSums {
    double slope, curvature;
};

// Sums over rows that determine the step along a direction: of steps * direction, of
// steps * (scores - last), and of h, h * direction, h * direction^2.
struct StepSums {
    double gain, along, mass, first, second;
};

// Loops of paths with held-out columns. Matrices are cut into strips of `lanes<T>` columns, row
// after row; vectors are padded to whole strips.
template <class T>
struct PathTable {
    // out[c * stride + l] = sum_j right[j * n_columns + c] * strip[j * lanes + l]
    void (*strip_product)(const T* strip, std::size_t n_rows, const T* right, int n_columns, T* out,
                          std::size_t stride);
    // The same for numbers from 0 to 1 stored in 16 bits.
    void (*strip_product_16)(const std::uint16_t* strip, std::size_t n_rows, const T* right,
                             int n_columns, T* out, std::size_t stride);
    // sums[k * n_columns + c] += sum over strips s of
    //     sum_l strips[(s * n_rows + k) * lanes + l] * left[c * stride + s * lanes + l]
    void (*strip_dots)(const T* strips, std::size_t n_strips, std::size_t n_rows, const T* left,
                       std::size_t stride, int n_columns, T* sums);
    // out[i] = exp(-gamma * distances[i]); values too small to matter become 0.
    void (*decay)(const T* distances, double gamma, T* out, std::size_t n);
    // Such values become those of 2^times the gamma.
    void (*square)(T* values, int times, std::size_t n);
    void (*decay_16)(const T* distances, double gamma, std::uint16_t* out, std::size_t n);

    // out[i] = w of row i, if out is given
    LogisticSums (*logistic)(const T* labels, const T* weights, const T* scores, double bias,
                             T* out, std::size_t n);
    TemperSums (*temper)(const T* margins, const T* weights, double scale, std::size_t n);
    // Sum of v log(1 + exp(-2 * scale * margin))
    double (*log_loss)(const T* margins, const T* weights, double scale, std::size_t n);
    StepSums (*step)(const T* steps, const T* h, const T* direction, const T* scores, const T* last,
                     std::size_t n);
    // next = scores + rate * direction; scores = next + momentum * (next - last); last = next
    void (*advance)(T* scores, T* last, const T* direction, double rate, double momentum,
                    std::size_t n);
};

// Sums over weights exp(logs - rate * values - top); `top` makes the largest weight one.
struct TiltSums {
    double top;
    double mass;           // of the weights
    double first, second;  // of weight * (value - centre) and weight * (value - centre)^2
};

// Reductions. All but `tilt` need padded arrays whose length is a multiple of 8.
struct ScanTable {
    double (*largest)(const double* v, std::size_t n);
    // max over i of step_score(gradient[i], up[i], down[i])
    double (*longest_step)(const double* gradient, const double* up, const double* down,
                           std::size_t n);
    TiltSums (*tilt)(const double* logs, const double* values, double rate, double centre,
                     double* weights, std::size_t n);
};

struct Level {
    const char* name;
    LevelTable<float> float32;
    LevelTable<double> float64;
    PathTable<float> paths_float32;
    PathTable<double> paths_float64;
    ScanTable scan;

    template <class T>
    const LevelTable<T>& table() const;
    template <class T>
    const PathTable<T>& paths() const;
};

template <>
inline const LevelTable<float>& Level::table<float>() const {
    return float32;
}
template <>
inline const LevelTable<double>& Level::table<double>() const {
    return float64;
}

template <>
inline const PathTable<float>& Level::paths<float>() const {
    return paths_float32;
}
template <>
inline const PathTable<double>& Level::paths<double>() const {
    return paths_float64;
}

// The level in use: the best that this CPU supports, or the one that HARDMARGIN_LEVEL names. Throws
// std::runtime_error if that one is unknown or not supported.
const Level& level();

// How far a row's gradient can be moved by raising its multiplier (by at most `up`) or by lowering
// it (by at most `down`).
inline double step_score(double g, double up, double down) {
    const double rise = -g < up ? -g : up;
    const double fall = g < down ? g : down;
    return rise > fall ? rise : fall;
}

}  // namespace hardmargin
