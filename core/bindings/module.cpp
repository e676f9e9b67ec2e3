#include <nanobind/stl/string.h>

#include <filesystem>

#include "convert.hpp"
#include "hardmargin/errors.hpp"

using namespace hardmargin;

// The second argument of MemoryTooSmall is the number of bytes needed.
void bind_errors(nb::module_& module) {
    nb::exception<NothingToPack>(module, "NothingToPack", PyExc_ValueError);
    nb::exception<NotFinite>(module, "NotFinite", PyExc_ValueError);
    const nb::object type =
        nb::exception<MemoryTooSmall>(module, "MemoryTooSmall", PyExc_ValueError);
    nb::register_exception_translator(
        [](const std::exception_ptr& raised, void* error) {
            try {
                std::rethrow_exception(raised);
            } catch (const MemoryTooSmall& e) {
                PyErr_SetObject(static_cast<PyObject*>(error),
                                nb::make_tuple(e.what(), e.needed).ptr());
            }
        },
        type.ptr());
    nb::register_exception_translator([](const std::exception_ptr& raised, void*) {
        try {
            std::rethrow_exception(raised);
        } catch (const std::filesystem::filesystem_error& e) {  // of a temporary file
            PyErr_SetObject(
                PyExc_OSError,
                nb::make_tuple(e.code().value(), e.code().message(), e.path1().string()).ptr());
        }
    });
}

NB_MODULE(_core, module) {
    module.doc() = "Compiled core of hardmargin.";
    bind_errors(module);
    bind_kernels(module);
    bind_greedy(module);
    bind_hard_margin(module);
    bind_soft_margin(module);
    bind_staged_vote(module);
    bind_tilt(module);
    bind_core_set(module);
    bind_cells(module);
    bind_interpolation(module);
}
