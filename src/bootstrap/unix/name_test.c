/* Goal: PE 0 finds a name to listen at, and is found there, whoever holds others: its own listener's copies in forked
 * children, processes of other users, another PE 0; also where every name that can be known beforehand is held.
 * Method: children hold names in each of these ways; other users need root. Contacts are resolved over many rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "bootstrap/unix/site.h"
#include "os/os.h"
#include "os/socket.h"
#include "support/check.h"
#include "support/child.h"

#define OTHER_USER 65534

typedef unsigned char name_key[WEFTI_HASH_BYTES];

static void draw_key(name_key key)
{
    CHECK_OK(wefti_os_random(key, WEFTI_HASH_BYTES));
}

/* Whether somebody listens at name `number`, and which user. */
static int find(const name_key key, unsigned number, unsigned *user)
{
    wefti_tree_contact contact;
    wefti_tree_address address;
    wefti_unix_contact_set(&contact, WEFTI_UNIX_ONE, number, key, WEFTI_HASH_BYTES);
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, &address), 1);
    int caller = wefti_os_socket_open(AF_UNIX);
    int is_there =
        wefti_os_socket_connect(caller, (const struct sockaddr *)(void *)address.sockaddr, address.bytes) == 0;
    if (is_there) {
        (void)wefti_os_socket_is_own_user(caller, user);
    }
    wefti_os_socket_close(caller);
    return is_there;
}

static void test_second_is_told(void **state)
{
    (void)state;
    name_key key;
    int one;
    int other;
    unsigned number;
    unsigned user = 1;
    draw_key(key);
    CHECK_OK(wefti_unix_listen(key, 0, &one, &number));
    assert_int_equal(number, 0);
    assert_int_equal(wefti_unix_listen(key, 0, &other, &number), WEFT_ERR_STATE);
    assert_int_equal(number, 0);
    assert_true(find(key, 0, &user));
    assert_int_equal(user, wefti_os_user());
    wefti_os_socket_stop(one);
    CHECK_OK(wefti_unix_listen(key, 0, &one, &number));
    assert_int_equal(number, 0); /* nobody else has it */
    wefti_os_socket_stop(one);
}

/* Who holds the name of PE 0 and says nothing is passed over. */
static void test_silent_root_is_passed_over(void **state)
{
    (void)state;
    wefti_unix_root root = {.number = 0};
    wefti_tree_site site = {.silent = 0};
    wefti_tree_listeners listeners = {.count = 0};
    wefti_tree_contact occupied = {0};
    wefti_tree_contact first;
    int other;
    unsigned number;
    draw_key(root.key);
    CHECK_OK(wefti_unix_listen(root.key, 0, &other, &number));
    wefti_unix_contact_set(&first, WEFTI_UNIX_ONE, 0, root.key, sizeof root.key);
    assert_int_equal(wefti_unix_root_listen(&root, &site, &listeners, &occupied), WEFT_ERR_STATE);
    assert_int_equal(listeners.count, 0);
    assert_memory_equal(&occupied, &first, sizeof first);
    site.silent = 1;
    CHECK_OK(wefti_unix_root_listen(&root, &site, &listeners, &occupied));
    assert_int_equal(listeners.count, 1);
    assert_int_equal(root.number, 1);
    wefti_os_socket_stop(listeners.descriptors[0]);
    wefti_os_socket_stop(other);
}

/* A child that lives on with what it inherited. */
static void test_copies_in_children(void **state)
{
    (void)state;
    name_key key;
    int listener;
    unsigned number;
    pid_t children[3];
    draw_key(key);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_OK(wefti_unix_listen(key, 0, &listener, &number));
        assert_int_equal(number, i);
        children[i] = child_start();
        wefti_os_socket_stop(listener);
        assert_false(find(key, i, NULL)); /* though its child has the name still */
    }
    for (int i = 0; i < 3; i++) {
        child_end(children[i]);
    }
}

/* A process of another user that holds names from `first` on, listening at all of them. */
static pid_t fork_squatter(const name_key key, unsigned first, unsigned count)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        int listener;
        unsigned number;
        int failed = setresuid(OTHER_USER, OTHER_USER, OTHER_USER) != 0; /* forgets the signal of its parent's death */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned i = 0; i < count && !failed; i++) {
            failed = wefti_unix_listen(key, first + i, &listener, &number) != WEFT_OK;
        }
        byte = (char)!failed;
        (void)!write(ready[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

static void test_other_users(void **state)
{
    (void)state;
    name_key key;
    int listener;
    unsigned number;
    unsigned user;
    if (geteuid() != 0) {
        print_message("not root: no other users\n");
        skip();
    }
    draw_key(key);
    pid_t squatter = fork_squatter(key, 0, 5);
    CHECK_OK(wefti_unix_listen(key, 0, &listener, &number));
    assert_int_equal(number, 5);
    assert_true(find(key, 4, &user));
    assert_int_equal(user, OTHER_USER);
    wefti_os_socket_stop(listener);
    child_end(squatter);
}

/* Hold all numbered names, as anybody can: `backlog` -1: without listening, else without taking anybody in. */
static void hold_all(const name_key key, int backlog, int holders[WEFTI_UNIX_NAMES_MAX])
{
    for (unsigned i = 0; i < WEFTI_UNIX_NAMES_MAX; i++) {
        wefti_tree_contact contact;
        wefti_tree_address address;
        wefti_unix_contact_set(&contact, WEFTI_UNIX_ONE, i, key, WEFTI_HASH_BYTES);
        assert_int_equal(wefti_unix_contact_resolve(&contact, 0, &address), 1);
        holders[i] = wefti_os_socket_open(AF_UNIX);
        assert_int_equal(
            wefti_os_socket_bind(holders[i], (const struct sockaddr *)(void *)address.sockaddr, address.bytes), 0);
        if (backlog >= 0) {
            assert_int_equal(wefti_os_socket_listen(holders[i], backlog), 0);
        }
    }
}

/* Whether a process of this user is found by one look. */
static int is_found_at_once(const name_key key)
{
    wefti_tree_contact any;
    wefti_tree_address tried[WEFTI_UNIX_ADDRESSES_MAX];
    wefti_unix_contact_set(&any, WEFTI_UNIX_ANY, 0, key, WEFTI_HASH_BYTES);
    assert_int_equal(wefti_unix_contact_resolve(&any, WEFTI_TREE_SEARCHES, tried), 2);
    int caller = wefti_os_socket_open(AF_UNIX);
    int found =
        wefti_os_socket_connect(caller, (const struct sockaddr *)(void *)tried[1].sockaddr, tried[1].bytes) == 0 &&
        wefti_os_socket_is_own_user(caller, NULL);
    wefti_os_socket_close(caller);
    return found;
}

/* Whether it is found in a minute: of names held by others one look tries as many as its time allows. */
static int is_found(const name_key key)
{
    const uint64_t until_ns = wefti_os_now_ns() + UINT64_C(60000000000);
    int found = 0;
    while (!found && wefti_os_now_ns() < until_ns) {
        found = is_found_at_once(key);
    }
    return found;
}

/* Who knows the key holds every name that it can know. */
static void test_all_names_are_held(void **state)
{
    (void)state;
    int holders[WEFTI_UNIX_NAMES_MAX];
    for (int backlog = -1; backlog <= 0; backlog++) {
        name_key key;
        int listener;
        unsigned number;
        pid_t squatter = -1;
        draw_key(key);
        hold_all(key, backlog, holders);
        for (unsigned i = 0; i < WEFTI_UNIX_NAMES_MAX && backlog == 0; i++) {
            (void)find(key, i, NULL); /* fills the queue, which nobody empties */
        }
        if (geteuid() == 0) { /* names like the one that will be taken, too */
            squatter = fork_squatter(key, WEFTI_UNIX_NAMES_MAX, 300);
        }
        assert_false(is_found_at_once(key));
        if (backlog == 0) { /* the first may be another PE 0's; it is passed over when it has said nothing */
            assert_int_equal(wefti_unix_listen(key, 0, &listener, &number), WEFT_ERR_STATE);
            assert_int_equal(number, 0);
        }
        CHECK_OK(wefti_unix_listen(key, backlog == 0, &listener, &number));
        assert_int_equal(number, WEFTI_UNIX_NAMES_MAX);
        CHECK(is_found(key));
        wefti_os_socket_stop(listener);
        if (squatter > 0) {
            child_end(squatter);
        }
        for (unsigned i = 0; i < WEFTI_UNIX_NAMES_MAX; i++) {
            wefti_os_socket_close(holders[i]);
        }
    }
}

static void test_all_names_are_tried(void **state)
{
    (void)state;
    static unsigned char seen[WEFTI_UNIX_NAMES_MAX];
    name_key key;
    wefti_tree_contact any;
    wefti_tree_address names[WEFTI_UNIX_NAMES_MAX];
    wefti_tree_address tried[WEFTI_UNIX_ADDRESSES_MAX];
    draw_key(key);
    const unsigned all = WEFTI_UNIX_NAMES_MAX;
    for (unsigned i = 0; i < all; i++) {
        wefti_tree_contact one;
        wefti_unix_contact_set(&one, WEFTI_UNIX_ONE, i, key, sizeof key);
        assert_int_equal(wefti_unix_contact_resolve(&one, 0, &names[i]), 1);
    }
    wefti_unix_contact_set(&any, WEFTI_UNIX_ANY, 0, key, sizeof key);
    memset(seen, 0, sizeof seen);
    for (unsigned round = 0; round < 4 * all; round++) { /* name n within 4 n rounds */
        assert_int_equal(wefti_unix_contact_resolve(&any, round, tried), 2);
        assert_memory_equal(&tried[0], &names[0], sizeof tried[0]);
        for (unsigned i = 0; i < all; i++) {
            seen[i] |= memcmp(&tried[1], &names[i], sizeof tried[1]) == 0;
        }
        for (unsigned i = 1; i < all && 4 * i <= round + 1; i++) {
            assert_true(seen[i]);
        }
    }
}

static void test_nonsense(void **state)
{
    (void)state;
    wefti_tree_address addresses[WEFTI_UNIX_ADDRESSES_MAX];
    name_key key = {0};
    wefti_tree_contact contact = {0};
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, addresses), 0);
    wefti_unix_contact_set(&contact, (wefti_unix_contact_kind)9, 0, key, sizeof key);
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, addresses), 0);
    wefti_unix_contact_set(&contact, WEFTI_UNIX_FREE, WEFTI_HASH_BYTES + 1, key, sizeof key);
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, addresses), 0);
    wefti_unix_contact_set(&contact, WEFTI_UNIX_FREE, 0, key, sizeof key);
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, addresses), 0);
    contact.bytes = UINT32_MAX;
    assert_int_equal(wefti_unix_contact_resolve(&contact, 0, addresses), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECKED_TEST(test_second_is_told),     CHECKED_TEST(test_silent_root_is_passed_over),
        CHECKED_TEST(test_copies_in_children), CHECKED_TEST(test_other_users),
        CHECKED_TEST(test_nonsense),           CHECKED_TEST(test_all_names_are_tried),
        CHECKED_TEST(test_all_names_are_held),
    };
    (void)setenv("WEFT_LOG", "none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
