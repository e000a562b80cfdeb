/* base/pe_list.h: sets of PEs as a person reads them. */
#ifndef WEFTI_BASE_PE_LIST_H
#define WEFTI_BASE_PE_LIST_H

#include <stddef.h>

/* Room for any list: at most 16 runs are written out. */
#define WEFTI_PE_LIST_BYTES 400

/* Write all PEs whose mark is `mark` as "PE 3" or "PEs 3, 5-7, 12", after 16 runs "and 40 more"; "no PE" if there is
 * none. Returns how many there are. */
int wefti_pe_list_text(const unsigned char *marks, int pes, unsigned char mark, char text[WEFTI_PE_LIST_BYTES]);

#endif
