/* weft/status.h: statuses, the thread's last error, logging; and the macros of all headers.
 *
 * Every function that can fail returns a weft_status: WEFT_OK (0) or one of the negative values of the table below.
 * Handles and scalar outputs are written on success only; the contents of bulk destinations are undefined after a
 * failure. The library never exits, aborts or raises a signal. */
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION (WEFT_VERSION_MAJOR << 16 | WEFT_VERSION_MINOR << 8 | WEFT_VERSION_PATCH)

#if defined(__GNUC__) || defined(__clang__)
#define WEFT_MUST_CHECK __attribute__((warn_unused_result))
#define WEFT_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_MUST_CHECK
#define WEFT_PRINTF(format_index, first_argument)
#define WEFT_API
#endif

/* Calls that compile into the caller. libweft also has each as a function, for languages that cannot take headers
 * (src/ffi/inlines.c). */
#ifndef WEFT_INLINE
#define WEFT_INLINE static inline
#endif

/* An initialiser of a struct that begins with its size: the rest is zero, the default. Fields are only ever appended,
 * so a program may have other headers than its library: what older ones lack counts as zero, and what the library does
 * not know of newer ones must be zero, else WEFT_ERR_ARGUMENT says where it is. Not in kernels compiled at run time,
 * which take no host functions. */
#if defined(__cplusplus) && !defined(__CUDACC_RTC__)
extern "C++" {
template <typename T> static inline T wefti_sized()
{
    T value = T();
    value.size = sizeof(T);
    return value;
}
}
#define WEFTI_SIZED(TYPE) wefti_sized<TYPE>()
#else
#define WEFTI_SIZED(TYPE)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(TYPE)                                                                                           \
    }
#endif

/* X(name, value, what it means) */
#define WEFT_STATUS_TABLE(X)                                                                                           \
    X(WEFT_OK, 0, "success")                                                                                           \
    X(WEFT_ERR_ARGUMENT, -1, "an argument is invalid; nothing was changed")                                            \
    X(WEFT_ERR_RANGE, -2, "a PE, an offset or a size lies outside its object; nothing was changed")                    \
    X(WEFT_ERR_MEMORY, -3, "memory could not be had, or the symmetric heap is full")                                   \
    X(WEFT_ERR_SYSTEM, -4, "a call to the operating system failed")                                                    \
    X(WEFT_ERR_TIMEOUT, -5, "a deadline passed; the message names the PEs that had not arrived")                       \
    X(WEFT_ERR_MISMATCH, -6, "PEs disagree on a configuration or on the arguments of a collective call")               \
    X(WEFT_ERR_UNREACHABLE, -7, "no transport connects a pair of PEs")                                                 \
    X(WEFT_ERR_AUTHENTICATION, -8, "a peer could not prove that it knows the secret of the world")                     \
    X(WEFT_ERR_PEER, -9, "a peer reported a failure of its own, or is gone")                                           \
    X(WEFT_ERR_ABORTED, -10, "the world was aborted")                                                                  \
    X(WEFT_ERR_UNSUPPORTED, -11, "this build, machine or backend cannot do this")                                      \
    X(WEFT_ERR_STATE, -12, "the object is not in a state that allows this call")                                       \
    X(WEFT_ERR_OVERFLOW, -13, "more rows arrive than the configured maximum")

typedef enum weft_status {
#define WEFT_STATUS_ENUM(name, value, text) name = value,
    WEFT_STATUS_TABLE(WEFT_STATUS_ENUM)
#undef WEFT_STATUS_ENUM
} weft_status;

#ifndef __CUDACC_RTC__ /* which takes no host functions */

/* The version of the library in use, as WEFT_VERSION is that of the headers; and as text, such as "0.1.0". Any thread.
 * (OpenSHMEM 1.5, 9.1.9.) */
WEFT_API int weft_version(void);
WEFT_API const char *weft_version_text(void);

/* The name of a status, such as "WEFT_ERR_RANGE"; "WEFT_ERR_(unknown)" for a value outside the table. Any thread. */
WEFT_API const char *weft_status_name(weft_status status);

/* What a status means, one sentence. Any thread. Never NULL. */
WEFT_API const char *weft_status_text(weft_status status);

/* The calling thread's last error: who failed at what, and the remedy. Never NULL; "" before the first error.
 * The text belongs to the thread and is valid until its next failing call into weft. Success does not clear it. */
WEFT_API const char *weft_last_error(void);

/* Decide an error outside of the library: keep `text` as the thread's last error, log it, and return `status`. For
 * interfaces built on weft, whose callers read weft_last_error as well. NULL is "". Any thread. */
WEFT_API weft_status weft_last_error_set(weft_status status, const char *text);

#endif

/* Return from the calling function with the status of `call` unless it is WEFT_OK. */
#define WEFT_TRY(call)                                                                                                 \
    do {                                                                                                               \
        weft_status weft_try_status = (call);                                                                          \
        if (weft_try_status != WEFT_OK) {                                                                              \
            return weft_try_status;                                                                                    \
        }                                                                                                              \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
