/* coll/scan/scan.h: the algorithms of inscan and exscan. */
#ifndef WEFTI_COLL_SCAN_SCAN_H
#define WEFTI_COLL_SCAN_SCAN_H

#include "coll/reduce/reduce.h"

weft_status wefti_scan_push(wefti_step *step, const wefti_reduction *r, int inclusive);
weft_status wefti_scan_slices(wefti_step *step, const wefti_reduction *r, int inclusive);

#endif
