/* testing/sim/record.c: records of several PEs of one process, for os/os.h: a list. What PEs that died were in stays
 * until the end of the run. */
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "testing/sim/sim.h"

struct wefti_record {
    wefti_record *next;
    uint64_t number;
    uint32_t inside; /* PEs */
    int is_open; /* its ticket is */
    _Alignas(64) unsigned char bytes[WEFTI_OS_RECORD_BYTES_MAX];
};

static wefti_record *record_of(void *bytes)
{
    return (wefti_record *)(void *)((unsigned char *)bytes - offsetof(wefti_record, bytes));
}

static wefti_record *find(const wefti_os_ticket *ticket)
{
    wefti_record *record = wefti_sim_current->records;
    while (record != NULL && record->number != ticket->file) {
        record = record->next;
    }
    return record;
}

weft_status wefti_os_record_create(size_t bytes, wefti_os_ticket *ticket, void **out)
{
    wefti_sim *sim = wefti_sim_current;
    wefti_record *record = NULL;
    if (sim != NULL && bytes <= WEFTI_OS_RECORD_BYTES_MAX && !wefti_fault("memfd_create", 24)) {
        record = aligned_alloc(64, sizeof *record);
    }
    if (record == NULL) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot make a simulated record of %zu bytes", bytes);
    }
    *record = (wefti_record){.next = sim->records, .number = ++sim->last_record, .inside = 1, .is_open = 1};
    sim->records = record;
    *ticket = (wefti_os_ticket){.file = record->number, .descriptor = 0};
    *out = record->bytes;
    return WEFT_OK;
}

void wefti_os_ticket_close(wefti_os_ticket *ticket)
{
    wefti_record *record = ticket->descriptor < 0 || wefti_sim_current == NULL ? NULL : find(ticket);
    if (record != NULL) {
        record->is_open = 0;
    }
    ticket->descriptor = -1;
}

weft_status wefti_os_record_join(const wefti_os_ticket *ticket, void **out)
{
    wefti_sim_step(wefti_sim_current);
    if (wefti_fault("fcntl", 24)) {
        return wefti_error(WEFT_ERR_SYSTEM, "cannot join a simulated record");
    }
    wefti_record *record = find(ticket);
    if (record == NULL || !record->is_open || record->inside == 0) {
        return WEFT_ERR_PEER;
    }
    record->inside++;
    *out = record->bytes;
    return WEFT_OK;
}

int wefti_os_record_leave(void *bytes)
{
    return --record_of(bytes)->inside == 0;
}

static void forget(wefti_sim *sim, wefti_record *record)
{
    wefti_record **at = &sim->records;
    while (*at != record) {
        at = &(*at)->next;
    }
    *at = record->next;
    free(record);
}

void wefti_os_record_free(void *bytes)
{
    forget(wefti_sim_current, record_of(bytes));
}

void wefti_sim_records_fini(wefti_sim *sim)
{
    while (sim->records != NULL) {
        forget(sim, sim->records);
    }
}
