//! Histograms as `sstablemetadata` draws them: bars, then percentiles of the values in buckets that grow by a fifth.

use super::size_text;
use super::units::date;

const BAR_WIDTH: u64 = 30;
const BUCKETS: usize = 165;

/// A histogram to be drawn.
pub(super) struct Histogram {
    title: &'static str,
    bins: Vec<(u64, u64)>,
    name: fn(u64) -> String,
}

pub(super) fn drop_times(secs: u64) -> String {
    let date = i64::try_from(secs).ok().filter(|secs| *secs != 0).map(date);
    date.map_or_else(|| format!("{secs} "), |date| format!("{secs} ({date})"))
}

pub(super) fn partition_sizes(size: u64) -> String {
    size_text(size)
}

impl Histogram {
    /// Of values and how often each was seen, ascending.
    pub(super) fn new(
        title: &'static str,
        bins: impl Iterator<Item = (u64, u64)>,
        name: fn(u64) -> String,
    ) -> Self {
        Self {
            title,
            bins: bins.filter(|(_, count)| *count > 0).collect(),
            name,
        }
    }

    pub(super) fn print(&self, out: &mut String) {
        let names: Vec<String> = self.bins.iter().map(|(value, _)| (self.name)(*value)).collect();
        let name_width = names
            .iter()
            .map(String::len)
            .chain([self.title.len()])
            .max()
            .unwrap_or(0);
        let counts = self.bins.iter().map(|(_, count)| count.to_string().len());
        let count_width = counts.chain([5]).max().unwrap_or(5);
        out.push_str(&format!(
            "   {:name_width$} | {:count_width$}  (%)  Histogram \n",
            self.title, "Count"
        ));
        let greatest = self.bins.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let sum = self
            .bins
            .iter()
            .fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        for (name, (_, count)) in names.iter().zip(&self.bins) {
            let percent = percent(*count, sum);
            let bar = bar(*count, greatest);
            out.push_str(&format!(
                "   {name:name_width$} | {count:count_width$} ({percent:3}) {bar}\n"
            ));
        }
        self.print_percentiles(out);
    }

    fn print_percentiles(&self, out: &mut String) {
        let buckets = Buckets::of(&self.bins);
        out.push_str("   Percentiles\n");
        let shares = [
            ("50th", 0.5),
            ("75th", 0.75),
            ("95th", 0.95),
            ("98th", 0.98),
            ("99th", 0.99),
        ];
        let percentiles = shares.map(|(name, share)| (name, buckets.percentile(share)));
        let ends = [("Min", buckets.least()), ("Max", buckets.greatest())];
        for (name, value) in percentiles.into_iter().chain(ends) {
            out.push_str(&format!("   {name:10}{}\n", (self.name)(value)));
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of 100"
)]
fn percent(count: u64, sum: u64) -> u64 {
    (100.0 * (count as f64 / sum as f64)) as u64
}

/// Whole characters, then a smaller one for what is left.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of the width"
)]
fn bar(count: u64, greatest: u64) -> String {
    let width = count as f64 / greatest as f64 * BAR_WIDTH as f64;
    let rest = width - width.floor();
    let last = match rest {
        rest if rest >= 0.75 => "o",
        rest if rest >= 0.3 => ".",
        _ => "",
    };
    format!("{}{last}", "O".repeat(width as usize))
}

/// Counts in buckets that grow by a fifth.
struct Buckets {
    ends: Vec<u64>,
    counts: Vec<u64>,
}

impl Buckets {
    fn of(bins: &[(u64, u64)]) -> Self {
        let mut ends = vec![1u64];
        while let (Some(last), true) = (ends.last().copied(), ends.len() < BUCKETS) {
            ends.push(((last.saturating_mul(12) + 5) / 10).max(last + 1));
        }
        let mut counts = vec![0u64; BUCKETS + 1];
        for (value, count) in bins {
            let bucket = &mut counts[ends.partition_point(|end| end < value)];
            *bucket = bucket.saturating_add(*count);
        }
        Self { ends, counts }
    }

    fn end(&self, bucket: usize) -> u64 {
        self.ends.get(bucket).copied().unwrap_or(u64::MAX >> 1)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the share is between 0 and 1"
    )]
    fn percentile(&self, share: f64) -> u64 {
        let sum = self
            .counts
            .iter()
            .fold(0u64, |sum, count| sum.saturating_add(*count));
        let wanted = (sum as f64 * share).ceil() as u64;
        let mut seen = 0u64;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if wanted > 0 && seen >= wanted {
                return self.end(bucket);
            }
        }
        0
    }

    fn least(&self) -> u64 {
        match self.counts.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(bucket) => self.end(bucket - 1) + 1,
        }
    }

    fn greatest(&self) -> u64 {
        let bucket = self.counts.iter().rposition(|count| *count > 0);
        bucket.map_or(0, |bucket| self.end(bucket))
    }
}
