/* ep_enums.h: where NCCL EP's enumerations lay before they had a folder. */
#include "nccl_ep/ep_enums.h"
