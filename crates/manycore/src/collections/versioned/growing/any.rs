//! The growing table for keys and values of any type.

use alloc::boxed::Box;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::bucket::Bucket;
use super::{Directory, Growing, UNTOLD};
use crate::collections::versioned::structure::{Change, Observe, Seek, Structure};
use crate::collections::versioned::word::{Datum, Word};
use crate::session::{Conflict, RawSession, View};
use crate::sync::{clock, mutation};

impl<H: BuildHasher + Send + Sync + 'static> Structure for Growing<H> {
    type Parts<K: Datum, V: Datum> = Directory<Word<K>, Word<V>, H>;
    type Settings = H;

    const VIEW: View = View::Latest;

    fn create<K: Datum, V: Datum, S: RawSession>(hasher: H, _handle: &mut S) -> Self::Parts<K, V> {
        Directory::new(1, Bucket::<Word<K>, Word<V>>::ROOM / 2, hasher)
    }

    unsafe fn for_each<'s, K: Datum, V: Datum, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &'s S,
        f: impl FnMut(&'s Word<K>, &'s Word<V>) -> bool,
    ) {
        // SAFETY: the session is a snapshot of the buckets' domain (contract of this function).
        unsafe { parts.visit_all(session, f) };
    }

    unsafe fn dismantle<K: Datum, V: Datum, S: RawSession>(
        parts: Self::Parts<K, V>,
        handle: &mut S,
    ) {
        // SAFETY: the contract of this function; each word is in one entry.
        unsafe {
            Directory::dismantle(Box::new(parts), handle, |session, key, value| {
                key.free(session)?;
                value.free(session)
            });
        }
    }

    const COUNTS: bool = true;
}

/// Whether a key of the table is the searched one.
#[inline]
fn is<K: Datum + Borrow<Q>, Q: Eq + ?Sized>(key: &Q) -> impl Fn(&Word<K>) -> bool {
    // SAFETY: it is called with keys of a bucket that the session has found, which lasts.
    move |of_entry| unsafe { of_entry.get() }.borrow() == key
}

impl<K, Q, H> Seek<K, Q> for Growing<H>
where
    H: BuildHasher + Send + Sync + 'static,
    K: Datum + Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
{
    #[inline]
    unsafe fn find<'s, V: Datum, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &'s S,
        key: &Q,
        observer: &impl Observe<S>,
    ) -> Option<(&'s Word<K>, &'s Word<V>)> {
        let hash = parts.hash_of(key);
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function), and buckets stay as long as the table.
        unsafe {
            let (link, _, bucket) = parts.find(session, hash);
            observer.observe(link);
            bucket.find(session, hash, is(key))
        }
    }

    #[inline]
    unsafe fn change<V: Datum, S: RawSession, R>(
        parts: &Self::Parts<K, V>,
        session: &mut S,
        key: &Q,
        observer: &impl Observe<S>,
        make: impl FnOnce(&mut S) -> Word<K>,
        f: impl FnOnce(&mut S, Option<&V>) -> (Change<V>, R),
    ) -> Result<(R, isize), Conflict> {
        let (hash, is) = (parts.hash_of(key), is::<K, Q>(key));
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function), and objects that it has found stay until its end. References into the bucket
        // are not used any more when the bucket is locked, which may be this session's own copy
        // already. Words that leave the table are freed once, by the thread that has their bucket
        // locked.
        unsafe {
            let (link, number, seen) = parts.find(session, hash);
            let found = seen.find(session, hash, &is).map(|(_, value)| *value);
            let (change, result) = f(session, found.as_ref().map(|value| value.get()));
            if matches!(change, Change::Keep) || found.is_none() && matches!(change, Change::Remove)
            {
                observer.observe(link);
                return Ok((result, 0));
            }
            let bucket = &mut *session.try_lock(link)?;
            if !bucket.has(hash, number) && !mutation!("growing-trusts") {
                return Err(Conflict::Retry);
            }
            let now = bucket.locate(session, hash, &is);
            let more = match (now, found, change) {
                (Some((spot, now)), Some(found), Change::Put(value)) if now.is(found) => {
                    bucket.replace(session, spot, value)?;
                    found.free(session)?;
                    0
                }
                (None, None, Change::Put(value)) => {
                    let key = make(session);
                    bucket.add(session, hash, key, value);
                    1
                }
                (Some((spot, now)), Some(found), Change::Remove) if now.is(found) => {
                    let (key, value) = bucket.remove(session, spot, |key| parts.hash_of(key))?;
                    key.free(session)?;
                    value.free(session)?;
                    -1
                }
                // Another has been faster.
                _ => return Err(Conflict::Retry),
            };
            Ok((result, more))
        }
    }

    /// Counts only some changes, each for several, so that threads seldom write the same line.
    #[inline]
    unsafe fn has_changed<V: Datum, S: RawSession>(
        parts: &Self::Parts<K, V>,
        handle: &mut S,
        more: isize,
    ) {
        let each = UNTOLD.min(parts.buckets().cast_signed() / 64).max(1);
        // The lowest bits of a clock are as good as random here.
        let drawn = clock::now().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        if !drawn.is_multiple_of(each.unsigned_abs() as u64) {
            return;
        }
        let told = more * each;
        parts.count(told);
        if told > 0 {
            // SAFETY: the handle is in no session, and of the buckets' domain (contract of this
            // function).
            unsafe { parts.grow(handle, told) };
        }
    }
}
