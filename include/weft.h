/* weft.h: symmetric memory for CPUs. Includes every public header but weft_ep.h and weft/transport.h. */
#ifndef WEFT_H
#define WEFT_H

#include "weft/amo_nbi.h"
#include "weft/bootstrap.h"
#include "weft/coll.h"
#include "weft/ctx.h"
#include "weft/device.h"
#include "weft/heap.h"
#include "weft/lock.h"
#include "weft/region.h"
#include "weft/rma.h"
#include "weft/slab.h"
#include "weft/status.h"
#include "weft/stream.h"
#include "weft/strided.h"
#include "weft/team.h"
#include "weft/types.h"
#include "weft/wait.h"
#include "weft/world.h"

#endif
