"""Compilers and linkers: what they make has to run, and to be byte for byte what they make without manycore."""
from .trial import program

KIND = "compilers"
C = r"""#include <stdio.h>
int g(int);
int main(void) { long s = 0; for (int i = 0; i < 1000; i++) s += g(i); printf("%ld\n", s); return 0; }
"""
C_PART = "int g(int n) { return n * n % 97; }\n" + "".join(
    f"int f{n}(int x) {{ return x * {n} + x % {n + 1}; }}\n" for n in range(400))
CXX = """#include <algorithm>
#include <iostream>
#include <map>
#include <string>
int main() {
    std::map<std::string, int> m;
    for (int i = 0; i < 999; i++) m[std::to_string(i * i % 31)]++;
    std::cout << std::count_if(m.begin(), m.end(), [](auto &p) { return p.second > 40; }) << std::endl;
}
"""
RUST = """use std::{collections::HashMap, sync::{mpsc, Arc, Mutex}, thread};
pub fn work() -> u64 {
    let (sender, receiver) = mpsc::channel();
    let map = Arc::new(Mutex::new(HashMap::new()));
    let threads: Vec<_> = (0..4).map(|i| {
        let (sender, map) = (sender.clone(), map.clone());
        thread::spawn(move || for n in 0..500u64 {
            *map.lock().unwrap().entry(n % 7).or_insert(0) += n;
            sender.send(n * i).unwrap();
        })
    }).collect();
    drop(sender);
    let sent: u64 = receiver.iter().sum();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let kept: u64 = map.lock().unwrap().values().sum();
    sent + kept
}
"""
GO = """package main
import ("fmt"; "sort"; "sync")
func main() {
    var w sync.WaitGroup; c := make(chan int, 4)
    for i := 0; i < 8; i++ {
        w.Add(1); go func(n int) { defer w.Done(); for j := 0; j < 1000; j++ { c <- n * j } }(i)
    }
    go func() { w.Wait(); close(c) }()
    var all []int; for n := range c { all = append(all, n) }
    sort.Ints(all); fmt.Println(len(all), all[5000])
}
"""
OCAML = """let m = Mutex.create () let s = ref 0
let work i = for n = 1 to 2000 do Mutex.lock m; s := !s + n * i; Mutex.unlock m done
let () = List.iter Thread.join (List.init 6 (Thread.create work)); print_int !s; print_newline ()
"""
HASKELL = r"""import Control.Concurrent
import Control.Monad
main = do
  v <- newMVar (0 :: Int)
  ds <- forM [1 .. 8] $ \i -> do
    d <- newEmptyMVar
    _ <- forkIO (forM_ [1 .. 500] (\n -> modifyMVar_ v (return . (+ n * i))) >> putMVar d ())
    return d
  mapM_ takeMVar ds
  readMVar v >>= print
"""
PASCAL = """program main; var i: longint; s: int64;
begin s := 0; for i := 1 to 100000 do s := s + i mod 7; writeln(s); end."""
JAVA = """import java.util.stream.*;
class Main { public static void main(String[] a) {
  System.out.println(IntStream.range(0, 99).boxed().map(x -> x * x).reduce(0, Integer::sum));
} }
"""


def c_parts(trial):
    return trial.file("a.c", C), trial.file("b.c", C_PART)


def compiler(name, packages, write, build, out="main", run=None):
    """A compiler: what it makes of the sources is made under manycore; that runs, and is the same."""
    def tried(trial):
        write(trial)
        trial.program(*build)
        ran = trial.tool(*(run or (f"./{out}",)))
        return ran + trial.digest(out)
    program(name, packages, KIND)(tried)


compiler("gcc", "gcc", c_parts, ("gcc", "-O2", "-pipe", "-o", "main", "a.c", "b.c"))
compiler("g++", "g++", lambda trial: trial.file("a.cc", CXX),
         ("g++", "-O1", "-flto=2", "-frandom-seed=1", "-o", "main", "a.cc"))
compiler("clang", "clang gcc", c_parts, ("clang", "-O2", "-o", "main", "a.c", "b.c"))
compiler("fpc", "fp-compiler", lambda trial: trial.file("main.pas", PASCAL), ("fpc", "-O2", "main.pas"))
compiler("javac", "default-jdk-headless", lambda trial: trial.file("Main.java", JAVA),
         ("javac", "Main.java"), "Main.class", ("java", "-cp", ".", "Main"))
compiler("ocamlopt", "ocaml-nox gcc", lambda trial: trial.file("main.ml", OCAML),
         ("ocamlopt", "-I", "+threads", "unix.cmxa", "threads.cmxa", "main.ml", "-o", "main"))
compiler("rustc", "rustc gcc", lambda trial: trial.file("main.rs", RUST + 'fn main() { println!("{}", work()); }\n'),
         ("/usr/bin/rustc", "-C", "codegen-units=8", "main.rs"))


def linker(name, packages, option):
    def tried(trial):
        c_parts(trial)
        trial.tool("clang", "-c", "-ffunction-sections", "-g", "a.c", "b.c")
        trial.program("clang", option, "-Wl,--gc-sections", "-o", "main", "a.o", "b.o")
        return trial.tool("./main") + trial.digest("main")
    program(name, packages, KIND)(tried)


linker("lld", "lld clang", "-fuse-ld=lld")
linker("mold", "mold clang", "-fuse-ld=mold")


@program("cargo", "cargo rustc gcc", KIND)
def cargo(trial):
    members = [f"part{n}" for n in range(3)]
    trial.file("Cargo.toml", f"[workspace]\nmembers = {members + ['top']}\n".replace("'", '"'))
    for name in members:
        trial.file(f"{name}/Cargo.toml", f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n')
        trial.file(f"{name}/src/lib.rs", RUST)
    trial.file("top/Cargo.toml", '[package]\nname = "top"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
               + "".join(f'{name} = {{ path = "../{name}" }}\n' for name in members))
    sum_of_all = " + ".join(f"{name}::work()" for name in members)
    trial.file("top/src/main.rs", f'fn main() {{ println!("{{}}", {sum_of_all}); }}\n')
    paths = {"CARGO_HOME": trial.place / "home", "RUSTC": "/usr/bin/rustc"}
    trial.program("/usr/bin/cargo", "build", "--offline", "-q", "-j", 4, env=paths)
    return trial.tool("target/debug/top")


@program("go", "golang-go", KIND)
def go(trial):
    trial.file("main/go.mod", "module main\n")
    trial.file("main/main.go", GO)
    trial.program("go", "build", ".", cwd=trial.place / "main",
                  env={"GOPROXY": "off", "GOCACHE": trial.place / "cache"})
    return trial.tool("main/main")


@program("ghc", "ghc gcc", KIND)
def ghc(trial):
    trial.file("main.hs", HASKELL)
    trial.program("ghc", "-threaded", "-rtsopts", "-v0", "main.hs")
    return trial.program("./main", "+RTS", "-N4")
