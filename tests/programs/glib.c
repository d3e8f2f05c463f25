/* GLib: its mutexes are futexes of its own that no thread can take over; its threads, pools and queues
 * have to work beside those that are taken over. */
#include "case.h"

#include <glib.h>

static GMutex mutex;
static GCond cond;
static GRWLock rwlock;
static GRecMutex recursive;
static pthread_mutex_t posix_mutex = PTHREAD_MUTEX_INITIALIZER;
static long counted, posix_counted;

static void task(gpointer item, gpointer queue) {
    g_mutex_lock(&mutex);
    counted += GPOINTER_TO_INT(item);
    g_mutex_unlock(&mutex);
    pthread_mutex_lock(&posix_mutex);
    posix_counted += GPOINTER_TO_INT(item);
    pthread_mutex_unlock(&posix_mutex);
    g_async_queue_push(queue, item);
}

static void thread_pool(void) {
    GAsyncQueue *queue = g_async_queue_new();
    GThreadPool *pool = g_thread_pool_new(task, queue, 4, TRUE, NULL);
    int tasks = scaled(400);
    for (int i = 1; i <= tasks; i++) g_thread_pool_push(pool, GINT_TO_POINTER(i), NULL);
    long sum = 0;
    for (int i = 1; i <= tasks; i++) sum += GPOINTER_TO_INT(g_async_queue_timeout_pop(queue, 20000000));
    g_thread_pool_free(pool, FALSE, TRUE);
    long expected = (long)tasks * (tasks + 1) / 2;
    HOLDS(sum == expected, "glib.queue.everything-arrives");
    HOLDS(counted == expected, "glib.mutex.nothing-lost");
    HOLDS(posix_counted == expected, "glib.posix-mutex.nothing-lost");
    VALUE(g_async_queue_timeout_pop(queue, 3000) == NULL, "glib.queue.times-out");
    g_async_queue_unref(queue);
}

static int ready;

static gpointer wait_until_ready(gpointer unused) {
    g_mutex_lock(&mutex);
    gint64 until = g_get_monotonic_time() + 20 * G_TIME_SPAN_SECOND;
    gboolean in_time = TRUE;
    while (!ready && in_time) in_time = g_cond_wait_until(&cond, &mutex, until);
    g_mutex_unlock(&mutex);
    return GINT_TO_POINTER(in_time + (unused != NULL));
}

static void condition(void) {
    GThread *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = g_thread_new("waiter", wait_until_ready, NULL);
    pause_ms(3);
    g_mutex_lock(&mutex);
    ready = 1;
    g_cond_broadcast(&cond);
    g_mutex_unlock(&mutex);
    for (int i = 0; i < 3; i++) VALUE(GPOINTER_TO_INT(g_thread_join(threads[i])), "glib.cond.waiter-%d", i);
    g_mutex_lock(&mutex);
    VALUE(g_cond_wait_until(&cond, &mutex, g_get_monotonic_time() + 3000), "glib.cond.times-out");
    g_mutex_unlock(&mutex);
}

static int try_write(void *unused) {
    (void)unused;
    return g_rw_lock_writer_trylock(&rwlock);
}

static int try_recursive(void *unused) {
    (void)unused;
    return g_rec_mutex_trylock(&recursive);
}

static gboolean stop_loop(gpointer loop) {
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(void) {
    thread_pool();
    condition();
    g_rw_lock_reader_lock(&rwlock);
    VALUE(g_rw_lock_reader_trylock(&rwlock), "glib.rwlock.read-again");
    VALUE(ELSEWHERE(try_write, NULL), "glib.rwlock.write-elsewhere");
    g_rw_lock_reader_unlock(&rwlock);
    g_rw_lock_reader_unlock(&rwlock);
    g_rec_mutex_lock(&recursive);
    VALUE(g_rec_mutex_trylock(&recursive), "glib.recursive.again");
    VALUE(ELSEWHERE(try_recursive, NULL), "glib.recursive.elsewhere");
    GMainLoop *loop = g_main_loop_new(NULL, FALSE);
    g_timeout_add(2, stop_loop, loop);
    g_main_loop_run(loop);
    HOLDS(!g_main_loop_is_running(loop), "glib.main-loop-ran");
    return 0;
}
