#pragma once

// The C surface of firstfault-parquet.so. Two C++ runtimes meet here (ours, linked statically, and the one that Arrow's
// shared libraries use), so only plain structs and functions cross: no C++ object, no exception. Columns travel through
// the Arrow C data interface, whose two structs are laid out as its specification says
// (arrow.apache.org/docs/format/CDataInterface.html and CStreamInterface.html).

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Type of a column and of its children. `format` is a short code: "l" int64, "i" int32, "f" float32, "g" float64,
/// "b" boolean, "u"/"U" text, "+l"/"+L" list with 32/64-bit offsets, "+w:N" list of fixed length N, "+s" struct.
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

/// The buffers of a column: [validity bitmap or NULL, values] for numbers, [validity, offsets] and one child for lists.
struct ArrowArray {
  int64_t length;
  int64_t null_count;  ///< -1: not counted
  int64_t offset;      ///< first element, in every buffer
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

/// Record batches one after another. Functions return 0 or an errno; then get_last_error says why.
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);  ///< out->release is NULL at the end
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#define FFP_ABI_VERSION 3

/// Each function below returns 0, or 1 after writing a message (cut to `error_size`) to `error`.

/// FFP_ABI_VERSION of the library.
typedef int (*ffp_abi_version_fn)(void);
/// The version of Arrow in use, e.g. "26.0.1".
typedef const char* (*ffp_arrow_version_fn)(void);
/// Reads the footer only: a JSON document {"rows","row_groups":[rows…],"columns":[{"name","path","type","logical","max_definition_level",
/// "max_repetition_level","compression"}],"schema":[{"name","type"}],"metadata":{"key":"value"},"created_by"}. Free it with ffp_free.
typedef int (*ffp_inspect_fn)(const char* path, char** json, char* error, size_t error_size);
typedef void (*ffp_free_fn)(void* pointer);
/// What ffp_scan streams of a file.
struct ffp_scan_job {
  const char* const* columns;  ///< top-level columns, in file order; all when n_columns is 0
  size_t n_columns;
  int64_t batch_rows;             ///< at most so many rows a batch
  int64_t first_group, n_groups;  ///< row groups; n_groups -1: all from first_group on
  int threads;                    ///< not 0: columns are decoded in parallel
};
typedef int (*ffp_scan_fn)(const char* path, const struct ffp_scan_job* job, struct ArrowArrayStream* out, char* error, size_t error_size);
/// Writes a stream as one Parquet file; takes the stream over. `metadata` holds 2*n_metadata texts: key, value, …
/// `rows_per_group`: at most so many rows in a row group. compression: "snappy", "zstd", "none".
typedef int (*ffp_write_fn)(const char* path, struct ArrowArrayStream* in, int64_t rows_per_group, const char* compression,
                            const char* const* metadata, size_t n_metadata, char* error, size_t error_size);

/// What ffp_rewrite makes one file of.
struct ffp_rewrite_job {
  const char* const* paths;  ///< source files; their rows are numbered as if the files lay end to end. None: only `columns`
  size_t n_paths;
  const int64_t* rows;  ///< the row to take for each row of the result; -1: a row of missing values
  int64_t n_rows;
  const int64_t* group_rows;  ///< rows of each row group of the result; their sum is n_rows
  size_t n_groups;
  struct ArrowArrayStream* columns;  ///< columns that replace those of the same name (cast to their type where that is possible) or
                                     ///< are added; NULL: none. Taken over, also after an error
  const char* const* drop;           ///< columns that are left out
  size_t n_drop;
  const char* compression;      ///< "snappy", "zstd", "none"
  const char* const* metadata;  ///< 2*n_metadata texts, set beside the first source's own key-value metadata
  size_t n_metadata;
};
/// Takes rows of files in a given order, replaces columns, writes one file. All other columns keep their types and values,
/// images and nested lists among them; columns that one source lacks are missing values in its rows.
typedef int (*ffp_rewrite_fn)(const char* path, const struct ffp_rewrite_job* job, char* error, size_t error_size);

#ifdef __cplusplus
}
#endif
