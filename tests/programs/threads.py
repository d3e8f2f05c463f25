"""Python: threads with every lock of `threading`, queues, and locks between processes. One line a case."""

import concurrent.futures
import multiprocessing
import queue
import subprocess
import sys
import threading


def holds(condition, name):
    print(name, "yes" if condition else "no", flush=True)


def crew(count, body):
    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def locks():
    for name, make in (("Lock", threading.Lock), ("RLock", threading.RLock)):
        lock, counted = make(), [0]

        def body(_):
            for _ in range(500):
                with lock:
                    counted[0] += 1

        crew(8, body)
        holds(counted[0] == 4000, f"python.{name}.nothing-lost")
        lock.acquire()
        taken = []
        crew(1, lambda _: taken.append(lock.acquire(timeout=0.005)))
        holds(taken == [False], f"python.{name}.times-out")
        lock.release()


def conditions():
    condition, box, taken = threading.Condition(), [], []

    def body(index):
        for i in range(50):
            with condition:
                if index % 2:
                    box.append(i)
                    condition.notify()
                else:
                    assert condition.wait_for(lambda: box, timeout=20)
                    taken.append(box.pop())

    crew(8, body)
    holds(sorted(taken) == sorted(list(range(50)) * 4), "python.Condition.everything-arrives")
    with condition:
        holds(not condition.wait(0.005), "python.Condition.times-out")
    barrier = threading.Barrier(8)
    crew(8, lambda _: [barrier.wait() for _ in range(10)])
    holds(barrier.n_waiting == 0, "python.Barrier.all-pass")
    semaphore, inside = threading.BoundedSemaphore(3), []

    def enter(_):
        with semaphore:
            inside.append(1)

    crew(8, enter)
    holds(len(inside) == 8, "python.Semaphore.all-pass")


def queues():
    numbers, results = queue.Queue(maxsize=4), queue.Queue()

    def body(index):
        if index < 4:
            for i in range(100):
                numbers.put(i)
            numbers.put(None)
        else:
            while (item := numbers.get(timeout=20)) is not None:
                results.put(item)

    crew(8, body)
    holds(results.qsize() == 400, "python.Queue.everything-arrives")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        holds(sum(pool.map(lambda n: n * n, range(100))) == 328350, "python.ThreadPoolExecutor.sum")


def add(lock, value):
    for _ in range(200):
        with lock:
            value.value += 1


def processes():
    context = multiprocessing.get_context("fork")
    lock, value = context.Lock(), context.Value("l", 0, lock=False)
    children = [context.Process(target=add, args=(lock, value)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(20)
    holds(value.value == 600, "python.multiprocessing.nothing-lost")
    with context.Pool(2) as pool:
        holds(pool.map(abs, range(-20, 0)) == list(range(20, 0, -1)), "python.multiprocessing.pool")
    said = subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True)
    holds(said.stdout == "child\n", "python.subprocess.output")


locks()
conditions()
queues()
processes()
