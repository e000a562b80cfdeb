/* base/status.c: names and meanings of statuses, from the one table. */
#include "weft/status.h"

const char *weft_status_name(weft_status status)
{
    switch (status) {
#define WEFTI_STATUS_NAME(name, value, text)                                                                           \
    case name:                                                                                                         \
        return #name;
        WEFT_STATUS_TABLE(WEFTI_STATUS_NAME)
#undef WEFTI_STATUS_NAME
    }
    return "WEFT_ERR_(unknown)";
}

const char *weft_status_text(weft_status status)
{
    switch (status) {
#define WEFTI_STATUS_TEXT(name, value, text)                                                                           \
    case name:                                                                                                         \
        return text;
        WEFT_STATUS_TABLE(WEFTI_STATUS_TEXT)
#undef WEFTI_STATUS_TEXT
    }
    return "a value that is no weft_status";
}
