/* testing/fake_driver/fabric.h: multi-node NVLink of a machine without: what the GPUs of this process's host say of
 * their fabric. WEFT_FAKE_FABRIC, for the host named by WEFT_NODE_ID, or else by its network namespace:
 *
 *     WORD[;HOST:WORD]...
 *
 * A word is the number of a clique, or what does not count: none, not-started, in-progress, failed, no-uuid,
 * no-handles. Of the words the last that names the host is taken, else the first. Unset: none. */
#ifndef WEFT_FAKE_FABRIC_H
#define WEFT_FAKE_FABRIC_H

#define FAKE_HOST_BYTES 32

typedef struct fake_fabric {
    unsigned char cluster[16];
    unsigned clique;
    int state; /* as NVML's */
    int status;
    int has_handles;
} fake_fabric;

void fake_host_name(char name[FAKE_HOST_BYTES]);
void fake_fabric_read(fake_fabric *fabric);

/* The UUID of the host's GPU of that number, and as CUDA_VISIBLE_DEVICES has it. */
#define FAKE_UUID_TEXT_BYTES 48
void fake_uuid(int gpu, unsigned char uuid[16]);
void fake_uuid_text(int gpu, char text[FAKE_UUID_TEXT_BYTES]);

#endif
