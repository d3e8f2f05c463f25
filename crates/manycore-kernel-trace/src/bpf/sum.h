/* Waits added up: how many, how long, of about how many objects. `sum.rs` reads it. */
#pragma once

#include "kernel.h"

/* Half octaves of nanoseconds, from 2^7 on: the last is over ten seconds. */
#define BUCKETS 56
#define FIRST_OCTAVE 7
/* Bits by which objects are told apart; see `objects` of struct sum. */
#define SKETCH 4

struct sum {
	__u64 waits;
	__u64 total_ns;
	__u64 max_ns;
	__u64 spun_ns;
	/* One bit for each of 64 * SKETCH classes of addresses: how many are set tells how many objects
	   there were. */
	__u64 objects[SKETCH];
	__u32 times[BUCKETS];
};

INLINE __u32 bucket_of(__u64 ns)
{
	__u32 octave = 0;
	__u64 rest = ns >> FIRST_OCTAVE;

	if (!rest)
		return 0;
#pragma unroll
	for (int by = 32; by; by /= 2) {
		if (rest >> by) {
			rest >>= by;
			octave += by;
		}
	}
	/* Whether it is in the upper half: 181/128 is the square root of two. */
	__u32 upper = (ns >> octave) * 128 >= 181ULL << FIRST_OCTAVE;
	__u32 bucket = 2 * octave + upper;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The class of an address, one of 64 * SKETCH. Mixed twice: neighbours by one multiplication spread
   too evenly. */
INLINE __u32 class_of(__u64 object)
{
	__u64 mixed = object * 0x9e3779b97f4a7c15ULL;

	mixed ^= mixed >> 32;
	return mixed * 0xd6e8feb86659fd93ULL >> 56;
}

/* Adds a wait to a sum. The longest may be missed when two are added at a time. */
INLINE void add(struct sum *sum, __u64 object, __u64 ns, __u64 spun)
{
	__u32 bit = class_of(object);
	__u32 bucket = bucket_of(ns);
	__u64 mask = 1ULL << (bit & 63);

	__sync_fetch_and_add(&sum->waits, 1);
	__sync_fetch_and_add(&sum->total_ns, ns);
	if (spun)
		__sync_fetch_and_add(&sum->spun_ns, spun);
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	if (!(sum->objects[bit / 64 % SKETCH] & mask))
		__sync_fetch_and_or(&sum->objects[bit / 64 % SKETCH], mask);
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&sum->times[bucket], 1);
}
