//! Derives groups of cores and classes of distance from a time for each pair of CPUs.
//!
//! The times of all pairs are sorted. A new class begins where the next time is larger by a certain
//! factor. CPUs form a group if no pair of them is in a farther class.

use super::spread::Spread;

/// The factor by which a time must be larger to begin a new class.
const GAP: f64 = 1.25;

/// The least share of the pairs that a class has: rarer values are noise.
const LEAST: f64 = 0.002;

/// Hardware threads of a core take less than this many nanoseconds: 6.5 to 12.7 on 20 published
/// processors. The nearest cores of these processors take 19.9 and more.
const SIBLINGS: f64 = 16.0;

/// The shape of a machine, according to a matrix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Structure {
    pub packages: u32,
    pub groups: u32,
    pub cores: u32,
    pub threads: u32,
    /// Nanoseconds for each class of distance, from within a group on.
    pub classes: Vec<Spread>,
}

/// The structure, or why there is none.
pub(super) fn structure(matrix: &[Vec<f64>]) -> Result<Structure, String> {
    let count = matrix.len();
    if count < 2 {
        return Err("has fewer than two CPUs".to_owned());
    }
    if let Some(row) = matrix.iter().position(|row| row.len() != count) {
        return Err(format!("has {} numbers in row {} of {count}", matrix[row].len(), row + 1));
    }
    let times = times(matrix)?;
    let mut levels: Vec<Level> =
        classes(&times).into_iter().map(|most| level(matrix, most)).collect();
    // A level at which no more CPUs come together than at the one before is part of that one.
    levels.dedup_by(|later, earlier| {
        let same = later.size == earlier.size;
        if same {
            earlier.most = later.most;
        }
        same
    });
    if let Some(odd) = levels.iter().find(|level| !level.is_even) {
        return Err(format!(
            "has groups of different sizes among pairs of up to {} ns; leave out CPUs that do not have their fellows, or describe the machine by [topology] and [[hand_over]]",
            odd.most
        ));
    }
    let spread =
        |from: f64, to: f64| Spread::of(times.iter().filter(|ns| **ns > from && **ns <= to));
    let mut bounds = vec![0.0];
    bounds.extend(levels.iter().map(|level| level.most));
    let mut spreads: Vec<Spread> = bounds.windows(2).map(|pair| spread(pair[0], pair[1])).collect();
    let has_siblings = spreads.len() > 1 && levels[0].size <= 8 && spreads[0].value < SIBLINGS;
    let threads = if has_siblings { levels.remove(0).size } else { 1 };
    if has_siblings {
        spreads.remove(0);
    }
    let sizes: Vec<u32> = levels.iter().map(|level| level.size).collect();
    let (group, package, all) = match sizes[..] {
        [all] => (all, all, all),
        [group, all] => (group, group, all),
        [group, package, all] => (group, package, all),
        _ => {
            return Err(format!(
                "has {} classes of distance beside hardware threads; at most three are told apart: a group, a package, the machine",
                sizes.len()
            ));
        }
    };
    Ok(Structure {
        packages: all / package,
        groups: package / group,
        cores: group / threads,
        threads,
        classes: spreads,
    })
}

/// The times of all pairs, the mean of both ways.
fn times(matrix: &[Vec<f64>]) -> Result<Vec<f64>, String> {
    let mut times = Vec::new();
    for from in 0..matrix.len() {
        for to in 0..from {
            let ns = between(matrix, from, to);
            if !ns.is_finite() || ns <= 0.0 {
                return Err(format!("has no time between CPUs {from} and {to}"));
            }
            times.push(ns);
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// The mean of both ways, or the one that there is.
fn between(matrix: &[Vec<f64>], from: usize, to: usize) -> f64 {
    let known = |ns: f64| (ns.is_finite() && ns > 0.0).then_some(ns);
    match (known(matrix[from][to]), known(matrix[to][from])) {
        (Some(one), Some(other)) => f64::midpoint(one, other),
        (one, other) => one.or(other).unwrap_or(f64::NAN),
    }
}

/// The largest time of each class.
fn classes(times: &[f64]) -> Vec<f64> {
    let least = (LEAST * times.len() as f64).ceil() as usize;
    let mut ends: Vec<usize> = Vec::new();
    for (index, pair) in times.windows(2).enumerate() {
        let begin = ends.last().map_or(0, |end| end + 1);
        let is_large = index + 1 - begin >= least && times.len() - index > least;
        if pair[1] > GAP * pair[0] && is_large {
            ends.push(index);
        }
    }
    ends.push(times.len() - 1);
    ends.into_iter().map(|end| times[end]).collect()
}

/// The groups of CPUs that are formed by the pairs up to some time.
struct Level {
    most: f64,
    /// The number of CPUs of a group.
    size: u32,
    /// Whether all groups have the same number.
    is_even: bool,
}

fn level(matrix: &[Vec<f64>], most: f64) -> Level {
    let mut group: Vec<Option<usize>> = vec![None; matrix.len()];
    let mut sizes = Vec::new();
    for first in 0..matrix.len() {
        if group[first].is_some() {
            continue;
        }
        let (mut left, mut size) = (vec![first], 0);
        group[first] = Some(sizes.len());
        while let Some(cpu) = left.pop() {
            size += 1;
            for (other, of_other) in group.iter_mut().enumerate() {
                if of_other.is_none() && between(matrix, cpu, other) <= most {
                    *of_other = Some(sizes.len());
                    left.push(other);
                }
            }
        }
        sizes.push(size);
    }
    let is_even = sizes.iter().all(|size| *size == sizes[0]);
    Level { most, size: sizes[0], is_even }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two groups of four cores with two threads, siblings last.
    fn matrix() -> Vec<Vec<f64>> {
        let place = |cpu: usize| (cpu % 16, cpu % 16 / 4, cpu % 16 / 8);
        let ns = |from: usize, to: usize| {
            let ((core, group, package), (other, its_group, its_package)) =
                (place(from), place(to));
            let noise = 1.0 + ((from * 7 + to * 3) % 10) as f64 / 100.0;
            let ns = match () {
                () if from == to => 0.0,
                () if core == other => 8.0,
                () if group == its_group => 25.0,
                () if package == its_package => 110.0,
                () => 200.0,
            };
            ns * noise
        };
        (0..32).map(|from| (0..32).map(|to| ns(from, to)).collect()).collect()
    }

    #[test]
    fn the_shape_is_found() {
        let found = structure(&matrix()).unwrap();
        let Structure { packages, groups, cores, threads, classes } = found;
        assert_eq!((packages, groups, cores, threads), (2, 2, 4, 2));
        let values: Vec<f64> = classes.iter().map(|class| class.value.round()).collect();
        assert!((25.0..28.0).contains(&values[0]) && (110.0..121.0).contains(&values[1]));
        assert_eq!(classes.len(), 3);
    }

    #[test]
    fn near_cores_are_not_taken_for_hardware_threads() {
        let matrix = matrix();
        let cores = matrix[..16].iter().map(|row| row[..16].to_vec()).collect::<Vec<_>>();
        let found = structure(&cores).unwrap();
        assert_eq!((found.packages, found.groups, found.cores, found.threads), (2, 2, 4, 1));
    }

    #[test]
    fn half_of_a_matrix_is_enough() {
        let mut half = matrix();
        for (from, row) in half.iter_mut().enumerate() {
            row.iter_mut().skip(from + 1).for_each(|ns| *ns = f64::NAN);
        }
        assert_eq!(structure(&half).unwrap().cores, 4);
    }

    #[test]
    fn matrices_of_no_machine_are_refused() {
        assert!(structure(&[vec![0.0]]).unwrap_err().contains("fewer than two"));
        assert!(structure(&[vec![0.0, 1.0], vec![1.0]]).unwrap_err().contains("row 2"));
        let none = vec![vec![0.0, f64::NAN], vec![f64::NAN, 0.0]];
        assert!(structure(&none).unwrap_err().contains("no time between"));
        let mut odd = matrix();
        odd.truncate(20);
        odd.iter_mut().for_each(|row| row.truncate(20));
        assert!(structure(&odd).unwrap_err().contains("different sizes"));
    }
}
