"""Programs with a mistake in them: one file of the library is compiled again, and linked before the rest of the build."""

import json
import pathlib
import re
import shlex
import subprocess
import time

import edits


def start(command, folder, timeout):
    return subprocess.run(command, cwd=folder, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")


class Programs:
    def __init__(self, root, build):
        self.root = root.resolve()
        self.build = build.resolve()
        self.folder = self.build / "mutations"
        self.folder.mkdir(exist_ok=True)
        self.compiles = {}  # (library, source): command
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            library = re.match(r"CMakeFiles/(\w+)\.dir/", words[words.index("-o") + 1])
            if library:
                self.compiles[library[1], entry["file"]] = words
        self.campaign = self.link_whole_campaign()

    def make(self, command, mutation=None):
        done = start(command, self.build, None)
        if done.returncode != 0:
            raise edits.Refused(f"{mutation.name if mutation else command[0]}: {done.stdout}")

    def run(self, command, timeout):
        """Exit status, None when it does not end; output; seconds."""
        begin = time.monotonic()
        try:
            done = start([str(word) for word in command], self.build, timeout)
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b"").decode(errors="replace")
            return None, text, time.monotonic() - begin
        return done.returncode, done.stdout, time.monotonic() - begin

    def command(self, text, program):
        return [str(program) if word == "{}" else word for word in shlex.split(text)]

    def link_command(self, target):
        """How the build links a program, as words."""
        text = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build, capture_output=True, text=True,
                              check=True).stdout
        return [word for word in shlex.split(text) if word not in (":", "&&")]

    def link_whole_campaign(self):
        """The campaign as it is. What all its mutants share is put into one object and an archive, without what debuggers
        read, so that linking a mutant takes little."""
        words = self.link_command("tests/campaign")
        objects = [word for word in words if word.endswith(".o")]
        self.base = self.folder / "base.o"
        self.library = self.folder / "library.a"
        self.make(["ld", "-r", "-S", "-o", self.base, *objects])
        self.make(["strip", "-S", "-o", self.library, "libweft_sim.a"])
        self.libraries = [word for word in words if word.startswith("-l")]
        return self.build / "tests" / "campaign"

    def sources(self, mutation, library):
        """What has to be compiled again."""
        if "through" not in mutation.keys:
            return [mutation.file]
        patterns = mutation.keys["through"].split()
        found = [str(path.relative_to(self.root)) for pattern in patterns for path in sorted(self.root.glob(pattern))]
        return [name for name in found if (library, str(self.root / name)) in self.compiles]

    def compile(self, mutation, library):
        """The objects with the mistake."""
        copy = self.folder / mutation.name
        changed = copy / mutation.file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(edits.mutate(self.root, mutation))
        objects = []
        for name in self.sources(mutation, library):
            words = self.compiles.get((library, str(self.root / name)))
            if words is None:
                raise edits.Refused(f"{mutation.name}: {library} does not compile {name}")
            source = changed if name == mutation.file else self.root / name
            objects.append(changed.with_name(f"{len(objects)}.{library}.o"))
            flags = [word for word in words[1 : words.index("-o")] if word not in ("-O3", "-g", "-Werror")]
            overlay = [f"-I{copy / 'include'}", f"-I{copy / 'src'}"]
            self.make([words[0], *overlay, *flags, "-O1", "-w", "-o", objects[-1], "-c", source], mutation)
        return objects

    def link_campaign(self, mutation):
        objects = self.compile(mutation, "weft_sim")
        program = self.folder / mutation.name / "campaign"
        compiler = self.compiles["weft_sim", str(self.root / "src/sim/run.c")][0]
        self.make([compiler, "-o", program, self.base, *objects, self.library, *self.libraries], mutation)
        return program

    def link_test(self, mutation, target):
        words = self.link_command(f"tests/{target}")
        library = "weft_sim" if any(word.endswith("libweft_sim.a") for word in words) else "weft_objects"
        objects = self.compile(mutation, library)
        program = self.folder / mutation.name / target
        words[words.index("-o") + 1] = program
        first = next(i for i, word in enumerate(words) if word.endswith(".o"))
        self.make([*words[:first], *objects, *words[first:]], mutation)
        return program
