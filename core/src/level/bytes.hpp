// Distances of two-valued features, from bits and bundles. Part of level.cpp.
#pragma once

#include "vectors.hpp"

namespace hardmargin {
namespace {

// Bits are counted in vectors of at most 32 bytes, the widest in which every CPU above the baseline
// level can look up bytes.
constexpr int bit_vector_bytes = vector_bytes < 32 ? vector_bytes : 32;
constexpr int bit_vectors = static_cast<int>(strip_rows) / bit_vector_bytes;
using Bytes = Vector<std::uint8_t, bit_vector_bytes>::type;

// Counts of four bits can be added to a byte this many times without overflow.
constexpr int bytes_per_sum = 63;

#if defined(__AVX2__)

// differences[z] holds the number of bits in which x differs from z, for x = 0 .. 15.
struct DifferenceTable {
    alignas(16) std::uint8_t rows[16][16];
};
constexpr DifferenceTable make_difference_table() {
    DifferenceTable table{};
    for (int z = 0; z < 16; ++z)
        for (int x = 0; x < 16; ++x)
            table.rows[z][x] = static_cast<std::uint8_t>(__builtin_popcount(x ^ z));
    return table;
}
constexpr DifferenceTable differences = make_difference_table();

// Counts the bits in which bytes (of four bits each) differ from one byte.
class DifferenceCounter {
  public:
    explicit DifferenceCounter(std::uint8_t z)
        : table_(_mm256_broadcastsi128_si256(
              _mm_load_si128(reinterpret_cast<const __m128i*>(differences.rows[z])))) {}
    Bytes operator()(Bytes x) const {
        return reinterpret_cast<Bytes>(_mm256_shuffle_epi8(table_, reinterpret_cast<__m256i>(x)));
    }

  private:
    __m256i table_;
};

#else

class DifferenceCounter {
  public:
    explicit DifferenceCounter(std::uint8_t z) : z_(z) {}
    Bytes operator()(Bytes x) const {
        Bytes v = x ^ z_;
        v = v - ((v >> 1) & 0x55);
        return (v & 0x33) + (v >> 2);
    }

  private:
    std::uint8_t z_;
};

#endif

// numbers[i] (+)= weight * counts[i] over a strip
template <class T>
inline void add_counts(T* numbers, const Bytes (&counts)[bit_vectors], T weight, bool add) {
    alignas(64) std::uint8_t bytes[strip_rows];
    for (int v = 0; v < bit_vectors; ++v) store<Bytes>(bytes + v * bit_vector_bytes, counts[v]);
    if (add)
        for (std::size_t i = 0; i < strip_rows; ++i)
            numbers[i] += weight * static_cast<T>(bytes[i]);
    else
        for (std::size_t i = 0; i < strip_rows; ++i) numbers[i] = weight * static_cast<T>(bytes[i]);
}

// Loads bytes of `Strips` strips.
template <int Strips>
struct StripBytes {
    const std::uint8_t* data;
    std::size_t n_bytes;

    Bytes operator()(int strip, std::size_t w, int v) const {
        return load<Bytes>(data + (static_cast<std::size_t>(strip) * n_bytes + w) * strip_rows +
                           static_cast<std::size_t>(v) * bit_vector_bytes);
    }
};

template <int Strips, int Columns>
using StripCounts = Bytes[Columns][Strips][bit_vectors];

// Stays in registers; `= {}` would go through memory.
template <int Strips, int Columns>
[[gnu::always_inline]] inline void clear(Bytes (&count)[Columns][Strips][bit_vectors]) {
    for (auto& of_column : count)
        for (auto& of_strip : of_column)
            for (Bytes& v : of_strip) v = Bytes{};
}

// Quads [begin, end): the bits in which they differ.
template <int Strips, int Columns>
[[gnu::always_inline]] inline void
count_quads(const StripBytes<Strips>& rows, const std::uint8_t* columns, std::size_t begin,
            std::size_t end, StripCounts<Strips, Columns>& count) {
    for (std::size_t w = begin; w < end; ++w)
        for (int c = 0; c < Columns; ++c) {
            const DifferenceCounter differing(
                columns[static_cast<std::size_t>(c) * rows.n_bytes + w]);
            for (int s = 0; s < Strips; ++s)
                for (int v = 0; v < bit_vectors; ++v) count[c][s][v] += differing(rows(s, w, v));
        }
}

// Bundles [begin, end): two features where the bytes differ, one where one of them is 0.
template <int Strips, int Columns, bool Complete>
[[gnu::always_inline]] inline void
count_bundles(const StripBytes<Strips>& rows, const std::uint8_t* columns, std::size_t begin,
              std::size_t end, StripCounts<Strips, Columns>& count) {
    std::uint8_t most[Columns] = {};
    StripCounts<Strips, Columns> equal;  // counted down from 0: masks are -1
    StripCounts<Strips, 1> none;
    clear(equal);
    clear(none);
    for (std::size_t w = begin; w < end; ++w) {
        if constexpr (!Complete)
            for (int s = 0; s < Strips; ++s)
                for (int v = 0; v < bit_vectors; ++v)
                    none[0][s][v] += reinterpret_cast<Bytes>(rows(s, w, v) == 0);
        for (int c = 0; c < Columns; ++c) {
            const std::uint8_t z = columns[static_cast<std::size_t>(c) * rows.n_bytes + w];
            most[c] = static_cast<std::uint8_t>(most[c] + (Complete || z ? 2 : 1));
            if (!Complete && !z) continue;
            for (int s = 0; s < Strips; ++s)
                for (int v = 0; v < bit_vectors; ++v)
                    equal[c][s][v] += reinterpret_cast<Bytes>(rows(s, w, v) == z);
        }
    }
    for (int c = 0; c < Columns; ++c)
        for (int s = 0; s < Strips; ++s)
            for (int v = 0; v < bit_vectors; ++v)
                count[c][s][v] += most[c] + equal[c][s][v] + equal[c][s][v] + none[0][s][v];
}

// sums[c * Strips * strip_rows + i] = what the bytes of row i of the strips and of column c add to
// their distance.
template <class T, int Strips, int Columns>
void sum_bytes(const TileShape& shape, const std::uint8_t* strips, const std::uint8_t* columns,
               T* sums) {
    const StripBytes<Strips> rows{strips, static_cast<std::size_t>(shape.bytes)};
    StripCounts<Strips, Columns> count;
    std::size_t at = 0;
    int room = 0;  // bytes that still fit the counts
    bool add = false;
    T weight = 0;
    const auto empty_counts = [&] {
        for (int c = 0; c < Columns; ++c)
            for (int s = 0; s < Strips; ++s) {
                add_counts(sums + static_cast<std::size_t>(c * Strips + s) * strip_rows,
                           count[c][s], weight, add);
                for (int v = 0; v < bit_vectors; ++v) count[c][s][v] = Bytes{};
            }
        add = true;
        room = bytes_per_sum;
    };
    const auto in_chunks = [&](int n_bytes, auto&& count_chunk) {
        while (n_bytes > 0) {
            if (room == 0) empty_counts();
            const int chunk = n_bytes < room ? n_bytes : room;
            count_chunk(at + static_cast<std::size_t>(chunk));
            at += static_cast<std::size_t>(chunk);
            n_bytes -= chunk;
            room -= chunk;
        }
    };
    for (int g = 0; g < shape.n_groups; ++g) {
        const BitGroup& group = shape.groups[g];
        weight = static_cast<T>(group.weight);
        room = bytes_per_sum;
        clear(count);
        in_chunks(group.quads, [&](std::size_t end) {
            count_quads<Strips, Columns>(rows, columns, at, end, count);
        });
        in_chunks(group.complete, [&](std::size_t end) {
            count_bundles<Strips, Columns, true>(rows, columns, at, end, count);
        });
        in_chunks(group.partial, [&](std::size_t end) {
            count_bundles<Strips, Columns, false>(rows, columns, at, end, count);
        });
        empty_counts();
    }
}

// out[b] = the least that the bytes of a point can add to its distance from a row in box b
template <class T>
void sum_bytes_outside(const TileShape& shape, const Boxes<T>& boxes, const std::uint8_t* point,
                       T* out) {
    const DifferenceCounter count_bits(0);
    for (std::size_t b = 0; b < boxes.n; b += strip_rows) {
        std::size_t w = 0;
        for (int g = 0; g < shape.n_groups; ++g) {
            const BitGroup& group = shape.groups[g];
            const std::size_t quads_end = w + static_cast<std::size_t>(group.quads);
            const std::size_t end = w + static_cast<std::size_t>(group.bytes());
            while (w < end) {
                const bool add = w > 0;
                const std::size_t stop = w + bytes_per_sum < end ? w + bytes_per_sum : end;
                Bytes count[bit_vectors] = {};
                for (; w < stop; ++w) {
                    const std::uint8_t x = point[w];
                    const auto not_x = static_cast<std::uint8_t>(~x & 0x0f);
                    for (int v = 0; v < bit_vectors; ++v) {
                        const std::uint8_t* table = boxes.bounds[w] + b + v * bit_vector_bytes;
                        if (w < quads_end) {
                            const auto all = load<Bytes>(table);
                            const auto any = load<Bytes>(table + boxes.n);
                            count[v] += count_bits((all & not_x) | (~any & x));
                        } else {
                            count[v] += load<Bytes>(table + x * boxes.n);
                        }
                    }
                }
                add_counts(out + b, count, static_cast<T>(group.weight), add);
            }
        }
    }
}

}  // namespace
}  // namespace hardmargin
