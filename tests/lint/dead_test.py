"""Goal: the test of dead names finds what nothing uses, and nothing else.

Method: a tree of a few files.
"""

import pathlib
import tempfile
import textwrap
import unittest

import dead

FILES = {
    "src/weft.map": "{ global: weft_public; };",
    "src/a/a.h": """
        #define USED 1
        #define UNUSED 2 /* USED */
        #define PASTE(name) wefti_##name##_open
        typedef struct wefti_a {
            int used;
            int unnamed;
            int unused_before; /* keeps an offset */
        } wefti_a;
        typedef struct wefti_b {
            int used;
        } wefti_b;
        void wefti_there(const wefti_a *a);
        void wefti_alone(void);
        void wefti_tested(void);
        void wefti_never(void);
        """,
    "src/a/a.c": """
        #include "a/a.h"
        void weft_public(void)
        {
            static const char text[] = "wefti_never";
            wefti_alone(); // wefti_never
        }
        void wefti_there(const wefti_a *a) { PASTE(tcp)(a->used + USED); }
        void wefti_alone(void) {}
        void wefti_tested(void) {}
        void wefti_never(void) {}
        void wefti_tcp_open(int x) {}
        static INLINE int quick(void) { return 1; }
        int (*const table)(void) = quick;
        """,
    "src/a/b.c": """
        #include "a/a.h"
        static void f(void) { wefti_there(0); }
        void (*const pointer)(void) = f;
        """,
    "src/a/a_test.c": "int main(void) { wefti_tested(); }",
    "src/a/nowhere.h": "",
}


class DeadTest(unittest.TestCase):
    def test_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in FILES.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(textwrap.dedent(text))
            found = {name or path: what for path, name, what in dead.find_dead(root)}
        self.assertEqual(found, {
            "UNUSED": "macro that nothing uses",
            "unnamed": "field that stands once",
            "wefti_b": "type that nothing uses",
            "wefti_alone": "function that no other file uses, and is not static",
            "wefti_tested": "function that only tests use",
            "wefti_never": "function that nothing uses",
            "src/a/nowhere.h": "header that nobody includes",
        })


if __name__ == "__main__":
    unittest.main()
