//! The symbols that one loaded object defines, found by its hash table: the GNU one, or otherwise
//! that of System V.

use core::ffi::{CStr, c_char};

// Tags of a dynamic section, from `<elf.h>`.
const DT_NULL: usize = 0;
const DT_HASH: usize = 4;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_SONAME: usize = 14;
const DT_GNU_HASH: usize = 0x6fff_fef5;
const DT_VERSYM: usize = 0x6fff_fff0;

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: u64,
}

/// An entry of an object's dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dynamic {
    pub tag: usize,
    pub value: usize,
}

/// A symbol that other objects define.
const SHN_UNDEF: u16 = 0;
/// A symbol's type: a thread-local variable, which has no address.
const STT_TLS: u8 = 6;
/// A symbol's type: a function that is called once to choose the function to use.
const STT_GNU_IFUNC: u8 = 10;
/// A flag in the version of a symbol: only references to exactly this version bind to it.
const HIDDEN: u16 = 0x8000;

/// Which versions of a name are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The one to which a program is linked today.
    Default,
    /// Also the older ones.
    Any,
}

/// An object's tables. Each is null if the object does not have it.
pub(crate) struct Symbols {
    base: usize,
    table: *const Symbol,
    strings: *const c_char,
    versions: *const u16,
    gnu_hash: *const u32,
    hash: *const u32,
    soname: Option<usize>,
}

impl Symbols {
    /// The symbols of the object whose dynamic section this is.
    ///
    /// # Safety
    ///
    /// The object is mapped at `base`, and stays.
    pub unsafe fn new(base: usize, dynamic: *const Dynamic) -> Self {
        let null: *const u8 = core::ptr::null();
        let mut found = Self {
            base,
            table: null.cast(),
            strings: null.cast(),
            versions: null.cast(),
            gnu_hash: null.cast(),
            hash: null.cast(),
            soname: None,
        };
        let mut entry = dynamic;
        // SAFETY: `dynamic` leads to a mapped section (contract of this function) that ends with
        // DT_NULL, which has not been reached yet.
        while let Dynamic { tag, value } = unsafe { *entry }
            && tag != DT_NULL
        {
            // The dynamic linker has added the base to these addresses, except for sections that it
            // cannot write.
            let address = if value < base { value + base } else { value };
            match tag {
                DT_SYMTAB => found.table = address as *const Symbol,
                DT_STRTAB => found.strings = address as *const c_char,
                DT_VERSYM => found.versions = address as *const u16,
                DT_GNU_HASH => found.gnu_hash = address as *const u32,
                DT_HASH => found.hash = address as *const u32,
                DT_SONAME => found.soname = Some(value),
                _ => {}
            }
            // SAFETY: this entry was not DT_NULL, so that another follows it.
            entry = unsafe { entry.add(1) };
        }
        found
    }

    /// The name by which other objects need this one.
    pub fn soname(&self) -> Option<&'static CStr> {
        // SAFETY: an offset from the object's own table into its strings, each of which ends with a
        // zero byte; the strings stay mapped (contract of `new`).
        Some(unsafe { CStr::from_ptr(self.strings.add(self.soname?)) })
    }

    /// Where a name is defined, by these versions.
    pub fn all<'a>(&'a self, name: &'a CStr, version: Version) -> impl Iterator<Item = usize> + 'a {
        let indices = self.gnu(name).chain(self.system_v(name));
        indices.filter_map(move |index| self.definition(index, name, version))
    }

    /// The address of the symbol with this index, if it is a definition of the name.
    fn definition(&self, index: usize, name: &CStr, version: Version) -> Option<usize> {
        // SAFETY: the hash table's indices are within the symbol table, and the versions are
        // parallel to that; both stay mapped (contract of `new`).
        let (symbol, version_bits) = unsafe {
            let versions = self.versions;
            (&*self.table.add(index), if versions.is_null() { 0 } else { *versions.add(index) })
        };
        let kind = symbol.info & 0xf;
        if symbol.section == SHN_UNDEF
            || kind == STT_TLS
            || (version == Version::Default && version_bits & HIDDEN != 0)
            // SAFETY: an offset from the object's own table into its strings, each of which ends
            // with a zero byte; the strings stay mapped (contract of `new`).
            || unsafe { CStr::from_ptr(self.strings.add(symbol.name as usize)) } != name
        {
            return None;
        }
        let address = self.base + symbol.value;
        if kind != STT_GNU_IFUNC {
            return Some(address);
        }
        // SAFETY: the object defines the symbol as a function that gives an address, and takes no
        // arguments on this architecture.
        Some(unsafe { core::mem::transmute::<usize, extern "C" fn() -> usize>(address) }())
    }

    /// The symbols whose hash equals the name's, by the GNU table: header, bloom filter, the first
    /// symbol of each bucket, and each symbol's hash with a bit that ends a bucket.
    fn gnu(&self, name: &CStr) -> impl Iterator<Item = usize> {
        let hash = gnu_hash(name);
        let table = self.gnu_hash;
        // SAFETY: callers compute the index from the table's own header, buckets and chains, which
        // lead to words within it; it stays mapped (contract of `new`).
        let word = move |index: usize| unsafe { *table.add(index) };
        let (mut index, chain, first) = if table.is_null() {
            (0, 0, 0)
        } else {
            let (buckets, first, bloom) = (word(0), word(1) as usize, word(2) as usize);
            let begin = 4 + 2 * bloom;
            let bucket = if buckets == 0 { 0 } else { word(begin + (hash % buckets) as usize) };
            (bucket as usize, begin + buckets as usize, first)
        };
        core::iter::from_fn(move || {
            while index >= first.max(1) {
                let (this, of_this) = (index, word(chain + index - first));
                index = if of_this & 1 != 0 { 0 } else { index + 1 };
                if of_this | 1 == hash | 1 {
                    return Some(this);
                }
            }
            None
        })
    }

    /// The symbols in the name's bucket, by the table of System V; none if the object has only the
    /// other table.
    fn system_v(&self, name: &CStr) -> impl Iterator<Item = usize> {
        let table = if self.gnu_hash.is_null() { self.hash } else { core::ptr::null() };
        // SAFETY: callers compute the index from the table's own header, buckets and chains, which
        // lead to words within it; it stays mapped (contract of `new`).
        let word = move |index: usize| unsafe { *table.add(index) } as usize;
        let (mut index, chain) = if table.is_null() || word(0) == 0 {
            (0, 0)
        } else {
            (word(2 + system_v_hash(name) as usize % word(0)), 2 + word(0))
        };
        core::iter::from_fn(move || {
            let this = index;
            index = if this == 0 { 0 } else { word(chain + this) };
            (this != 0).then_some(this)
        })
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes()
        .iter()
        .fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()))
}

fn system_v_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add((*byte).into());
        let top = hash & 0xf000_0000;
        (hash ^ (top >> 24)) & !top
    })
}
