//! How long a node that could not be reached is left alone.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The pause after this many failures in a row; no pause after 0. `dice` are random bits, so that nodes that lost the same node do not all
/// come back at the same moment. Pure.
pub(crate) fn pause(failures: u32, dice: u64) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let pause = FIRST.saturating_mul(1 << doublings.min(10)).min(LONGEST);
    // The pause is shortened by up to a quarter.
    pause - pause.mul_f64((dice % 1024) as f64 / 4096.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_two_seconds() {
        let pauses: Vec<u128> = (0..9).map(|failures| pause(failures, 0).as_millis()).collect();
        assert_eq!(pauses, [0, 50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pause(u32::MAX, 0), LONGEST);
        for dice in 0..2000 {
            let pause = pause(9, dice);
            assert!(pause <= LONGEST && pause > LONGEST * 3 / 4, "{pause:?}");
        }
    }
}
