/* base/status.c: the version; names and meanings of statuses, from the one table. */
#include "weft/status.h"

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

int weft_version(void)
{
    return WEFT_VERSION;
}

const char *weft_version_text(void)
{
    return DOTTED(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
}

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
