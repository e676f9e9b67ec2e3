// Kernel values looked up by count. Where all features are bytes of one weight, a distance is that
// weight times a small whole number, and the bytes of the kernel values are looked up instead of
// computed, 32 rows at a time. Part of level.cpp.
#pragma once

#include "bytes.hpp"
#include "distances.hpp"

namespace hardmargin {
namespace {

#if defined(__AVX2__)

constexpr int counts_per_range = 16;  // what one look-up distinguishes
constexpr int most_ranges = 4;

inline int largest_count(const BitGroup& group) {
    return 4 * group.quads + 2 * (group.complete + group.partial);
}

inline bool has_few_counts(const TileShape& shape) {
    return shape.dense == 0 && shape.n_groups == 1 && shape.bytes <= bytes_per_sum &&
           largest_count(shape.groups[0]) < most_ranges * counts_per_range;
}

// Byte p of the kernel value at a distance of `weight` times a count, for every count.
template <class T>
struct CountTable {
    ValueOfDistance<T> value_of{KernelSpec{}};
    T weight = 0;
    alignas(16) std::uint8_t planes[sizeof(T)][most_ranges][counts_per_range] = {};

    void fill(const ValueOfDistance<T>& new_value_of, T new_weight) {
        if (value_of == new_value_of && weight == new_weight) return;
        value_of = new_value_of;
        weight = new_weight;
        constexpr int width = vector_bytes / static_cast<int>(sizeof(T));
        for (int count = 0; count < most_ranges * counts_per_range; count += width) {
            Vec<T> distance;
            for (int i = 0; i < width; ++i) distance[i] = weight * static_cast<T>(count + i);
            const Vec<T> value = value_of(distance);
            for (int i = 0; i < width; ++i) {
                const T one = value[i];
                std::uint8_t bytes[sizeof(T)];
                __builtin_memcpy(bytes, &one, sizeof(T));
                for (std::size_t p = 0; p < sizeof(T); ++p)
                    planes[p][(count + i) / counts_per_range][(count + i) % counts_per_range] =
                        bytes[p];
            }
        }
    }
};

// One plane of bytes, by counts below 16 * Ranges. A look-up gives 0 where the index is negative.
template <int Ranges>
inline __m256i look_up(const std::uint8_t (&plane)[most_ranges][counts_per_range],
                       const __m256i (&index)[Ranges]) {
    __m256i found = _mm256_setzero_si256();
    for (int r = 0; r < Ranges; ++r) {
        const __m256i table =
            _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(plane[r])));
        found = _mm256_or_si256(found, _mm256_shuffle_epi8(table, index[r]));
    }
    return found;
}

// Bytes are put together within halves of a vector; reordered like this, the numbers come out in
// order.
inline __m256i in_turn(__m256i counts, float) {
    return _mm256_permutevar8x32_epi32(counts, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}
inline __m256i in_turn(__m256i counts, double) {
    const __m256i even_pairs_first = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(counts, even_pairs_first), 0xd8);
}

inline void put_together(const __m256i (&plane)[4], float* out) {
    const __m256i low[2] = {_mm256_unpacklo_epi8(plane[0], plane[1]),
                            _mm256_unpackhi_epi8(plane[0], plane[1])};
    const __m256i high[2] = {_mm256_unpacklo_epi8(plane[2], plane[3]),
                             _mm256_unpackhi_epi8(plane[2], plane[3])};
    auto* to = reinterpret_cast<__m256i*>(out);
    for (int i = 0; i < 2; ++i) {
        _mm256_store_si256(to + 2 * i, _mm256_unpacklo_epi16(low[i], high[i]));
        _mm256_store_si256(to + 2 * i + 1, _mm256_unpackhi_epi16(low[i], high[i]));
    }
}
inline void put_together(const __m256i (&plane)[8], double* out) {
    __m256i pair[4][2];
    for (int p = 0; p < 4; ++p) {
        pair[p][0] = _mm256_unpacklo_epi8(plane[2 * p], plane[2 * p + 1]);
        pair[p][1] = _mm256_unpackhi_epi8(plane[2 * p], plane[2 * p + 1]);
    }
    auto* to = reinterpret_cast<__m256i*>(out);
    for (int i = 0; i < 2; ++i) {
        const __m256i low[2] = {_mm256_unpacklo_epi16(pair[0][i], pair[1][i]),
                                _mm256_unpackhi_epi16(pair[0][i], pair[1][i])};
        const __m256i high[2] = {_mm256_unpacklo_epi16(pair[2][i], pair[3][i]),
                                 _mm256_unpackhi_epi16(pair[2][i], pair[3][i])};
        for (int j = 0; j < 2; ++j) {
            _mm256_store_si256(to + 4 * i + 2 * j, _mm256_unpacklo_epi32(low[j], high[j]));
            _mm256_store_si256(to + 4 * i + 2 * j + 1, _mm256_unpackhi_epi32(low[j], high[j]));
        }
    }
}

// out[i] = the kernel value of counts[i]
template <class T, int Ranges>
inline void values_of_counts(const CountTable<T>& table, Bytes counts, T* out) {
    const __m256i ordered = in_turn(reinterpret_cast<__m256i>(counts), T());
    __m256i index[Ranges];
    // Range r keeps the counts from 16 r to 16 r + 15 at 0x70 .. 0x7f: others become negative.
    for (int r = 0; r < Ranges; ++r)
        index[r] =
            _mm256_adds_epu8(_mm256_sub_epi8(ordered, _mm256_set1_epi8(static_cast<char>(16 * r))),
                             _mm256_set1_epi8(0x70));
    __m256i planes[sizeof(T)];
    for (std::size_t p = 0; p < sizeof(T); ++p) planes[p] = look_up<Ranges>(table.planes[p], index);
    put_together(planes, out);
}

// All counts of a few strips, in registers.
template <int Strips, int Columns>
[[gnu::always_inline]] inline void count_bytes(const TileShape& shape, const std::uint8_t* strips,
                                               const std::uint8_t* columns,
                                               StripCounts<Strips, Columns>& count) {
    const StripBytes<Strips> rows{strips, static_cast<std::size_t>(shape.bytes)};
    const auto quads = static_cast<std::size_t>(shape.groups[0].quads);
    const auto complete = quads + static_cast<std::size_t>(shape.groups[0].complete);
    clear(count);
    count_quads<Strips, Columns>(rows, columns, 0, quads, count);
    count_bundles<Strips, Columns, true>(rows, columns, quads, complete, count);
    count_bundles<Strips, Columns, false>(rows, columns, complete, rows.n_bytes, count);
}

#endif

}  // namespace
}  // namespace hardmargin
