// Products of a matrix in strips with a few vectors at once. Part of level.cpp.
#pragma once

#include "distances.hpp"

namespace hardmargin {
namespace {

// Right-hand sides whose sums stay in registers.
constexpr int most_right = vectors_per_tile > 2 ? 3 : 6;

template <class T>
constexpr std::size_t vector_width = vector_bytes / sizeof(T);

// Numbers from 0 to 1 in 16 bits.
constexpr double largest_16 = 65535;

template <class T>
inline Vec<T> load_stored(const T* p) {
    return load<Vec<T>>(p);
}
template <class T>
inline Vec<T> load_stored(const std::uint16_t* p) {
    using Small = typename Vector<std::uint16_t, static_cast<int>(2 * vector_width<T>)>::type;
    using Whole = typename Vector<std::int32_t, static_cast<int>(4 * vector_width<T>)>::type;
    return __builtin_convertvector(__builtin_convertvector(load<Small>(p), Whole), Vec<T>);
}

template <class T, class Stored, int C>
inline void product_of_columns(const Stored* strip, std::size_t n_rows, const T* right,
                               std::size_t right_stride, T* out, std::size_t stride) {
    // Few columns have several sums each, as every addition waits for the one before it.
    constexpr int n_sums = C == 1 ? 4 : C == 2 ? 2 : 1;
    Vec<T> sums[n_sums][C][vectors_per_tile];
    for (auto& sum : sums)
        for (auto& of_column : sum)
            for (auto& v : of_column) v = Vec<T>{};
    const auto add_row = [&](std::size_t j, Vec<T>(&sum)[C][vectors_per_tile]) {
        Vec<T> row[vectors_per_tile];
        for (int v = 0; v < vectors_per_tile; ++v)
            row[v] = load_stored<T>(strip + j * lanes<T> +
                                    static_cast<std::size_t>(v) * vector_width<T>);
        for (int c = 0; c < C; ++c) {
            const Vec<T> factor = spread(right[j * right_stride + static_cast<std::size_t>(c)]);
            for (int v = 0; v < vectors_per_tile; ++v) sum[c][v] += factor * row[v];
        }
    };
    std::size_t j = 0;
    for (; j + n_sums <= n_rows; j += n_sums)
        for (int s = 0; s < n_sums; ++s) add_row(j + static_cast<std::size_t>(s), sums[s]);
    for (; j < n_rows; ++j) add_row(j, sums[0]);
    auto& sum = sums[0];
    for (int s = 1; s < n_sums; ++s)
        for (int c = 0; c < C; ++c)
            for (int v = 0; v < vectors_per_tile; ++v) sum[c][v] += sums[s][c][v];
    constexpr T unit = sizeof(Stored) == 2 ? static_cast<T>(1 / largest_16) : T(1);
    for (int c = 0; c < C; ++c)
        for (int v = 0; v < vectors_per_tile; ++v)
            store<Vec<T>>(out + static_cast<std::size_t>(c) * stride +
                              static_cast<std::size_t>(v) * vector_width<T>,
                          unit * sum[c][v]);
}

template <class T, class Stored>
void strip_product(const Stored* strip, std::size_t n_rows, const T* right, int n_columns, T* out,
                   std::size_t stride) {
    const auto right_stride = static_cast<std::size_t>(n_columns);
    for (int c = 0; c < n_columns; c += most_right) {
        const T* from = right + c;
        T* to = out + static_cast<std::size_t>(c) * stride;
        const int left = n_columns - c;
        if (left == 1)
            product_of_columns<T, Stored, 1>(strip, n_rows, from, right_stride, to, stride);
        else if (left == 2)
            product_of_columns<T, Stored, 2>(strip, n_rows, from, right_stride, to, stride);
        else if (left == 3 || most_right == 3)
            product_of_columns<T, Stored, 3>(strip, n_rows, from, right_stride, to, stride);
        else if (left == 4)
            product_of_columns<T, Stored, 4>(strip, n_rows, from, right_stride, to, stride);
        else if (left == 5)
            product_of_columns<T, Stored, 5>(strip, n_rows, from, right_stride, to, stride);
        else product_of_columns<T, Stored, 6>(strip, n_rows, from, right_stride, to, stride);
    }
}

// `Rows` rows of all strips against C vectors.
template <class T, int Rows, int C>
inline void dots_of_rows(const T* strips, std::size_t n_strips, std::size_t strip_size,
                         const T* left, std::size_t stride, T* sums, std::size_t sum_stride) {
    Vec<T> sum[Rows][C];
    for (auto& of_row : sum)
        for (auto& v : of_row) v = Vec<T>{};
    for (std::size_t s = 0; s < n_strips; ++s)
        for (std::size_t l = 0; l < lanes<T>; l += vector_width<T>) {
            Vec<T> row[Rows];
            for (int r = 0; r < Rows; ++r)
                row[r] = load<Vec<T>>(strips + s * strip_size +
                                      static_cast<std::size_t>(r) * lanes<T> + l);
            for (int c = 0; c < C; ++c) {
                const auto v =
                    load<Vec<T>>(left + static_cast<std::size_t>(c) * stride + s * lanes<T> + l);
                for (int r = 0; r < Rows; ++r) sum[r][c] += row[r] * v;
            }
        }
    for (int r = 0; r < Rows; ++r)
        for (int c = 0; c < C; ++c)
            for (std::size_t l = 0; l < vector_width<T>; ++l)
                sums[static_cast<std::size_t>(r) * sum_stride + static_cast<std::size_t>(c)] +=
                    sum[r][c][l];
}

template <class T, int C>
inline void dots_of_columns(const T* strips, std::size_t n_strips, std::size_t n_rows,
                            const T* left, std::size_t stride, T* sums, std::size_t sum_stride) {
    const std::size_t strip_size = n_rows * lanes<T>;
    std::size_t k = 0;
    for (; k + 2 <= n_rows; k += 2)
        dots_of_rows<T, 2, C>(strips + k * lanes<T>, n_strips, strip_size, left, stride,
                              sums + k * sum_stride, sum_stride);
    if (k < n_rows)
        dots_of_rows<T, 1, C>(strips + k * lanes<T>, n_strips, strip_size, left, stride,
                              sums + k * sum_stride, sum_stride);
}

template <class T>
void strip_dots(const T* strips, std::size_t n_strips, std::size_t n_rows, const T* left,
                std::size_t stride, int n_columns, T* sums) {
    const auto sum_stride = static_cast<std::size_t>(n_columns);
    int c = 0;
    for (; c + 3 <= n_columns; c += 3)
        dots_of_columns<T, 3>(strips, n_strips, n_rows, left + static_cast<std::size_t>(c) * stride,
                              stride, sums + c, sum_stride);
    for (; c < n_columns; ++c)
        dots_of_columns<T, 1>(strips, n_strips, n_rows, left + static_cast<std::size_t>(c) * stride,
                              stride, sums + c, sum_stride);
}

// Smaller kernel values, times a multiplier, would become subnormal: slow, and lost in any sum.
template <class T>
constexpr T least_value = sizeof(T) == 4 ? T(1e-18) : T(1e-36);

template <class T>
inline Vec<T> without_least(Vec<T> value) {
    return value > least_value<T> ? value : Vec<T>{};
}

template <class T>
inline Vec<T> decayed(const T* distances, const ValueOfDistance<T>& value_of) {
    return without_least<T>(value_of(load<Vec<T>>(distances)));
}

template <class T>
void decay(const T* distances, double gamma, T* out, std::size_t n) {
    const ValueOfDistance<T> value_of({.gamma = gamma});
    for (std::size_t i = 0; i < n; i += vector_width<T>)
        store<Vec<T>>(out + i, decayed(distances + i, value_of));
}

template <class T>
void square(T* values, int times, std::size_t n) {
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        Vec<T> value = load<Vec<T>>(values + i);
        for (int t = 0; t < times; ++t) value = without_least<T>(value * value);
        store<Vec<T>>(values + i, value);
    }
}

template <class T>
void decay_16(const T* distances, double gamma, std::uint16_t* out, std::size_t n) {
    using Small = typename Vector<std::uint16_t, static_cast<int>(2 * vector_width<T>)>::type;
    using Whole = typename Vector<std::int32_t, static_cast<int>(4 * vector_width<T>)>::type;
    const ValueOfDistance<T> value_of({.gamma = gamma});
    for (std::size_t i = 0; i < n; i += vector_width<T>) {
        const Vec<T> scaled =
            static_cast<T>(largest_16) * decayed(distances + i, value_of) + static_cast<T>(0.5);
        const Whole whole = __builtin_convertvector(scaled, Whole);
        store<Small>(out + i, __builtin_convertvector(whole, Small));
    }
}

}  // namespace
}  // namespace hardmargin
