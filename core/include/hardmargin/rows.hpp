// Rows packed in tiles and cut into blocks, each with its bounding box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hardmargin/aligned.hpp"
#include "hardmargin/control.hpp"
#include "hardmargin/layout.hpp"
#include "hardmargin/row_array.hpp"

namespace hardmargin {

template <class T>
struct PackedRows {
    struct Block {
        std::size_t first_tile;
        std::size_t n_tiles;
        std::size_t first_strip;
        std::size_t n_rows;
    };

    // Room for all rows in blocks of `block_rows`, of which the last may be shorter; see RowArray
    // for `in_folder`.
    PackedRows(std::size_t n_rows, std::size_t block_rows, std::size_t n_dense, std::size_t n_bytes,
               const std::string& in_folder);

    std::vector<Block> blocks;
    std::vector<std::int32_t> ids;  // original rows, ascending within a block, one per lane
    RowArray<T> dense;              // [tile][feature][lane of the tile]
    RowArray<std::uint8_t> bytes;   // [strip][byte][lane of the strip]
    AlignedVector<T> norms;         // one per lane, if the layout has them
    std::string folder;             // of these arrays, if they are in files
};

enum class BlockOrder { natural, kd_tree };

// Packs the given rows (ascending). `natural` keeps their order; `kd_tree` puts neighbours into one
// block by halving the set across its widest feature until `block_rows` are left.
//
// Equal rows are packed once if `next_copy` is given (by original row, all -1) and rows consist of
// bytes alone, as rows of numbers hardly ever recur. next_copy[i] is then the next row equal to
// row i. `folder` is that of packed rows in files, else empty.
template <class T>
PackedRows<T> pack_rows(const Layout& layout, const Matrix& matrix,
                        const std::vector<std::int32_t>& rows, BlockOrder order,
                        std::size_t block_rows, std::int32_t* next_copy, const std::string& folder,
                        Meter& meter);

}  // namespace hardmargin
