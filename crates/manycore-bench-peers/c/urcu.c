/* Grace periods of liburcu, in the flavour that the build defines. */

/* The functions without their flavour in their names. */
#define URCU_API_MAP
#ifdef RCU_QSBR
#include <urcu/urcu-qsbr.h>
#define FLAVOUR(name) peer_qsbr_##name
#else
#include <urcu/urcu-memb.h>
#define FLAVOUR(name) peer_memb_##name
#endif
#include <urcu/call-rcu.h>

_Static_assert(sizeof(struct rcu_head) == 16, "the other side has room for two words");

void FLAVOUR(register)(void)
{
	rcu_register_thread();
}

void FLAVOUR(unregister)(void)
{
	rcu_unregister_thread();
}

void FLAVOUR(enter)(void)
{
	rcu_read_lock();
}

/* With quiescent states, a thread has one between any two sections. */
void FLAVOUR(leave)(void)
{
	rcu_read_unlock();
#ifdef RCU_QSBR
	rcu_quiescent_state();
#endif
}

void FLAVOUR(retire)(struct rcu_head *head, void (*release)(struct rcu_head *))
{
	call_rcu(head, release);
}

/* Until all that was retired is freed. */
void FLAVOUR(barrier)(void)
{
	rcu_barrier();
}
