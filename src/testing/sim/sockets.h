/* testing/sim/sockets.h: what the files of sockets share. */
#ifndef WEFTI_SIM_SOCKETS_H
#define WEFTI_SIM_SOCKETS_H

#include "testing/sim/socket.h"

/* ---- socket.c ---- */

/* The memory; ends the test program if it is NULL. */
void *wefti_sim_no_less(void *memory);

/* The running simulation, after a moment in which others may run; NULL outside of one. */
wefti_sim *wefti_socket_enter(void);
/* Returns -1 with errno set. */
int wefti_socket_failed(int error);
/* The simulation ends: the caller's bug. */
void wefti_socket_misused(wefti_sim *sim, const char *call, int descriptor);

/* The socket of a descriptor; NULL: none. */
wefti_socket *wefti_socket_find(const wefti_sim *sim, int descriptor);
/* One that must be there: a call on another is a bug of the caller. */
wefti_socket *wefti_socket_of(wefti_sim *sim, int descriptor, const char *call);
wefti_socket *wefti_socket_make(wefti_sim *sim, int family);
/* Give a socket a descriptor of the running PE. */
int wefti_socket_hand_out(wefti_sim *sim, wefti_socket *socket);

/* Wake who polls for a socket, or NULL. */
void wefti_socket_notify(wefti_sim *sim, const wefti_socket *socket);
/* When what leaves now arrives. */
uint64_t wefti_socket_arrival_ns(wefti_sim *sim);
/* The same on the way to `to`. */
uint64_t wefti_socket_arrival_at_ns(wefti_sim *sim, const wefti_socket *from, const wefti_socket *to);
/* Whether their hosts are cut off from each other now. */
int wefti_socket_is_apart(const wefti_sim *sim, const wefti_socket *one, const wefti_socket *other);
/* Whether this call fails for no reason, with errno set. */
int wefti_socket_is_in_storm(wefti_sim *sim, wefti_socket *socket);

/* ---- socket_meet.c ---- */

/* Decide a connect that is due. */
void wefti_socket_settle(wefti_sim *sim, wefti_socket *socket);
/* How many connections of a listener can be accepted. They are put first. */
size_t wefti_socket_sort_queue(const wefti_socket *listener, uint64_t now_ns);

/* ---- socket_bytes.c ---- */

size_t wefti_pipe_arrived(const wefti_pipe *pipe, uint64_t now_ns);
int wefti_pipe_is_over(const wefti_pipe *pipe, uint64_t now_ns);
/* When something next happens here; UINT64_MAX: not by itself. */
uint64_t wefti_pipe_next_ns(const wefti_pipe *pipe);
/* Its reader is told at `ns`, or behind what comes later. */
void wefti_pipe_end(wefti_pipe *pipe, uint64_t ns, int is_broken);

#endif
