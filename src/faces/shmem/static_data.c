/* faces/shmem/static_data.c: see static_data.h. No variable is symmetric yet: the range is empty. */
#include "faces/shmem/static_data.h"

wefti_static_data wefti_static;

weft_status wefti_static_map(weft_world *world)
{
    (void)world;
    return WEFT_OK;
}

weft_status wefti_static_unmap(weft_world *world)
{
    (void)world;
    return WEFT_OK;
}
