import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Java on a virtual machine whose own locks are pthreads: monitors, java.util.concurrent, garbage collection. */
public class Threads {
    private static final int THREADS = 8;
    private static final int ROUNDS = 2000;
    private static int counted;

    interface Body {
        void run(int index) throws Exception;
    }

    private static void holds(boolean condition, String name) {
        System.out.println(name + (condition ? " yes" : " no"));
    }

    private static void crew(Body body) throws InterruptedException {
        Thread[] threads = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int index = i;
            threads[i] = new Thread(() -> {
                try {
                    body.run(index);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
    }

    private static void monitors() throws InterruptedException {
        Object monitor = new Object();
        counted = 0;
        crew(index -> {
            for (int i = 0; i < ROUNDS; i++) synchronized (monitor) { counted++; }
        });
        holds(counted == THREADS * ROUNDS, "java.synchronized.nothing-lost");
        counted = 0;
        crew(index -> {
            for (int i = 0; i < 50; i++) {
                synchronized (monitor) {
                    while (counted % THREADS != index) monitor.wait();
                    counted++;
                    monitor.notifyAll();
                }
            }
        });
        holds(counted == THREADS * 50, "java.wait-notify.turns");
        synchronized (monitor) {
            monitor.wait(3);
        }
        holds(true, "java.wait.times-out");
    }

    private static void locks() throws Exception {
        ReentrantLock lock = new ReentrantLock(true);
        ReentrantReadWriteLock shared = new ReentrantReadWriteLock();
        counted = 0;
        int[] pair = new int[2];
        boolean[] torn = new boolean[1];
        crew(index -> {
            for (int i = 0; i < ROUNDS / 4; i++) {
                lock.lock();
                try {
                    counted++;
                } finally {
                    lock.unlock();
                }
                if (index == 0) {
                    shared.writeLock().lock();
                    pair[0]++;
                    pair[1]++;
                    shared.writeLock().unlock();
                } else {
                    shared.readLock().lock();
                    if (pair[0] != pair[1]) torn[0] = true;
                    shared.readLock().unlock();
                }
            }
        });
        holds(counted == THREADS * (ROUNDS / 4), "java.ReentrantLock.nothing-lost");
        holds(!torn[0] && pair[0] == ROUNDS / 4, "java.ReadWriteLock.readers-see-whole-writes");
    }

    private static void collections() throws Exception {
        ConcurrentHashMap<Integer, Integer> map = new ConcurrentHashMap<>();
        crew(index -> {
            for (int i = 0; i < ROUNDS; i++) map.merge(i % 100, 1, Integer::sum);
        });
        holds(map.values().stream().mapToInt(n -> n).sum() == THREADS * ROUNDS, "java.ConcurrentHashMap.sum");
        LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>(4);
        long[] sum = new long[THREADS];
        crew(index -> {
            for (int i = 0; i < 200; i++) {
                if (index % 2 == 0) queue.put(i);
                else sum[index] += queue.poll(20, TimeUnit.SECONDS);
            }
        });
        long total = 0;
        for (long part : sum) total += part;
        holds(total == THREADS / 2 * 19900, "java.BlockingQueue.everything-arrives");
        CyclicBarrier barrier = new CyclicBarrier(THREADS);
        CountDownLatch latch = new CountDownLatch(THREADS * 10);
        crew(index -> {
            for (int i = 0; i < 10; i++) {
                barrier.await();
                latch.countDown();
            }
        });
        holds(latch.getCount() == 0, "java.CyclicBarrier.all-pass");
    }

    /** Allocation in many threads: the collector stops and starts the world through pthread locks. */
    private static void garbage() throws Exception {
        var pool = Executors.newFixedThreadPool(THREADS);
        var lengths = new java.util.ArrayList<java.util.concurrent.Future<Integer>>();
        for (int task = 0; task < 32; task++) {
            lengths.add(pool.submit(() -> {
                int length = 0;
                for (int i = 0; i < 100; i++) length += new byte[10_000].length;
                return length;
            }));
        }
        long total = 0;
        for (var length : lengths) total += length.get();
        System.gc();
        pool.shutdown();
        holds(pool.awaitTermination(20, TimeUnit.SECONDS), "java.pool.ends");
        holds(total == 32_000_000, "java.garbage.allocated");
    }

    public static void main(String[] arguments) throws Exception {
        monitors();
        locks();
        collections();
        garbage();
        Process child = new ProcessBuilder("/bin/echo", "child").start();
        holds(new String(child.getInputStream().readAllBytes()).equals("child\n"), "java.process.output");
    }
}
