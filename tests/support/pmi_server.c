/* A launcher's PMI, for tests. One thread serves all connections; what it does not understand it answers by closing
 * the connection, as launchers do. */
#include "support/pmi_server.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 4096
#define MESSAGE_BYTES 2048

typedef struct pair {
    char *key;
    char *value;
    int is_name;
} pair;

typedef struct client {
    int own; /* the server's end */
    int theirs;
    int version; /* 2: after a fullinit is to come */
    int waits; /* in the barrier */
    size_t used;
    char in[MESSAGE_BYTES];
} client;

struct pmi_server {
    pthread_t thread;
    int stop[2];
    int processes;
    unsigned manners;
    int left; /* took leave */
    int waiting;
    size_t count;
    pair pairs[PAIRS_MAX];
    client clients[PES_MAX];
};

static int find_field(const char *message, char mark, const char *key, char *value, size_t bytes)
{
    const size_t length = strlen(key);
    for (const char *at = message; at != NULL; at = strchr(at, mark)) {
        at += *at == mark;
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            const size_t has = strcspn(at + length + 1, mark == ' ' ? " \n" : ";");
            (void)snprintf(value, bytes, "%.*s", (int)has, at + length + 1);
            return 1;
        }
    }
    return 0;
}

static void answer(client *c, const char *text)
{
    char prefix[8] = "";
    if (c->version == 2) {
        (void)snprintf(prefix, sizeof prefix, "%6u", (unsigned)strlen(text) % 1000000);
    }
    (void)!send(c->own, prefix, strlen(prefix), MSG_NOSIGNAL);
    (void)!send(c->own, text, strlen(text), MSG_NOSIGNAL);
}

static pair *find_pair(pmi_server *s, const char *key, int is_name)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->pairs[i].key != NULL && s->pairs[i].is_name == is_name && strcmp(s->pairs[i].key, key) == 0) {
            return &s->pairs[i];
        }
    }
    return NULL;
}

static int add_pair(pmi_server *s, const char *key, const char *value, int is_name)
{
    if (find_pair(s, key, is_name) != NULL) {
        return (s->manners & PMI_REFUSES_TWICE) == 0;
    }
    if (s->count == PAIRS_MAX) {
        return 0;
    }
    s->pairs[s->count++] = (pair){strdup(key), strdup(value), is_name};
    return 1;
}

static int remove_pair(pmi_server *s, const char *key)
{
    pair *found = find_pair(s, key, 1);
    if (found == NULL) {
        return 0;
    }
    free(found->key);
    free(found->value);
    *found = s->pairs[--s->count];
    return 1;
}

static void enter_barrier(pmi_server *s, client *c)
{
    c->waits = 1;
    if (++s->waiting < s->processes) {
        return;
    }
    s->waiting = 0;
    for (int i = 0; i < s->processes; i++) {
        s->clients[i].waits = 0;
        answer(&s->clients[i], s->clients[i].version == 2 ? "cmd=kvs-fence-response;rc=0;" : "cmd=barrier_out\n");
    }
}

static void end_client(client *c)
{
    (void)close(c->own);
    c->own = -1;
}

static int takes_names(const pmi_server *s)
{
    return (s->manners & PMI_NO_NAMES) == 0;
}

static void serve_first(pmi_server *s, client *c, const char *message)
{
    char cmd[64] = "";
    char key[512] = "";
    char value[1100] = "";
    char out[MESSAGE_BYTES];
    (void)find_field(message, ' ', "cmd", cmd, sizeof cmd);
    (void)(find_field(message, ' ', "key", key, sizeof key) || find_field(message, ' ', "service", key, sizeof key));
    (void)(find_field(message, ' ', "value", value, sizeof value) ||
           find_field(message, ' ', "port", value, sizeof value));
    if (strcmp(cmd, "init") == 0) {
        char version[8] = "";
        (void)find_field(message, ' ', "pmi_version", version, sizeof version);
        (void)snprintf(out, sizeof out, "cmd=response_to_init pmi_version=%s pmi_subversion=0 rc=0\n", version);
        answer(c, out);
        c->version = atoi(version);
    } else if (strcmp(cmd, "get_my_kvsname") == 0) {
        answer(c, "cmd=my_kvsname kvsname=kvs_of_test\n");
    } else if (strcmp(cmd, "barrier_in") == 0) {
        enter_barrier(s, c);
    } else if (strcmp(cmd, "put") == 0) {
        answer(c, add_pair(s, key, value, 0) ? "cmd=put_result rc=0 msg=success\n" : "cmd=put_result rc=-1 msg=no\n");
    } else if (strcmp(cmd, "get") == 0) {
        const pair *found = find_pair(s, key, 0);
        (void)snprintf(out, sizeof out,
                       found == NULL ? "cmd=get_result rc=-1 msg=none\n" : "cmd=get_result rc=0 value=%s\n",
                       found == NULL ? "" : found->value);
        answer(c, out);
    } else if (strcmp(cmd, "publish_name") == 0) {
        answer(c, takes_names(s) && add_pair(s, key, value, 1) ? "cmd=publish_result info=ok\n"
                                                               : "cmd=publish_result info=not_implemented_yet\n");
    } else if (strcmp(cmd, "unpublish_name") == 0) {
        answer(c, remove_pair(s, key) ? "cmd=unpublish_result info=ok\n" : "cmd=unpublish_result info=fail\n");
    } else if (strcmp(cmd, "lookup_name") == 0) {
        const pair *found = find_pair(s, key, 1);
        (void)snprintf(out, sizeof out,
                       found == NULL ? "cmd=lookup_result info=fail\n" : "cmd=lookup_result info=ok port=%s\n",
                       found == NULL ? "" : found->value);
        answer(c, out);
    } else if (strcmp(cmd, "finalize") == 0) {
        answer(c, "cmd=finalize_ack\n");
        s->left++;
    } else {
        end_client(c);
    }
}

static void serve_second(pmi_server *s, client *c, const char *message)
{
    char cmd[64] = "";
    char key[512] = "";
    char value[1100] = "";
    char out[MESSAGE_BYTES];
    (void)find_field(message, ';', "cmd", cmd, sizeof cmd);
    (void)(find_field(message, ';', "key", key, sizeof key) || find_field(message, ';', "name", key, sizeof key));
    (void)(find_field(message, ';', "value", value, sizeof value) ||
           find_field(message, ';', "port", value, sizeof value));
    if (strcmp(cmd, "fullinit") == 0) {
        (void)snprintf(out, sizeof out, "cmd=fullinit-response;pmi-version=2;rank=%d;size=%d;appnum=0;rc=0;",
                       (int)(c - s->clients), s->processes);
        answer(c, out);
    } else if (strcmp(cmd, "job-getid") == 0) {
        answer(c, "cmd=job-getid-response;jobid=job_of_test;rc=0;");
    } else if (strcmp(cmd, "kvs-fence") == 0) {
        enter_barrier(s, c);
    } else if (strcmp(cmd, "kvs-put") == 0) {
        answer(c, add_pair(s, key, value, 0) ? "cmd=kvs-put-response;rc=0;" : "cmd=kvs-put-response;rc=1;");
    } else if (strcmp(cmd, "kvs-get") == 0) {
        const pair *found = find_pair(s, key, 0);
        (void)snprintf(out, sizeof out, "cmd=kvs-get-response;found=%s;value=%s;rc=%d;",
                       found == NULL ? "FALSE" : "TRUE", found == NULL ? "" : found->value, found == NULL);
        answer(c, out);
    } else if (strcmp(cmd, "name-publish") == 0) {
        answer(c, takes_names(s) && add_pair(s, key, value, 1) ? "cmd=name-publish-response;rc=0;"
                                                               : "cmd=name-publish-response;rc=1;errmsg=no;");
    } else if (strcmp(cmd, "name-unpublish") == 0) {
        answer(c, remove_pair(s, key) ? "cmd=name-unpublish-response;rc=0;" : "cmd=name-unpublish-response;rc=1;");
    } else if (strcmp(cmd, "name-lookup") == 0) {
        const pair *found = find_pair(s, key, 1);
        (void)snprintf(out, sizeof out,
                       found == NULL ? "cmd=name-lookup-response;found=FALSE;rc=1;"
                                     : "cmd=name-lookup-response;value=%s;found=TRUE;rc=0;",
                       found == NULL ? "" : found->value);
        answer(c, out);
    } else if (strcmp(cmd, "finalize") == 0) {
        answer(c, "cmd=finalize-response;rc=0;");
        s->left++;
    } else {
        end_client(c);
    }
}

/* The first whole message of what came; returns its bytes, 0: none yet. */
static size_t cut(client *c, char *message)
{
    if (c->version != 2) {
        const char *end = memchr(c->in, '\n', c->used);
        const size_t bytes = end == NULL ? 0 : (size_t)(end - c->in) + 1;
        memcpy(message, c->in, bytes);
        message[bytes] = '\0';
        return bytes;
    }
    char prefix[7] = "";
    memcpy(prefix, c->in, c->used < 6 ? c->used : 6);
    const size_t bytes = (size_t)atoi(prefix);
    if (c->used < 6 || c->used < 6 + bytes) {
        return 0;
    }
    memcpy(message, c->in + 6, bytes);
    message[bytes] = '\0';
    return bytes + 6;
}

static void serve(pmi_server *s, client *c)
{
    char message[MESSAGE_BYTES + 1];
    const ssize_t got = recv(c->own, c->in + c->used, sizeof c->in - c->used, 0);
    if (got <= 0) {
        end_client(c);
        return;
    }
    c->used += (size_t)got;
    for (size_t bytes; c->own >= 0 && (bytes = cut(c, message)) > 0;) {
        c->used -= bytes;
        memmove(c->in, c->in + bytes, c->used);
        (c->version == 2 ? serve_second : serve_first)(s, c, message);
    }
}

static void *serve_all(void *argument)
{
    pmi_server *s = argument;
    struct pollfd items[PES_MAX + 1];
    for (;;) {
        items[0] = (struct pollfd){.fd = s->stop[0], .events = POLLIN};
        for (int i = 0; i < s->processes; i++) {
            items[i + 1] = (struct pollfd){.fd = s->clients[i].own, .events = POLLIN};
        }
        (void)poll(items, (nfds_t)s->processes + 1, -1);
        if (items[0].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < s->processes; i++) {
            if (items[i + 1].revents != 0) {
                serve(s, &s->clients[i]);
            }
        }
    }
}

pmi_server *pmi_server_start(int processes, unsigned manners)
{
    pmi_server *s = calloc(1, sizeof *s);
    s->processes = processes;
    s->manners = manners;
    (void)!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->stop);
    for (int i = 0; i < processes; i++) {
        int ends[2];
        (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        s->clients[i].own = ends[0];
        s->clients[i].theirs = ends[1];
    }
    (void)pthread_create(&s->thread, NULL, serve_all, s);
    return s;
}

int pmi_server_socket(const pmi_server *s, int rank)
{
    return s->clients[rank].theirs;
}

int pmi_server_stop(pmi_server *s)
{
    (void)!write(s->stop[1], "x", 1);
    (void)pthread_join(s->thread, NULL);
    for (int i = 0; i < s->processes; i++) {
        if (s->clients[i].own >= 0) {
            (void)close(s->clients[i].own);
        }
    }
    while (s->count > 0) {
        s->count--;
        free(s->pairs[s->count].key);
        free(s->pairs[s->count].value);
    }
    (void)close(s->stop[0]);
    (void)close(s->stop[1]);
    const int left = s->left;
    free(s);
    return left;
}
