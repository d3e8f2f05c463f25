"""Languages: interpreters and their just-in-time compilers, each with threads where the language has them."""
from .trial import command, program

KIND = "languages"
PYTHON = """
import threading, queue, hashlib, multiprocessing, concurrent.futures
asked, given = queue.Queue(8), queue.Queue()
def work():
    while (n := asked.get()) is not None:
        given.put(int(hashlib.sha256(str(n).encode() * 9000).hexdigest(), 16) % 1009)
crowd = [threading.Thread(target=work) for _ in range(8)]
for one in crowd: one.start()
for n in range(800): asked.put(n)
for one in crowd: asked.put(None)
for one in crowd: one.join()
print(sum(given.get() for _ in range(800)))
with multiprocessing.Pool(4) as pool: print(sum(pool.map(abs, range(-2000, 0))))
with concurrent.futures.ProcessPoolExecutor(2) as pool: print(sum(pool.map(abs, range(-200, 0))))
"""
# Coroutines that share a thread's stack by turns, and are copied off it.
GEVENT = """
from gevent import monkey; monkey.patch_all()
import gevent.pool, gevent.server, gevent.threadpool, socket
server = gevent.server.StreamServer(("127.0.0.1", 0), lambda client, _: client.sendall(client.recv(100)[::-1]))
server.start()
def ask(n):
    with socket.create_connection(("127.0.0.1", server.server_port)) as asked:
        asked.sendall(b"%d." % n)
        return int(asked.recv(100)[1:][::-1])
print(sum(gevent.pool.Pool(20).map(ask, range(500))))
print(sum(gevent.threadpool.ThreadPool(4).map(abs, range(-300, 0))))
"""
# Code made by LLVM, which registers it with the unwinder.
NUMBA = """
import numba
@numba.njit(parallel=True)
def count(n):
    s = 0
    for i in numba.prange(n): s += i % 7
    return s
print(count(3000000))
"""
RUBY = """
q, r = SizedQueue.new(4), Queue.new
ts = 6.times.map { Thread.new { while (n = q.pop) != :end do r << n * n end } }
20000.times { |n| q << n }; 6.times { q << :end }; ts.each(&:join)
s = 0; s += r.pop until r.empty?; puts s
puts `echo child`; pid = fork { exit 3 }; Process.wait pid; puts $?.exitstatus
"""
PERL = r"""
use threads; use threads::shared; use Thread::Queue;
my $q = Thread::Queue->new; my $sum :shared = 0;
my @t = map { threads->create(sub { while (defined(my $n = $q->dequeue)) { lock $sum; $sum += $n } }) } 1 .. 6;
$q->enqueue($_) for 1 .. 5000; $q->end; $_->join for @t; print "$sum\n";
print sort(grep { m{a} } map { "a$_" } 1 .. 9), "\n";
"""
PHP = """
$a = []; for ($i = 0; $i < 300000; $i++) { $a[] = md5($i); }
sort($a); echo $a[777], PHP_EOL, preg_match_all('/a+b/', implode($a));
"""
LUA = """
local t = {} for i = 1, 400000 do t[i] = (i * 7919) % 100003 end table.sort(t)
print(t[5], t[399999]) print(#string.rep('ab', 1e6))
"""
NODE = """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { pbkdf2 } = require('crypto');
if (isMainThread) {
  let left = 6, sum = 0;
  for (let i = 0; i < 6; i++) new Worker(__filename, { workerData: i }).on('message', part => {
    sum += part;
    if (!--left) pbkdf2('a', 'b', 20000, 16, 'sha256', (e, key) => console.log(sum, key.toString('hex')));
  });
} else { let s = 0; for (let i = 0; i < 3e6; i++) s += i % (workerData + 2); parentPort.postMessage(s); }
"""
JAVA = """
import java.util.concurrent.*; import java.util.stream.*;
public class Main { public static void main(String[] a) throws Exception {
  var pool = Executors.newFixedThreadPool(8); var sums = new ConcurrentHashMap<Integer, Long>();
  for (int i = 0; i < 2000; i++) { final int n = i; pool.submit(() -> sums.merge(n % 16, (long) n * n, Long::sum)); }
  pool.shutdown(); pool.awaitTermination(60, TimeUnit.SECONDS);
  System.out.println(sums.values().stream().mapToLong(x -> x).sum());
  System.out.println(IntStream.range(0, 3000000).parallel().filter(x -> x % 7 == 3).count()); System.gc();
} }
"""
RACKET = """
(require racket/future)
(define threads (for/list ([i 6]) (thread (lambda () (for/sum ([n 200000]) n)))))
(for-each thread-wait threads)
(define (sum) (for/fold ([s 0]) ([n 1000000]) (+ s n)))
(displayln (apply + (map touch (for/list ([i 4]) (future sum)))))
"""
GUILE = """
(use-modules (ice-9 threads))
(define (work n) (let loop ((i 0) (s 0)) (if (< i 20000) (loop (+ i 1) (+ s (* i n))) s)))
(display (apply + (par-map work (iota 50)))) (newline) (gc)
"""
SBCL = """
(progn (defvar *m* (sb-thread:make-mutex)) (defvar *s* 0)
  (defun work () (loop for i below 20000 do (sb-thread:with-mutex (*m*) (incf *s* i))))
  (mapc #'sb-thread:join-thread (loop repeat 6 collect (sb-thread:make-thread #'work)))
  (print *s*) (gc :full t))
"""
CSHARP = """
using System; using System.Linq; using System.Threading; using System.Threading.Tasks;
static class Main_ {
  static int sum; static readonly object it = new object();
  static void Work() { for (int i = 0; i < 20000; i++) lock (it) sum += new byte[i % 5].Length; }
  static void Main() {
    var all = Enumerable.Range(0, 6).Select(n => new Thread(Work)).ToList();
    all.ForEach(t => t.Start()); all.ForEach(t => t.Join());
    var tasks = Enumerable.Range(0, 200).Select(n => Task.Run(() => n * n)).Sum(t => t.Result);
    Console.WriteLine(sum + " " + tasks); GC.Collect();
  }
}
"""
ERLANG = """
P = self(), [spawn(fun() -> P ! lists:sum(lists:seq(1, 100000)) end) || _ <- lists:seq(1, 200)],
io:format("~p~n", [lists:sum([receive X -> X end || _ <- lists:seq(1, 200)])]), halt().
"""
OCTAVE = "a = reshape(mod((1:90000) * 7919, 10007), 300, 300); disp(sum(sum(a * a'))); disp(numel(sort(a(:))));"
R = """
a <- matrix((1:90000 * 7919) %% 10007, 300); print(sum(a %*% t(a)))
library(parallel); print(unlist(mclapply(1:6, function(x) x * x, mc.cores = 3)))
"""
AWK = "BEGIN { for (i = 0; i < 500000; i++) a[i % 5003] += i; for (k in a) s += a[k]; print s }"

command("perl", "perl", KIND, "perl", "-e", PERL)
command("php", "php-cli", KIND, "php", "-r", PHP)
command("lua", "lua5.4", KIND, "lua5.4", "-e", LUA)
command("luajit", "luajit", KIND, "luajit", "-e", LUA)
command("racket", "racket", KIND, "racket", "-e", RACKET)
command("guile", "guile-3.0", KIND, "guile", "-c", GUILE)
command("sbcl", "sbcl", KIND, "sbcl", "--non-interactive", "--no-userinit", "--eval", SBCL)
command("erl", "erlang-base", KIND, "erl", "-noshell", "-eval", ERLANG)
command("octave", "octave", KIND, "octave-cli", "--eval", OCTAVE)
command("R", "r-base-core", KIND, "R", "--vanilla", "--slave", "-e", R)
command("gawk", "gawk", KIND, "gawk", AWK)


@program("python3", "python3", KIND)
def python(trial):
    return trial.program("python3", trial.file("main.py", PYTHON))


@program("gevent", "python3-gevent", KIND)
def gevent(trial):
    return trial.program("python3", trial.file("main.py", GEVENT))


@program("numba", "python3-numba", KIND)
def numba(trial):
    return trial.program("python3", trial.file("main.py", NUMBA))


@program("ruby", "ruby", KIND)
def ruby(trial):
    return trial.program("ruby", trial.file("main.rb", RUBY))


@program("node", "nodejs", KIND)
def node(trial):
    return trial.program("node", trial.file("main.js", NODE))


@program("java", "default-jdk-headless", KIND)
def java(trial):
    trial.tool("javac", "-d", trial.place, trial.file("Main.java", JAVA))
    return trial.program("java", "-cp", trial.place, "Main")


@program("mono", "mono-runtime mono-mcs", KIND)
def mono(trial):
    trial.tool("mcs", "-out:main.exe", trial.file("main.cs", CSHARP))
    return trial.program("mono", "main.exe")
