/* ep/host/gradients.h: gradients of weights on their way back to the sources: K floats a received token, which the
 * owner puts into its own memory where records lay (protocol/ep_layout.h), and the source reads. */
#ifndef WEFTI_EP_HOST_GRADIENTS_H
#define WEFTI_EP_HOST_GRADIENTS_H

#include "ep/host/routing.h"

/* Keep the gradients [K] of the token at `place` for its source. */
void wefti_ep_gradients_keep(const wefti_ep_routing *route, int place, const float *values);

/* Keep what received rows have, by source [N][K], by expert [N], of all received tokens. */
void wefti_ep_gradients_keep_all(const wefti_ep_routing *route, const float *received);

/* Read those of all tokens that this rank sent to `rank`, and give them to their choices; no others of grad_weights
 * [T][K] are touched. */
weft_status wefti_ep_gradients_read(const wefti_ep_routing *route, int rank, float *grad_weights);

/* Read the values [K] that `rank` has kept of the index-th token that this rank sent there. */
weft_status wefti_ep_gradients_fetch(const wefti_ep_routing *route, int rank, int index, float *values);

/* Set the gradients of weights to 0, before those of the choices come. */
void wefti_ep_gradients_clear(const wefti_ep_routing *route, float *grad_weights);

#endif
