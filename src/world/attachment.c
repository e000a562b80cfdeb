#include "common/attachment.h"

#include "base/alloc.h"
#include "world/world.h"

void wefti_world_attach(weft_world *world, wefti_attachment *attachment)
{
    wefti_os_monitor_enter(world->heap_lock);
    attachment->next = world->attachments;
    attachment->link = &world->attachments;
    if (attachment->next != NULL) {
        attachment->next->link = &attachment->next;
    }
    world->attachments = attachment;
    wefti_os_monitor_leave(world->heap_lock);
}

void wefti_world_free_late(weft_world *world, void *object)
{
    wefti_os_monitor_enter(world->heap_lock);
    void **place = &world->late_frees[world->late_free_count++ % WEFTI_LATE_FREES];
    void *oldest = *place;
    *place = object;
    wefti_os_monitor_leave(world->heap_lock);
    wefti_free(oldest);
}

void wefti_world_detach(weft_world *world, wefti_attachment *attachment)
{
    wefti_os_monitor_enter(world->heap_lock);
    if (attachment->link != NULL) {
        *attachment->link = attachment->next;
        if (attachment->next != NULL) {
            attachment->next->link = attachment->link;
        }
        attachment->link = NULL;
    }
    wefti_os_monitor_leave(world->heap_lock);
}
