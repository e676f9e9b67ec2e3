// The functions of one CPU level against plain loops in double precision.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "check.hpp"
#include "hardmargin/aligned.hpp"
#include "hardmargin/level.hpp"

namespace hardmargin::test {

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 4e-6 : 1e-13;

inline constexpr KernelKind distance_kernels[] = {KernelKind::rbf, KernelKind::laplacian,
                                                  KernelKind::matern32, KernelKind::matern52};

inline double naive_kernel(const KernelSpec& kernel, double metric) {
    switch (kernel.kind) {
        case KernelKind::rbf:
        case KernelKind::laplacian: return std::exp(-kernel.gamma * metric);
        case KernelKind::matern32: {
            const double s = std::sqrt(3 * kernel.gamma * metric);
            return (1 + s) * std::exp(-s);
        }
        case KernelKind::matern52: {
            const double s = std::sqrt(5 * kernel.gamma * metric);
            return (1 + s + s * s / 3) * std::exp(-s);
        }
        case KernelKind::linear:
        case KernelKind::cosine: return metric;
        case KernelKind::poly: return std::pow(kernel.gamma * metric + kernel.coef0, kernel.degree);
        case KernelKind::sigmoid: return std::tanh(kernel.gamma * metric + kernel.coef0);
    }
    return 0;
}

// Two-valued features in which two bytes of one kind differ.
enum class ByteKind { quad, complete, partial };

inline int differing_features(ByteKind kind, std::uint8_t x, std::uint8_t z) {
    if (kind == ByteKind::quad) return std::popcount(static_cast<unsigned>(x ^ z));
    return x == z ? 0 : x == 0 || z == 0 ? 1 : 2;
}

// Rows with numbers and bytes, packed as the level expects them.
template <class T>
struct Sample {
    std::size_t d, n_tiles;
    std::vector<BitGroup> groups;
    std::vector<ByteKind> kinds;  // of every byte
    std::vector<double> weights;
    AlignedVector<T> dense;             // [tile][feature][lane]
    AlignedVector<std::uint8_t> bytes;  // [strip][byte][lane]
    AlignedVector<T> columns;           // [column][feature]
    AlignedVector<std::uint8_t> column_bytes;

    Sample(std::size_t n_dense, std::vector<BitGroup> byte_groups, std::size_t tiles,
           std::size_t n_columns, Random& random)
        : d(n_dense), n_tiles(tiles), groups(std::move(byte_groups)) {
        for (const BitGroup& group : groups) {
            kinds.insert(kinds.end(), static_cast<std::size_t>(group.quads), ByteKind::quad);
            kinds.insert(kinds.end(), static_cast<std::size_t>(group.complete), ByteKind::complete);
            kinds.insert(kinds.end(), static_cast<std::size_t>(group.partial), ByteKind::partial);
            weights.resize(kinds.size(), group.weight);
        }
        dense.resize(n_tiles * d * lanes<T>);
        columns.resize(n_columns * d + lanes<T>);
        bytes.resize(round_up(n_rows(), strip_rows) * w());
        column_bytes.resize(n_columns * w());
        for (T& x : dense) x = static_cast<T>(random.normal());
        for (T& x : columns) x = static_cast<T>(random.normal());
        for (std::size_t row = 0; row < round_up(n_rows(), strip_rows); ++row)
            for (std::size_t k = 0; k < w(); ++k) bytes[place(row, k)] = any_byte(k, random);
        for (std::size_t i = 0; i < column_bytes.size(); ++i)
            column_bytes[i] = any_byte(i % w(), random);
        // The first row and the first column differ as much as they can.
        for (std::size_t k = 0; k < w(); ++k) {
            bytes[place(0, k)] = highest(k);
            column_bytes[k] = lowest(k);
        }
    }

    std::size_t w() const { return kinds.size(); }
    TileShape shape() const {
        return {static_cast<int>(d), static_cast<int>(w()), groups.data(),
                static_cast<int>(groups.size())};
    }
    std::size_t n_rows() const { return n_tiles * lanes<T>; }
    T at(std::size_t row, std::size_t k) const {
        return dense[(row / lanes<T> * d + k) * lanes<T> + row % lanes<T>];
    }
    std::size_t place(std::size_t row, std::size_t k) const {
        return (row / strip_rows * w() + k) * strip_rows + row % strip_rows;
    }

    double value(const KernelSpec& kernel, std::size_t row, std::size_t column) const {
        double metric = 0;
        for (std::size_t k = 0; k < d; ++k) {
            const double x = at(row, k), z = columns[column * d + k];
            if (kernel.is_squared()) metric += (x - z) * (x - z);
            else if (kernel.kind == KernelKind::laplacian) metric += std::abs(x - z);
            else metric += x * z;
        }
        for (std::size_t k = 0; k < w(); ++k)
            metric += weights[k] * differing_features(kinds[k], bytes[place(row, k)],
                                                      column_bytes[column * w() + k]);
        return naive_kernel(kernel, metric);
    }

  private:
    std::uint8_t lowest(std::size_t k) const { return kinds[k] == ByteKind::complete ? 1 : 0; }
    std::uint8_t highest(std::size_t k) const { return kinds[k] == ByteKind::quad ? 15 : 255; }
    std::uint8_t any_byte(std::size_t k, Random& random) const {
        if (random.below(3) == 0) return lowest(k);
        return static_cast<std::uint8_t>(
            lowest(k) + random.below(static_cast<std::size_t>(highest(k) - lowest(k)) + 1));
    }
};

inline std::vector<KernelSpec> some_kernels(double gamma) {
    return {{KernelKind::rbf, gamma, 0, 3},      {KernelKind::laplacian, gamma, 0, 3},
            {KernelKind::matern32, gamma, 0, 3}, {KernelKind::matern52, gamma, 0, 3},
            {KernelKind::cosine, gamma, 0, 3},   {KernelKind::linear, gamma, 0, 3},
            {KernelKind::poly, gamma, 1, 3},     {KernelKind::poly, gamma, 50, 0.5},
            {KernelKind::poly, gamma, 1, 0},     {KernelKind::sigmoid, gamma, -1, 3}};
}

inline std::vector<std::vector<BitGroup>> some_groups() {
    // 66 bytes hold more features than a byte can count; a single group of few is looked up
    return {{},
            {{3, 7, 2, 0.05}},
            {{9, 7, 2, 0.02}},
            {{10, 7, 5, 0.02}},
            {{1, 0, 0, 1.0}},
            {{0, 1, 0, 1.0}},
            {{0, 0, 1, 1.0}},
            {{5, 2, 0, 0.25}, {0, 1, 3, 4.0}, {9, 2, 5, 0.05}},
            {{66, 3, 20, 0.01}}};
}

template <class T>
void check_values(const LevelTable<T>& table) {
    Random random(1);
    for (const std::size_t d : {0, 5})
        for (const auto& groups : some_groups())
            for (const std::size_t n_tiles : {1, 9, 37})
                for (std::size_t n_columns = 1; n_columns <= max_columns; ++n_columns) {
                    const Sample<T> sample(d, groups, n_tiles, n_columns, random);
                    for (const KernelSpec& kernel : some_kernels(0.1)) {
                        if (!groups.empty() && !kernel.is_distance()) continue;
                        const std::size_t n = sample.n_rows(), stride = n + lanes<T>;
                        AlignedVector<T> out(n_columns * stride, T(-7));
                        table.values(kernel, sample.shape(), sample.dense.data(),
                                     sample.bytes.data(), n_tiles, sample.columns.data(),
                                     sample.column_bytes.data(), static_cast<int>(n_columns),
                                     out.data(), stride);
                        for (std::size_t c = 0; c < n_columns; ++c)
                            for (std::size_t i = 0; i < stride; ++i)
                                if (i < n)
                                    CHECK_CLOSE(out[c * stride + i], sample.value(kernel, i, c),
                                                tolerance<T>);
                                else CHECK(out[c * stride + i] == T(-7));
                    }
                }
}

template <class T>
void check_extreme_values(const LevelTable<T>& table) {
    const T largest = std::numeric_limits<T>::max();
    const T places[] = {0, T(1e-30), 1, T(1e10), -largest, largest};
    for (const double gamma : {1e-30, 1.0, 1e30})
        for (const KernelKind kind : distance_kernels)
            for (const T z : places) {
                AlignedVector<T> dense(lanes<T>), out(lanes<T>);
                std::copy(std::begin(places), std::end(places), dense.begin());
                const TileShape shape{1, 0, nullptr, 0};
                table.values({kind, gamma, 0, 3}, shape, dense.data(), nullptr, 1, &z, nullptr, 1,
                             out.data(), lanes<T>);
                for (std::size_t i = 0; i < lanes<T>; ++i) {
                    CHECK(out[i] >= 0 && out[i] <= 1);
                    if (dense[i] == z) CHECK(out[i] == 1);
                }
            }
}

// Products and norms of rows as wide as runs of features, and wider, whatever the remainders.
template <class T>
void check_products(const LevelTable<T>& table) {
    Random random(6);
    for (const std::size_t d : {1, 64, 700, 1100})
        for (const std::size_t n_tiles : {1, 3, 4, 7})
            for (const std::size_t n_columns : {1, 2, 5, 13}) {
                Sample<T> sample(d, {}, n_tiles, n_columns, random);
                for (std::size_t k = 0; k < d; ++k) sample.columns[k] = sample.at(0, k);
                const std::size_t n = sample.n_rows(), stride = n + lanes<T>;
                AlignedVector<T> out(n_columns * stride, T(-7)), norms(n);
                std::vector<T> column_norms(n_columns);
                table.products(sample.dense.data(), n_tiles, d, sample.columns.data(), n_columns,
                               out.data(), stride);
                const double size = std::sqrt(static_cast<double>(d)) + 1;
                for (std::size_t c = 0; c < n_columns; ++c)
                    for (std::size_t i = 0; i < stride; ++i)
                        if (i < n)
                            CHECK_CLOSE(out[c * stride + i] / size,
                                        sample.value({KernelKind::linear}, i, c) / size,
                                        10 * tolerance<T>);
                        else CHECK(out[c * stride + i] == T(-7));
                table.tile_norms(sample.dense.data(), n_tiles, d, norms.data());
                table.column_norms(sample.columns.data(), n_columns, d, column_norms.data());
                CHECK(norms[0] == out[0] && column_norms[0] == out[0]);  // to the last bit
                for (std::size_t c = 0; c < n_columns; ++c) {
                    T alone;
                    table.column_norms(sample.columns.data() + c * d, 1, d, &alone);
                    CHECK(alone == column_norms[c]);
                }
                for (std::size_t i = 0; i < n; ++i) {
                    double expected = 0;
                    for (std::size_t k = 0; k < d; ++k)
                        expected += static_cast<double>(sample.at(i, k)) * sample.at(i, k);
                    CHECK_CLOSE(norms[i], expected, 10 * tolerance<T>);
                }
            }
}

// Sparse entries against rows side by side; an entry's feature may be anywhere.
template <class T>
void check_entries(const LevelTable<T>& table) {
    Random random(7);
    constexpr std::size_t n_features = 9;
    AlignedVector<T> rows(n_features * strip_rows), out(strip_rows);
    for (T& x : rows) x = random.below(3) ? static_cast<T>(random.normal()) : T(0);
    for (const std::size_t n_entries : {0, 1, 5})
        for (const KernelKind kind : {KernelKind::rbf, KernelKind::laplacian, KernelKind::linear}) {
            std::vector<std::uint32_t> features;
            std::vector<T> values;
            for (std::size_t e = 0; e < n_entries; ++e) {
                features.push_back(static_cast<std::uint32_t>(2 * e));
                values.push_back(static_cast<T>(random.normal()));
            }
            table.entry_products({kind}, rows.data(), features.data(), values.data(), n_entries,
                                 out.data());
            double norm = 0;
            for (std::size_t i = 0; i < strip_rows; ++i) {
                double expected = norm = 0;
                for (std::size_t e = 0; e < n_entries; ++e) {
                    const double x = rows[features[e] * strip_rows + i], z = values[e];
                    const bool absolute = kind == KernelKind::laplacian;
                    expected +=
                        absolute ? (std::abs(x) + std::abs(z) - std::abs(x - z)) / 2 : x * z;
                    norm += absolute ? std::abs(z) : z * z;
                }
                CHECK_CLOSE(out[i], expected, tolerance<T>);
            }
            values.resize(n_entries + lanes<T>);
            CHECK_CLOSE(table.entry_norm({kind}, values.data(), n_entries), norm, tolerance<T>);
        }
}

// Kernel values from products; a value is rough where its norms are too large for it.
template <class T>
void check_finish(const LevelTable<T>& table) {
    constexpr T huge = std::numeric_limits<T>::max();
    const std::size_t n = lanes<T>;
    AlignedVector<T> norms(n, T(2)), out(2 * n), shares(2 * n, T(0.5));
    const T column_norms[] = {T(3), T(1)};
    std::uint64_t is_rough[2];
    const auto fill = [&](T product) { std::fill(out.begin(), out.end(), product); };
    for (const bool has_shares : {false, true})
        for (const bool metric_only : {false, true}) {
            fill(T(0.75));
            KernelSpec kernel{KernelKind::rbf, 0.3};
            kernel.metric_only = metric_only;
            table.finish(kernel, norms.data(), column_norms, has_shares ? shares.data() : nullptr,
                         2, out.data(), n, n, is_rough);
            for (std::size_t i = 0; i < 2 * n; ++i) {
                const double distance = (i < n ? 3.5 : 1.5) + (has_shares ? 0.5 : 0.0);
                CHECK_CLOSE(out[i], metric_only ? distance : std::exp(-0.3 * distance),
                            tolerance<T>);
            }
            CHECK(is_rough[0] == 0 && is_rough[1] == 0);
        }
    // the last row is as far from the origin as rounding forbids, or further
    for (const T far : {T(1e6), huge}) {
        norms[n - 1] = far;
        for (const bool metric_only : {false, true}) {
            fill(T(0.75));
            out[n - 1] = far / 2 + T(1.5);
            KernelSpec kernel{KernelKind::rbf, 0.3};
            kernel.metric_only = metric_only;
            table.finish(kernel, norms.data(), column_norms, nullptr, 1, out.data(), n, n,
                         is_rough);
            CHECK(is_rough[0] == std::uint64_t{1} << (n - 1));
        }
    }
    fill(T(0.75));
    table.finish({KernelKind::poly, 2.0, 1.0, 2.0}, nullptr, nullptr, nullptr, 2, out.data(), n, n,
                 is_rough);
    CHECK(is_rough[0] == 0 && is_rough[1] == 0);
    for (const T value : out) CHECK_CLOSE(value, 6.25, tolerance<T>);
}

// The boxes around the tiles of a sample.
template <class T>
struct BoxedTiles {
    const Sample<T>& sample;
    std::size_t n;  // padded
    AlignedVector<T> low, high;
    std::vector<AlignedVector<std::uint8_t>> tables;
    std::vector<const std::uint8_t*> bounds;

    explicit BoxedTiles(const Sample<T>& rows)
        : sample(rows), n(round_up(rows.n_tiles, strip_rows)),
          low(rows.d * n, std::numeric_limits<T>::max()),
          high(rows.d * n, std::numeric_limits<T>::lowest()) {
        for (const ByteKind kind : rows.kinds)
            tables.emplace_back((kind == ByteKind::quad ? 2 : 256) * n);
        for (const auto& table : tables) bounds.push_back(table.data());
        for (std::size_t box = 0; box < rows.n_tiles; ++box) {
            for (std::size_t row = box * lanes<T>; row < (box + 1) * lanes<T>; ++row)
                for (std::size_t k = 0; k < rows.d; ++k) {
                    low[k * n + box] = std::min(low[k * n + box], rows.at(row, k));
                    high[k * n + box] = std::max(high[k * n + box], rows.at(row, k));
                }
            for (std::size_t k = 0; k < rows.w(); ++k) bound_byte(box, k);
        }
    }

    Boxes<T> boxes() const { return {n, low.data(), high.data(), bounds.data()}; }

    // The kernel value between the first column and the nearest point of a box.
    double reach(const KernelSpec& kernel, std::size_t box) const {
        double metric = 0;
        for (std::size_t k = 0; k < sample.d; ++k) {
            const double z = sample.columns[k];
            const double outside = std::max({static_cast<double>(low[k * n + box]) - z,
                                             z - static_cast<double>(high[k * n + box]), 0.0});
            metric += kernel.is_squared() ? outside * outside : outside;
        }
        for (std::size_t k = 0; k < sample.w(); ++k) {
            const std::uint8_t z = sample.column_bytes[k];
            int features = tables[k][z * n * (sample.kinds[k] != ByteKind::quad) + box];
            if (sample.kinds[k] == ByteKind::quad) {
                const unsigned all = tables[k][box], any = tables[k][n + box];
                features = std::popcount((all & ~z) | (~any & z));
            }
            metric += sample.weights[k] * features;
        }
        return naive_kernel(kernel, metric);
    }

  private:
    void bound_byte(std::size_t box, std::size_t k) {
        std::uint8_t all = 0x0f, any = 0;
        std::vector<std::uint8_t> held;
        for (std::size_t row = box * lanes<T>; row < (box + 1) * lanes<T>; ++row) {
            held.push_back(sample.bytes[sample.place(row, k)]);
            all &= held.back();
            any |= held.back();
        }
        if (sample.kinds[k] == ByteKind::quad) {
            tables[k][box] = all;
            tables[k][n + box] = any;
            return;
        }
        for (std::size_t value = 0; value < 256; ++value) {
            int fewest = 2;
            for (const std::uint8_t x : held)
                fewest = std::min(fewest, differing_features(sample.kinds[k], x,
                                                             static_cast<std::uint8_t>(value)));
            tables[k][value * n + box] = static_cast<std::uint8_t>(fewest);
        }
    }
};

template <class T>
void check_reach(const LevelTable<T>& table) {
    Random random(2);
    const double slack = sizeof(T) == 4 ? 1e-5 : 1e-12;  // what the greedy engine allows
    for (const std::size_t d : {0, 1, 7})
        for (const auto& groups : some_groups())
            for (const std::size_t n_boxes : {3, 70})
                for (const KernelKind kind : distance_kernels) {
                    const KernelSpec kernel{kind, 0.1, 0, 3};
                    Sample<T> sample(d, groups, n_boxes, 1, random);
                    // Rows of one tile must resemble each other for their box to keep others out.
                    for (std::size_t row = 0; row < sample.n_rows(); ++row)
                        for (std::size_t k = 0; k < sample.w(); ++k)
                            if (random.below(lanes<T>))
                                sample.bytes[sample.place(row, k)] =
                                    sample.bytes[sample.place(row / lanes<T> * lanes<T>, k)];
                    const BoxedTiles<T> boxed(sample);
                    AlignedVector<T> reach(boxed.n);
                    table.reach(kernel, sample.shape(), boxed.boxes(), sample.columns.data(),
                                sample.column_bytes.data(), reach.data());
                    for (std::size_t box = 0; box < n_boxes; ++box)
                        CHECK_CLOSE(reach[box], boxed.reach(kernel, box), tolerance<T>);
                    for (std::size_t row = 0; row < sample.n_rows(); ++row)
                        CHECK(static_cast<double>(reach[row / lanes<T>]) * (1 + slack) >=
                              sample.value(kernel, row, 0));
                }
}

template <class T>
void check_accumulate(const LevelTable<T>& table) {
    Random random(3);
    for (std::size_t n_tiles = 0; n_tiles < 6; ++n_tiles)
        for (std::size_t n_columns = 1; n_columns <= max_columns; ++n_columns) {
            const std::size_t n = n_tiles * lanes<T>, stride = n + lanes<T>;
            AlignedVector<double> gradient(n);
            AlignedVector<T> values(n_columns * stride);
            for (double& g : gradient) g = random.normal();
            for (T& v : values) v = static_cast<T>(random.normal());
            if (n) gradient[n / 2] = std::numeric_limits<double>::infinity();
            const std::vector<double> steps = random.normals(n_columns);
            std::vector<double> expected(gradient.begin(), gradient.end());
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t c = 0; c < n_columns; ++c)
                    expected[i] += steps[c] * static_cast<double>(values[c * stride + i]);
                least = std::min(least, expected[i]);
            }
            const double returned = table.accumulate(gradient.data(), values.data(), stride,
                                                     steps.data(), static_cast<int>(n_columns), n);
            // The choice of a row looks for exactly the value that is returned.
            CHECK(returned == (n ? *std::min_element(gradient.begin(), gradient.end()) : least));
            for (std::size_t i = 0; i < n; ++i)
                if (std::isinf(expected[i])) CHECK(gradient[i] == expected[i]);
                else CHECK_CLOSE(gradient[i], expected[i], 1e-13);
        }
}

template <class T>
void check_mix(const LevelTable<T>& table) {
    Random random(4);
    for (const std::size_t n_columns : {1, 2, 24})
        for (const std::size_t n_machines : {1, 2, 3, 4, 5, 7, 13})
            for (const std::size_t n_tiles : {1, 4, 7}) {
                const std::size_t n = n_tiles * lanes<T>, stride = n + lanes<T>;
                const std::size_t coef_stride = n_machines + 3;
                AlignedVector<double> out(n_machines * stride);
                AlignedVector<T> values(n_columns * stride);
                std::vector<T> coef(n_columns * coef_stride);
                for (double& x : out) x = random.normal();
                for (T& v : values) v = static_cast<T>(random.normal());
                for (T& c : coef) c = static_cast<T>(random.normal());
                std::vector<double> expected(out.begin(), out.end());
                for (std::size_t m = 0; m < n_machines; ++m)
                    for (std::size_t i = 0; i < n; ++i)
                        for (std::size_t s = 0; s < n_columns; ++s)
                            expected[m * stride + i] +=
                                static_cast<double>(coef[s * coef_stride + m]) *
                                static_cast<double>(values[s * stride + i]);
                table.mix(out.data(), stride, values.data(), stride, coef.data(), coef_stride,
                          static_cast<int>(n_columns), static_cast<int>(n_machines), n);
                for (std::size_t i = 0; i < out.size(); ++i)
                    CHECK_CLOSE(out[i], expected[i], tolerance<T>);
            }
}

template <class T>
void check_mix_some(const LevelTable<T>& table) {
    Random random(6);
    for (const std::size_t n_listed : {0, 1, 40})
        for (const std::size_t n_tiles : {1, 4, 5, 9}) {
            const std::size_t n = n_tiles * lanes<T>, stride = n + lanes<T>, n_columns = 64;
            AlignedVector<double> out(stride);
            AlignedVector<T> values(n_columns * stride);
            std::vector<T> coef(n_listed);
            std::vector<std::uint8_t> columns(n_listed);
            for (double& x : out) x = random.normal();
            for (T& v : values) v = static_cast<T>(random.normal());
            for (T& c : coef) c = static_cast<T>(random.normal());
            for (auto& c : columns) c = static_cast<std::uint8_t>(random.below(n_columns));
            std::vector<double> expected(out.begin(), out.end());
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t s = 0; s < n_listed; ++s)
                    expected[i] += static_cast<double>(coef[s]) *
                                   static_cast<double>(values[columns[s] * stride + i]);
            table.mix_some(out.data(), values.data(), stride, columns.data(), coef.data(), n_listed,
                           n);
            for (std::size_t i = 0; i < stride; ++i) CHECK_CLOSE(out[i], expected[i], tolerance<T>);
        }
}

template <class T>
void check_pairs(const LevelTable<T>& table) {
    Random random(7);
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(table.exchange({1, 0}, nullptr, nullptr, nullptr, 1, nullptr, 1, 0).value == infinity);
    for (const std::size_t n : {pair_rows, 3 * pair_rows, 10 * pair_rows}) {
        AlignedVector<double> gradient(n), alpha(n), diagonal(n);
        AlignedVector<T> to(n), from(n);
        for (std::size_t i = 0; i < n; ++i) {
            gradient[i] = random.normal();
            alpha[i] = random.below(2) ? 0.1 : 0.0;
            diagonal[i] = 1 + std::abs(random.normal());
            to[i] = static_cast<T>(random.normal());
            from[i] = static_cast<T>(random.normal());
        }
        gradient[n - 1] = infinity;  // padding
        alpha[n - 1] = 0;
        const std::vector<double> before(gradient.begin(), gradient.end());
        const Best least = table.exchange({1, -1}, gradient.data(), alpha.data(), to.data(), 0.3,
                                          from.data(), -0.7, n);
        for (std::size_t i = 0; i + 1 < n; ++i)
            CHECK_CLOSE(gradient[i],
                        before[i] + 0.3 * static_cast<double>(to[i]) -
                            0.7 * static_cast<double>(from[i]),
                        1e-13);
        CHECK(gradient[n - 1] == infinity);
        const auto expected = std::min_element(gradient.begin(), gradient.end());
        CHECK(least.value == *expected);
        CHECK(least.at == static_cast<std::size_t>(expected - gradient.begin()));

        for (const double sign : {1.0, -1.0})
            for (const double least_alpha : {-1.0, 0.0}) {
                const PartnerSearch search{{sign, least_alpha}, 0.4, 1.5, -2.0, 0.5};
                double gain = 0, furthest = 0, least_value = infinity;
                std::size_t at = 0, least_at = 0;
                for (std::size_t i = 0; i + 1 < n; ++i) {
                    if (!(alpha[i] > least_alpha)) continue;
                    const double value = sign * gradient[i];
                    if (value < least_value) {
                        least_value = value;
                        least_at = i;
                    }
                    const double curvature =
                        std::max(1.5 + diagonal[i] + 2.0 * static_cast<double>(to[i]), 0.5);
                    const double ahead = std::max(0.4 + value, 0.0);
                    furthest = std::max(furthest, ahead);
                    if (ahead * ahead / curvature <= gain) continue;
                    gain = ahead * ahead / curvature;
                    at = i;
                }
                if (sign > 0 || least_alpha >= 0) {  // padding has no role
                    const Best best = table.exchange(search.role, gradient.data(), alpha.data(),
                                                     to.data(), 0, from.data(), 0, n);
                    CHECK(best.value == least_value);
                    CHECK(best.at == least_at);
                }
                if (sign < 0 || least_alpha >= 0) {
                    const Partner found = table.partner(search, gradient.data(), alpha.data(),
                                                        diagonal.data(), to.data(), n);
                    CHECK_CLOSE(found.gain.value, gain, 1e-13);
                    CHECK(found.gain.at == at);
                    CHECK_CLOSE(found.furthest, furthest, 1e-13);
                }
            }

        const Best far =
            table.adjust(gradient.data(), alpha.data(), to.data(), 0.2, from.data(), -0.4, n);
        const CompanionSearch search_two{0.3, 1.5, 1e-3};
        double distance = -infinity, gain_of_two = 0;
        std::size_t far_at = 0, two_at = 0;
        for (std::size_t i = 0; i + 1 < n; ++i) {
            const double slope = 1 - gradient[i], q = static_cast<double>(to[i]);
            const double open = alpha[i] > 0 ? std::abs(slope) : slope;
            if (open > distance) {
                distance = open;
                far_at = i;
            }
            const double both = 1.5 * diagonal[i];
            const double change = 1.5 * slope - q * 0.3;
            const double gain = change * change / std::max(both - q * q, 1e-3 * both);
            if ((change > 0 || alpha[i] > 0) && gain > gain_of_two) {
                gain_of_two = gain;
                two_at = i;
            }
        }
        CHECK(far.value == distance);
        CHECK(far.at == far_at);
        const Best two = table.companion(search_two, gradient.data(), alpha.data(), diagonal.data(),
                                         to.data(), n);
        CHECK_CLOSE(two.value, gain_of_two, 1e-9);
        CHECK(two.at == two_at);

        // the first among equals
        gradient.assign(n, 2.0);
        to.assign(n, T(0));
        alpha.assign(n, 1.0);
        CHECK(table.exchange({1, 0}, gradient.data(), alpha.data(), to.data(), 1, to.data(), 1, n)
                  .at == 0);
        alpha[0] = alpha[1] = 0;
        diagonal.assign(n, 1.0);
        const PartnerSearch search{{1, 0}, -1.0, 1.0, 2.0, 1e-12};
        const Partner tied =
            table.partner(search, gradient.data(), alpha.data(), diagonal.data(), to.data(), n);
        CHECK(tied.gain.at == 2);
        CHECK(tied.gain.value == 0.5);
        alpha.assign(n, 0.0);
        CHECK(table.partner(search, gradient.data(), alpha.data(), diagonal.data(), to.data(), n)
                  .furthest == 0);
    }
}

inline void check_tilt(const ScanTable& scan) {
    Random random(7);
    for (const std::size_t n : {1, 3, 8, 61})
        for (const double rate : {0.0, 2.0, 300.0}) {
            std::vector<double> logs(n), values(n), weights(n);
            for (double& x : logs) x = 20 * random.normal();
            for (double& x : values) x = random.normal();
            const TiltSums sums =
                scan.tilt(logs.data(), values.data(), rate, 0.5, weights.data(), n);
            double top = -std::numeric_limits<double>::infinity(), mass = 0, first = 0, second = 0;
            for (std::size_t i = 0; i < n; ++i) top = std::max(top, logs[i] - rate * values[i]);
            for (std::size_t i = 0; i < n; ++i) {
                const double w = std::exp(logs[i] - rate * values[i] - top), off = values[i] - 0.5;
                CHECK_CLOSE(weights[i], w, 1e-13);
                mass += w;
                first += w * off;
                second += w * off * off;
            }
            CHECK_CLOSE(sums.top, top, 1e-13);
            CHECK_CLOSE(sums.mass, mass, 1e-13);
            CHECK_CLOSE(sums.first, first, 1e-12);
            CHECK_CLOSE(sums.second, second, 1e-12);
        }
}

inline void check_scans(const ScanTable& scan) {
    Random random(5);
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(scan.largest(nullptr, 0) == -infinity);
    for (const std::size_t n : {8, 16, 72}) {
        AlignedVector<double> g(n), up(n), down(n);
        for (std::size_t i = 0; i < n; ++i) {
            g[i] = random.normal();
            up[i] = random.below(2) ? infinity : 0.0;
            down[i] = random.below(2) ? std::abs(random.normal()) : 0.0;
        }
        g[n - 1] = infinity;
        up[n - 1] = down[n - 1] = 0;
        double expected = -infinity;
        for (std::size_t i = 0; i < n; ++i)
            expected = std::max(expected, step_score(g[i], up[i], down[i]));
        CHECK(scan.longest_step(g.data(), up.data(), down.data(), n) == expected);
        for (std::size_t best = 0; best < n; ++best) {
            g.assign(n, -infinity);
            g[best] = -3;
            CHECK(scan.largest(g.data(), n) == -3);
        }
    }
}

template <class T>
void check_table(const LevelTable<T>& table) {
    check_values(table);
    check_extreme_values(table);
    check_products(table);
    check_entries(table);
    check_finish(table);
    check_reach(table);
    check_accumulate(table);
    check_mix(table);
    check_mix_some(table);
    check_pairs(table);
}

inline void check_level(const Level& level) {
    check_table<float>(level.float32);
    check_table<double>(level.float64);
    check_scans(level.scan);
    check_tilt(level.scan);
}

}  // namespace hardmargin::test
