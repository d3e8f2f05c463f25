//! The meaning of a file's mappings according to its program headers: the address in symbols' terms
//! for an address of a process.
//!
//! An offset in the file is not enough. Linkers put several segments into one page of the file,
//! which is then mapped several times (lld and mold always do so), and with a linker script any
//! distance between offsets and addresses is possible.

use object::{Object, ObjectSegment, ReadRef, SegmentFlags, elf};

use crate::analyze::names::modules::{CodeLocation, Range};

/// Mappings begin at multiples of this.
const PAGE: u64 = 4096;

/// The segments of a file that are loaded.
#[derive(Debug, Default)]
pub struct Segments(Vec<Segment>);

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    size_in_file: u64,
    size: u64,
    is_code: bool,
}

impl Segments {
    pub fn of<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> Self {
        let segment = |segment: object::Segment<'d, '_, R>| {
            let (offset, size_in_file) = segment.file_range();
            let is_code = match segment.flags() {
                SegmentFlags::Elf { p_flags, .. } => p_flags.contains(elf::PF_X),
                _ => false,
            };
            let (address, size) = (segment.address(), segment.size());
            Segment { offset, address, size_in_file, size, is_code }
        };
        Self(file.segments().map(segment).collect())
    }

    /// The address of a location, in terms of symbols; `None` if no segment is there.
    pub fn address_of(&self, place: &CodeLocation) -> Option<u64> {
        let biases = self.0.iter().filter_map(|segment| segment.bias(place.range));
        // The distance that explains most of the file's mappings. Among several such distances it
        // is the first, because segments come in the order of their addresses, and a single mapping
        // is the beginning of one.
        let explained =
            |bias: u64| place.ranges().map(|range| self.explains(bias, range)).sum::<u32>();
        let best = biases
            .map(|bias| (explained(bias), bias))
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let address = place.address.wrapping_sub(best?.1);
        let is_in = |segment: &Segment| address.wrapping_sub(segment.address) < segment.size;
        self.0.iter().any(is_in).then_some(address)
    }

    /// How well a mapping agrees with the file being loaded at this distance from its linked
    /// address: 2 if a segment has the same place and rights, 1 if only the place agrees.
    fn explains(&self, bias: u64, range: &Range) -> u32 {
        let of = |segment: &Segment| match segment.bias(range) == Some(bias) {
            true => 1 + u32::from(segment.is_code == range.is_code),
            false => 0,
        };
        self.0.iter().map(of).max().unwrap_or(0)
    }
}

impl Segment {
    /// The distance of this segment from its linked address if this mapping belongs to it; `None`
    /// if it cannot.
    fn bias(&self, range: &Range) -> Option<u64> {
        let first = self.offset & !(PAGE - 1);
        let end = self.offset.saturating_add(self.size_in_file);
        let end = end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let is_its = (first..end).contains(&range.offset);
        let linked = range.offset.wrapping_sub(self.offset).wrapping_add(self.address);
        is_its.then(|| range.start.wrapping_sub(linked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::names::modules::{Modules, NOW};

    fn segments(all: &[(u64, u64, u64, u64, bool)]) -> Segments {
        let segment = |&(offset, address, size_in_file, size, is_code)| Segment {
            offset,
            address,
            size_in_file,
            size,
            is_code,
        };
        Segments(all.iter().map(segment).collect())
    }

    fn address(segments: &Segments, maps: &str, address: u64) -> Option<u64> {
        let modules = Modules::of_maps((1, 0), maps.as_bytes());
        segments.address_of(&modules.find(address, NOW)?)
    }

    #[test]
    fn several_segments_in_the_first_page() {
        let all = segments(&[
            (0, 0, 0x6c0, 0x6c0, false),
            (0x6c0, 0x16c0, 0x200, 0x200, true),
            (0x8c0, 0x28c0, 0x100, 0x100, false),
            (0x9c0, 0x39c0, 0x40, 0x100, false),
        ]);
        let maps = "10000-11000 r--p 00000000 fe:00 9 /p\n\
                    11000-12000 r-xp 00000000 fe:00 9 /p\n\
                    12000-13000 r--p 00000000 fe:00 9 /p\n\
                    13000-14000 rw-p 00000000 fe:00 9 /p\n";
        let found = |at| address(&all, maps, at);
        assert_eq!([0x1_16c8, 0x1_39c8, 0x1_0010].map(found), [0x16c8, 0x39c8, 0x10].map(Some));
        // Zero-initialised data, and what is behind it.
        assert_eq!((found(0x1_3abf), found(0x1_3ac0)), (Some(0x3abf), None));
        // The code alone, as some lists have it.
        let code = "11000-12000 r-xp 00000000 fe:00 9 /p\n";
        assert_eq!(address(&all, code, 0x1_16c8), Some(0x16c8));
    }

    #[test]
    fn any_distance_between_offsets_and_addresses() {
        // A linker script, or a library that was prelinked to be elsewhere.
        let all = segments(&[
            (0x1000, 0x70_0000, 0x800, 0x800, true),
            (0x3000, 0x10_0000, 0x10, 0x9000, false),
        ]);
        let maps = "7000100000-7000101000 rw-p 00003000 fe:00 9 /p\n\
                    7000700000-7000701000 r-xp 00001000 fe:00 9 /p\n";
        let found = |at| address(&all, maps, at);
        assert_eq!(found(0x70_0070_0010), Some(0x70_0010));
        assert_eq!(found(0x70_0010_0010), Some(0x10_0010));
        // Zero-initialised data of more than a page has no file behind it.
        assert_eq!(found(0x70_0010_8fff), Some(0x10_8fff));
        assert_eq!(found(0x70_0010_9000), None);
    }

    #[test]
    fn a_part_of_a_segment_and_a_library_that_is_loaded_twice() {
        let all = segments(&[(0, 0, 0x800, 0x800, false), (0x1000, 0x1000, 0x3000, 0x3000, true)]);
        let maps = "10000-11000 r--p 00000000 fe:00 9 /p\n\
                    12000-13000 r-xp 00002000 fe:00 9 /p\n\
                    20000-21000 r--p 00000000 fe:00 9 /p\n\
                    21000-24000 r-xp 00001000 fe:00 9 /p\n";
        let found = |at| address(&all, maps, at);
        assert_eq!([0x1_2010, 0x2_3010].map(found), [0x2010, 0x3010].map(Some));
        // Code that the program has copied to larger pages, as some do.
        assert_eq!((found(0x1_1010), found(0x1_8000)), (Some(0x1010), None));
    }
}
