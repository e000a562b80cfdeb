/* sim/tree/fake_net.h: a network of unix sockets in the simulator (bootstrap/tree/net.h), on which tests play PEs that
 * say what honest ones would not, or say it at another time.
 *
 * A contact is a name. The other ends of what is tested are made of the tree's own links, callers and acceptors. All of
 * it fails the run when something else comes than is expected. */
#ifndef SIM_TREE_FAKE_NET_H
#define SIM_TREE_FAKE_NET_H

#include "bootstrap/tree/acceptor.h"
#include "bootstrap/tree/caller.h"
#include "bootstrap/tree/tree.h"
#include "weft_sim.h"

#define MS_NS UINT64_C(1000000)
#define S_NS (1000 * MS_NS)

/* What the network says to this PE of who is at the other end, whoever it is; reset by fake_reset. */
extern wefti_tree_trust fake_trust[8];
/* Whether a refused connection means that a PE is gone; reset by fake_reset. */
extern int fake_refusal_is_final;
/* Whether PEs 0 of several worlds listen at one address; reset by fake_reset. */
extern int fake_is_shared;
/* Not 0: the port of loopback at which PE 0 may be as well as at its name; reset by fake_reset. */
extern unsigned fake_far_port;

/* Before a run: all that tests may set is as at first. */
void fake_reset(void);
/* From here on no call of the network fails for no reason, and what is sent arrives whole and at once, up to `room`
 * bytes that have not been read; of descriptors there are plenty. Called by all PEs before anything else. */
void fake_calm(size_t room);
/* What PEs tell each other aside is zeroed by the first of a run that comes here; once a run. */
void fake_clear(void *board, size_t bytes);
/* Sleep until this virtual time of the run. */
void fake_sleep_until(uint64_t ns);

wefti_tree_site fake_site(void);
wefti_tree_contact fake_contact(const char *name);
wefti_tree_hello fake_hello(int pe, int pes);
/* Open a tree as PE `pe` of `pes`, in a world of this name; NULL: the usual one. */
weft_status fake_open(wefti_tree *tree, wefti_tree_site *site, int pe, int pes, uint64_t deadline_ns, const char *name);

/* Connect to PE `pe` at a contact and say hello until it has answered. */
void fake_call(wefti_tree_site *site, wefti_tree_hello *hello, int pe, const wefti_tree_contact *contact,
               wefti_link *link);
/* Begin likewise, and go on until the caller's stage; `at_ns`: the hello is not said before. */
void fake_call_until(wefti_caller *caller, wefti_caller_stage stage, uint64_t at_ns);
/* Listen at a name; at the far port. */
wefti_tree_listeners fake_listen(const char *name);
wefti_tree_listeners fake_listen_far(void);
/* Take the next that proves itself to PE `pe`; returns 0 when nobody does for so long. */
int fake_accept(wefti_tree_site *site, const wefti_tree_listeners *listeners, int pe, uint64_t wait_ns,
                wefti_link *link, wefti_tree_hello *said);

/* What comes next, WEFTI_LINK_IDLE when nothing does for so long. */
wefti_link_event fake_await(wefti_link *link, uint64_t wait_ns);
/* The next frame must be of this type. */
void fake_await_frame(wefti_link *link, wefti_frame_type type);
/* The same behind at most so many questions. */
void fake_await_behind_questions(wefti_link *link, wefti_frame_type type, int most);
/* Send a frame, all of it. */
void fake_send(wefti_link *link, wefti_frame_type type, uint32_t sequence, const void *body, size_t bytes);
/* A child's part in an exchange to which all contribute nothing; or a parent's. */
void fake_exchange_as_child(wefti_link *parent, uint32_t sequence);
void fake_exchange_as_parent(wefti_link *child, uint32_t sequence);
/* As PE 0 and as PE `pe` + 1: welcome PE `pe`, a child of PE 0, and come to it as a child of its; their forming. */
void fake_join_with_child(wefti_tree_site *site, int pe, int pes, wefti_link *star, wefti_link *child);
void fake_exchange_between(wefti_link *parent, wefti_link *child);
/* Come to PE 0 as a child of it, and take one's place. */
void fake_join(wefti_tree_site *site, int pe, int pes, wefti_link *link);

#endif
