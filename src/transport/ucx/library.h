/* transport/ucx/library.h: UCX, loaded when a world spans nodes. */
#ifndef WEFTI_TRANSPORT_UCX_LIBRARY_H
#define WEFTI_TRANSPORT_UCX_LIBRARY_H

#include <ucp/api/ucp.h>

#include "weft/status.h"

/* UCX has no versions of symbols: what a structure has is told in it, so that a newer library takes the headers'. */
#define WEFTI_UCX_FUNCTIONS(X)                                                                                         \
    X(get_version, ucp_get_version)                                                                                    \
    X(get_version_string, ucp_get_version_string)                                                                      \
    X(config_read, ucp_config_read)                                                                                    \
    X(config_modify, ucp_config_modify)                                                                                \
    X(config_release, ucp_config_release)                                                                              \
    X(init_version, ucp_init_version)                                                                                  \
    X(cleanup, ucp_cleanup)                                                                                            \
    X(worker_create, ucp_worker_create)                                                                                \
    X(worker_destroy, ucp_worker_destroy)                                                                              \
    X(worker_query, ucp_worker_query)                                                                                  \
    X(worker_release_address, ucp_worker_release_address)                                                              \
    X(worker_progress, ucp_worker_progress)                                                                            \
    X(worker_flush, ucp_worker_flush_nbx)                                                                              \
    X(worker_arm, ucp_worker_arm)                                                                                      \
    X(worker_get_efd, ucp_worker_get_efd)                                                                              \
    X(set_am_recv_handler, ucp_worker_set_am_recv_handler)                                                             \
    X(am_send, ucp_am_send_nbx)                                                                                        \
    X(am_data_release, ucp_am_data_release)                                                                            \
    X(ep_create, ucp_ep_create)                                                                                        \
    X(ep_close, ucp_ep_close_nbx)                                                                                      \
    X(request_check_status, ucp_request_check_status)                                                                  \
    X(request_free, ucp_request_free)                                                                                  \
    X(status_string, ucs_status_string)

typedef struct wefti_ucx_library {
#define WEFTI_UCX_MEMBER(member, function) __typeof__(function) *member;
    WEFTI_UCX_FUNCTIONS(WEFTI_UCX_MEMBER)
#undef WEFTI_UCX_MEMBER
} wefti_ucx_library;

/* Load it once a process; it is never unloaded, since it leaves threads behind. Loaded here, it takes no signals for
 * itself and does not redirect the process's calls that map memory, unless its variables in the environment say
 * otherwise; a copy that is in the process already stays as it is. WEFT_ERR_UNREACHABLE if there is none. */
weft_status wefti_ucx_load(const wefti_ucx_library **library);

/* The library's function; its workers wait for no host that they connect to, unless the environment says otherwise. */
ucs_status_t wefti_ucx_create_worker(ucp_context_h context, const ucp_worker_params_t *parameters,
                                     ucp_worker_h *worker);

#endif
