/* ep/host/calls.h: the host backend's collective calls, as ep/backend.h wants them. Each lies in the file of its
 * name. */
#ifndef WEFTI_EP_HOST_CALLS_H
#define WEFTI_EP_HOST_CALLS_H

#include "ep/host/routing.h"

weft_status wefti_ep_host_update(weft_ep_route *handle, const weft_ep_choices *choices, weft_stream *stream);

weft_status wefti_ep_host_drop_rows(weft_ep_route *handle, const weft_ep_choices *choices, int is_counted,
                                    weft_ep_choices *kept, weft_stream *stream);

weft_status wefti_ep_host_dispatch(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                   const weft_ep_received *out, weft_stream *stream);
weft_status wefti_ep_host_dispatch_send(weft_ep_route *handle, const weft_ep_choices *fresh, const weft_ep_rows *in,
                                        const weft_ep_received *out, weft_stream *stream);
weft_status wefti_ep_host_dispatch_recv(weft_ep_route *handle, weft_stream *stream);

weft_status wefti_ep_host_combine(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                                  const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_ep_host_combine_send(weft_ep_route *handle, const weft_ep_rows *in, const weft_ep_rows *out,
                                       const wefti_ep_combining *combining, weft_stream *stream);
weft_status wefti_ep_host_combine_recv(weft_ep_route *handle, weft_stream *stream);

weft_status wefti_ep_host_dispatch_bwd(weft_ep_route *handle, const weft_ep_rows *grad_received,
                                       const float *grad_weights_received, const weft_ep_rows *grad_in,
                                       float *grad_weights, weft_stream *stream);
weft_status wefti_ep_host_combine_bwd(weft_ep_route *handle, const weft_ep_rows *grad_out, const weft_ep_rows *rows,
                                      const weft_ep_rows *grad_rows, float *grad_weights, unsigned flags,
                                      weft_stream *stream);
weft_status wefti_ep_host_pad(const weft_ep_route *route, const weft_ep_received *out, uint64_t *mark,
                              weft_stream *stream);

#endif
