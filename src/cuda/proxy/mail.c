/* cuda/proxy/mail.c: requests as messages to another PE's proxy, and its answers. A message's way: it is made, which
 * gives it a place, and of a long put begins to copy a chunk; sent, once that is there; received is its answer, and of
 * a long get its chunk begins to be copied to where it was asked for; over it is once that has come. Each in order. */
#include <string.h>

#include "cuda/proxy/far.h"

/* ---- staging memory ---- */

/* Where PE `writer` writes its mail, on any PE, as an offset of its slot of the host window. */
static uint64_t mail_offset(const wefti_cuda_far *far, uint32_t writer, size_t offset)
{
    const unsigned char *mail = (const unsigned char *)&far->mail[writer];
    return (uint64_t)((uintptr_t)mail + offset - (uintptr_t)far->cuda->world->control);
}

unsigned char *wefti_far_chunk(const wefti_cuda_far *far, uint32_t writer, int kind, uint64_t place)
{
    const uint64_t number =
        ((uint64_t)writer * WEFTI_FAR_CHUNK_KINDS + (uint64_t)kind) * WEFTI_FAR_LETTERS + place % WEFTI_FAR_LETTERS;
    return far->staging + number * far->chunk_bytes;
}

int wefti_far_borrow(wefti_cuda_far *far, int kind)
{
    for (int loan = 0; loan < WEFTI_FAR_LETTERS; loan++) {
        if ((far->loans[kind] & 1u << loan) == 0) {
            far->loans[kind] |= 1u << loan;
            return loan;
        }
    }
    return -1;
}

void wefti_far_give_back(wefti_cuda_far *far, int kind, int loan)
{
    far->loans[kind] &= loan < 0 ? ~0u : ~(1u << loan);
}

unsigned char *wefti_far_way_out(const wefti_cuda_far *far, const wefti_far_lane *lane, int kind, uint64_t place,
                                 int loan)
{
    const weft_world *world = far->cuda->world;
    const uint32_t me = world->view.pe;
    return loan < 0 ? wefti_peer_address(world, wefti_far_chunk(far, me, kind, place), lane->pe)
                    : wefti_far_chunk(far, me, kind, (uint64_t)loan);
}

weft_status wefti_far_post_to(wefti_cuda_far *far, const wefti_far_lane *lane, const wefti_far_post *post)
{
    const wefti_transport_ops *ops = lane->transport->ops;
    const uint32_t me = far->cuda->world->view.pe;
    const uint64_t body = mail_offset(far, me, post->offset);
    const uint64_t number = mail_offset(far, me, post->number_offset);
    if (post->loan < 0) {
        return ops->put_signal(lane->transport, lane->pe, body, post->body, post->bytes, number, post->number,
                               WEFT_SIGNAL_SET);
    }
    const unsigned char *there = wefti_far_chunk(far, me, post->kind, post->number - 1);
    const uint64_t chunk = (uint64_t)((uintptr_t)there - (uintptr_t)far->cuda->world->control);
    WEFT_TRY(ops->put(lane->transport, lane->pe, chunk, wefti_far_chunk(far, me, post->kind, (uint64_t)post->loan),
                      post->chunk_bytes));
    WEFT_TRY(ops->put(lane->transport, lane->pe, body, post->body, post->bytes));
    return ops->put_signal(lane->transport, lane->pe, 0, NULL, 0, number, post->number, WEFT_SIGNAL_SET);
}

/* ---- what becomes of a request ---- */

static const wefti_dev_request *request_of(const wefti_far_task *task)
{
    return &wefti_far_ring_entry(task->ring, task->ticket)->request;
}

/* Give the caller the answer, or a failure to everybody. */
static void answer(wefti_cuda_far *far, const wefti_far_lane *lane, wefti_far_task *task,
                   const wefti_far_answer *theirs)
{
    wefti_far_answer *made = far->answer;
    const wefti_dev_request *request = request_of(task);
    if (!task->has_answer) {
        const int is_theirs = theirs != NULL && task->status == WEFT_OK;
        made->status = (int32_t)task->status;
        made->old = 0;
        wefti_far_ring_answer(task->ring, task->ticket, is_theirs ? theirs : made,
                              is_theirs && request->kind == WEFTI_DEV_REQUEST_GET ? request->bytes : 0);
        task->has_answer = 1;
        task->status = WEFT_OK; /* the caller knows */
    } else if (task->status != WEFT_OK && !task->is_left) {
        wefti_far_latch(far, task->status, lane->pe);
        task->status = WEFT_OK;
    }
}

/* After each step of one of its messages. */
static void follow(wefti_cuda_far *far, const wefti_far_lane *lane, wefti_far_task *task,
                   const wefti_far_answer *theirs)
{
    const int is_read = request_of(task)->answer == WEFTI_DEV_ANSWER_READ && task->unread == 0;
    if (task->is_whole && (task->pieces == 0 || is_read)) {
        answer(far, lane, task, theirs);
    }
    if (task->is_whole && task->pieces == 0) {
        wefti_far_ring_finish(task->ring, task->ticket);
    }
}

static void note(wefti_far_task *task, weft_status status)
{
    task->status = task->status == WEFT_OK ? status : task->status;
}

/* No more messages are made of it. */
static void cut_off(wefti_cuda_far *far, const wefti_far_lane *lane, wefti_far_task *task, weft_status status)
{
    note(task, status);
    task->is_whole = 1;
    follow(far, lane, task, NULL);
}

static void has_read(wefti_cuda_far *far, wefti_far_asked *asked)
{
    wefti_far_give_back(far, WEFTI_FAR_OF_MESSAGE, asked->loan);
    asked->loan = -1;
    asked->task->unread -= asked->is_unread;
    asked->is_unread = 0;
}

/* ---- making messages ---- */

static wefti_far_asked *next_place(wefti_far_lane *lane, wefti_far_task *task)
{
    wefti_far_asked *asked = &lane->asked[lane->made % WEFTI_FAR_LETTERS];
    *asked = (wefti_far_asked){.task = task, .loan = -1};
    task->pieces++;
    lane->made++;
    return asked;
}

static int has_place(const wefti_far_lane *lane)
{
    return lane->made - lane->over < WEFTI_FAR_LETTERS;
}

/* Between the memory that a long request names and a chunk: begin to copy. */
static void move_chunk(wefti_cuda_far *far, wefti_far_asked *asked, unsigned char *chunk)
{
    const wefti_dev_request *request = request_of(asked->task);
    unsigned char *local = (unsigned char *)(uintptr_t)(request->value + asked->at);
    unsigned char *to = asked->is_put ? chunk : local;
    const unsigned char *from = asked->is_put ? local : chunk;
    if (request->op == WEFTI_FAR_PLAIN_MEMORY) {
        wefti_copy(to, from, asked->bytes);
        return;
    }
    asked->status = wefti_cuda_enqueue_copy(far->cuda, to, from, asked->bytes, far->asking.stream);
    asked->mark = wefti_far_mark(far, &far->asking);
    asked->task->mark = asked->mark;
}

/* The next chunk of a long request. 0: not yet. */
static int make_piece(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_task *task)
{
    const wefti_dev_request *request = request_of(task);
    const int is_put = request->kind == WEFTI_DEV_REQUEST_LONG_PUT;
    const uint64_t left = request->bytes - task->cut;
    int loan = -1;
    if (!has_place(lane) || !wefti_far_can_mark(&far->asking)) {
        return 0;
    }
    if (is_put && !lane->is_mapped) {
        loan = wefti_far_borrow(far, WEFTI_FAR_OF_MESSAGE);
        if (loan < 0) {
            return 0;
        }
    }
    const uint64_t place = lane->made;
    wefti_far_asked *asked = next_place(lane, task);
    asked->at = task->cut;
    asked->bytes = left < far->chunk_bytes ? left : far->chunk_bytes;
    asked->loan = loan;
    asked->is_put = is_put;
    asked->is_unread = is_put;
    task->unread += is_put;
    task->cut += asked->bytes;
    if (is_put) {
        move_chunk(far, asked, wefti_far_way_out(far, lane, WEFTI_FAR_OF_MESSAGE, place, loan));
    }
    return 1;
}

/* A failure, or nobody waits for it any more. */
static int is_over(const wefti_far_task *task)
{
    return task->status != WEFT_OK || task->is_left || wefti_far_ring_is_left(task->ring, task->ticket);
}

int wefti_far_make(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_task *task)
{
    const wefti_dev_request *request = request_of(task);
    if (lane->gone != WEFT_OK) {
        cut_off(far, lane, task, lane->gone);
        return 1;
    }
    if (!wefti_far_is_long(request)) {
        if (!has_place(lane)) {
            return 0;
        }
        (void)next_place(lane, task);
        task->is_whole = 1;
        return 1;
    }
    while (task->cut < request->bytes && !is_over(task) && make_piece(far, lane, task)) {
    }
    if (task->cut < request->bytes && !is_over(task)) {
        return 0;
    }
    cut_off(far, lane, task, task->cut < request->bytes && task->status == WEFT_OK ? WEFT_ERR_TIMEOUT : task->status);
    return 1;
}

/* ---- sending them ---- */

/* The message of this place, of which only the head is taken from the request if it is long. */
static weft_status send_one(wefti_cuda_far *far, wefti_far_lane *lane, wefti_far_asked *asked)
{
    const wefti_dev_request *request = request_of(asked->task);
    const size_t place = lane->sent % WEFTI_FAR_LETTERS;
    const size_t head_bytes = offsetof(wefti_dev_request, data);
    unsigned char head[offsetof(wefti_dev_request, data)];
    wefti_far_post post = {
        .offset = offsetof(wefti_far_mail, messages[place].request),
        .body = request,
        .bytes = head_bytes + (request->kind == WEFTI_DEV_REQUEST_PUT ? request->bytes : 0),
        .number_offset = offsetof(wefti_far_mail, messages[place].number),
        .number = lane->sent + 1,
        .kind = WEFTI_FAR_OF_MESSAGE,
        .chunk_bytes = asked->bytes,
        .loan = asked->loan,
    };
    if (asked->bytes != 0) {
        const int32_t kind = asked->status == WEFT_OK ? request->kind : WEFTI_FAR_REQUEST_NOTHING;
        const uint64_t at = request->place + asked->at;
        memcpy(head, request, head_bytes);
        memcpy(head + offsetof(wefti_dev_request, kind), &kind, sizeof kind);
        memcpy(head + offsetof(wefti_dev_request, place), &at, sizeof at);
        memcpy(head + offsetof(wefti_dev_request, bytes), &asked->bytes, sizeof asked->bytes);
        post.body = head;
        post.bytes = head_bytes;
    }
    return wefti_far_post_to(far, lane, &post);
}

int wefti_far_send(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t before = lane->sent;
    while (lane->gone == WEFT_OK && lane->sent < lane->made) {
        wefti_far_asked *asked = &lane->asked[lane->sent % WEFTI_FAR_LETTERS];
        wefti_far_task *task = asked->task;
        if (!wefti_far_has_passed(far, &far->asking, asked->mark)) {
            break;
        }
        asked->status = asked->status == WEFT_OK && asked->is_put ? far->asking.status : asked->status;
        note(task, asked->status);
        lane->gone = send_one(far, lane, asked);
        if (lane->gone == WEFT_OK) {
            if (lane->sent == lane->received) {
                lane->asked_ns = wefti_os_now_ns();
            }
            lane->sent++;
            has_read(far, asked);
            follow(far, lane, task, NULL);
        }
    }
    return lane->sent != before;
}

/* ---- answers ---- */

/* A PE that has ended or left answers nothing any more. */
static void look_whether_gone(const wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t now = wefti_os_now_ns();
    const weft_world *world = far->cuda->world;
    if (lane->sent == lane->received || now - lane->asked_ns < WEFTI_FAR_LOOK_NS) {
        return;
    }
    lane->asked_ns = now;
    if (wefti_world_is_lost(world, lane->pe) || wefti_world_has_left(world, lane->pe)) {
        lane->gone = WEFT_ERR_PEER;
    }
}

/* One whose answer, if any, is here and whose copies are complete. */
static void end_one(wefti_cuda_far *far, wefti_far_lane *lane, weft_status status, const wefti_far_answer *theirs)
{
    wefti_far_asked *asked = &lane->asked[lane->over++ % WEFTI_FAR_LETTERS];
    has_read(far, asked);
    note(asked->task, status);
    asked->task->pieces--;
    follow(far, lane, asked->task, theirs);
}

/* Those of a PE that is gone. */
static int end_all(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t before = lane->over;
    while (lane->over < lane->made) {
        const wefti_far_asked *asked = &lane->asked[lane->over % WEFTI_FAR_LETTERS];
        if (!wefti_far_has_passed(far, &far->asking, asked->mark)) {
            break;
        }
        end_one(far, lane, lane->gone, NULL);
    }
    return lane->over != before;
}

/* The answer to the first message that has none; 0: not yet. */
static int take_answer(wefti_cuda_far *far, wefti_far_lane *lane)
{
    wefti_far_asked *asked = &lane->asked[lane->received % WEFTI_FAR_LETTERS];
    wefti_far_task *task = asked->task;
    const wefti_far_answer *theirs = &far->mail[lane->pe].answers[lane->received % WEFTI_FAR_LETTERS];
    if (wefti_ld64(&theirs->number, WEFTI_ACQUIRE) != lane->received + 1) {
        return 0;
    }
    if (asked->bytes != 0 && !asked->is_put && theirs->status == WEFT_OK && task->status == WEFT_OK) {
        if (!wefti_far_can_mark(&far->asking)) {
            return 0;
        }
        if (task->is_left || wefti_far_ring_is_left(task->ring, task->ticket)) {
            asked->status = WEFT_ERR_TIMEOUT; /* where it was to go may be used for something else */
        } else {
            move_chunk(far, asked, wefti_far_chunk(far, (uint32_t)lane->pe, WEFTI_FAR_OF_ANSWER, lane->received));
        }
    }
    lane->received++;
    lane->asked_ns = wefti_os_now_ns();
    return 1;
}

/* A caller that waits no longer is told so once no copy uses its memory, and none will. */
static void let_go_of(wefti_cuda_far *far, const wefti_far_lane *lane, wefti_far_task *task)
{
    if (wefti_far_is_long(request_of(task)) && !task->has_answer && wefti_far_ring_is_left(task->ring, task->ticket) &&
        wefti_far_has_passed(far, &far->asking, task->mark)) {
        task->is_left = 1;
        note(task, WEFT_ERR_TIMEOUT);
        answer(far, lane, task, NULL);
    }
}

static void let_go(wefti_cuda_far *far, const wefti_far_lane *lane)
{
    for (uint64_t i = lane->over; i < lane->made; i++) {
        let_go_of(far, lane, lane->asked[i % WEFTI_FAR_LETTERS].task);
    }
    for (wefti_far_task *task = lane->first; task != NULL; task = task->next) {
        let_go_of(far, lane, task);
    }
}

int wefti_far_collect(wefti_cuda_far *far, wefti_far_lane *lane)
{
    const uint64_t received = lane->received;
    const uint64_t over = lane->over;
    if (lane->gone != WEFT_OK) {
        return end_all(far, lane);
    }
    while (lane->received < lane->sent && take_answer(far, lane)) {
    }
    while (lane->over < lane->received) {
        const wefti_far_asked *asked = &lane->asked[lane->over % WEFTI_FAR_LETTERS];
        const wefti_far_answer *theirs = &far->mail[lane->pe].answers[lane->over % WEFTI_FAR_LETTERS];
        if (!wefti_far_has_passed(far, &far->asking, asked->mark)) {
            break;
        }
        weft_status status = asked->status == WEFT_OK ? (weft_status)theirs->status : asked->status;
        status = status == WEFT_OK && asked->mark != 0 ? far->asking.status : status;
        end_one(far, lane, status, theirs);
    }
    let_go(far, lane);
    look_whether_gone(far, lane);
    return lane->received != received || lane->over != over;
}
