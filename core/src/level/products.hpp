// Wide rows: distances from products and norms, ||x||^2 + ||z||^2 - 2 x'z. Part of level.cpp.
//
// Every sum of products is made in the same order, feature after feature within a run of them, so
// that the distance of equal rows is exactly zero, and no value depends on the rows beside it.
#pragma once

#include "tiles.hpp"
#include "vectors.hpp"

namespace hardmargin {
namespace {

// Features at a time: the rows' part of them stays in the second cache.
constexpr std::size_t run_features = 512;

// Columns and tiles whose sums are held in registers at once.
constexpr int product_columns = vector_bytes == 16 ? 2 : 6;
constexpr int product_tiles = vector_bytes == 64 ? 4 : 1;

template <class T, int Tiles, int Columns>
[[gnu::always_inline]] inline void product_block(const T* x, std::size_t tile_size, const T* z,
                                                 std::size_t d, std::size_t n_features,
                                                 bool is_first, T* out, std::size_t stride) {
    constexpr int V = vectors_per_tile;
    constexpr std::size_t width = vector_bytes / sizeof(T);
    Vec<T> sum[Tiles][Columns][V];
    for (auto& of_tile : sum)
        for (auto& of_column : of_tile)
            for (auto& v : of_column) v = Vec<T>{};
    for (std::size_t k = 0; k < n_features; ++k) {
        Vec<T> row[Tiles][V];
        for (int t = 0; t < Tiles; ++t)
            for (int v = 0; v < V; ++v)
                row[t][v] = load<Vec<T>>(x + static_cast<std::size_t>(t) * tile_size +
                                         k * lanes<T> + static_cast<std::size_t>(v) * width);
        for (int c = 0; c < Columns; ++c) {
            const Vec<T> factor = spread(z[static_cast<std::size_t>(c) * d + k]);
            for (int t = 0; t < Tiles; ++t)
                for (int v = 0; v < V; ++v) sum[t][c][v] += row[t][v] * factor;
        }
    }
    for (int t = 0; t < Tiles; ++t)
        for (int c = 0; c < Columns; ++c)
            for (int v = 0; v < V; ++v) {
                T* to = out + static_cast<std::size_t>(c) * stride +
                        static_cast<std::size_t>(t) * lanes<T> +
                        static_cast<std::size_t>(v) * width;
                store<Vec<T>>(to, is_first ? sum[t][c][v] : load<Vec<T>>(to) + sum[t][c][v]);
            }
}

template <class T, int Columns>
[[gnu::noinline]] void columns_against_tiles(const T* x, std::size_t n_tiles, const T* z,
                                             std::size_t d, std::size_t n_features, bool is_first,
                                             T* out, std::size_t stride) {
    const std::size_t tile_size = d * lanes<T>;
    std::size_t t = 0;
    for (; t + product_tiles <= n_tiles; t += product_tiles)
        product_block<T, product_tiles, Columns>(x + t * tile_size, tile_size, z, d, n_features,
                                                 is_first, out + t * lanes<T>, stride);
    if constexpr (product_tiles > 1)
        for (; t < n_tiles; ++t)
            product_block<T, 1, Columns>(x + t * tile_size, tile_size, z, d, n_features, is_first,
                                         out + t * lanes<T>, stride);
}

template <class T, int Columns>
void product_of_columns(const T* x, std::size_t n_tiles, const T*& z, std::size_t d,
                        std::size_t n_features, bool is_first, std::size_t& n_columns, T*& out,
                        std::size_t stride) {
    for (; n_columns >= Columns; n_columns -= Columns) {
        columns_against_tiles<T, Columns>(x, n_tiles, z, d, n_features, is_first, out, stride);
        z += Columns * d;
        out += Columns * stride;
    }
}

template <class T>
void products(const T* tiles, std::size_t n_tiles, std::size_t d, const T* columns,
              std::size_t n_columns, T* out, std::size_t stride) {
    for (std::size_t k = 0; k < d; k += run_features) {
        const std::size_t n = d - k < run_features ? d - k : run_features;
        const T* x = tiles + k * lanes<T>;
        const T* z = columns + k;
        T* to = out;
        std::size_t left = n_columns;
        product_of_columns<T, product_columns>(x, n_tiles, z, d, n, k == 0, left, to, stride);
        if constexpr (product_columns > 4)
            product_of_columns<T, 4>(x, n_tiles, z, d, n, k == 0, left, to, stride);
        if constexpr (product_columns > 2)
            product_of_columns<T, 2>(x, n_tiles, z, d, n, k == 0, left, to, stride);
        product_of_columns<T, 1>(x, n_tiles, z, d, n, k == 0, left, to, stride);
    }
}

template <class T>
void tile_norms(const T* tiles, std::size_t n_tiles, std::size_t d, T* out) {
    constexpr int V = vectors_per_tile;
    constexpr std::size_t width = vector_bytes / sizeof(T);
    for (std::size_t t = 0; t < n_tiles; ++t) {
        const T* x = tiles + t * d * lanes<T>;
        for (std::size_t first = 0; first < d; first += run_features) {
            const std::size_t end = first + run_features < d ? first + run_features : d;
            Vec<T> sum[V] = {};
            for (std::size_t k = first; k < end; ++k)
                for (int v = 0; v < V; ++v) {
                    const auto row =
                        load<Vec<T>>(x + k * lanes<T> + static_cast<std::size_t>(v) * width);
                    sum[v] += row * row;
                }
            for (int v = 0; v < V; ++v) {
                T* to = out + t * lanes<T> + static_cast<std::size_t>(v) * width;
                store<Vec<T>>(to, first == 0 ? sum[v] : load<Vec<T>>(to) + sum[v]);
            }
        }
    }
}

// The number at p, with others behind it. A sum of plain numbers, or of vectors of equal ones,
// might be compiled without the fused multiply-adds of the products, and so be rounded in another
// way.
template <class T>
inline Vec<T> with_next(const T* p) {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
}

// Several rows side by side, as each sum waits for its last multiply-add.
template <class T, int Rows>
inline void norms_of_rows(const T* x, std::size_t d, T* out) {
    for (std::size_t first = 0; first < d; first += run_features) {
        const std::size_t end = first + run_features < d ? first + run_features : d;
        Vec<T> sum[Rows];
        for (auto& v : sum) v = Vec<T>{};
        for (std::size_t k = first; k < end; ++k)
            for (int r = 0; r < Rows; ++r) {
                const Vec<T> value = with_next(x + static_cast<std::size_t>(r) * d + k);
                sum[r] += value * value;
            }
        for (int r = 0; r < Rows; ++r) out[r] = first == 0 ? sum[r][0] : out[r] + sum[r][0];
    }
}

template <class T>
void column_norms(const T* columns, std::size_t n_columns, std::size_t d, T* out) {
    constexpr int at_once = 8;
    std::size_t c = 0;
    for (; c + at_once <= n_columns; c += at_once)
        norms_of_rows<T, at_once>(columns + c * d, d, out + c);
    for (; c < n_columns; ++c) norms_of_rows<T, 1>(columns + c * d, d, out + c);
}

// What two values of a feature have in common: their product, or the part that does not add to
// |x - z| = |x| + |z| - 2 * common.
template <Metric M, class T>
inline Vec<T> add_common(Vec<T> sum, Vec<T> x, Vec<T> z) {
    if constexpr (M == Metric::absolute) {
        const Vec<T> zero = {};
        return sum + (larger(smaller(x, z), zero) - smaller(larger(x, z), zero));
    }
    return sum + x * z;
}

template <class T, Metric M>
void add_entries(const T* rows, const std::uint32_t* features, const T* values,
                 std::size_t n_entries, T* out) {
    constexpr std::size_t width = vector_bytes / sizeof(T), n_vectors = strip_rows / width;
    constexpr std::size_t at_once = n_vectors < 8 ? n_vectors : 8;
    for (std::size_t first = 0; first < n_vectors; first += at_once) {
        Vec<T> sum[at_once];
        for (auto& v : sum) v = Vec<T>{};
        for (std::size_t e = 0; e < n_entries; ++e) {
            const T* x = rows + features[e] * strip_rows + first * width;
            const Vec<T> z = spread(values[e]);
            for (std::size_t v = 0; v < at_once; ++v)
                sum[v] = add_common<M, T>(sum[v], load<Vec<T>>(x + v * width), z);
        }
        for (std::size_t v = 0; v < at_once; ++v) store<Vec<T>>(out + (first + v) * width, sum[v]);
    }
}

template <class T>
void entry_products(const KernelSpec& kernel, const T* rows, const std::uint32_t* features,
                    const T* values, std::size_t n_entries, T* out) {
    if (kernel.kind == KernelKind::laplacian)
        add_entries<T, Metric::absolute>(rows, features, values, n_entries, out);
    else add_entries<T, Metric::product>(rows, features, values, n_entries, out);
}

template <class T>
T entry_norm(const KernelSpec& kernel, const T* values, std::size_t n_entries) {
    Vec<T> sum = {};
    for (std::size_t e = 0; e < n_entries; ++e) {
        const Vec<T> value = with_next(values + e);
        if (kernel.kind == KernelKind::laplacian) sum += absolute(value);
        else sum += value * value;
    }
    return sum[0];
}

// The error of a value, in roundings, is about the norms times the kernel's scale times the value.
// With more than `most_roundings`, a value is rough, and is evaluated from differences. Where there
// may be more than `many_roundings`, the value itself may be far off, so that distances decide.
template <class T>
constexpr T most_roundings = T(16);
template <class T>
constexpr T many_roundings = T(1024);
template <class T>
constexpr T largest_norm = sizeof(T) == 4 ? T(1e37) : T(1e300);  // products are finite

// Positive where a value is rough.
template <class T>
inline Vec<T> roughness(const KernelSpec& kernel, T scale, Vec<T> norms, Vec<T> distance,
                        Vec<T> value) {
    const Vec<T> in_value = -scale * norms * value - most_roundings<T>;
    const Vec<T> in_distance =
        -scale * norms - larger(T(-64) * scale * distance, spread(many_roundings<T>));
    const Vec<T> rough =
        kernel.metric_only ? norms - T(8) * distance : larger(in_value, in_distance);
    return norms < largest_norm<T> ? rough : spread(T(1));
}

template <class T, bool Checked>
inline void from_products(const KernelSpec& kernel, const T* row_norms, T column_norm,
                          const T* shares, T* out, std::size_t n, T* rough) {
    constexpr std::size_t width = vector_bytes / sizeof(T);
    const ValueOfDistance<T> value_of(kernel);
    for (std::size_t i = 0; i < n; i += width) {
        const Vec<T> norms = load<Vec<T>>(row_norms + i) + column_norm;
        Vec<T> distance = larger(norms - T(2) * load<Vec<T>>(out + i), Vec<T>{});
        if (shares) distance += load<Vec<T>>(shares + i);
        const Vec<T> value = value_of(distance);
        store<Vec<T>>(out + i, value);
        if constexpr (Checked)
            store<Vec<T>>(rough + i, roughness<T>(kernel, value_of.scale, norms, distance, value));
    }
}

template <class T>
void finish(const KernelSpec& kernel, const T* row_norms, const T* column_norms, const T* shares,
            std::size_t n_columns, T* out, std::size_t stride, std::size_t n_rows,
            std::uint64_t* is_rough) {
    if (!kernel.is_distance()) {
        finish_products(kernel, n_rows, static_cast<int>(n_columns), out, stride);
        for (std::size_t c = 0; c < n_columns; ++c) is_rough[c] = 0;
        return;
    }
    T largest = 0;
    for (std::size_t i = 0; i < n_rows; ++i)
        largest = row_norms[i] > largest ? row_norms[i] : largest;
    const T scale = ValueOfDistance<T>(kernel).scale;
    alignas(64) T rough[strip_rows];
    for (std::size_t c = 0; c < n_columns; ++c) {
        const T* share = shares ? shares + c * n_rows : nullptr;
        T* v = out + c * stride;
        is_rough[c] = 0;
        const T norm = largest + column_norms[c];
        if (!kernel.metric_only && -scale * norm <= most_roundings<T> && norm < largest_norm<T>) {
            from_products<T, false>(kernel, row_norms, column_norms[c], share, v, n_rows, rough);
            continue;
        }
        from_products<T, true>(kernel, row_norms, column_norms[c], share, v, n_rows, rough);
        for (std::size_t i = 0; i < n_rows; ++i)
            is_rough[c] |= static_cast<std::uint64_t>(rough[i] > 0) << i;
    }
}

}  // namespace
}  // namespace hardmargin
